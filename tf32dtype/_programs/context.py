"""Set the precision of NumPy's matrix products: in a scope or in the whole process.

A scope is the body of a ``with`` statement, or of a decorated function."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any, Self, Unpack, cast

from .. import _core
from .._base.options import refuse_unknown, shows
from .._base.scopes import Scope
from .._base.wording import brief, in_terminal, one_of
from .._matmul.precisions import FLAGS, Options, PrecisionName, Settings, resolve
from . import numpy_patch
from .variables import BLAS_VARIABLE, VARIABLE


def current_settings() -> Settings | None:
    """Return the settings of the precision in force, for products not of NumPy.

    None means that there is no precision.
    """
    scopes = _core.precision_variable.get()
    owner = scopes[-1].owner if scopes else None
    settings = owner.settings if isinstance(owner, matmul_precision) else _settings
    return settings if settings and settings.precision is not None else None


def process_settings() -> Settings | None:
    """Return the last settings of the process's precision; None if it was never set."""
    return _settings


class PrecisionScope(_core.PrecisionScope):
    """A scope that is open in a context.

    NumPy's functions stay replaced as long as this object exists, which may be longer
    than the ``with`` block: a task that was started in the scope has a copy of the
    context, and may continue after the block.
    """

    opened: Token[None]
    _catches = False

    def __init__(self, owner: object, precision: _core.MatmulSpec | None) -> None:
        if owner is not None:  # else it is the process's, open nowhere
            _core.count_scope(1)
        if precision is not None:
            numpy_patch.install_for(self)
            if precision.blas:
                _core.blas_begin(precision.lapack)
                self._catches = True
                self._lost = _core.blas_lost()

    def check_lost(self) -> None:
        """Raise RuntimeError if BLAS computed products because memory was short."""
        lost = _core.blas_lost() - self._lost if self._catches else 0
        if lost and self.precision is not None and self.precision.exact is not None:
            raise RuntimeError(
                f"{lost} exact matrix multiplication{'s' * (lost > 1)} failed, which"
                " the BLAS library computed in its own precision instead"
            )
        if lost:
            raise RuntimeError(
                f"cannot allocate memory for {lost} matrix"
                f" multiplication{'s' * (lost > 1)}, which the BLAS library computed in"
                " full precision instead"
            )

    def __del__(self) -> None:
        if self.owner is not None:
            _core.count_scope(-1)
        numpy_patch.uninstall_for(self)
        if self._catches:
            _core.blas_end()


_here: ContextVar[None] = ContextVar("tf32dtype_here")


def mark_context() -> Token[None]:
    """Mark this context, so that `leave` can tell it from copies with equal scopes."""
    return _here.set(None)


def leave(variable: ContextVar[tuple[Any, ...]], owner: object) -> Any:
    """Remove an owner's innermost scope from the open ones of a context, and return it.

    It need not be the last scope: generators may leave scopes in another order than
    they entered them.

    Raises
    ------
    RuntimeError
        If the owner has no scope here, or it was opened in another context.
    """
    scopes = variable.get()
    for i in reversed(range(len(scopes))):
        if scopes[i].owner is owner:
            try:
                _here.reset(scopes[i].opened)
            except ValueError:  # this context is a copy of that one
                break
            variable.set(scopes[:i] + scopes[i + 1 :])
            _core.publish_precision()
            return scopes[i]
    raise RuntimeError(
        f"{owner!r} must be open in this context; got a scope that was not entered, was"
        " left already, or was entered in another thread, task or context"
    )


class matmul_precision(Scope):
    """Run NumPy's float32 matrix products in another precision, in a scope or function.

    Use the object in a ``with`` statement, or as a decorator of a function. Inside,
    `numpy.matmul` and ``@``, `numpy.matvec`, `numpy.vecmat`, `numpy.vecdot`,
    `numpy.dot`, `numpy.inner` and `numpy.vdot` round the operands to the precision, and
    sum in float32 in a fixed order. Functions that NumPy computes by them use the
    precision, too: `numpy.tensordot`, `numpy.linalg.multi_dot`,
    ``numpy.einsum(..., optimize=True)``, ... The bits are the same on every machine.
    See :doc:`/reference/precision` for the functions, and
    :doc:`/concepts/accumulation` for the order of the sums.

    Parameters
    ----------
    precision : str or None
        A preset's name or its short name: "F32_F32_F32" or "f32", "TF32_TF32_F32" or
        "tf32", "BF16_BF16_F32_X9" or "bf16x9", ... "exact" means that each result is
        the exact sum of the products, rounded once, for float32, float64, complex64 and
        complex128. With None, NumPy computes as usual, also inside another scope.
    rounding : {"ties_to_even", "ties_to_away", "toward_zero", ...}, optional
        How "tf32" rounds the operands. The default is ties to even. With `device`, the
        default is the rounding of the vendor's library: "ties_to_away" on NVIDIA,
        "toward_zero" on AMD. For "exact", the direction in which results are rounded,
        also "toward_positive" or "toward_negative".
    scale : {"tensor", "row"}
        How operands are scaled for "fp8_e4m3" and "fp8_e5m2": "tensor" uses one scale
        per matrix, "row" one per row of the first operand and one per column of the
        second.
    special_values : {"propagate", "saturate"}
        How precisions of several components ("tf32x3", "bf16x3", "bf16x6", "bf16x9")
        read Inf: as Inf, or as the largest float32 number. NaN stays NaN.
    device, instruction : str, optional
        A device whose tensor core computes the products, and one of its instructions:
        see `tensor_core.matmul`. Not for "f32", which no tensor core has.
    float64 : bool
        Whether the precision also applies to float64 products. Their operands are
        rounded to float32 first, and the result is widened to float64.
    complex64 : bool
        Whether the precision also applies to complex64 products, each computed as four
        float32 products. With `float64` it also applies to complex128 products, as four
        float64 products.
    blas : bool
        Whether the precision also applies to all BLAS calls of the process: those of
        SciPy, scikit-learn, PyTorch, NumPy's methods, ... (on Linux). With "exact",
        threads without Python code are excepted: see :doc:`/reference/blas`.
    dots : bool
        Whether the precision applies to products whose result is one number: dot
        products and norms. The default is ``not blas``.
    lapack : bool
        Whether the precision also applies to products inside LAPACK routines. This
        needs `blas`.
    min_size : int
        The smallest k (default: 0): the precision does not apply to matrix products
        that sum fewer than `min_size` terms per element.
    plan : path, optional
        A plan file instead of one precision. It has a precision for each call site and
        the settings that choose the products, as ``tf32dtype tune`` writes it: see
        :doc:`/how_to/tune`.

    Raises
    ------
    ValueError
        For an unknown name, and for a plan that cannot be read. For `rounding`, `scale`
        or `special_values` if the precision does not use it. For a device that has no
        model for the precision.
    TypeError
        If a flag is neither True nor False, or `min_size` is not an integer. If a
        generator function is decorated: its body would run outside the scope.
    RuntimeError
        If the scope to be left is not open, or was entered in another thread, task or
        context; then nothing changes. At the end of a scope with `blas`, if memory was
        so short that the BLAS library computed some products itself.

    See Also
    --------
    matmul : Compute one product in a precision.
    set_matmul_precision : Set the precision of the whole process.

    Notes
    -----
    As with `numpy.errstate`, a precision belongs to a thread and to an asyncio task. A
    new thread starts without a precision. A new task starts with the precision of the
    code that created it. You may enter one object many times, also while it is entered.
    It decorates ``async def`` functions, too. After the last scope, NumPy's functions
    compute as before.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> a = np.array([[1.001, 1], [1, 1]], dtype=np.float32)
    >>> a @ a
    array([[2.002001, 2.001   ],
           [2.001   , 2.      ]], dtype=float32)
    >>> with td.matmul_precision("bf16"):
    ...     a @ a
    array([[2., 2.],
           [2., 2.]], dtype=float32)
    >>> @td.matmul_precision("tf32", rounding="toward_zero")
    ... def square(x):
    ...     return x @ x
    >>> square(a)
    array([[2.001954 , 2.0009766],
           [2.0009766, 2.       ]], dtype=float32)
    """

    @shows(Options, Settings)
    def __init__(
        self, precision: PrecisionName | None = None, **options: Unpack[Options]
    ) -> None:
        refuse_unknown("matmul_precision", options, Options)
        self.settings: Settings = Settings(precision, **options)
        self._precision = resolve_settings(self.settings)

    def __enter__(self) -> Self:
        scopes = _core.precision_variable.get()
        scope = PrecisionScope(self, self._precision)
        scope.opened = mark_context()
        _core.precision_variable.set((*scopes, scope))
        _core.publish_precision()
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        scope = leave(_core.precision_variable, self)
        if error is None:
            scope.check_lost()

    def __getstate__(self) -> Settings:
        return self.settings

    def __setstate__(self, settings: Settings) -> None:
        self.settings = settings
        self._precision = resolve_settings(settings)

    def __repr__(self) -> str:
        given = [repr(self.settings.precision)]
        for name in ("device", "instruction", "plan"):
            if value := getattr(self.settings, name):
                given.append(f"{name}={value!r}")
        return f"<matmul_precision({', '.join(given)})>"


#: The scope that keeps NumPy's functions replaced while the process has a precision.
_process: PrecisionScope | None = None
_settings: Settings | None = None


@shows(Options, Settings)
def set_matmul_precision(
    precision: PrecisionName | None = None, **options: Unpack[Options]
) -> None:
    """Set the precision of NumPy's matrix products for the whole process.

    It applies in all threads and tasks in which no `matmul_precision` scope is open.
    The environment variable ``TF32DTYPE_MATMUL_PRECISION`` holds a name of a precision:
    it sets the precision when tf32dtype is imported.

    Parameters
    ----------
    precision : str or None
        As in `matmul_precision`. With None, NumPy computes as usual.
    rounding, scale, special_values, device, instruction
        As in `matmul_precision`.
    float64, complex64, blas, dots, lapack, min_size, plan
        As in `matmul_precision`.

    Raises
    ------
    ValueError, TypeError
        As `matmul_precision` does; then nothing changes.
    RuntimeError
        If memory was so short that BLAS computed some earlier products without the
        previous precision. The new precision is set nevertheless. When Python exits,
        a line on standard error reports this instead.

    See Also
    --------
    matmul_precision : Set the precision in a scope or a function.
    matmul : Compute one product in a precision.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> a = np.full((2, 2), 1.001, dtype=np.float32)
    >>> td.set_matmul_precision("bf16")
    >>> a @ a
    array([[2., 2.],
           [2., 2.]], dtype=float32)
    >>> td.set_matmul_precision(None)
    """
    global _process, _settings
    refuse_unknown("set_matmul_precision", options, Options)
    settings = Settings(precision, **options)
    chosen = resolve_settings(settings)
    with numpy_patch.lock:
        scope = PrecisionScope(None, chosen)
        _core.set_default_precision(chosen)
        before, _process, _settings = _process, scope, settings
    atexit.unregister(_tell_lost)
    atexit.register(_tell_lost)
    if before is not None:
        before.check_lost()


def _tell_lost() -> None:
    try:
        set_matmul_precision(None)
    except RuntimeError as error:
        print(f"tf32dtype: {error}", file=sys.stderr)


def resolve_settings(settings: Settings) -> _core.MatmulSpec | None:
    """Resolve settings, or the plan that they name.

    Raises
    ------
    ValueError, TypeError
        As `precisions.resolve` and `plans.resolve_plan`.
    """
    if settings.plan is None:
        return resolve(settings)
    from .plans import resolve_plan  # not before a plan is named: it imports tomllib

    return resolve_plan(settings)


@contextmanager
def watched_precision(settings: Settings) -> Iterator[None]:
    """Apply a precision to all BLAS calls of the process, those of NumPy among them.

    NumPy's own loops are not replaced and call BLAS. A collector that watches BLAS then
    sees NumPy's products, too.
    """
    chosen = resolve_settings(settings)
    _core.blas_begin(settings.lapack)
    with numpy_patch.lock:
        _core.set_default_precision(chosen)
    try:
        yield
    finally:
        with numpy_patch.lock:
            _core.set_default_precision(
                resolve_settings(_settings) if _settings else None
            )
        _core.blas_end()


def read_environment() -> None:
    """Set the precision that the environment variables name.

    Raises
    ------
    ImportError
        If they do not name a precision, or its options are not valid.
    """
    name = os.environ.get(VARIABLE, "")
    if not name:
        return
    try:
        set_matmul_precision(cast(Any, name), **_options(os.environ.get(BLAS_VARIABLE)))
    except ValueError as error:
        also = f" and {BLAS_VARIABLE}" if BLAS_VARIABLE in os.environ else ""
        raise ImportError(f"{VARIABLE}{also}: {in_terminal(str(error))}") from None


def _options(words: str | None) -> Options:
    """Return the options of the BLAS variable; if it is set, `blas` is among them."""
    options: dict[str, Any] = {} if words is None else {"blas": True}
    for word in filter(None, (words or "").split(",")):
        if word == "quiet":  # for programs that do not import tf32dtype
            continue
        option, equals, value = word.partition("=")
        if option not in _OPTIONS:
            raise ValueError(one_of("option", word, _OPTIONS))
        if option in FLAGS:
            if equals:
                raise ValueError(
                    f"option {option} must not have a value; got {brief(word)}"
                )
            options[option] = True
        elif option == "min_size":
            if not value.isdecimal():
                raise ValueError(
                    f"min_size must be an integer, 0 or more; got {brief(value)}"
                )
            options[option] = int(value)
        else:
            options[option] = value
    return cast(Options, options)


_OPTIONS = [
    name for name in Settings._fields if name not in ("precision", "blas", "plan")
]
