"""Symbols of products that can be intercepted, and their meaning."""

from __future__ import annotations

import pytest

from tf32dtype import _core

ALL, REAL, COMPLEX = "sdcz", "sd", "cz"
# Routines of both interfaces, and the letters of their types.
BOTH = {
    "gemm": ALL, "gemm3m": COMPLEX, "gemv": ALL, "symm": ALL, "hemm": COMPLEX,
    "syrk": ALL, "herk": COMPLEX, "syr2k": ALL, "her2k": COMPLEX, "trmm": ALL,
    "symv": REAL, "hemv": COMPLEX, "trmv": ALL, "gemmt": ALL, "gemmtr": ALL,
    "dot": REAL,
}  # fmt: skip
CBLAS = {
    "gemm_batch": ALL, "gemm_batch_strided": ALL, "dotu_sub": COMPLEX,
    "dotc_sub": COMPLEX,
}  # fmt: skip
FORTRAN = {"dotu": COMPLEX, "dotc": COMPLEX}
SAME = {"gemm3m": "gemm", "gemmtr": "gemmt", "dotu": "dot"}

Named = tuple[str, str, bool, bool, bool, int]


def routines(table: dict[str, str]) -> dict[str, tuple[str, str, bool, int]]:
    """Return by full name: the counted routine, the type, whether _sub, wider."""
    found = {}
    for name, types in table.items():
        base, sub, _ = name.partition("_sub")
        for kind in types:
            found[kind + name] = (SAME.get(base, base), kind, bool(sub), 0)
    if table is BOTH:
        found["dsdot"] = ("dot", "s", False, 1)
        found["sdsdot"] = ("dot", "s", False, 2)
    return found


def names() -> dict[str, Named]:
    found: dict[str, Named] = {}
    both = routines(BOTH)
    for name, (routine, kind, sub, wider) in (both | routines(CBLAS)).items():
        for symbol, wide in (
            (f"cblas_{name}", False),
            (f"scipy_cblas_{name}", False),
            (f"cblas_{name}64_", True),
            (f"scipy_cblas_{name}64_", True),
            (f"cblas_{name}_64", True),
        ):
            found[symbol] = (routine, kind, True, wide, sub, wider)
    for name, (routine, kind, sub, wider) in (both | routines(FORTRAN)).items():
        for symbol, wide in (
            (f"{name}_", False),
            (f"scipy_{name}_", False),
            (f"{name}_64_", True),
            (f"scipy_{name}_64_", True),
            (name, False),
            (f"{name}_64", True),
            (name.upper(), False),
        ):
            found[symbol] = (routine, kind, False, wide, sub, wider)
    return found


def test_all_names() -> None:
    found = names()
    assert len(found) > 600
    for symbol, named in found.items():
        assert _core.BlasCall(symbol, []).named == named, symbol


def test_no_other_names() -> None:
    """Recognize no other combination of name components, and no similar name."""
    known = names()
    parts = [
        *BOTH,
        *CBLAS,
        *FORTRAN,
        "ger",
        "trsm",
        "trsv",
        "axpy",
        "getrf",
        "sdot",
        "",
    ]
    tried = 0
    for prefix in ("", "scipy_", "cblas_", "scipy_cblas_", "cblas_scipy_", "my"):
        for kind in ("s", "d", "c", "z", "ds", "sds", "x", ""):
            for part in parts:
                for suffix in ("", "_", "64_", "_64_", "_64", "64", "__", "x"):
                    symbol = prefix + kind + part + suffix
                    for name in {symbol, symbol.upper(), symbol.capitalize()} - {
                        *known
                    }:
                        tried += 1
                        with pytest.raises(LookupError):
                            _core.BlasCall(name, [])
    assert tried > 10000
