"""Random calls of td.blocks: each returns the documented result or a clear error."""

import io
import pickle
import random
import re
import tokenize

import numpy as np
import pytest

import tf32dtype as td
from tests.blocks.arrays import same
from tf32dtype import blocks
from tf32dtype._formats.quantize import ROUNDINGS
from tf32dtype.blocks import BlockArray
from tf32dtype.blocks.formats import scale_formats

MAX = float(np.finfo(np.float32).max)
EXPECTED = (TypeError, ValueError, IndexError)
NAMES = [*blocks.formats, "fp8"]
DTYPES = ["f4", "f8", "f2", "g", "i1", "u8", "i8", "?", ">f4", ">i4", "c8", "O"]
DTYPES += [form.dtype for form in td.formats.values()]


class Maker:
    """Draw random arguments; call `n` depends only on n."""

    def __init__(self, number):
        self.random = random.Random(number)
        self.rng = np.random.default_rng(number)

    def maybe(self, chance):
        return self.random.random() < chance

    def shape(self):
        ndim = self.random.choice([0, 1, 1, 2, 2, 2, 3, 4])
        lengths = [0, 1, 2, 3, 5, 15, 16, 17, 31, 33, 64, 70]
        return tuple(
            self.random.choice(lengths[: 9 if ndim > 2 else 12]) for _ in range(ndim)
        )

    def values(self):
        shape = self.shape()
        x = self.rng.normal(size=shape) * 10.0 ** self.random.choice(
            [0, 0, -40, 30, 37]
        )
        if self.maybe(0.3):
            x = np.ldexp(x, self.rng.integers(-30, 30, shape))
        if self.maybe(0.2):
            x = np.where(self.rng.random(shape) < 0.02, np.inf, x)
        if self.maybe(0.1):
            x = np.where(self.rng.random(shape) < 0.02, np.nan, x)
        if self.maybe(0.1):
            x = np.where(self.rng.random(shape) < 0.9, 0.0, x)
        dtype = self.random.choice([*DTYPES, "f4", "f4", "f4"])
        with np.errstate(all="ignore"):
            x = np.asarray(x).astype(dtype)
        return self.placed(x)

    def placed(self, x):
        kind = self.random.randrange(5)
        if kind == 1:
            return np.asfortranarray(x)
        if kind == 2 and x.ndim:
            return np.flip(x, self.random.randrange(x.ndim))
        if kind == 3 and x.ndim:
            return np.repeat(x, 2, -1)[..., ::2]
        if kind == 4:
            return x.T
        return x

    def options(self):
        draw = self.random.choice
        found = {}
        if self.maybe(0.4):
            found["block_size"] = draw([16, 32, 64, 128, 48])
        if self.maybe(0.6):
            found["scale"] = draw("amax floor even nf mse published best".split())
        if self.maybe(0.4):
            found["scale_format"] = draw([*scale_formats, "auto"])
        if self.maybe(0.3):
            found["overflow"] = draw(["raise", "saturate", "saturate", "ieee"])
        if self.maybe(0.4):
            found["rounding"] = draw(ROUNDINGS)
        if (found.get("rounding") == "stochastic") != self.maybe(0.05):
            found["rng"] = np.random.default_rng(self.random.randrange(100))
        return found

    def key(self, ndim, axis):
        entries = []
        for i in range(ndim):
            if i == axis and self.maybe(0.9):
                entries.append(slice(None))
                continue
            entries.append(
                self.random.choice(
                    [
                        *(slice(None, None, step) for step in (1, -1, 2)),
                        slice(
                            self.random.randrange(-3, 3), self.random.randrange(-3, 9)
                        ),
                        self.random.randrange(-4, 4),
                        [self.random.randrange(-2, 2), 0],
                        np.array([True, False, True]),
                    ]
                )
            )
        if self.maybe(0.2):
            entries = entries[: self.random.randrange(ndim + 1)]
        if self.maybe(0.2):
            entries.insert(self.random.randrange(len(entries) + 1), ...)
        if self.maybe(0.02):
            entries.insert(0, None)
        return tuple(entries)


def check(maker):
    """Make one call and check its result; return whether the call returned one."""
    x, name = maker.values(), maker.random.choice(NAMES)
    axis = maker.random.choice([-1, -1, 0, 0, 1, 2, -2])
    options = maker.options()
    state = options["rng"].bit_generator.state if "rng" in options else None
    try:
        b = blocks.quantize(x, name, axis, **options)
    except EXPECTED:
        return False
    assert b.shape == x.shape
    assert b.size == x.size
    y = b.dequantize()
    assert y.shape == x.shape
    if state is not None:
        options["rng"].bit_generator.state = state
    moved = np.ascontiguousarray(np.moveaxis(x, axis, -1))
    if "rng" not in options:
        again = blocks.quantize(moved, name, **options)
        assert again.tobytes() == b.tobytes()
        assert again.tensor_scale == b.tensor_scale
    exact = b.dequantize(np.float64)
    same(exact.clip(-MAX, MAX).astype(np.float32), y)
    facts = "shape axis block_size scale_format tensor_scale".split()
    wrapped = BlockArray.from_codes(
        name,
        b.elements,
        b.scales,
        b.residual_elements,
        **{f: getattr(b, f) for f in facts},
    )
    assert wrapped == b
    assert pickle.loads(pickle.dumps(b)) == b
    key = maker.key(b.ndim, b.axis)
    try:
        part = b[key]
    except IndexError as error:
        if indexes(y, key) and not re.search("block axis|new axis", str(error)):
            raise AssertionError(f"b[{key}]: {error}") from error
    else:
        same(part.dequantize(), np.ascontiguousarray(y[key]))
    return True


def indexes(array, key):
    try:
        array[key]
    except IndexError:
        return False
    return True


def run(numbers):
    done = 0
    for number in numbers:
        try:
            done += check(Maker(number))
        except Exception as error:
            raise AssertionError(f"call {number}: {error}") from error
    assert done > len(numbers) / 10


def test_random_calls():
    run(range(600))


@pytest.mark.exhaustive
def test_many_random_calls():
    run(range(600, 60_000))


def test_random_damage_to_files_and_pickles():
    """Load damaged bytes: an expected error, or a valid array."""
    source = random.Random(5)
    b = blocks.quantize(np.random.default_rng(0).normal(size=(3, 33)), "tcfp12")
    stream = io.BytesIO()
    td.save(stream, b)
    raw = stream.getvalue()
    for _ in range(800):
        broken = bytearray(raw)
        for _ in range(source.randrange(1, 4)):
            broken[source.randrange(10, len(raw))] = source.randrange(256)
        if source.random() < 0.2:
            del broken[source.randrange(len(raw)) :]
        try:
            found = td.load(io.BytesIO(bytes(broken)))
        except (ValueError, EOFError, SyntaxError, tokenize.TokenError):
            continue  # NumPy raises the last two
        if isinstance(found, BlockArray):
            assert found.dequantize().shape == found.shape
