"""The compiled core: see the .pyx and .pxi files beside this one."""

from _thread import RLock
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Self, SupportsFloat, SupportsIndex, type_check_only

import numpy as np
from numpy.typing import NBitBase, NDArray

from .._exact.products import ExactProducts
from .._exact.rows import Rows
from .._matmul.precisions import PrecisionName
from .._programs.operand import Operand
from ..blocks.formats import ScaleFormat
from ..tensor_core.block_scaled import BlockScaled
from ..tensor_core.models import Model

@type_check_only
class _Number(np.floating[NBitBase]):
    """A number of a format, of none of NumPy's widths: they would make it their own."""

    def __new__(
        cls, x: SupportsFloat | SupportsIndex | str | bytes = ..., /
    ) -> Self: ...
    def hex(self) -> str: ...
    def __floor__(self) -> int: ...
    def __ceil__(self) -> int: ...
    def __trunc__(self) -> int: ...
    def __complex__(self) -> complex: ...

class tf32(_Number): ...
class bfloat16(_Number): ...
class float8_e5m2(_Number): ...
class float8_e4m3fn(_Number): ...
class float8_e4m3(_Number): ...
class float8_e3m4(_Number): ...
class float8_e5m2fnuz(_Number): ...
class float8_e4m3fnuz(_Number): ...
class float8_e4m3b11fnuz(_Number): ...
class float8_e8m0fnu(_Number): ...
class float6_e2m3fn(_Number): ...
class float6_e3m2fn(_Number): ...
class float4_e2m1fn(_Number): ...

#: the formats' names and scalar types, in the order of src/formats/formats.h
names: tuple[str, ...]
scalar_types: list[type[np.floating[Any]]]
#: the dtype of operands that comparisons and bounds take as they are
exact_number: np.dtype[Any]

#: what makes arrays of objects of other libraries; None of those it does not know
viewers: list[Callable[[Any], NDArray[Any] | None]]

def viewed(x: Any) -> Any: ...

# Numbers; or codes, scales, residuals, kinds of elements, residuals and scales, and the
# tensor's scale.
BlockLines = (
    NDArray[Any]
    | tuple[
        NDArray[np.uint8],
        NDArray[np.uint8],
        NDArray[np.uint8] | None,
        int,
        int,
        int,
        float,
    ]
)

def answer(function: Callable[..., Any], handler: Callable[..., Any]) -> None: ...
def answer_method(name: str, handler: Callable[..., Any]) -> bool: ...
def dot(
    chosen: Callable[[np.dtype[Any]], bool], a: Any, b: Any, out: Any = None
) -> Any: ...
def inner(chosen: Callable[[np.dtype[Any]], bool], a: Any, b: Any, /) -> Any: ...
def vdot(chosen: Callable[[np.dtype[Any]], bool], a: Any, b: Any, /) -> Any: ...
def dot_operands(
    chosen: Callable[[np.dtype[Any]], bool], *arguments: Any
) -> tuple[NDArray[Any], NDArray[Any]] | None: ...

#: handlers of NumPy's functions, for `answer` and `answer_method`
format_convolve: Callable[..., Any]
format_correlate: Callable[..., Any]
format_dot: Callable[..., Any]
format_inner: Callable[..., Any]
format_vdot: Callable[..., Any]
sum_over_rows: Callable[..., Any]
reduce_segments: Callable[..., Any]
count_nonzero: Callable[..., Any]

def statistic(
    which: int,
    a: Any,
    axis: Any,
    freedom: float = 0,
    keepdims: Any = False,
    where: Any = True,
    without_nans: bool = False,
) -> Any: ...

is_close: np.ufunc

def weighted_mean(a: Any, weights: Any) -> Any: ...
def available_isas() -> list[str]: ...
def instruction_sets() -> list[tuple[str, bool, bool]]: ...
def isa() -> str: ...
def add_twins(scalars: Mapping[str, type[Any]]) -> None: ...
def facts(index: int) -> dict[str, Any]: ...
def bits_of(array: NDArray[Any]) -> NDArray[np.unsignedinteger[Any]]: ...
def from_bits_of(
    codes: NDArray[np.unsignedinteger[Any]], format: int, check: bool
) -> NDArray[Any]: ...
def dlpack_export(
    array: NDArray[Any], code: int, bits: int, is_versioned: bool, is_copied: bool
) -> Any: ...

#: kind and number of the device; code, bits and lanes of the type; shape; strides in
#: items; offset in bytes; whether it may be written to; whether items are padded
DLPackTensor = tuple[
    tuple[int, int],
    tuple[int, int, int],
    tuple[int, ...],
    tuple[int, ...] | None,
    int | None,
    bool,
    bool,
]

def dlpack_describe(capsule: Any) -> DLPackTensor: ...
def dlpack_take(
    capsule: Any,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    is_writeable: bool,
) -> NDArray[Any]: ...
def quantize_items(
    source: NDArray[Any],
    target: NDArray[Any],
    rounding: int,
    overflow: int,
    draws: NDArray[np.uint64] | None,
) -> int: ...
def report(flags: int, where: bytes = ...) -> None: ...

class Obeying:
    def __init__(
        self, own: Callable[..., Any], product: Callable[..., Any]
    ) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class OwnCall:
    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        then: Callable[[Any], Any] | None,
    ) -> None: ...

def free_buffers() -> None: ...
def printed(scalar: np.floating[Any]) -> float: ...
def workspaces() -> int: ...
def prepare_product(
    a: np.dtype[Any], b: np.dtype[Any], common: np.dtype[Any]
) -> None: ...
def mma_accumulate(
    model: Model,
    a: NDArray[np.uint32],
    b: NDArray[np.uint32],
    c: NDArray[np.uint32],
) -> NDArray[np.uint32]: ...
def mma_trace(
    model: Model, a: NDArray[np.uint32], b: NDArray[np.uint32], c: int, every: int
) -> list[tuple[str, int, int, int, int, int, int]]: ...
def mma_matmul(
    precision: MatmulSpec, a: NDArray[Any], b: NDArray[Any], out: NDArray[Any]
) -> None: ...
def plan_of_product(
    a: NDArray[Any],
    b: NDArray[Any],
    out_dtype: np.dtype[Any],
    precision: MatmulSpec | None = None,
) -> tuple[
    str,
    str,
    bool,
    str | None,
    int,
    tuple[int, int] | None,
    tuple[int, int] | None,
    int,
    int,
]: ...
def fma_matmul(
    model: Model,
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def float64_matmul(
    a: NDArray[np.float64], b: NDArray[np.float64], out: NDArray[np.float64]
) -> None: ...
def float64_depth(k: int) -> int: ...
def exact_dots(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    pairs: NDArray[np.int64],
    out: NDArray[Any],
    rounding: int,
) -> None: ...
def exact_load(x: NDArray[Any]) -> NDArray[np.float64]: ...
def exact_facts(
    x: NDArray[Any],
) -> tuple[NDArray[np.float64], tuple[float, float, float]]: ...
def exact_slice(
    rest: NDArray[np.float64],
    slice: NDArray[Any],
    exponents: NDArray[np.int64],
) -> NDArray[np.float64]: ...
def exact_elements(
    x: Rows,
    y: Rows,
    error: float,
    pairs: NDArray[np.int64],
    out: NDArray[Any],
    rounding: int,
) -> int: ...
def exact_round(
    terms: NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]],
    row_bounds: NDArray[np.float64],
    column_bounds: NDArray[np.float64],
    row_ratios: NDArray[np.float64],
    column_ratios: NDArray[np.float64],
    exponents: tuple[NDArray[np.int64], NDArray[np.int64]] | None,
    rounding: int,
    out: NDArray[Any],
    most: int,
) -> NDArray[np.int64] | None: ...
def exact_sums(x: NDArray[Any], out: NDArray[Any], rounding: int) -> None: ...

#: (name, bits of a code) and (name, bits of the mantissa), as they are in
#: src/blocks/block_formats.h
block_elements: tuple[tuple[str, int], ...]
block_scales: tuple[tuple[ScaleFormat, int], ...]

def block_plan(
    layout: tuple[int, int, int, int],
    rule: int,
    tensor_scale: float,
    rounding: int,
    poison: bool,
) -> bytes: ...
def block_quantize(
    lines: NDArray[np.float32],
    layout: tuple[int, int, int, int],
    rule: int,
    tensor_scale: float,
    rounding: int,
    poison: bool,
    draws: NDArray[np.uint64] | None = ...,
    out: tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8] | None]
    | None = ...,
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8] | None]: ...
def block_round(
    lines: NDArray[np.float32],
    layout: tuple[int, int, int, int],
    rule: int,
    tensor_scale: float,
    rounding: int,
    poison: bool,
    draws: NDArray[np.uint64] | None,
    out: NDArray[np.float32],
) -> None: ...
def block_dequantize(
    codes: NDArray[np.uint8],
    scales: NDArray[np.uint8],
    residuals: NDArray[np.uint8] | None,
    layout: tuple[int, int, int, int],
    tensor_scale: float,
    length: int,
    out: NDArray[np.float32] | NDArray[np.float64],
    odd: bool = ...,
) -> None: ...
def block_bounds(
    lines: NDArray[np.float32], block: int
) -> tuple[float, float, int]: ...
def scaled_mma_matmul(
    model: BlockScaled,
    a: NDArray[np.uint8],
    scales_a: NDArray[np.uint8],
    b: NDArray[np.uint8],
    scales_b: NDArray[np.uint8],
    out: NDArray[np.float32],
) -> None: ...
def promote_block(
    sums: NDArray[np.float32],
    block: NDArray[np.float32],
    scales_a: NDArray[np.float32],
    scales_b: NDArray[np.float32],
) -> None: ...
def scale_values(scale: str, residual: str = ...) -> NDArray[np.float32]: ...
def block_matmul(
    a: BlockLines,
    b: BlockLines,
    out: NDArray[Any],
    k: int,
    block: int,
    terms: int,
) -> int: ...
def precisions() -> list[tuple[PrecisionName, PrecisionName, str, int, int]]: ...

Line = tuple[str, int]
PlannedCallSite = tuple[Line | None, Line | None, MatmulSpec | None, Operand | None]

class MatmulSpec:
    def __init__(
        self,
        format: str,
        *,
        rounding: int = ...,
        scaling: int = ...,
        parts: int = ...,
        split_orders: int = ...,
        saturates: bool = ...,
        float64: bool = ...,
        complex64: bool = ...,
        model: Model | None = ...,
        promote: int = ...,
        scales_inside: bool = ...,
        continues: bool = ...,
        silent: bool = ...,
        exact: ExactProducts | None = ...,
        blas: bool = ...,
        dots: bool = ...,
        lapack: bool = ...,
        min_size: int = ...,
        call_sites: Sequence[PlannedCallSite] | None = ...,
        otherwise: MatmulSpec | None = ...,
    ) -> None: ...
    def obeys_here(self) -> bool: ...
    @property
    def blas(self) -> bool: ...
    @property
    def lapack(self) -> bool: ...
    @property
    def float64(self) -> bool: ...
    @property
    def complex64(self) -> bool: ...
    @property
    def scales_matrices(self) -> bool: ...
    @property
    def exact(self) -> ExactProducts | None: ...

# Shape, multiply-adds, both operands.
BlasProduct = tuple[tuple[int, int, int], float, NDArray[Any], NDArray[Any]]

class BlasCall:
    def __init__(
        self,
        symbol: str,
        words: list[int | bytes | NDArray[Any]],
        floating: Sequence[float] = ...,
    ) -> None: ...
    @property
    def named(self) -> tuple[str, str, bool, bool, bool, int]: ...
    def compute(self, spec: MatmulSpec) -> tuple[int, bytes]: ...
    def measure(self) -> tuple[int, list[BlasProduct]]: ...

class PrecisionScope:
    def __init__(self, owner: object, precision: MatmulSpec | None) -> None: ...
    @property
    def owner(self) -> object: ...
    @property
    def precision(self) -> MatmulSpec | None: ...

precision_variable: ContextVar[tuple[PrecisionScope, ...]]
matmul: np.ufunc

def current_precision() -> MatmulSpec | None: ...
def set_default_precision(precision: MatmulSpec | None) -> None: ...
def replace_loops() -> None: ...
def use_loops(used: bool) -> None: ...

Frame = tuple[str, int, str]

def blas_available() -> bool: ...
def frames_are_known() -> bool: ...
def blas_begin(lapack: bool = ...) -> None: ...
def blas_end() -> None: ...
def blas_lost() -> int: ...
def blas_counts() -> list[tuple[str, str, str, int, int]]: ...
def named_counts() -> list[tuple[str, str, int, float]]: ...
def set_source_folders(
    libraries: Sequence[str], users: Sequence[str], own: Sequence[str]
) -> None: ...
def set_regions(
    only: Sequence[tuple[str, str]],
    but: Sequence[tuple[str, str]],
    *,
    obey: bool = ...,
) -> None: ...
def watch_call_sites(
    lines: int,
    *,
    whole: bool = ...,
    bytes: int = ...,
    dots: bool = ...,
    lapack: bool = ...,
    regions: bool = ...,
    operands: bool = ...,
) -> None: ...
def name_tensor(array: Any, name: str) -> None: ...
def stop_watching() -> None: ...
def samples_left_out() -> int: ...
def calls_without_call_site() -> int: ...
def count_call(name: str) -> None: ...
def share_counts() -> str: ...
def shared_lock() -> RLock: ...
def set_outer_precision(outer: bool) -> None: ...
def take_samples(
    number: int,
) -> list[tuple[tuple[int, int, int], NDArray[Any], NDArray[Any], tuple[int, int]]]: ...
def blas_call_sites() -> list[dict[str, Any]]: ...
def publish_precision() -> None: ...
def count_loops(
    ufunc: np.ufunc,
    name: str,
    but: str = ...,
    *,
    only: str = ...,
    with_blas: bool = ...,
) -> None: ...

class counted:
    def __init__(self, own: Callable[..., Any], name: str) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

def count_scope(more: int) -> None: ...

class ArithmeticPlan:
    def __init__(
        self,
        call_sites: Sequence[
            tuple[tuple[str, int] | None, tuple[str, int] | None, str | None, None]
        ],
        otherwise: str | None,
        watches: bool,
    ) -> None: ...

def begin_arithmetic(
    format_name: str | None,
    float64: bool,
    watches: bool,
    plan: ArithmeticPlan | None = None,
) -> None: ...
def end_arithmetic() -> None: ...
def follow_results(on: bool) -> None: ...
def followed_sums() -> list[dict[str, Any]]: ...
def arithmetic_functions() -> dict[str, tuple[str, ...]]: ...
def arithmetic_call_sites() -> list[dict[str, Any]]: ...
def arithmetic_left_out() -> int: ...
def take_arithmetic_counts() -> dict[str, tuple[int, int]]: ...
