"""The names of formats: one spelling for all aliases, and advice on unknown names."""

from __future__ import annotations

import re
from typing import Literal, get_args

from .. import _core
from .._base.wording import did_you_mean

#: The formats, in the order of src/formats/formats.h.
FormatName = Literal[
    "tf32",
    "bfloat16",
    "float8_e5m2",
    "float8_e4m3fn",
    "float8_e4m3",
    "float8_e3m4",
    "float8_e5m2fnuz",
    "float8_e4m3fnuz",
    "float8_e4m3b11fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
]
FormatAlias = Literal["bf16", "fp8_e4m3", "fp8_e5m2", "fp4"]
#: NumPy's floats that arithmetic can be rounded to, besides formats.
NumPyName = Literal[
    "float16", "fp16", "f16", "half", "float32", "fp32", "f32", "single"
]
#: The block formats, in the order of their rows in blocks/formats.py. Errors use these
#: names to say where to find a block format that is given as a number format.
BlockFormatName = Literal[
    "tcfp8",
    "tcfp12",
    "tcfp16",
    "mxfp8_e4m3",
    "mxfp8_e5m2",
    "mxfp6_e2m3",
    "mxfp6_e3m2",
    "mxfp4",
    "mxint8",
    "nvfp4",
    "int8",
    "int12",
    "int16",
]
BlockFormatAlias = Literal["mxfp8"]
BlockFormatNamed = BlockFormatName | BlockFormatAlias

#: Short names of the formats, for NumPy too. They are attributes of the package.
ALIASES: dict[str, tuple[FormatAlias, ...]] = {
    "bfloat16": ("bf16",),
    "float8_e4m3fn": ("fp8_e4m3",),
    "float8_e5m2": ("fp8_e5m2",),
    "float4_e2m1fn": ("fp4",),
}
#: Short names of NumPy's floats, for functions that accept these floats, too.
NUMPY_ALIASES: dict[str, tuple[str, ...]] = {
    "float16": ("fp16", "f16", "half"),
    "float32": ("fp32", "f32", "single"),
    "float64": ("fp64", "f64", "double"),
}
BLOCK_FORMATS = get_args(BlockFormatName)
#: Short names of block formats. A short name means the most common format.
BLOCK_ALIASES: dict[str, tuple[BlockFormatAlias, ...]] = {"mxfp8_e4m3": ("mxfp8",)}
_CANONICAL = {
    alias: name
    for name, aliases in ({**ALIASES, **NUMPY_ALIASES, **BLOCK_ALIASES}).items()
    for alias in aliases
}

_FP8 = (
    "Use fp8_e4m3 (float8_e4m3fn: more precision, up to 448)"
    " or fp8_e5m2 (float8_e5m2: more range, up to 57344)"
)
_FP6 = (
    "Use float6_e2m3fn (more precision, up to 7.5) or"
    " float6_e3m2fn (more range, up to 28)"
)
_AMBIGUOUS = {"fp8": _FP8, "float8": _FP8, "fp6": _FP6, "float6": _FP6}
_KINDS = {
    "fp8": ("float8_e4m3fn", "float8_e5m2"),
    "fp6": ("float6_e2m3fn", "float6_e3m2fn"),
    "mxfp6": ("mxfp6_e2m3", "mxfp6_e3m2"),
}
# The pattern is compiled only for an error, which saves time at import.
_BLOCKS = r"(mx|nv)(fp|int)?\d+\w*|tcfp\d+|int(8|12|16)"
_LAYOUT = r"e\d+m\d+|float4"


def canonical(name: str) -> str:
    """Return the full name of a format in small letters.

    These are the formats of this package and NumPy's floats. Other names are only put
    into small letters.
    """
    small = name.lower()
    return _CANONICAL.get(small, small)


def meanings(name: str) -> tuple[str, ...]:
    """Return the full names of the formats that a name may mean: two for "fp6"."""
    small = name.lower()
    kind = re.sub("^float", "fp", small) if small in _AMBIGUOUS else small
    return _KINDS.get(kind, (canonical(name),))


def cure(name: str) -> str | None:
    """Advise on a name that is not a format's; None if there is no advice.

    The sentence says which name to write instead.
    """
    small = name.lower()
    if small in _AMBIGUOUS:
        return _AMBIGUOUS[small]
    if canonical(name) in NUMPY_ALIASES:
        return f"Use NumPy's np.{canonical(name)}"
    if re.fullmatch(_BLOCKS, small):
        kinds = [known for known in BLOCK_FORMATS if known.startswith(small)]
        lines = [f"td.blocks.quantize(x, {kind!r})" for kind in kinds]
        near = did_you_mean(small, BLOCK_FORMATS)
        return f"Use {' or '.join(lines) or f'one of td.blocks.formats. {near}'}"
    layout = re.search(_LAYOUT, small)
    return did_you_mean(layout[0], _core.names) or None if layout else None
