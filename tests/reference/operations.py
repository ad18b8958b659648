"""Every float ufunc of NumPy for one element: items in, items and flags out.

Each operation rounds its exact result once, in every format.
"""

from collections.abc import Callable

from . import arithmetic, functions
from .codec import DIVIDE, INVALID, NAN, OVER, Exact, decode, encode, infinity
from .formats import Format

#: name: operation on exact numbers
UNARY: dict[str, Callable[..., functions.Outcome]] = {
    "sign": arithmetic.sign,
    "rint": arithmetic.rint,
    "floor": arithmetic.floor,
    "ceil": arithmetic.ceil,
    "trunc": arithmetic.trunc,
    "square": arithmetic.square,
    "reciprocal": arithmetic.reciprocal,
    "sqrt": arithmetic.sqrt,
    "cbrt": arithmetic.cbrt,
    **{
        name: getattr(functions, name)
        for name in (
            *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
            *("sin", "cos", "tan", "arcsin", "arccos", "arctan"),
            *("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"),
            *("degrees", "radians"),
        )
    },
}
#: NumPy's other names of the same functions.
SYNONYMS = {"rad2deg": "degrees", "deg2rad": "radians"}

BINARY: dict[str, Callable[..., functions.Outcome]] = {
    name: getattr(arithmetic, name)
    for name in (
        *("add", "subtract", "multiply", "divide"),
        *("floor_divide", "remainder", "fmod", "hypot"),
        *("maximum", "minimum", "fmax", "fmin", "heaviside"),
    )
} | {
    name: getattr(functions, name)
    for name in ("power", "arctan2", "logaddexp", "logaddexp2")
}

COMPARISON: dict[str, Callable[[Exact, Exact], bool]] = {
    name: getattr(arithmetic, name)
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
} | {
    "logical_and": lambda x, y: arithmetic.truth(x) and arithmetic.truth(y),
    "logical_or": lambda x, y: arithmetic.truth(x) or arithmetic.truth(y),
    "logical_xor": lambda x, y: arithmetic.truth(x) != arithmetic.truth(y),
}

PREDICATE: dict[str, Callable[[Exact], bool]] = {
    "isnan": lambda x: x.special == "nan",
    "isinf": lambda x: x.special == "inf",
    "isfinite": lambda x: not x.special,
    "signbit": lambda x: x.negative,
    "logical_not": lambda x: not arithmetic.truth(x),
}

#: Operations on the bits: no rounding, and NaN payloads are kept.
COPIES = ("positive", "conjugate", "negative", "absolute", "fabs")


def rounded(f: Format, outcome: functions.Outcome) -> tuple[int, int]:
    """Return an operation's outcome as an item of the format, and all its flags. An
    infinite result of finite operands is not an overflow if it is at a pole."""
    value, flags = outcome
    item, more = _rounded(f, value)
    return item, flags | (more & ~OVER if flags & DIVIDE else more)


def _rounded(f: Format, value: Exact | functions.Approximation) -> tuple[int, int]:
    if isinstance(value, Exact):
        return encode(f, value)
    return functions.decide(value, lambda x: encode(f, x))


def unary(name: str, f: Format, item: int) -> tuple[int, int]:
    """Return the result and flags of a function in UNARY."""
    return rounded(f, UNARY[SYNONYMS.get(name, name)](decode(f, item)))


def binary(name: str, f: Format, x: int, y: int) -> tuple[int, int]:
    """Return the result and flags of a function in BINARY."""
    return rounded(f, BINARY[name](decode(f, x), decode(f, y)))


def _with_sign(f: Format, item: int, negative: bool) -> int:
    sign = f.sign_bit << f.shift
    item &= (f.count - 1) << f.shift
    if not f.signed or (not f.negative_zero and item & ~sign == 0):
        return item  # fnuz: neither zero nor the NaN has a sign
    return item & ~sign | (sign if negative else 0)


def copies(name: str, f: Format, item: int) -> tuple[int, int]:
    """Return the result and flags of a function in COPIES. In e8m0, which has no
    negative numbers, negation gives NaN and raises invalid."""
    negative = bool(item & f.sign_bit << f.shift)
    if f.powers:
        return (
            encode(f, arithmetic.negated(decode(f, item)))
            if (name == "negative" and decode(f, item) != NAN)
            else (item, 0)
        )
    if name == "negative":
        negative = not negative
    elif name in ("absolute", "fabs"):
        negative = False
    return _with_sign(f, item, negative), 0


def copysign(f: Format, x: int, y: int) -> tuple[int, int]:
    if f.powers:
        return x, 0
    negative = decode(f, y).negative
    return _with_sign(f, x, negative), 0


def nextafter(f: Format, x: int, y: int) -> tuple[int, int]:
    """Return NumPy's nextafter for float16: overflow is flagged, underflow is not."""
    a, b = decode(f, x), decode(f, y)
    if arithmetic.either_nan(a, b):
        return encode(f, NAN)
    way = arithmetic.order(b, a)
    sign = f.sign_bit << f.shift
    if way == 0:
        return x & (f.count - 1) << f.shift, 0
    if arithmetic.is_zero(a):
        return (1 << f.shift) | (sign if way < 0 else 0), 0
    outward = way < 0 if a.negative else way > 0
    item = (x & (f.count - 1) << f.shift) + ((1 if outward else -1) << f.shift)
    if not f.negative_zero and f.signed and item == sign:
        item = 0
    leaves = decode(f, item).special == "inf" and a.special != "inf"
    return item, OVER if leaves else 0


def spacing(f: Format, x: int) -> tuple[int, int]:
    """Return the distance to the next number above, as NumPy defines it for float16."""
    a = decode(f, x)
    if a.special == "nan":
        return encode(f, NAN)
    if a.special == "inf":
        return encode(f, NAN)[0], INVALID
    code = (x >> f.shift) & (f.count - 1)
    if code == f.max_code:
        item, flags = encode(f, infinity())
        return item, flags if f.powers else OVER
    if f.powers:
        return code, 0
    return encode(f, Exact(False, 1, _spacing_exponent(f, a)))


def _spacing_exponent(f: Format, a: Exact) -> int:
    if arithmetic.is_zero(a):
        return f.least_exponent
    bits = a.integer.bit_length()
    exponent = bits + a.exponent - 1 - f.mantissa_bits
    if a.negative and a.integer == 1 << (bits - 1):
        exponent -= 1  # above a negative power of two, numbers are closer
    return max(exponent, f.least_exponent)


def ldexp(f: Format, x: int, n: int) -> tuple[int, int]:
    return rounded(f, arithmetic.ldexp(decode(f, x), n))
