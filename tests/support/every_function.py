"""List every public function, with calls that take arrays of a format.

A test of other array types that our functions accept (of ml_dtypes, tensors) iterates
over `CALLS`. It calls each row with `operands(row, form)` and with the same operands as
the other library has them, and compares `plain` of both results. `missing` lists the
names that have neither a row nor a reason to have none.
"""

from __future__ import annotations

import inspect
import io
import zipfile
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

import tf32dtype as td

MODULES = (td, td.blocks, td.linalg, td.tensor_core)
FORMATS = tuple(td.formats)
BYTES = tuple(name for name in FORMATS if td.formats[name].bits <= 8)
_TENSOR_CORE = ("tf32", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn")


class Call(NamedTuple):
    """Describe a call that takes arrays of one format."""

    call: Callable[..., Any]
    #: one shape for each array that the call takes
    shapes: tuple[tuple[int, ...], ...] = ((4, 32),)
    formats: tuple[str, ...] = FORMATS


def operands(row: Call, form: str) -> list[np.ndarray[Any, Any]]:
    """Return arrays of a row's shapes, rounded to the format from ordinary numbers."""
    rng = np.random.default_rng(7)
    numbers = [rng.uniform(0.3, 1.9, shape) for shape in row.shapes]
    return [np.asarray(x).astype(td.formats[form].dtype) for x in numbers]


def plain(result: Any) -> Any:
    """Convert a result for `==`: an array becomes its dtype, shape and bits."""
    if isinstance(result, np.ndarray | np.generic):
        array = np.ascontiguousarray(result)
        return array.dtype.type, np.shape(result), array.tobytes()
    if isinstance(result, td.blocks.BlockArray):
        return repr(result), result.tobytes()
    if isinstance(result, td.blocks.TileArray):
        return [repr(result), plain(result.elements), plain(result.scales)]
    if isinstance(result, dict):
        return {name: plain(value) for name, value in result.items()}
    if isinstance(result, tuple | list):
        return [plain(value) for value in result]
    return result


# -- calls that need several lines ----------------------------------------------------


def _saved(x: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    td.save(stream, x, **options)
    return stream.getvalue()


def _members(save: Callable[..., None], x: Any, **options: Any) -> dict[str, bytes]:
    stream = io.BytesIO()
    save(stream, x, again=x, **options)
    with zipfile.ZipFile(stream) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _exchanged(x: Any) -> Any:
    return td.from_dlpack(td.to_dlpack(x))


def _from_codes(x: Any) -> Any:
    scales = np.full((4, 1), 127, np.uint8)
    return td.blocks.BlockArray.from_codes("mxfp4", x, scales, shape=(4, 32))


def _from_scales(x: Any) -> Any:
    codes = np.zeros((4, 1, 16), np.uint8)
    return td.blocks.BlockArray.from_codes("mxfp4", codes, x, shape=(4, 32))


def _tiles(codes: Any, scales: Any) -> Any:
    return td.blocks.TileArray.from_codes("float8_e4m3fn", codes, scales, (2, 16))


def _fed_back(x: Any) -> Any:
    feedback = td.blocks.ErrorFeedback("mxfp4")
    return [feedback.quantize(x), feedback(x), feedback.error]


def _blocks() -> Any:
    return td.blocks.quantize(np.linspace(-3, 3, 128).reshape(4, 32), "mxfp8_e4m3")


def _in_scope(x: Any) -> Any:
    with td.matmul_precision("bf16"):
        return td.matmul(x, x)


def _identified(x: Any, y: Any) -> Any:
    d = td.tensor_core.matmul(x, y, device="H100")
    found = [*td.tensor_core.identify(x, y, None, d)]
    found += td.tensor_core.identify(x, y, None, d, unit="Hopper", bias=0, alpha=1)
    return [hypothesis.name for hypothesis in found]


_SQUARE = ((4, 4),)
_PAIR = ((4, 32), (32, 3))
_VECTORS = ((8,), (8,))
_SYSTEM = ((2, 2), (2,), (2,))

#: The key is the name that a user writes. The name of a method begins with its class.
CALLS: dict[str, list[Call]] = {
    **{f"td.{name}": [Call(getattr(td, name), ((),))] for name in FORMATS},
    "td.as_ml_dtypes": [Call(td.as_ml_dtypes, formats=FORMATS[1:])],
    "td.bits": [Call(td.bits), Call(td.bits, ((),))],
    "td.einsum": [
        Call(lambda x, y: td.einsum("ij,jk->ik", x, y), _PAIR),
        Call(lambda x: td.einsum("ij->j", x, dtype="bf16")),
        Call(lambda x: td.einsum("ij->ji", x)),
        Call(lambda x, y: td.einsum("ij,jk", x, y, precision="exact"), _PAIR),
        Call(lambda x: td.einsum("ij->", x, precision="exact", rounding="toward_zero")),
    ],
    "td.error_bound": [Call(lambda x, y: td.error_bound(x, y, unit="float32"), _PAIR)],
    "td.exact_sum": [
        Call(td.exact_sum),
        Call(lambda x: td.exact_sum(x, 0, dtype=np.float64, rounding="toward_zero")),
    ],
    "td.from_ml_dtypes": [Call(td.from_ml_dtypes)],
    "td.matmul": [
        Call(td.matmul, _PAIR),
        Call(lambda x, y: td.matmul(x, y, dtype=np.float32), _PAIR),
        Call(lambda x, y: td.matmul(x, y, dtype="bf16"), _PAIR),
        Call(lambda x, y: td.matmul(x, y, precision="exact"), _PAIR),
        Call(lambda x, y: td.matmul(x, y, precision="exact", bound=True), _PAIR),
        Call(lambda x: td.matmul(x, np.ones(32, np.float32))),
    ],
    "td.matmul_precision": [Call(_in_scope, _SQUARE)],
    "td.pack": [
        Call(td.pack),
        Call(lambda x: td.pack(x, order="high"), ((3, 5),), BYTES),
    ],
    "td.quantize": [
        Call(lambda x: td.quantize(x, "float8_e5m2")),
        Call(lambda x: td.quantize(x, np.float32)),
        Call(lambda x: td.quantize(x, "tf32", rounding="toward_zero")),
        Call(lambda x: td.quantize(x, "fp4"), ((),)),
    ],
    "td.save": [Call(_saved), Call(lambda x: _saved(x, header="names"))],
    "td.savez": [Call(lambda x: _members(td.savez, x))],
    "td.savez_compressed": [Call(lambda x: _members(td.savez_compressed, x))],
    "td.to_dlpack": [Call(_exchanged, formats=FORMATS[1:])],
    "td.ulp_distance": [Call(td.ulp_distance, _SQUARE * 2)],
    "td.blocks.BlockArray.from_codes": [
        Call(_from_codes, formats=("float4_e2m1fn",)),
        Call(_from_scales, ((4, 1),), ("float8_e8m0fnu",)),
    ],
    "td.blocks.ErrorFeedback.quantize": [Call(_fed_back)],
    "td.blocks.matmul": [
        Call(lambda x: td.blocks.matmul(x, _blocks().T)),
        Call(lambda x: td.blocks.matmul(_blocks(), x), ((32, 3),)),
        Call(lambda x: td.blocks.matmul(x, _blocks().T, dtype="tf32")),
    ],
    "td.blocks.quantize": [
        Call(lambda x: td.blocks.quantize(x, "mxfp4")),
        Call(lambda x: td.blocks.quantize(x, "nvfp4", axis=0)),
        Call(lambda x: td.blocks.quantize(x, "tcfp16", overflow="saturate")),
    ],
    "td.blocks.TileArray.from_codes": [
        Call(
            lambda x: _tiles(x, np.ones((2, 2), np.float32)), formats=("float8_e4m3fn",)
        ),
        Call(
            lambda x: _tiles(np.zeros((4, 32), np.uint8), x),
            ((2, 2),),
            ("bfloat16", "float8_e8m0fnu"),
        ),
    ],
    "td.blocks.quantize_tiles": [
        Call(lambda x: td.blocks.quantize_tiles(x, tile=(2, 16)))
    ],
    "td.blocks.swizzle_scales": [
        Call(td.blocks.swizzle_scales, formats=("float8_e4m3fn", "float8_e8m0fnu"))
    ],
    "td.blocks.unswizzle_scales": [
        Call(
            lambda x: td.blocks.unswizzle_scales(x, (7, 16), "8x4"),
            ((8, 16),),
            ("float8_e4m3fn", "float8_e8m0fnu"),
        )
    ],
    "td.blocks.round": [Call(lambda x: td.blocks.round(x, "mxfp6_e2m3"))],
    "td.linalg.backward_error": [Call(td.linalg.backward_error, _SYSTEM)],
    "td.linalg.cholesky": [Call(td.linalg.cholesky, ((2, 1, 1),))],
    "td.linalg.lu": [Call(lambda x: td.linalg.lu(x, precision="bf16"), _SQUARE)],
    "td.linalg.solve": [Call(td.linalg.solve, _SYSTEM[:2])],
    "td.tensor_core.explain": [
        Call(
            lambda x, y: td.tensor_core.explain(x, y, device="H100"),
            _VECTORS,
            _TENSOR_CORE[:4],
        )
    ],
    "td.tensor_core.identify": [Call(_identified, _PAIR, _TENSOR_CORE[:4])],
    "td.tensor_core.matmul": [
        Call(
            lambda x, y: td.tensor_core.matmul(x, y, device="H100"),
            _PAIR,
            _TENSOR_CORE[:4],
        ),
        Call(
            lambda x, y: td.tensor_core.matmul(x, y, device="B200"),
            _PAIR,
            _TENSOR_CORE,
        ),
    ],
}

#: Names that take no array of a format, with the reason.
NO_ARRAYS: dict[str, str] = {
    "td.Format": "a row of facts",
    "td.arithmetic": "a scope of NumPy's float32",
    "td.arithmetic.call_sites": "figures",
    "td.arithmetic.functions": "names",
    "td.free_buffers": "no arguments",
    "td.from_bits": "takes codes",
    "td.from_dlpack": "takes what has __dlpack__, see tests/interop/test_dlpack.py",
    "td.isa": "no arguments",
    "td.load": "takes a file",
    "td.names": "takes a name",
    "td.report": "a scope",
    "td.report.print": "takes a stream",
    "td.report.save": "takes a path",
    "td.set_matmul_precision": "takes names",
    "td.show_config": "no arrays",
    "td.explain_matmul": "reads no values",
    "td.unpack": "takes bytes",
    "td.blocks.BlockArray": "made by quantize",
    "td.blocks.BlockArray.tobytes": "no arguments",
    "td.blocks.BlockArray.dequantize": "takes a float32 array, to write into",
    "td.blocks.BlockArray.to_torch_scaled_mm": "no arguments",
    "td.blocks.recode": "takes blocks and tiles",
    "td.blocks.BlockFormat": "a row of facts",
    "td.blocks.BlockFormat.bits": "takes a number",
    "td.blocks.ErrorFeedback": "takes a name",
    "td.blocks.ErrorFeedback.reset": "no arguments",
    "td.blocks.ErrorFeedback.state_dict": "no arguments",
    "td.blocks.ErrorFeedback.load_state_dict": "takes float32",
    "td.blocks.TileArray": "made by quantize_tiles",
    "td.blocks.TorchOperand": "what to_torch_scaled_mm returns",
    "td.blocks.TileArray.dequantize": "takes an array to write into",
    "td.linalg.BackwardError": "what backward_error returns",
    "td.linalg.LU": "what lu returns",
    "td.linalg.Solution": "what solve returns",
    "td.tensor_core.BlockScaled": "a row of facts",
    "td.tensor_core.Contested": "a row of facts",
    "td.tensor_core.Device": "a row of facts",
    "td.tensor_core.Hypothesis": "what identify returns",
    "td.tensor_core.Hypothesis.matmul": "of what identify returns",
    "td.tensor_core.Identification": "what identify returns",
    "td.tensor_core.Model": "a row of facts",
    "td.tensor_core.Aligned": "a row of facts",
    "td.tensor_core.Rounded": "a row of facts",
}


def missing() -> list[str]:
    """Return the public names without a row, and the rows whose name does not exist."""
    public = set(_public())
    return sorted(public ^ (CALLS.keys() | NO_ARRAYS.keys()))


def _public() -> Iterator[str]:
    for module in MODULES:
        prefix = module.__name__.replace("tf32dtype", "td")
        for name in module.__all__:
            found = getattr(module, name)
            if isinstance(found, ModuleType) or not callable(found):
                continue
            is_scalar = isinstance(found, type) and issubclass(found, np.generic)
            if is_scalar and found.__name__ != name:
                continue  # `found` is listed under its full name
            yield f"{prefix}.{name}"
            if not isinstance(found, type) or is_scalar:
                continue
            for method, value in inspect.getmembers_static(found):
                kinds = (staticmethod, classmethod)
                is_method = inspect.isfunction(value) or isinstance(value, kinds)
                if is_method and not method.startswith("_") and _is_own(found, method):
                    yield f"{prefix}.{name}.{method}"


def _is_own(kind: type, method: str) -> bool:
    """Return whether a class has the method from a class of this package."""
    home = next(base for base in kind.__mro__ if method in vars(base))
    return home.__module__.startswith("tf32dtype")
