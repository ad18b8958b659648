"""Estimate the gain of plans on GPUs from the peak rates of their units."""

from __future__ import annotations

from collections.abc import Mapping

from ..._measures.ways import select

#: Products by format in 10^12 operations per second, without sparsity (vendors' figures
#: "with sparsity" are twice as large). H100: NVIDIA's data sheet of the H100
#: SXM. B200: NVIDIA's Blackwell architecture technical overview, one GPU of an HGX B200
#: at 1000 W; BF16 is 28 times FP32 there. float64 is that of the tensor cores.
PEAKS: Mapping[str, Mapping[str, float]] = {
    "B200": {
        "float64": 40.0,
        "float32": 80.0,
        "tf32": 1100.0,
        "bfloat16": 2250.0,
        "float16": 2250.0,
        "float8_e4m3fn": 4500.0,
        "float8_e5m2": 4500.0,
    },
    "H100": {
        "float64": 67.0,
        "float32": 67.0,
        "tf32": 494.7,
        "bfloat16": 989.4,
        "float16": 989.4,
        "float8_e4m3fn": 1978.9,
        "float8_e5m2": 1978.9,
    },
}


def seconds_a_product(gpu: str, precision: str | None, dtype: str) -> float:
    """Return the time of 10^12 operations at the peak of a precision, or of a dtype."""
    peaks = PEAKS[gpu]
    if precision is None:
        return 1 / peaks["float64" if dtype in ("float64", "complex128") else "float32"]
    (way,) = select([precision])
    assert way.precision is not None
    return way.products / peaks[way.precision.format]


def gain(gpu: str, shares: Mapping[tuple[str | None, str], float], base: str) -> float:
    """How many times faster products are than all of them in `base`.

    Parameters
    ----------
    gpu : str
        One of `PEAKS`.
    shares : mapping
        (precision, dtype): the share of the multiply-adds.
    base : str
        "float32" or "float64".
    """
    time = sum(
        share * seconds_a_product(gpu, precision, dtype)
        for (precision, dtype), share in shares.items()
    )
    return seconds_a_product(gpu, None, base) * sum(shares.values()) / time
