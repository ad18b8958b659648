"""Tensors as arrays, and arrays as tensors, of one memory."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._base.mapping import exporter, is_protected
from ..._base.wording import brief
from ..._formats import bit_packing
from ..._formats.codes import bits
from ..._formats.table import as_own, formats
from ..dlpack import from_dlpack

#: torch's dtypes of the formats that it has under their names.
_DTYPES = {
    form.dtype: getattr(torch, name)
    for name, form in formats.items()
    if isinstance(getattr(torch, name, None), torch.dtype)
}
_FORMATS = {theirs: own for own, theirs in _DTYPES.items()}
#: What both sides have of as many bytes.
_BITS = {1: torch.uint8, 2: torch.int16}
_FP4 = formats["float4_e2m1fn"]
_PAIRS = torch.float4_e2m1fn_x2


def to_numpy(x: Tensor, *, copy: bool = False) -> NDArray[Any]:
    """A tensor's memory as an array, of a format or one of NumPy's dtypes.

    Parameters
    ----------
    x : Tensor
        On the CPU, of any strides; bfloat16, the float8 types, or what NumPy has.
    copy : bool, optional
        Whether to copy. Without a copy, what is written to one is in the other.

    Returns
    -------
    ndarray
        Of x's shape. `float4_e2m1fn_x2` has two numbers in a byte, arrays one: with
        ``copy=True`` they are unpacked, and the last axis becomes twice as long.

    Raises
    ------
    TypeError
        For a dtype that NumPy and this package lack; for `float4_e2m1fn_x2` without
        a copy; for what is no tensor.
    ValueError
        For tensors of which NumPy would see less than there is: those that need a
        gradient, are on a GPU, sparse or nested, or are yet to be conjugated. The error
        has the line to write.

    Examples
    --------
    >>> import torch
    >>> from tf32dtype.interop.torch import to_numpy
    >>> to_numpy(torch.tensor([1.5, 2], dtype=torch.bfloat16))
    array([1.5, 2. ], dtype=bfloat16)
    """
    _check(x)
    if x.dtype == _PAIRS:
        if not copy:
            raise TypeError(
                f"copy must be True for {_PAIRS}, which is packed; got False. Use"
                " tf32dtype.interop.torch.to_numpy(x, copy=True)"
            )
        return from_dlpack(x)
    own = _FORMATS.get(x.dtype)
    if own is not None:
        array: NDArray[Any] = x.view(_BITS[x.element_size()]).numpy().view(own)
    else:
        try:
            array = x.numpy()
        except TypeError as error:
            raise TypeError(
                f"x must have a dtype that NumPy or tf32dtype has; got {x.dtype}"
                f" ({error})"
            ) from error
    return array.copy() if copy else array


def from_numpy(a: NDArray[Any], *, copy: bool = False) -> Tensor:
    """Return an array's memory as a tensor.

    The tensor has a format of torch, or is that of `torch.from_numpy`.

    Parameters
    ----------
    a : ndarray
        bfloat16, float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz or
        float8_e8m0fnu, or their like in ml_dtypes; float4_e2m1fn; or of NumPy's dtypes.
    copy : bool, optional
        Whether to copy. Without a copy, what is written to one is in the other.

    Returns
    -------
    Tensor
        Of a's shape. With ``copy=True`` float4_e2m1fn is packed to `float4_e2m1fn_x2`,
        two numbers in a byte, and the last axis becomes half as long.

    Raises
    ------
    TypeError
        For a dtype that torch lacks; for float4_e2m1fn without a copy; for what is no
        array.
    ValueError
        For negative strides; for float4_e2m1fn with a last axis of odd length; without
        a copy, for views of read-only memory: ``np.memmap(..., "r")``, bytes. Files
        that `tf32dtype.safetensors.load` and `tf32dtype.interop.gguf.load` map are
        taken: a write changes the process's memory, and not the file.

    Warns
    -----
    UserWarning
        For a read-only array that is not copied: tensors do not know of such. It is
        `torch.from_numpy`'s own warning, once in a program.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> from tf32dtype.interop.torch import from_numpy
    >>> from_numpy(np.array([1.5, 2], td.bfloat16))
    tensor([1.5000, 2.0000], dtype=torch.bfloat16)
    """
    if not isinstance(a, np.ndarray):
        raise TypeError(f"a must be an array; got {brief(a)}. Use np.asarray(a)")
    if isinstance(a, np.ma.MaskedArray):
        raise TypeError(
            "a must not have a mask; got a masked array. Use a.data and a.mask"
        )
    array: NDArray[Any] = as_own(a)
    if array.dtype == _FP4.dtype:
        return _pairs(array, copy)
    if copy:
        array = array.copy()
    elif is_protected(array):
        raise ValueError(
            "a must have writable memory; got a view of a mapped file or bytes. Use"
            " tf32dtype.interop.torch.from_numpy(a, copy=True)"
        )
    theirs = _DTYPES.get(array.dtype)
    if theirs is not None:
        return torch.from_numpy(_writable(array.view(f"i{array.itemsize}"))).view(
            theirs
        )
    if array.dtype.name in formats:
        as_float = "view" if array.dtype.name == "tf32" else "astype"
        raise TypeError(
            f"a must have a dtype that torch has; got {array.dtype}. Use"
            f" torch.from_numpy(a.{as_float}(np.float32))"
        )
    return torch.from_numpy(_writable(array))


def _writable(array: NDArray[Any]) -> NDArray[Any]:
    """A view of a mapped file that can be written: its pages are then copied.

    PyTorch writes to read-only arrays too, but warns of them.
    """
    owner = exporter(array)
    if array.flags.writeable or not isinstance(owner, mmap.mmap):
        return array
    start = np.frombuffer(owner, np.uint8).__array_interface__["data"][0]
    place = array.__array_interface__["data"][0] - start
    return np.ndarray(array.shape, array.dtype, owner, place, array.strides)


def _pairs(array: NDArray[Any], copy: bool) -> Tensor:
    if not copy:
        raise TypeError(
            f"copy must be True for {array.dtype}, which {_PAIRS} packs; got False. Use"
            " tf32dtype.interop.torch.from_numpy(a, copy=True)"
        )
    if array.ndim == 0 or array.shape[-1] % 2:
        raise ValueError(
            f"last axis of a must be even for {_PAIRS}, which has two values per byte;"
            f" got shape {array.shape}"
        )
    return torch.from_numpy(bit_packing.pack(bits(array), _FP4.bits)).view(_PAIRS)


def _check(x: Tensor) -> None:
    """Whether NumPy would see all that a tensor is."""
    if not isinstance(x, Tensor):
        raise TypeError(f"x must be a torch.Tensor; got {brief(x)}")
    if x.requires_grad:
        what, line = "a tensor that requires a gradient", "x.detach()"
    elif x.is_nested:
        what, line = "a nested tensor", "each tensor of x.unbind()"
    elif x.layout != torch.strided:
        what, line = f"a tensor of layout {x.layout}", "x.to_dense()"
    elif x.device.type == "meta":
        what, line = "a tensor on the device meta", "a tensor with values"
    elif x.device.type != "cpu":
        what, line = f"a tensor on {x.device}", "x.cpu(), or tf32dtype.cuda.asarray(x)"
    elif x.is_conj():
        what, line = "a tensor that is not conjugated yet", "x.resolve_conj()"
    elif x.is_neg():
        what, line = "a tensor that is not negated yet", "x.resolve_neg()"
    else:
        return
    raise ValueError(f"x must be a plain tensor on the CPU; got {what}. Use {line}")
