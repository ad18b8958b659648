"""The ways to compute float32 products: their names and their meanings."""

from __future__ import annotations

import enum
import operator
import os
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    ParamSpec,
    TypedDict,
    TypeVar,
    cast,
    get_args,
)

from .. import _core
from .._base.arguments import checked_flag
from .._base.wording import brief, joined, one_of
from .._exact.products import ExactProducts
from .._exact.rounding import EXACT_ROUNDINGS, ExactRounding, check_rounding
from .._formats.aliases import BLOCK_FORMATS, canonical, cure, meanings
from .._formats.quantize import ROUNDINGS, Tf32Rounding
from .._integer_products.products import IntegerProducts
from .._integer_products.schemes import IntegerPrecision, Scheme, advice

if TYPE_CHECKING:
    from ..tensor_core.device import DeviceName
    from ..tensor_core.models import Instruction, Model

#: Presets, their short names, and the formats that operands are rounded to.
Float32PrecisionName = Literal[
    "F32_F32_F32",
    "TF32_TF32_F32",
    "TF32_TF32_F32_X3",
    "BF16_BF16_F32",
    "BF16_BF16_F32_X3",
    "BF16_BF16_F32_X6",
    "BF16_BF16_F32_X9",
    "F16_F16_F32",
    "F8E4M3FN_F8E4M3FN_F32",
    "F8E5M2_F8E5M2_F32",
    "f32",
    "tf32",
    "tf32x3",
    "bf16",
    "bf16x3",
    "bf16x6",
    "bf16x9",
    "f16",
    "fp8_e4m3",
    "fp8_e5m2",
    "float32",
    "bfloat16",
    "float16",
    "float8_e4m3fn",
    "float8_e5m2",
]
#: The names of all precisions. "exact" and those of integer products are not only for
#: float32.
PrecisionName = Literal[Float32PrecisionName, "exact", IntegerPrecision]
Scale = Literal["tensor", "row"]
SpecialValues = Literal["propagate", "saturate"]


class RoundingOptions(TypedDict, total=False):
    """How a precision treats operands: see `matmul_precision`."""

    rounding: Tf32Rounding | ExactRounding | None
    scale: Scale
    special_values: SpecialValues


class ProductOptions(RoundingOptions, total=False):
    """The options of one product: also the device whose tensor core computes it."""

    device: DeviceName | None
    instruction: Instruction | None


class Options(ProductOptions, total=False):
    """The options of a precision, and those that extend it to other products."""

    float64: bool
    complex64: bool
    blas: bool
    dots: bool
    lapack: bool
    min_size: int
    plan: str | os.PathLike[str] | None


class Unless(enum.Enum):
    """The default of an option, if it depends on another option."""

    BLAS = "not blas"

    def __repr__(self) -> str:
        return self.value


class Settings(NamedTuple):
    """The arguments of `matmul_precision`."""

    precision: str | None
    #: rounding of operands, None: that of `rounding_of`; of results for "exact"
    rounding: Tf32Rounding | ExactRounding | None = None
    scale: Scale = "tensor"
    special_values: SpecialValues = "propagate"
    device: DeviceName | None = None
    instruction: Instruction | None = None
    float64: bool = False
    complex64: bool = False
    blas: bool = False
    dots: bool | Unless = Unless.BLAS
    lapack: bool = False
    min_size: int = 0
    plan: str | os.PathLike[str] | None = None

    def has_dots(self) -> bool:
        """Return whether the precision applies to products whose result is a number."""
        return not self.blas if isinstance(self.dots, Unless) else self.dots


#: The settings that are True or False.
FLAGS = ("float64", "complex64", "blas", "dots", "lapack")


class Precision(NamedTuple):
    """A way to compute float32 products."""

    #: the long name
    preset: PrecisionName
    #: the short name
    short: PrecisionName
    #: format that operands are rounded to
    format: str
    #: number of components per number of an operand
    components: int = 1
    #: number of orders of magnitude of the products of components that are summed
    split_orders: int = 1


#: The precisions, from the table in src/matmul/precisions.c.
PRECISIONS = tuple(Precision(*row) for row in _core.precisions())
_BY_NAME = {row.preset.lower(): row for row in PRECISIONS}
_BY_NAME |= {row.short: row for row in PRECISIONS}
#: The format that operands are rounded to is also a name of a precision.
_BY_FORMAT = {row.format: row for row in PRECISIONS if row.components == 1}

_SCALED = ["fp8_e4m3", "fp8_e5m2"]
_SPLIT = [row.short for row in PRECISIONS if row.components > 1]
#: The scalings, in the order of `enum tf_scaling`; its first one means no scale.
_SCALINGS = (None, *get_args(Scale))


#: The precision of correctly rounded results, which src/matmul does not compute.
EXACT = "exact"

#: The names that an error offers if none is near.
COMMON = ("bf16", "tf32", "f16")


def known() -> list[str]:
    """Return all names, the short ones last."""
    presets = [row.preset for row in PRECISIONS]
    shorts = [row.short for row in PRECISIONS]
    return [*presets, *shorts, EXACT, *get_args(IntegerPrecision)]


def whole_name(name: object) -> str | None:
    """Return the name of a precision that src/matmul does not compute, or None."""
    if isinstance(name, str) and name.lower() == EXACT:
        return EXACT
    scheme = Scheme.of(name)
    return None if scheme is None else scheme.name


def has_blas(name: object) -> bool:
    """Return whether BLAS calls can use a precision; emulated ones are for NumPy."""
    return Scheme.of(name) is None


def find_precision(name: object) -> Precision:
    """Return the precision of a preset's name, its short name or a format's name.

    Raises
    ------
    ValueError
        For an unknown name; the error shows the nearest names. For a block format,
        since src/matmul multiplies operands without scales for blocks of k.
    """
    text = name if isinstance(name, str) else ""
    row = _BY_NAME.get(text.lower()) or _BY_FORMAT.get(canonical(text))
    if (whole := whole_name(name)) is not None:
        raise ValueError(
            f"precision {whole!r} must be given to td.matmul, td.matmul_precision,"
            f" `tf32dtype run` or `tf32dtype compare`; got {brief(name)} for a call"
            " that cannot use it"
        )
    if row is None and {*meanings(text)} <= {*BLOCK_FORMATS}:
        kinds = ",".join(meanings(text))
        raise ValueError(
            "precision must not be a block format, which intercepted matrix"
            f" multiplications cannot use; got {brief(name)}. To measure it, use"
            f" `tf32dtype report --precision {kinds} PROGRAM` or `tf32dtype compare A B"
            f" --precision {kinds}`. To multiply in it, use td.blocks.quantize"
        )
    if row is None:
        near = advice(text)
        fix = near or cure(text) or ""
        use = near or text.lower() in ("fp8", "float8") or "td.blocks" in fix
        listing = "td.typing.PrecisionName"
        names = [*COMMON, *known()]
        raise ValueError(
            one_of("precision", name, names, listing, fix if use else None)
        )
    return row


def precision_of_format(name: str) -> PrecisionName | None:
    """Return the short name of the precision that rounds to a format, or None."""
    row = _BY_FORMAT.get(name)
    return row and row.short


def resolve(settings: Settings) -> _core.MatmulSpec | None:
    """Resolve the arguments of `matmul_precision`; None means NumPy's own results.

    Raises
    ------
    ValueError
        For an unknown name, a keyword that the precision has no use for, or a device
        that has no model for it.
    TypeError
        For a keyword that is not True or False, or no integer, where one is needed.
    """
    check_types(settings)
    if (whole := whole_name(settings.precision)) is not None:
        return _resolve_whole(settings, whole)
    row = None if settings.precision is None else find_precision(settings.precision)
    short = row.short if row else None
    if settings.rounding is not None:
        if row is None and settings.rounding in EXACT_ROUNDINGS:
            raise ValueError(
                f"rounding={brief(settings.rounding)} must be given with precision"
                " 'exact' (for results) or 'tf32' (for operands); got none"
            )
        _check("rounding", settings.rounding, Tf32Rounding, short, ["tf32"])
    _check("scale", settings.scale, Scale, short, _SCALED)
    _check("special_values", settings.special_values, SpecialValues, short, _SPLIT)
    model = _find_model(row, settings.device, settings.instruction)
    _check_reach(settings)
    if row is None:
        return None
    return _core.MatmulSpec(
        row.format,
        rounding=ROUNDINGS.index(rounding_of(settings, row, model)),
        scaling=_SCALINGS.index(settings.scale if short in _SCALED else None),
        parts=row.components,
        split_orders=row.split_orders,
        saturates=settings.special_values == "saturate",
        float64=settings.float64,
        complex64=settings.complex64,
        blas=settings.blas,
        dots=settings.has_dots(),
        lapack=settings.lapack,
        min_size=operator.index(settings.min_size),
        model=model,
        scales_inside=model is not None and model.scales_inside,
    )


def _resolve_whole(settings: Settings, name: str) -> _core.MatmulSpec:
    """Resolve the arguments of "exact" and of emulated precisions, for all dtypes."""
    scheme = Scheme.of(name)
    products: Any
    if scheme is None:
        products = ExactProducts(check_rounding(settings.rounding))
    elif settings.rounding in (None, "ties_to_even"):
        products = IntegerProducts(scheme)
    else:
        raise ValueError(
            f"rounding must be 'ties_to_even' with precision {name!r}; got"
            f" {brief(settings.rounding)}"
        )
    _check("scale", settings.scale, Scale, name, _SCALED)
    _check("special_values", settings.special_values, SpecialValues, name, _SPLIT)
    if settings.blas and not has_blas(name):
        raise ValueError(
            f"blas=True must not be given with precision {name!r}, which only NumPy's"
            " functions use; omit blas="
        )
    for keyword in ("device", "instruction"):
        if (value := getattr(settings, keyword)) is not None:
            raise ValueError(
                f"{keyword} must not be given with precision {name!r}; got"
                f" {brief(value)}. {_NO_DEVICE[scheme is None]}"
            )
    _check_reach(settings)
    return _core.MatmulSpec(
        "float32",
        exact=products,
        float64=True,
        complex64=scheme is None,
        blas=settings.blas,
        dots=settings.has_dots(),
        lapack=settings.lapack,
        min_size=operator.index(settings.min_size),
    )


#: Why a precision has no device, by whether the precision is "exact".
_NO_DEVICE = (
    "Its integer products are the same on every device",
    "No tensor core computes correctly rounded sums",
)


def rounding_of(
    settings: Settings, row: Precision, model: Model | None = None
) -> Tf32Rounding:
    """Return the given rounding of operands, else that of the device's library."""
    if settings.rounding is not None:
        return cast(Tf32Rounding, settings.rounding)
    if model is None or row.short != "tf32":
        return "ties_to_even"
    return model.library_rounding


def check_types(settings: Settings) -> None:
    for keyword in FLAGS:
        value = getattr(settings, keyword)
        if not isinstance(value, Unless):
            checked_flag(value, keyword)
    try:
        operator.index(settings.min_size)
    except TypeError:
        raise TypeError(
            f"min_size must be an integer; got {brief(settings.min_size)}"
        ) from None


def _check_reach(settings: Settings) -> None:
    if not 0 <= operator.index(settings.min_size) < 2**62:
        raise ValueError(
            "min_size must be a number of terms of a sum, 0 or more; got"
            f" {brief(settings.min_size)}"
        )
    if settings.lapack and not settings.blas:
        raise ValueError("lapack=True must be given with blas=True; got blas=False")
    if settings.blas and not _core.blas_available():
        raise ValueError(
            "blas=True cannot be used on this platform: calls of BLAS are intercepted"
            " on Linux only, on x86-64 and AArch64"
        )


P = ParamSpec("P")
R = TypeVar("R")


def kept_for_names(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that is called only once for the same names (`_NAMES`).

    Other arguments may be equal although the function distinguishes them, or have no
    hash.
    """
    kept = lru_cache(maxsize=256, typed=True)(function)

    @wraps(function)
    def asked(*given: P.args, **named: P.kwargs) -> R:
        names = not named and {*map(type, given)} <= _NAMES
        return kept(*given) if names else function(*given, **named)

    return asked


_NAMES = {str, type(None), bool, int, Unless}


@kept_for_names
def check(*settings: Any) -> None:
    """Raise the errors of `resolve` for these settings."""
    resolve(Settings(*settings))


def _find_model(
    row: Precision | None, device: str | None, instruction: str | None
) -> Model | None:
    """Return the model that computes the products; None if no device is given."""
    if device is None:
        if instruction is not None:
            raise ValueError(
                f"instruction must be given with device; got {brief(instruction)}."
                f" Use device {_which(instruction)}"
            )
        return None
    if row is None:
        raise ValueError(
            f"device must be given with precision; got {brief(device)}. Use precision"
            f" {_shorts(device)}. For arrays of a format, use"
            f" td.tensor_core.matmul(a, b, device={brief(device)})"
        )
    if row.format == "float32":
        raise ValueError(
            f"{brief(device)} does not support precision {row.short!r}. Use"
            f" {_shorts(device)}, or omit device="
        )
    from ..tensor_core.look_up import find_model

    model = find_model(device, instruction, row.format, row.format, "float32")
    if row.components > 1 and not model.adds_components:
        raise ValueError(
            f"{model.device} does not support precision {row.short!r}, which adds"
            " components as NVIDIA's libraries do"
        )
    return model


def _shorts(device: object) -> str:
    """Return the precisions that a device has models for."""
    from ..tensor_core.look_up import find_device

    models = find_device(device).models
    has = {m.a: m for m in models if m.a == m.b and m.accumulator == "float32"}
    return joined(
        [
            row.short
            for row in PRECISIONS
            if row.format in has
            and (row.components == 1 or has[row.format].adds_components)
        ]
    )


def _which(instruction: object) -> str:
    """Return the devices that have an instruction; all where none has it."""
    from ..tensor_core.look_up import devices

    has = {name: device.instructions for name, device in devices.items()}
    those = [name for name in has if str(instruction) in has[name]]
    return joined(those or [*devices])


def _check(
    keyword: str, value: object, kind: object, short: str | None, useful: Sequence[str]
) -> None:
    """Check an option; its first value fits all precisions, the others only some."""
    values = get_args(kind)
    if value not in values:
        raise ValueError(one_of(keyword, value, values))
    if value != values[0] and short not in useful:
        raise ValueError(
            f"{keyword}={brief(value)} must be given with precision"
            f" {joined(useful)}; got {f'precision={short!r}' if short else 'none'}"
        )
