"""Unary functions of arguments in any order: fast paths, tables and other elements."""

import numpy as np
import pytest

from tests.reference import operations
from tests.reference.codec_arrays import all_items
from tests.reference.formats import FORMATS
from tests.support.bits import array, items_of, name

FUNCTIONS = [*operations.UNARY, *operations.SYNONYMS]
ROUNDS = 3  # after these calls, functions that need a table have one


def raised(function, x):
    """Return the result, and the exceptions."""
    flags = [0]

    def note(_, found):
        flags[0] |= found

    with np.errstate(all="call", call=note):
        return function(x), flags[0]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("f", [FORMATS["bfloat16"], FORMATS["tf32"]], ids=name)
def test_order_does_not_matter(f, function, compared):
    """Compute in random order, as ordered chunks are mostly inside the domain or
    not."""
    items = all_items(f)[:: 1 if f.count <= 1 << 16 else 5]
    ufunc = getattr(np, function)
    in_order, flags = raised(ufunc, array(f, items))
    order = np.random.default_rng(5).permutation(items.size)
    want = items_of(f, in_order)[order]
    for _ in range(ROUNDS):
        found, mixed_flags = raised(ufunc, array(f, items[order]))
        assert np.array_equal(items_of(f, found), want)
        assert mixed_flags == flags
    few, some = order[:1], order[1:28]
    for part in (few, some):
        again = items_of(f, raised(ufunc, array(f, items[part]))[0])
        assert np.array_equal(again, items_of(f, in_order)[part])
    compared(ROUNDS * items.size)
