"""The precision of NumPy's products: of a scope, of a call, or of the process.

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
    """What the precision of the process was last set with; None: never set."""
    return _settings


class PrecisionScope(_core.PrecisionScope):
    """A scope that is open in a context.

    NumPy obeys as long as one lives, not until the scope is left: a task that a scope
    has started has a copy of its context, and may go on after it.
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
        """Raise RuntimeError if BLAS made products since memory was short."""
        lost = _core.blas_lost() - self._lost if self._catches else 0
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
    """What tells this context, for `leave`, from copies that have the same scopes."""
    return _here.set(None)


def leave(variable: ContextVar[tuple[Any, ...]], owner: object) -> Any:
    """Take an owner's innermost scope off those that are open in a context.

    It need not be the last: generators may leave scopes in another order than they
    entered them. Returns the scope.

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
    """NumPy's float32 products in a chosen precision: a scope, or a decorator.

    Inside, `numpy.matmul` and ``@``, `numpy.matvec`, `numpy.vecmat`, `numpy.vecdot`,
    `numpy.dot`, `numpy.inner`, `numpy.vdot`, and what NumPy computes by them
    (`numpy.tensordot`, `numpy.linalg.multi_dot`, ``numpy.einsum(..., optimize=True)``,
    ...) round the operands as told and sum in float32 in a fixed order. The bits are
    the same on every machine. See :doc:`/reference/precision` for the functions, and
    :doc:`/concepts/accumulation` for the order of the sums.

    Parameters
    ----------
    precision : str or None
        A preset's name or its short one: "F32_F32_F32" or "f32", "TF32_TF32_F32" or
        "tf32", "BF16_BF16_F32_X9" or "bf16x9", ... None is NumPy's own, also inside
        another scope.
    rounding : {"ties_to_even", "ties_to_away", "toward_zero"}, optional
        How "tf32" rounds the operands. By default ties to even; with `device`, as the
        library of its vendor does: "ties_to_away" on NVIDIA, "toward_zero" on AMD.
    scale : {"tensor", "row"}
        What has a scale of its own under "fp8_e4m3" and "fp8_e5m2": each matrix, or
        each row of the first operand and each column of the second.
    special_values : {"propagate", "saturate"}
        What Inf is to a split ("tf32x3", "bf16x3", "bf16x6", "bf16x9"): Inf, or the
        largest float32. NaN is NaN.
    device, instruction : str, optional
        A device whose tensor core computes the products, and one of its instructions:
        see `tensor_core.matmul`. Not for "f32", which no tensor core has.
    float64 : bool
        Whether float64 products obey too. Operands are rounded to float32 first, the
        result is widened.
    complex64 : bool
        Whether complex64 products obey too, by four float32 products; with `float64`
        those of complex128 too, by four float64 products.
    blas : bool
        Whether all products obey that any library of the process has BLAS make: SciPy,
        scikit-learn, PyTorch, NumPy's methods, ... (on Linux).
    dots : bool
        Whether products whose result is one number obey: dots, norms. The default is
        ``not blas``.
    lapack : bool
        Whether those obey that LAPACK makes inside its routines, with `blas`.
    min_size : int
        The least k: products with a sum of fewer products are as without a precision.
    plan : path, optional
        A plan instead of one precision: a file that has a precision for each place in
        the source, as ``tf32dtype tune`` writes it, and says what obeys: see
        :doc:`/how_to/tune`.

    Raises
    ------
    ValueError
        For an unknown name, and a plan that cannot be read; for `rounding`, `scale` or
        `special_values` where the precision has no use for it; for a device that has no
        model for it.
    TypeError
        For what is neither True nor False, or no integer, where one is needed; if a
        generator function is decorated, whose body would run outside.
    RuntimeError
        If a scope is left that is not open, or that was entered in another thread, task
        or context; then nothing changes. At the end of a scope with `blas`, if memory
        was so short that products were left to the library.

    See Also
    --------
    matmul : One product.
    set_matmul_precision : For the whole process.

    Notes
    -----
    As with `numpy.errstate`, a precision belongs to a thread and to an asyncio task: a
    new thread starts without one, a new task with that of the code which made it. One
    object may be entered many times, also while it is entered. It decorates ``async
    def`` functions too. After the last scope NumPy's functions compute as ever.

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


#: What keeps NumPy obeying while the process has a precision.
_process: PrecisionScope | None = None
_settings: Settings | None = None


@shows(Options, Settings)
def set_matmul_precision(
    precision: PrecisionName | None = None, **options: Unpack[Options]
) -> None:
    """Set the precision of NumPy's products for the whole process.

    It holds in all threads and tasks, where no `matmul_precision` scope is open. The
    environment variable ``TF32DTYPE_MATMUL_PRECISION`` sets it when tf32dtype is
    imported, to a name without keywords.

    Parameters
    ----------
    precision : str or None
        As in `matmul_precision`. None: as NumPy computes.
    rounding, scale, special_values, device, instruction
        As in `matmul_precision`.
    float64, complex64, blas, dots, lapack, min_size, plan
        As in `matmul_precision`.

    Raises
    ------
    ValueError, TypeError
        As `matmul_precision` does; then nothing changes.
    RuntimeError
        If products of BLAS could not be computed in the precision so far, as memory was
        short. The new precision is set all the same. At Python's end this is a line on
        standard error.

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
    """Have products of BLAS obey in the whole process, NumPy's among them.

    NumPy's own loops stay, and call BLAS: so these products too are seen by who watches
    there.
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
    """Set what the environment variables name.

    Raises
    ------
    ImportError
        If they name no precision, or no option of one.
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
    """What the words stand for; without any, BLAS's products do not obey."""
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
