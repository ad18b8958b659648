"""Functions that numba compiles: they take codes, and convert each number."""

import pytest

from tests.libraries.calls import Call, make_test

pytest.importorskip("numba")

LIBRARY = "numba"
PREPARATION = "from numba import njit"
DECODE = "decode = td.interop.numba.to_float32(v.dtype); "
ENCODE = "encode = td.interop.numba.from_float32(v.dtype); "
CALLS = [
    Call(
        "njit(lambda x: x.sum())(v)",
        "TypingError",
        instead=DECODE + "njit(lambda x: decode(x).sum())(td.bits(v))",
        instead_gives="float",
    ),
    Call(
        "njit(lambda x: x * x)(v)",
        "TypingError",
        instead=DECODE
        + ENCODE
        + "njit(lambda x: encode(decode(x) * decode(x)))(td.bits(v)).view(v.dtype)",
    ),
]

test_calls = make_test(CALLS, PREPARATION)
