"""Quantize a tensor repeatedly without bias: each step adds the error of the last."""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.options import refuse_unknown, shows
from .._base.wording import brief
from .._formats.aliases import BlockFormatName
from .array import BlockArray
from .formats import BlockFormatLike, find
from .layout import MOST_AXES, checked_axis
from .lines import checked, to_float32
from .quantization import Options, Settings, quantize, resolved

_MAX = np.finfo(np.float32).max


class ErrorFeedback:
    """Quantize a tensor in many steps so that the errors of the steps cancel.

    It keeps e, the error of the previous step, and returns Q(x + e). Then e becomes
    (x + e) - Q(x + e). The mean of n results is the mean of the n inputs, up to e / n.

    Parameters
    ----------
    format : str
        A name of `tf32dtype.blocks.formats`.
    axis, block_size, scale, scale_format, rounding, overflow, rng
        As for `tf32dtype.blocks.quantize`.

    Raises
    ------
    ValueError
        For an unknown format, and for other values of the options.
    TypeError
        For an unknown option, and for an `axis` that is not an integer.

    See Also
    --------
    quantize : Quantize a tensor once.
    tf32dtype.interop.torch.convert : Train a PyTorch model with error feedback.

    Notes
    -----
    If several threads call `quantize`, the steps run one after the other.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> feedback = td.blocks.ErrorFeedback("mxfp4")
    >>> x = np.array([6, 0.3], np.float32)
    >>> [float(feedback(x).dequantize()[1]) for _ in range(5)]
    [0.5, 0.0, 0.5, 0.0, 0.5]
    """

    @shows(Options, Settings)
    def __init__(
        self, format: BlockFormatLike, axis: int = -1, **options: Unpack[Options]
    ) -> None:
        self._row = find(format)
        refuse_unknown("ErrorFeedback", options, Options)
        checked_axis(axis, MOST_AXES)
        resolved(self._row, Settings(**options))
        self._axis = axis
        self._options = options
        self._error: NDArray[np.float32] | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: v for name, v in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    @property
    def format(self) -> BlockFormatName:
        """Name of the block format."""
        return self._row.name

    @property
    def error(self) -> NDArray[np.float32] | None:
        """A copy of the error that the next step adds; None before the first step."""
        error = self._error
        return None if error is None else error.copy()

    def quantize(self, x: ArrayLike) -> BlockArray:
        """Quantize x plus the kept error, and keep the new error.

        Parameters
        ----------
        x : array_like
            Real numbers. x + e is computed in float32, and is finite if x is within
            float32's range.

        Returns
        -------
        BlockArray
            The quantized sum, with the shape of `x`.

        Raises
        ------
        ValueError
            If x has another shape than in the previous step, and as `quantize` does.
            Then e does not change.

        Notes
        -----
        Elements of e do not change where the result or x is not finite.
        """
        array = checked(x)
        overflow = self._options.get("overflow", "raise")
        values = to_float32(array, overflow)
        with self._lock:
            return self._step(values)

    __call__ = quantize

    def _step(self, values: NDArray[np.float32]) -> BlockArray:
        error = self._error
        if error is None:
            error = np.zeros(values.shape, np.float32)
        elif error.shape != values.shape:
            raise ValueError(
                f"x must have the shape of the previous step, {error.shape}; got"
                f" {values.shape}. Use reset() for a new shape"
            )
        with np.errstate(over="ignore"):
            total = values + error
        np.clip(total, -_MAX, _MAX, out=total, where=np.isfinite(values))
        result = quantize(total, self._row, self._axis, **self._options)
        with np.errstate(all="ignore"):
            left = total - result.dequantize()
        self._error = np.where(np.isfinite(left), left, error)
        return result

    def reset(self) -> None:
        """Forget the error, and with it the shape."""
        self._error = None

    def state_dict(self) -> dict[str, Any]:
        """Return the format, the error and the state of `rng` for `load_state_dict`.

        Returns
        -------
        dict of str to values
            "format" is a name, "error" is a float32 array or None, and "rng" is the
            state of the generator or None.
        """
        rng = self._options.get("rng")
        with self._lock:  # both of one step
            return {
                "format": self.format,
                "error": self.error,
                "rng": None if rng is None else copy.deepcopy(rng.bit_generator.state),
            }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned.

        Parameters
        ----------
        state : dict
            A result of `state_dict`.

        Raises
        ------
        ValueError
            If the state is of another format, has other keys, or its error is not an
            array of finite float32 numbers. If its "rng" is not the state of a
            generator of the same kind.
        TypeError
            If `state` is not a dictionary.
        """
        if not isinstance(state, Mapping):
            raise TypeError(
                f"state must be a result of state_dict(); got {brief(state)}"
            )
        if set(state) != {"format", "error", "rng"}:
            raise ValueError(
                f"state must have the keys format, error and rng; got {list(state)}"
            )
        if state["format"] != self.format:
            raise ValueError(
                f"state must be of format {self.format}; got {state['format']}"
            )
        error, rng = state["error"], self._options.get("rng")
        if error is not None:
            error = np.array(error)
            if error.dtype != np.float32 or not np.isfinite(error).all():
                raise ValueError(
                    "state['error'] must be an array of finite float32 values; got"
                    f" {brief(error)}"
                )
        if (state["rng"] is None) != (rng is None):
            raise ValueError(
                "state['rng'] must be given exactly if the option rng is; got"
                f" state['rng'] {'without' if rng is None else 'None with'} rng"
            )
        if rng is not None:
            bits = rng.bit_generator
            try:
                bits.state = state["rng"]
            except (TypeError, ValueError, KeyError):
                raise ValueError(
                    f"state['rng'] must be the state of a {type(bits).__name__}; got"
                    f" {brief(state['rng'])}"
                ) from None
        self._error = error

    def __repr__(self) -> str:
        given = {} if self._axis == -1 else {"axis": self._axis}
        shown = [f", {name}={v!r}" for name, v in (given | self._options).items()]
        return f"ErrorFeedback({self.format!r}{''.join(shown)})"
