"""Arrays with other memory layouts (backward, unaligned), and items that are zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.reference.codec import decode_code
from tests.reference.codec_arrays import all_items
from tests.reference.formats import FORMATS, Format
from tests.support.bits import array, name

each_format = pytest.mark.parametrize("f", FORMATS.values(), ids=name)


def unaligned(x: Any) -> Any:
    buffer = np.zeros(x.nbytes + 1, np.uint8)
    view = buffer[1:].view(x.dtype)
    view[:] = x
    return view


@each_format
def test_which_items_are_zero(f: Format) -> None:
    """Count zeros by a function of the dtype that only np.count_nonzero calls."""
    items = all_items(f)
    items = items[:: max(1, len(items) >> 12)]
    exact = [decode_code(f, item >> f.shift) for item in items.tolist()]
    truth = np.array([bool(x.integer or x.special) for x in exact])
    x = array(f, items)
    for y, want in ((x, truth), (x[::-1], truth[::-1]), (unaligned(x), truth)):
        assert np.count_nonzero(y) == want.sum()
        assert np.array_equal(np.nonzero(y)[0], np.flatnonzero(want))
    assert np.array_equal(x.astype(bool), truth)


@each_format
def test_backward_operands(f: Format) -> None:
    """Read and write backward in a loop with the results of forward operands."""
    rng = np.random.default_rng(f.item_bits)
    for n in [*range(1, 20), 1023, 1024, 1025, 2049]:
        items = rng.choice(all_items(f), n)
        x, back = array(f, items), array(f, items[::-1])[::-1]
        out = np.zeros_like(x)[::-1]
        with np.errstate(all="ignore"):
            want = np.add(x, x)
            assert np.add(back, back).tobytes() == want.tobytes()
            assert np.add(x, x, out=out).tobytes() == want.tobytes()
            assert np.exp(back).tobytes() == np.exp(x).tobytes()
            assert back.sum(dtype=np.float32).tobytes() == (
                x.sum(dtype=np.float32).tobytes()
            )
            assert back.astype(np.float32).tobytes() == x.astype(np.float32).tobytes()
            assert np.sort(back).tobytes() == np.sort(x).tobytes()
        assert np.signbit(back).tobytes() == np.signbit(x).tobytes()


UFUNCS = [
    ufunc
    for ufunc in (x for x in vars(np).values() if isinstance(x, np.ufunc))
    if ufunc.signature is None and ufunc.nout == 1
]


@each_format
def test_results_in_front_of_operands(f: Format) -> None:
    """Compute in place if the result is in front of an operand. NumPy then makes no
    copy for a loop that goes from item to item."""
    rng = np.random.default_rng(2)
    everything = array(f, rng.choice(all_items(f), 1800))
    other = everything[900:1200].copy()
    for ufunc in UFUNCS:
        for ahead in (1, 16, 300):
            both = everything.copy()
            operands = (both[ahead : ahead + 300], other)[: ufunc.nin]
            with np.errstate(all="ignore"):
                try:
                    want = ufunc(*(x.copy() for x in operands))
                except TypeError:
                    break
                if want.dtype != both.dtype:
                    break
                ufunc(*operands, out=both[:300])
            assert both[:300].tobytes() == want.tobytes(), (ufunc.__name__, ahead)
