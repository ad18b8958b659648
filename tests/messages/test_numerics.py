"""Messages of dtypes, casts, functions, files and matrix multiplications."""

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype
from tf32dtype._base.requirements import need
from tf32dtype._base.wording import did_you_mean, one_of
from tf32dtype._measures import format_facts, units, ways
from tf32dtype._programs import context
from tf32dtype._programs.source_folders import set_folders

from .shape import faults, provoke

#: No types, as the calls are wrong on purpose.
td: Any = tf32dtype
SINGLE: Any = np.ones((3, 4), np.float32)
BF16: Any = SINGLE.astype(td.bfloat16)
FP8 = SINGLE.astype(td.float8_e4m3fn)
RIGHT: Any = np.eye(3)
RNG = np.random.default_rng(0)


def multiply(**options: Any) -> object:
    return td.matmul(SINGLE, SINGLE.T, **{"precision": "bf16"} | options)


def quantize(x: Any = SINGLE, dtype: Any = "bf16", **options: Any) -> object:
    return td.quantize(x, dtype, **options)


def einsum(*operands: Any, **options: Any) -> object:
    return td.einsum(*operands, **options)


def path(*steps: Any) -> object:
    optimize: Any = ["einsum_path", *steps]
    return einsum("ij,jk,kl", SINGLE, SINGLE.T, SINGLE, optimize=optimize)


def set_scope(*precision: Any, **options: Any) -> object:
    return td.matmul_precision(*precision, **options)


def leave_scope() -> None:
    scope = td.matmul_precision("bf16")
    scope.__exit__(None, None, None)


def load(data: bytes, **options: Any) -> object:
    return td.load(io.BytesIO(data), **options)


def save(x: Any, **options: Any) -> None:
    td.save(io.BytesIO(), x, **options)


def npy(comment: str) -> bytes:
    stream = io.BytesIO()
    td.save(stream, BF16)
    return stream.getvalue().replace(b"# tf32dtype: bfloat16", comment.encode())


def archive(**arrays: Any) -> Any:
    stream = io.BytesIO()
    td.savez(stream, **arrays)
    stream.seek(0)
    return td.load(stream)


def growing_factors() -> None:
    a = np.tril(-np.ones((24, 24)), -1) + np.eye(24)
    a[:, -1] = 1
    td.linalg.solve(a, a[0], precision="f16", block=1)


def nested_arithmetic() -> None:
    with td.arithmetic("bf16"), td.arithmetic("fp4"):
        pass


def twice_from_dlpack() -> None:
    class Owner:
        capsule: Any = td.to_dlpack(BF16).__dlpack__()

        def __dlpack__(self, **_: Any) -> Any:
            return self.capsule

    owner: Any = Owner()
    td.from_dlpack(owner)
    td.from_dlpack(owner)


def import_dlpack(capsule: object) -> None:
    class Owner:
        def __dlpack__(self, **_: Any) -> object:
            return capsule

    owner: Any = Owner()
    td.from_dlpack(owner)


def decorate() -> None:
    def steps() -> Any:
        yield 1

    td.matmul_precision("bf16")(steps)


CASES: dict[str, Callable[[], object]] = {
    # names of formats and precisions
    "formats.near": lambda: td.formats["bf17"],
    "formats.far": lambda: td.formats["zzz"],
    "formats.fp8": lambda: td.formats["fp8"],
    "formats.fp6": lambda: td.formats["float6"],
    "formats.numpy": lambda: td.formats["float32"],
    "formats.blocks": lambda: td.formats["mxfp4"],
    "formats.kinds": lambda: td.formats["mxfp6"],
    "formats.layout": lambda: td.formats["e4m3"],
    "formats.dtype": lambda: td.formats[np.dtype("f8")],
    "formats.object": lambda: td.formats[3],
    "blocks.formats.near": lambda: td.blocks.formats["mxfp5"],
    "blocks.formats.number": lambda: td.blocks.formats["bf16"],
    "blocks.formats.object": lambda: td.blocks.formats[3],
    "precision.near": lambda: set_scope("bf17"),
    "precision.fp8": lambda: set_scope("fp8"),
    "precision.blocks": lambda: set_scope("mxfp4"),
    "precision.object": lambda: set_scope(16),
    "linalg.square": lambda: td.linalg.lu(SINGLE),
    "linalg.complex": lambda: td.linalg.lu(SINGLE + 1j),
    "linalg.block": lambda: td.linalg.lu(SINGLE[:, :3], block=0),
    "linalg.block type": lambda: td.linalg.lu(SINGLE[:, :3], block="x"),
    "linalg.columns": lambda: td.linalg.solve(SINGLE[:, :3], SINGLE[0]),
    "linalg.finite": lambda: td.linalg.solve(SINGLE[:, :3], SINGLE[:, 0] * np.inf),
    "linalg.singular": lambda: td.linalg.solve(SINGLE[:, :3], SINGLE[:, 0]),
    "linalg.overflow": lambda: growing_factors(),
    "linalg.definite": lambda: td.linalg.cholesky(SINGLE[:, :3], precision="tf32"),
    "linalg.assume": lambda: td.linalg.solve(1, 1, assume_a="sym"),
    "linalg.tolerance": lambda: td.linalg.solve(RIGHT, RIGHT, tolerance=-1),
    "linalg.tolerance type": lambda: td.linalg.solve(RIGHT, RIGHT, tolerance="x"),
    "linalg.iterations": lambda: td.linalg.solve(RIGHT, RIGHT, max_iterations=0),
    "linalg.iterations type": lambda: td.linalg.solve(
        RIGHT, RIGHT, max_iterations=None
    ),
    "linalg.two columns": lambda: td.linalg.backward_error(RIGHT, RIGHT, RIGHT[0]),
    "facts.near": lambda: format_facts.facts("tf23"),
    "facts.blocks": lambda: format_facts.facts("nvfp4"),
    "facts.none": lambda: format_facts.meant(" "),
    "select.none": lambda: format_facts.select(",", []),
    "ways.near": lambda: ways._find("bf17"),
    "ways.format": lambda: ways._find("float6_e2m3fn"),
    "units.twice": lambda: units.find(["H100", "H100"]),
    "arithmetic.scales": lambda: td.arithmetic("float8_e8m0fnu"),
    "arithmetic.name": lambda: td.arithmetic("bf17"),
    "arithmetic.core": lambda: td._core.begin_arithmetic("bf16", False, False),
    "arithmetic.end": lambda: td._core.end_arithmetic(),
    "arithmetic.nested": nested_arithmetic,
    "arithmetic.left": lambda: td.arithmetic("bf16").__exit__(None, None, None),
    "names.owner": lambda: td.names("numpy"),
    "show_config.mode": lambda: td.show_config(mode="x"),
    "interop.module": lambda: td.interop.nonsense,
    "set_folders": lambda: set_folders(["no_such_package"]),
    "need": lambda: need("td.hdf5", "hdf5", "no_such_module"),
    # quantize, bits, packing
    "quantize.dtype": lambda: quantize(dtype="fp9"),
    "quantize.float64": lambda: quantize(dtype="float64"),
    "quantize.type": lambda: quantize(dtype=int),
    "quantize.rounding": lambda: quantize(rounding="up"),
    "quantize.nearest": lambda: quantize(rounding="nearest"),
    "quantize.overflow": lambda: quantize(overflow="wrap"),
    "quantize.stochastic": lambda: quantize(rounding="stochastic"),
    "quantize.rng": lambda: quantize(rng=RNG),
    "quantize.generator": lambda: quantize(rounding="stochastic", rng=3),
    "quantize.out": lambda: quantize(out=[1.0]),
    "quantize.out.dtype": lambda: quantize(out=SINGLE),
    "quantize.out.shape": lambda: quantize(out=BF16.T),
    "quantize.objects": lambda: quantize(SINGLE.astype(object)),
    "core.scale": lambda: td._core.scale_values("x"),
    "core.block": lambda: td._core.block_bounds(SINGLE, 0),
    "core.lines": lambda: td._core.block_bounds(np.ones((2, 3)), 32),
    "core.sums": lambda: td._core.promote_block(*4 * [np.ones(3)]),
    "quantize.strings": lambda: quantize("a"),
    "quantize.complex": lambda: quantize(SINGLE.astype(complex)),
    "bits.dtype": lambda: td.bits(SINGLE),
    "from_bits.dirty": lambda: td.from_bits([1], "bf16", dirty="x"),
    "from_bits.float": lambda: td.from_bits([1.0], "bf16"),
    "from_bits.large": lambda: td.from_bits([70000], "bf16"),
    "from_bits.negative": lambda: td.from_bits([-1], "fp4"),
    "from_bits.dirty bits": lambda: td.from_bits([1], "tf32"),
    "from_bits.dirty code": lambda: td.from_bits([0x80], "fp4"),
    "unpack.size": lambda: td.unpack(b"1", "fp4", 4),
    "unpack.unused": lambda: td.unpack(b"\1\0\0\0", "tf32", 1),
    "unpack.last": lambda: td.unpack(b"\x11", "fp4", 1),
    "unpack.order": lambda: td.unpack(b"1", "fp4", 2, order="up"),
    "unpack.order high": lambda: td.unpack(b"12", "bf16", 1, order="high"),
    "unpack.shape": lambda: td.unpack(b"1", "fp4", "x"),
    "unpack.negative": lambda: td.unpack(b"1", "fp4", -2),
    "unpack.packed": lambda: td.unpack(SINGLE, "fp4", 2),
    # dtypes and scalars
    "scalar.text": lambda: td.tf32("x"),
    "scalar.object": lambda: td.tf32(object()),
    "scalar.complex": lambda: td.tf32(1j),
    "dtype.order": lambda: np.dtype(td.bfloat16).newbyteorder(),
    "scalar.pickle": lambda: td.bf16(1).__reduce__()[0](td.bf16, b"123"),
    "add.text": lambda: BF16 + np.array("x"),
    "ldexp": lambda: np.ldexp(BF16, 1.5),
    "gcd": lambda: np.gcd(BF16, BF16),
    "bitwise_and": lambda: BF16 & BF16,
    "einsum.numpy": lambda: np.einsum("ij->j", SINGLE, dtype=td.bf16),
    "dlpack.object": lambda: import_dlpack(5),
    "dlpack.twice": twice_from_dlpack,
    "dlpack.negative": lambda: td.to_dlpack(BF16[::-1]).__dlpack__(),
    # matmul
    "matmul.out": lambda: multiply(out=[1]),
    "matmul.out.shape": lambda: multiply(out=SINGLE, dtype="f2"),
    "matmul.dtype": lambda: multiply(dtype=int),
    "matmul.formats": lambda: td.matmul(BF16, BF16.T, precision="bf16"),
    "matmul.float64": lambda: td.matmul(SINGLE, np.ones((4, 3)), precision="bf16"),
    "matmul.int": lambda: td.matmul([[1]], [[1]], precision="bf16"),
    "matmul.rounding": lambda: multiply(precision="tf32", rounding="up"),
    "matmul.rounding useless": lambda: multiply(rounding="toward_zero"),
    "matmul.scale": lambda: multiply(scale="x"),
    "matmul.scale useless": lambda: multiply(scale="row"),
    "matmul.special_values": lambda: multiply(special_values="x"),
    "matmul.no precision": lambda: multiply(precision=None, scale="row"),
    "matmul.instruction": lambda: multiply(instruction="wgmma"),
    "matmul.device": lambda: multiply(precision=None, device="A100"),
    "matmul.device f32": lambda: multiply(precision="f32", device="T4"),
    "matmul.device parts": lambda: multiply(precision="bf16x3", device="MI300X"),
    "scope.flag": lambda: set_scope("bf16", float64="yes"),
    "scope.min_size": lambda: set_scope("bf16", min_size="x"),
    "scope.negative": lambda: set_scope("bf16", min_size=-1),
    "scope.lapack": lambda: set_scope("bf16", lapack=True),
    "scope.plan": lambda: set_scope(plan="plan.toml", rounding="toward_zero"),
    "scope.left": leave_scope,
    "scope.generator": decorate,
    "decorated": lambda: td.arithmetic("bf16")(lambda: (yield)),
    "environment.option": lambda: context._options("bogus"),
    "environment.value": lambda: context._options("lapack=1"),
    "environment.min_size": lambda: context._options("min_size=x"),
    # einsum
    "einsum.count": lambda: einsum("ij,jk", SINGLE),
    "einsum.subscripts": lambda: einsum(SINGLE),
    "einsum.letter": lambda: einsum("i%", BF16),
    "einsum.list": lambda: einsum(SINGLE, [0, "x"]),
    "einsum.number": lambda: einsum(SINGLE, [0, 52]),
    "einsum.dots": lambda: einsum("...i...", BF16),
    "einsum.few letters": lambda: einsum("i", BF16),
    "einsum.no dots": lambda: einsum("...j->j", BF16),
    "einsum.repeated": lambda: einsum("ij->iji", BF16),
    "einsum.unknown": lambda: einsum("ij->ix", BF16),
    "einsum.diagonal": lambda: einsum("ii", BF16),
    "einsum.lengths": lambda: einsum("ij,ij", BF16, BF16.T),
    "einsum.text": lambda: einsum("i", np.array(["x"])),
    "einsum.cast": lambda: einsum("ij", BF16, dtype=int),
    "einsum.out": lambda: einsum("ij->i", BF16, out=[1]),
    "einsum.out.shape": lambda: einsum("ij->i", BF16, out=BF16),
    "einsum.optimize": lambda: einsum("ij->i", BF16, optimize="fast"),
    "einsum.step": lambda: path((0, 7)),
    "einsum.path": lambda: path((0, 1)),
    # files
    "load.mmap_mode": lambda: load(npy("# x"), mmap_mode="w+"),
    "load.object": lambda: td.load(3),
    "load.text": lambda: td.load(io.StringIO("x")),
    "load.format": lambda: load(npy("# tf32dtype: bfloat17")),
    "load.width": lambda: load(npy("# tf32dtype: tf32    ")),
    "archive.name": lambda: archive(weights=BF16)["weight"],
    "save.header": lambda: save(BF16, header="x"),
    "save.mask": lambda: save(np.ma.array([1.0])),
    "save.objects": lambda: save(np.array([None])),
    "save.fields": lambda: save(
        np.zeros(2, [("x", td.bf16), ("y", "f4")]), header="bits"
    ),
    "savez.name": lambda: td.savez(io.BytesIO(), BF16, arr_0=BF16),
    "save.long header": lambda: save(
        np.zeros(1, [(f"field_{i}", td.bf16) for i in range(1000)])
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_messages_have_the_shape(name: str) -> None:
    message = provoke(CASES[name])
    assert not faults(message), message


NEW = {
    "formats.near": "td.formats; got 'bf17'. Did you mean bf16?",
    "precision.near": "td.typing.PrecisionName; got 'bf17'. Did you mean bf16, ",
    "blocks.formats.near": "td.blocks.formats; got 'mxfp5'. Did you mean mxfp4",
    "facts.near": "td.formats; got 'tf23'. Did you mean tf32",
    "archive.name": "got 'weight'. Did you mean weights?",
}


@pytest.mark.parametrize("name", NEW)
def test_unknown_names_show_the_nearest_and_the_list(name: str) -> None:
    assert NEW[name] in provoke(CASES[name])


@pytest.mark.parametrize(
    ("name", "near"), [("quantise", "td.quantize"), ("matmull", "td.matmul")]
)
def test_unknown_attributes_show_the_nearest(name: str, near: str) -> None:
    message = provoke(lambda: getattr(td, name))
    assert message.endswith(f". Did you mean {near}?")


def test_names_that_are_near_to_none() -> None:
    assert "use bf16, tf32 or f16" in provoke(lambda: multiply(precision="foo"))
    assert "Did you mean" not in provoke(lambda: td.tensor_core.devices["K80"])


def test_choices() -> None:
    assert one_of("a", 3, [True, False]) == "a must be True or False; got 3"
    assert one_of("a", "x", ["b", "c", "d"]) == (
        "a must be one of 'b', 'c' or 'd'; got 'x'"
    )
    assert did_you_mean("zzz", td.formats) == ""
    assert did_you_mean(["bf16"], td.formats) == ""
    assert did_you_mean("", td.formats) == ""
    assert did_you_mean("E4M3", td.formats).count("float8") == 3


def test_files_on_disk_are_named(tmp_path: Path) -> None:
    """Files of raw items have a warning that names the file."""
    file = os.fspath(tmp_path / "a.npy")
    np.save(file, BF16)
    with pytest.warns(UserWarning, match="raw items") as warned:
        td.load(file)
    message = str(warned[0].message)
    assert not faults(message), message
