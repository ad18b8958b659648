"""Errors for arguments of a wrong type: they name the argument and the given value."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype
from tf32dtype import _core

from .shape import faults
from .test_files import NEEDS

#: No types, as the calls are wrong on purpose.
td: Any = tf32dtype
ONES = np.ones((4, 64), np.float32)
PACKED = td.blocks.quantize(ONES, "mxfp4")
FEEDBACK = td.blocks.ErrorFeedback("mxfp4")
SCALES = np.ones((1, 1), np.float32)
ANY = "must be one of td.formats"
A_FILE = "file must be a path or a binary file; got"
A_PATH = "path must be the path of a file; got"


def tiles(*args: Any, **options: Any) -> Callable[[], object]:
    return lambda: td.blocks.TileArray.from_codes(*args, **options)


def state(rng: object) -> object:
    """Load the state of a feedback with random numbers, whose generator is wrong."""
    generator = np.random.default_rng(0)
    feedback = td.blocks.ErrorFeedback("mxfp4", rounding="stochastic", rng=generator)
    return feedback.load_state_dict({**feedback.state_dict(), "rng": rng})


def opened() -> Any:
    td.safetensors.save("a.safetensors", {"a": ONES})
    return td.safetensors.open("a.safetensors")


def dataset(dtype: Any, act: Callable[[Any], object]) -> Callable[[], object]:
    """Return a call with a dataset of zeros of the shape (2, 3)."""

    def call() -> object:
        import h5py

        with h5py.File("a.h5", "w") as file:
            return act(td.hdf5.write(file, "w", np.zeros((2, 3), dtype)))

    return call


def assign(dtype: Any, *args: Any) -> Callable[[], object]:
    return dataset(dtype, lambda found: td.hdf5.assign(found, *args))


def onnx(**options: Any) -> object:
    return td.interop.onnx.to_array(td.interop.onnx.from_array(ONES), **options)


def lazy() -> Any:
    import dask.array as da

    return td.interop.dask.quantize(da.ones((4, 64)), "mxfp4")


CASES: dict[str, tuple[Callable[[], object], str]] = {
    "save.file": (lambda: td.save(3, ONES), f"{A_FILE} 3"),
    "save.text": (lambda: td.save(io.StringIO(), ONES), "the file must be open in"),
    "savez.file": (lambda: td.savez(None, ONES), f"{A_FILE} None"),
    "load.file": (lambda: td.load(3), f"{A_FILE} 3"),
    "load.dtype": (lambda: td.load("a.npy", dtype=3), f"dtype {ANY}; got 3"),
    "safetensors.load": (
        lambda: td.safetensors.load(3),
        "path must be the path of a file or folder; got 3",
    ),
    "safetensors.save": (lambda: td.safetensors.save(3, {}), f"{A_PATH} 3"),
    "safetensors.name": (lambda: opened().info([]), "[] is not a tensor of a.safe"),
    "gguf.load": (lambda: td.interop.gguf.load(3), f"{A_PATH} 3"),
    "gguf.open": (lambda: td.interop.gguf.open(None), f"{A_PATH} None"),
    "arithmetic.plan": (
        lambda: td.arithmetic(plan=3),
        "plan must be the path of a file; got 3",
    ),
    "matmul_precision.plan": (
        lambda: td.matmul_precision(plan=3),
        "plan must be the path of a file; got 3",
    ),
    "from_dlpack.copy": (
        lambda: td.from_dlpack(ONES, copy="x"),
        "copy must be True, False or None; got 'x'",
    ),
    "quantize.dtype": (
        lambda: td.quantize(ONES, 3),
        f"dtype {ANY}, float16 or float32; got 3",
    ),
    "from_bits.dtype": (
        lambda: td.from_bits(3, "bf17"),
        f"dtype {ANY}; got 'bf17'. Did you mean bf16?",
    ),
    "matmul.dtype": (
        lambda: td.matmul(ONES, ONES.T, dtype=3),
        f"dtype {ANY} or NumPy's dtypes; got 3",
    ),
    "report.target_db": (
        lambda: td.report(target_db="x"),
        "target_db must be a number; got 'x'",
    ),
    "report.precision": (
        lambda: td.report(precision=3),
        "precision must be a string or several strings; got 3",
    ),
    "report.device": (lambda: td.report(device=[3]), "device must be strings; got 3"),
    "report.stop_at": (lambda: td.report(stop_at=[3]), "stop_at must be strings; got"),
    "report.only": (lambda: td.report(only=b"x"), "only must be strings; got 120"),
    "report.excepted": (
        lambda: td.report(excepted=3),
        "excepted must be a string or several strings; got 3",
    ),
    "report.arithmetic": (lambda: td.report(arithmetic=3), f"arithmetic {ANY}, float"),
    "blocks.bits_of_0": (
        lambda: td.blocks.formats["mxfp4"].bits(0),
        "block_size must be one of 16, 32, 64 or 128; got 0",
    ),
    "blocks.bits": (
        lambda: td.blocks.formats["mxfp4"].bits("x"),
        "block_size must be an integer; got 'x'",
    ),
    "blocks.dtype": (
        lambda: PACKED.dequantize("fp9"),
        "dtype must be float32, float64, float16 or one of td.formats; got 'fp9'",
    ),
    "feedback.state": (
        lambda: FEEDBACK.load_state_dict(3),
        "state must be a result of state_dict(); got 3",
    ),
    "feedback.rng": (
        lambda: state({}),
        "state['rng'] must be the state of a PCG64; got {}",
    ),
    "tiles.format": (tiles(ONES, ONES, SCALES), f"format {ANY}; got an array"),
    "tiles.int8": (
        tiles("int8", [[1, 128]], SCALES),
        "codes must be int8 values from -128 to 127; got 128",
    ),
    "tiles.uint8": (
        tiles("uint8", [[1, -1]], SCALES),
        "codes must be uint8 values from 0 to 255; got -1",
    ),
    "tiles.zero_points": (
        tiles("int8", [[1]], SCALES, zero_points=[[300]]),
        "zero_points must be int8 values from -128 to 127; got 300",
    ),
    "tiles.axes": (tiles("int8", [1], SCALES), "codes must have at least two axes"),
    "tensor_core.c": (
        lambda: td.tensor_core.matmul(
            ONES.astype("f2"), ONES.T.astype("f2"), 2**200, device="H100"
        ),
        "c must be within the range of float32; got 160693804",
    ),
    "hdf5.load": (lambda: td.hdf5.load(3), f"{A_PATH} 3"),
    "hdf5.save": (lambda: td.hdf5.save(3, {}), f"{A_PATH} 3"),
    "hdf5.name": (
        dataset("f4", lambda w: td.hdf5.write(w.parent, 3, ONES)),
        "name must be a string; got 3",
    ),
    "hdf5.write": (
        dataset("f4", lambda w: td.hdf5.write(w.parent, "a", ["a"], dtype="bf16")),
        "a must have values that convert to bfloat16; got an array of <U1",
    ),
    "hdf5.fillvalue": (
        dataset(
            "f4",
            lambda w: td.hdf5.write(
                w.parent, "a", np.ones(2, td.bf16), fillvalue=["a"]
            ),
        ),
        "fillvalue must have values that convert to bfloat16; got an array of <U1",
    ),
    "hdf5.assign": (
        assign(td.bf16, ..., ["a"]),
        "a must have values that convert to bfloat16; got an array of <U1",
    ),
    "hdf5.assign_float32": (
        assign("f4", ..., ["a"]),
        "a must have values that convert to float32; got an array of <U1",
    ),
    "hdf5.shape": (
        assign(td.bf16, 0, np.zeros(5)),
        "a must broadcast to selection 0 of /w, which has shape (2, 3); got shape (5,)",
    ),
    "hdf5.shape_float32": (
        assign("f4", 0, np.zeros(5)),
        "a must broadcast to selection 0 of /w, which has shape (2, 3); got shape (5,)",
    ),
    "onnx.dtype_of": (
        lambda: td.interop.onnx.dtype_of(3),
        "tensor must be an onnx.TensorProto; got 3",
    ),
    "onnx.base_dir": (
        lambda: onnx(base_dir=3),
        "base_dir must be the path of the model's folder; got 3",
    ),
    "onnx.name": (
        lambda: td.interop.onnx.from_array(ONES, 3),
        "name must be a string or None; got 3",
    ),
    "dask.dtype": (
        lambda: lazy().dequantize(int),
        "dtype must be float32, float64, float16 or one of td.formats; got int64",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_errors_name_the_argument(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if package := NEEDS.get(name.partition(".")[0]):
        pytest.importorskip(package)
    if name.startswith("report") and not _core.blas_available():
        pytest.skip("needs Linux on x86-64 or AArch64")
    monkeypatch.chdir(tmp_path)
    call, start = CASES[name]
    with pytest.raises((TypeError, ValueError, KeyError)) as caught:
        call()
    message = str(caught.value)
    assert message.startswith(start)
    assert not faults(message), message
    if "save" in name:
        assert not [*tmp_path.iterdir()]
