"""Parameters of the block formats, copied from their definitions for the tests."""

from __future__ import annotations

#: element, residual, scale format (None: the tensor chooses it), block size, rule
ROWS: dict[str, tuple[str, str | None, str | None, int, str]] = {
    "tcfp8": ("float8_e4m3fn", None, None, 32, "mse"),
    "tcfp12": ("float8_e4m3fn", "int4", None, 32, "mse"),
    "tcfp16": ("float8_e4m3fn", "float8_e4m3fn", None, 32, "mse"),
    "mxfp8_e4m3": ("float8_e4m3fn", None, "float8_e8m0fnu", 32, "floor"),
    "mxfp8_e5m2": ("float8_e5m2", None, "float8_e8m0fnu", 32, "floor"),
    "mxfp6_e2m3": ("float6_e2m3fn", None, "float8_e8m0fnu", 32, "floor"),
    "mxfp6_e3m2": ("float6_e3m2fn", None, "float8_e8m0fnu", 32, "floor"),
    "mxfp4": ("float4_e2m1fn", None, "float8_e8m0fnu", 32, "floor"),
    "mxint8": ("mxint8", None, "float8_e8m0fnu", 32, "floor"),
    "nvfp4": ("float4_e2m1fn", None, "ue4m3", 16, "floor"),
    "int8": ("int8", None, None, 32, "mse"),
    "int12": ("int12", None, None, 32, "mse"),
    "int16": ("int16", None, None, 32, "mse"),
}
