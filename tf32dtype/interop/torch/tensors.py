"""Convert tensors to arrays and arrays to tensors that share memory."""

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

#: The dtypes of torch for the formats that torch has under the same name.
_DTYPES = {
    form.dtype: getattr(torch, name)
    for name, form in formats.items()
    if isinstance(getattr(torch, name, None), torch.dtype)
}
_FORMATS = {theirs: own for own, theirs in _DTYPES.items()}
#: Dtypes of torch that NumPy also has, by their size in bytes.
_BITS = {1: torch.uint8, 2: torch.int16}
_FP4 = formats["float4_e2m1fn"]
_PAIRS = torch.float4_e2m1fn_x2


def to_numpy(x: Tensor, *, copy: bool = False) -> NDArray[Any]:
    """Convert a PyTorch tensor to an array, by default without a copy.

    Parameters
    ----------
    x : Tensor
        A tensor on the CPU, with any strides. Its dtype is bfloat16, a float8 type or a
        dtype of NumPy.
    copy : bool, optional
        Whether to copy. Without a copy, writing to the array changes the tensor, and
        the reverse.

    Returns
    -------
    ndarray
        An array with the shape of `x`. A tensor of `float4_e2m1fn_x2` has two values
        per byte; with ``copy=True`` they are unpacked to one value per byte, and the
        last axis becomes twice as long.

    Raises
    ------
    TypeError
        For a dtype that neither NumPy nor this package has; for `float4_e2m1fn_x2`
        without a copy; if `x` is not a tensor.
    ValueError
        For tensors that an array cannot represent: they require a gradient, are on a
        GPU, are sparse or nested, or are not conjugated or negated yet. The error names
        the call that makes a plain tensor.

    See Also
    --------
    from_numpy : Convert an array to a PyTorch tensor.
    tf32dtype.from_dlpack : Import a tensor through the DLPack protocol.

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
    """Convert an array to a PyTorch tensor, by default without a copy.

    Arrays of a format that torch has keep their format. Arrays of NumPy dtypes are
    converted as `torch.from_numpy` does.

    Parameters
    ----------
    a : ndarray
        bfloat16, float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz or
        float8_e8m0fnu, also as dtypes of ml_dtypes; float4_e2m1fn; or a NumPy dtype.
    copy : bool, optional
        Whether to copy. Without a copy, writing to the array changes the tensor, and
        the reverse.

    Returns
    -------
    Tensor
        A tensor with the shape of `a`. With ``copy=True``, float4_e2m1fn is packed to
        `float4_e2m1fn_x2`, two values per byte, and the last axis becomes half as long.

    Raises
    ------
    TypeError
        For a dtype that torch does not have; for float4_e2m1fn without a copy; if `a`
        is not an array.
    ValueError
        For negative strides; for float4_e2m1fn with a last axis of odd length; without
        a copy, for views of read-only memory: ``np.memmap(..., "r")``, bytes. Arrays
        that `tf32dtype.safetensors.load` and `tf32dtype.interop.gguf.load` map from
        files are accepted: a write changes the memory of the process, not the file.

    Warns
    -----
    UserWarning
        For a read-only array without a copy, because torch has no read-only tensors.
        `torch.from_numpy` issues this warning once in a program.

    See Also
    --------
    to_numpy : Convert a PyTorch tensor to an array.
    tf32dtype.to_dlpack : Export an array through the DLPack protocol.

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
    """Return a writable view of a mapped file, whose pages are copied on a write.

    PyTorch would accept the read-only array, but with a warning.
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
    """Raise an error for a tensor that an array cannot represent."""
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
