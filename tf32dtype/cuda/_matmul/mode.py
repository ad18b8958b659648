"""Set the mode that computes products of this package's formats on a GPU.

"chain", the default, gives the bits of ``a @ b`` on the CPU. "model" gives the bits of
a modeled tensor core, on any GPU. "native" uses this GPU's tensor cores.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Literal, NamedTuple, Self, get_args

from ..._base.scopes import Scope
from ..._base.wording import brief, one_of
from ..._matmul.precisions import kept_for_names
from ..._programs.context import leave, mark_context
from ...tensor_core.device import DeviceName
from ...tensor_core.look_up import find_device, find_instruction
from ...tensor_core.models import Instruction

ModeName = Literal["chain", "model", "native"]
MODES = get_args(ModeName)
#: Instructions of mode "native", in addition to None (cuBLAS).
OWN = "mma.sync", "wgmma"


class Mode(NamedTuple):
    """A mode that computes products of this package's formats."""

    name: str = "chain"
    device: str | None = None
    instruction: str | None = None


@kept_for_names
def choose_mode(mode: object, device: str | None, instruction: str | None) -> Mode:
    """Check the arguments of `matmul_mode`, and return the mode.

    Raises
    ------
    ValueError
        If a name is unknown, or if the mode does not have an argument.
    """
    if mode not in MODES:
        raise ValueError(one_of("mode", mode, MODES))
    if mode == "model":
        if device is None:
            raise ValueError(
                "device must be given with mode='model'; use one of"
                " td.tensor_core.devices"
            )
        found = find_device(device)
        return Mode("model", found.name, find_instruction(found, instruction))
    if device is not None:
        raise ValueError(
            f"device must be None unless mode is 'model'; got {brief(device)}"
        )
    if instruction is not None and mode == "chain":
        raise ValueError(
            "instruction must be None unless mode is 'model' or 'native'; got"
            f" {brief(instruction)}"
        )
    if instruction not in (None, *OWN):
        raise ValueError(
            f"instruction must be one of {', '.join(map(repr, OWN))} or None (cuBLAS)"
            f" with mode='native'; got {brief(instruction)}"
        )
    return Mode(str(mode), None, instruction)


class _Scope(NamedTuple):
    """The entry of a `matmul_mode` scope, and the object that was entered."""

    owner: object
    mode: Mode
    opened: Token[None]


#: The scopes that are entered in a context, the innermost last.
_scopes: ContextVar[tuple[_Scope, ...]] = ContextVar("tf32dtype_cuda_mode", default=())


def current_mode() -> Mode:
    """Return the mode of the innermost scope, or the default mode."""
    scopes = _scopes.get()
    return scopes[-1].mode if scopes else Mode()


class matmul_mode(Scope):
    """Set the mode of matrix products on a GPU, in a ``with`` block or a function.

    The mode affects ``@``, `numpy.matmul` and all other products of arrays of this
    package's formats. It also affects `matmul` if that has no `mode` argument.

    Parameters
    ----------
    mode : {"chain", "model", "native"}
        The mode, as in `matmul`: the bits of the CPU, the bits of the tensor cores of
        `device`, or this GPU's tensor cores.
    device, instruction : str, optional
        Options of the mode, as in `matmul`.

    Raises
    ------
    ValueError
        If a name is unknown, or if the mode does not have an argument.
    TypeError
        If you decorate a generator function, because its body would run outside the
        scope.

    See Also
    --------
    matmul : Multiply matrices in a chosen mode.
    tf32dtype.matmul_precision : Set the precision of float32 products.

    Notes
    -----
    A mode belongs to a thread and to an asyncio task, as `tf32dtype.matmul_precision`
    does. You may enter one object many times, even while it is entered. It can also
    decorate ``async def`` functions.

    Examples
    --------
    >>> import tf32dtype as td, tf32dtype.cuda as tfc
    >>> x = tfc.asarray([[1, 2], [3, 4]], td.bfloat16)
    >>> with tfc.matmul_mode("model", device="A100"):  # doctest: +SKIP
    ...     x @ x
    """

    def __init__(
        self,
        mode: ModeName,
        *,
        device: DeviceName | None = None,
        instruction: Instruction | None = None,
    ) -> None:
        self._mode = choose_mode(mode, device, instruction)

    def __enter__(self) -> Self:
        scope = _Scope(self, self._mode, mark_context())
        _scopes.set((*_scopes.get(), scope))
        return self

    def __exit__(self, *exc_info: object) -> None:
        leave(_scopes, self)

    def __repr__(self) -> str:
        name, *where = self._mode
        named = zip(("device", "instruction"), where, strict=True)
        given = [repr(name), *(f"{key}={value!r}" for key, value in named if value)]
        return f"<matmul_mode({', '.join(given)})>"
