"""Arrays of codes and scales as NumPy sees them: base classes of blocks and tiles."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .._base.caller import cast
from .._formats.typed import DTypeOf, Out, Scalar, ValueNamed
from .dequantization import check_out, value_dtype

#: The result of `@`.
Product = TypeVar("Product", bound=Any)


if TYPE_CHECKING:  # to type checkers these operators are errors
    _Operators = object
else:
    from numpy.lib.mixins import NDArrayOperatorsMixin

    class _Operators(NDArrayOperatorsMixin):
        """The operators of the ufuncs, except ``==``, ``!=`` and ``@=``."""

        __slots__ = ()
        __eq__ = object.__eq__
        __ne__ = object.__ne__
        __hash__ = object.__hash__

        def __imatmul__(self, other):
            return NotImplemented


class Scaled(_Operators, Generic[Product]):
    """NumPy's functions and operators: products work, others raise with a hint."""

    __slots__ = ()

    @staticmethod
    @abstractmethod
    def _product(a: Any, b: Any, **options: Any) -> Any:
        """Return the product, as `matmul` does."""

    @abstractmethod
    def dequantize(self, dtype: Any = None) -> Any:
        """Return the values, by default as float32."""

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        if ufunc is not np.matmul or method != "__call__":
            name = (
                ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            )
            raise TypeError(_no_function(name))
        options = dict(kwargs)
        out = options.pop("out", (None,))[0]
        dtype = options.pop("dtype", np.float32)
        if options:
            raise TypeError(
                "np.matmul takes only out and dtype for arrays of blocks; got"
                f" {', '.join(options)}"
            )
        return self._product(*inputs, out=out, dtype=dtype)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        raise TypeError(_no_function(func.__name__))

    def __matmul__(self, other: ArrayLike | Scaled[Product]) -> Product:
        if getattr(other, "__array_ufunc__", self) is None:
            return NotImplemented  # like an ndarray: `other` multiplies, dask's say
        product: Product = self._product(self, other)
        return product

    def __rmatmul__(self, other: ArrayLike) -> Product:
        product: Product = self._product(other, self)
        return product

    def __contains__(self, value: object) -> bool:
        raise TypeError("`in` does not search arrays of blocks; use dequantize() first")


class HostScaled(Scaled[NDArray[np.float32]]):
    """An array of codes and scales in this machine's memory."""

    __slots__ = ()

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""

    @abstractmethod
    def _values(self, wanted: np.dtype[Any], out: NDArray[Any] | None) -> NDArray[Any]:
        """`dequantize` with checked arguments."""

    @overload
    def dequantize(
        self, dtype: DTypeOf[Any] | ValueNamed | None = ..., *, out: Out
    ) -> Out: ...
    @overload
    def dequantize(self, dtype: None = ..., out: None = ...) -> NDArray[np.float32]: ...
    @overload
    def dequantize(
        self, dtype: DTypeOf[Scalar], out: None = ...
    ) -> NDArray[Scalar]: ...
    @overload
    def dequantize(self, dtype: ValueNamed, out: None = ...) -> NDArray[Any]: ...
    def dequantize(
        self,
        dtype: DTypeOf[Any] | ValueNamed | None = np.float32,
        out: NDArray[Any] | None = None,
    ) -> NDArray[Any]:
        """Return the values: elements times scales.

        Parameters
        ----------
        dtype : dtype
            float32 (None too), float64, float16 or a format of this package. Values are
            exact in float64; in the others they are rounded once, ties to even. Values
            above the maximum of float32 become that maximum in a `BlockArray`, and Inf
            in a `TileArray`.
        out : ndarray, optional
            An array of this shape and dtype to write into, with any strides.

        Returns
        -------
        ndarray
            C-contiguous; `out` if given.

        Raises
        ------
        TypeError
            For any other dtype, or if `out` is not an array of that dtype.
        ValueError
            If `out` has another shape or is read-only.
        """
        wanted = value_dtype(dtype)
        if out is not None:
            check_out(out, wanted, self.shape)
        return self._values(wanted, out)

    @overload
    def __array__(
        self, dtype: None = None, copy: bool | None = ...
    ) -> NDArray[np.float32]: ...
    @overload
    def __array__(self, dtype: DTypeLike, copy: bool | None = ...) -> NDArray[Any]: ...
    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> NDArray[Any]:
        if copy is False:
            raise ValueError(
                "copy must not be False: the values of an array of blocks are always a"
                " copy"
            )
        try:
            return self._values(value_dtype(dtype), None)
        except TypeError:
            # float32 would be a rounding before that to an integer or to longdouble.
            single = np.dtype(dtype) == np.complex64
            wide = self.dequantize(np.float32 if single else np.float64)
            return cast(wide, dtype)  # type: ignore[no-any-return]


def _no_function(name: str) -> str:
    return (
        f"np.{name} does not take arrays of blocks (only np.matmul does); use"
        " dequantize() first"
    )
