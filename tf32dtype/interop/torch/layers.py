"""Convert models to layers with block-scaled weights."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..._base.caller import warn
from ..._base.wording import brief, did_you_mean
from ..._files.model_parts import is_for_inference, part_of
from ..._formats.aliases import BlockFormatNamed
from ...blocks.formats import POWERS, find
from ...blocks.quantization import Settings, resolved
from .names import absent, checked_names, is_one_of
from .rounding import (
    HALVES,
    checked,
    fake_quantize,
    narrowed,
    round_rows,
    round_tensor,
    through,
)


def convert(
    model: nn.Module,
    format: BlockFormatNamed = "tcfp12",
    *,
    error_feedback: bool = False,
    activations: BlockFormatNamed | None = None,
    skip: Iterable[str] = (),
    include: Iterable[str] = (),
    inplace: bool = True,
    **options: Any,
) -> nn.Module:
    """Make a model compute with block-scaled weights.

    Each `nn.Linear` and `nn.Embedding` becomes the class of the same name in this
    module. It is still the same object with the same parameters and hooks, but rounds
    its weight along the last axis before each use. Three kinds of objects do not
    change: biases, layers that are converted already, and layers of subclasses, which
    have their own code (such as the projection in `nn.MultiheadAttention`).

    By default, each `nn.LayerNorm` is unchanged. Formats of 4 to 8 bits also leave out
    each `nn.Embedding`, and layers whose names mark them as the output head or the
    router of experts, as ``tf32dtype convert`` does.

    Parameters
    ----------
    model : Module
        The model; it can itself be such a layer.
    format : str
        A block format (default: "tcfp12"); see `tf32dtype.blocks.quantize`.
    error_feedback : bool
        Whether a layer stores the rounding error of its weight, and adds it to the
        weight before the next rounding. The mean of the rounded weights over many steps
        then equals the weight. The error is added and updated only in training mode, on
        each call of the layer. In evaluation mode, the weight is rounded without it.
    activations : str, optional
        A block format that linear layers round their inputs to, along the last axis,
        with the `block_size` and `overflow` of the weights. None: inputs are not
        rounded.
    skip : iterable of str
        Names of layers that are not converted, as in `named_modules`; ``*`` matches any
        characters.
    include : iterable of str
        Names of layers to convert although they are left out by default; ``["*"]``
        converts all layers of the three classes.
    inplace : bool
        True converts `model` itself, False a deep copy.
    **options
        `block_size`, `scale`, `scale_format`, `rounding`, `overflow`, `rng` of
        `tf32dtype.blocks.round`. The default of `scale` is the format's default,
        except that "amax" replaces "mse", the default of the tcfp and int formats. The
        search of "mse" would take longer than the rest of a training step.

    Returns
    -------
    Module
        The converted model.

    Raises
    ------
    ValueError, TypeError
        For unknown formats or options, before any layer is changed.

    Warns
    -----
    UserWarning
        If no layer has changed, and for a name in `skip` or `include` that matches no
        layer.

    See Also
    --------
    Linear, Embedding, LayerNorm
    tf32dtype.blocks.ErrorFeedback : Keep the error of each rounding for an array.

    Notes
    -----
    The rounding error is stored in the buffer `feedback`, which is not part of state
    dicts. So the original and the converted model can load state dicts of each other.
    `copy.deepcopy` and pickle keep the buffer.

    Rounded weights have the dtype of the parameter, and the layer computes in this
    dtype. float32 represents all values of `tcfp8` and nearly all of the other formats;
    other values are rounded to float32 once. bfloat16 represents the values of `tcfp8`,
    and of MX and NVFP4 elements with scales that are powers of two. `tcfp12` and
    `tcfp16` have more digits than bfloat16.

    Examples
    --------
    >>> import torch
    >>> from tf32dtype.interop.torch import Linear, convert
    >>> model = convert(torch.nn.Sequential(torch.nn.Linear(64, 32)), "tcfp12")
    >>> isinstance(model[0], Linear), model(torch.ones(2, 64)).shape
    (True, torch.Size([2, 32]))
    """
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"model must be a torch.nn.Module; got {brief(model)}. For a tensor use"
            " tf32dtype.interop.torch.fake_quantize"
        )
    skipped, included = checked_names(skip, "skip"), checked_names(include, "include")
    settings = _Settings(format, error_feedback, activations, options)
    if not inplace:
        model = copy.deepcopy(model)
    has_changed = False
    for name, module in model.named_modules():
        kind = _KINDS.get(type(module))
        if kind is None or is_one_of(name, skipped):
            continue
        if _is_left_out(name, kind, format) and not is_one_of(name, included):
            continue
        module.__class__ = kind
        module._set_up(settings)
        has_changed = True
    _warn_of_names(model, skip=skipped, include=included)
    if not has_changed:
        warn(
            "convert changed no layer: the model has no nn.Linear, nn.Embedding or"
            " nn.LayerNorm that is not converted yet and is not left out. Use"
            ' include=["*"] to convert those that are left out by default'
        )
    for module in model.modules():
        # In evaluation, these would pass all weights to one kernel without calling the
        # layers.
        if isinstance(module, nn.TransformerEncoderLayer):
            module.activation_relu_or_gelu = 0
        elif isinstance(module, nn.TransformerEncoder):
            module.use_nested_tensor = False
    return model


def _is_left_out(name: str, kind: type[_Rounding], format: BlockFormatNamed) -> bool:
    """Return whether a layer is left out by default; the root never is."""
    if not name:
        return False
    if kind is LayerNorm:
        return True
    return is_for_inference(find(format).name) and (
        kind is Embedding or part_of(name) != ""
    )


def _warn_of_names(model: nn.Module, **given: tuple[str, ...]) -> None:
    """Warn of patterns in an argument that match no layer."""
    layers = [
        name
        for name, module in model.named_modules()
        if isinstance(module, _Rounding) or not [*module.children()]
    ]
    for argument, patterns in given.items():
        for pattern in absent(patterns, layers):
            text = (
                f"{argument} must have names of layers, as named_modules gives them;"
                f" got {brief(pattern)}, which matches none."
                f" {did_you_mean(pattern, layers)}"
            )
            warn(text.strip())


class _Settings:
    """The rounding of layers: checked once, and shared by the layers of a model."""

    def __init__(
        self,
        format: BlockFormatNamed,
        error_feedback: bool,
        activations: BlockFormatNamed | None,
        options: dict[str, Any],
    ) -> None:
        self.format: BlockFormatNamed = format
        self.error_feedback = error_feedback
        self.activations = activations
        options = {name: value for name, value in options.items() if value is not None}
        self.options: Any = {"scale": _rule(format)} | options
        self.input_options: Any = {
            name: value
            for name, value in options.items()
            if name in ("block_size", "overflow")
        }
        _, _, scale_format = resolved(find(format), Settings(**self.options))
        #: whether rows are independent, without a common scale or random numbers
        self.by_rows: bool = scale_format == POWERS and "rng" not in options
        if activations is not None:
            self.input_options["scale"] = _rule(activations)
            resolved(find(activations), Settings(**self.input_options))

    def __str__(self) -> str:
        shown: dict[str, Any] = {"format": self.format} | self.options
        if self.activations is not None:
            shown["activations"] = self.activations
        if self.error_feedback:
            shown["error_feedback"] = True
        return ", ".join(f"{name}={value}" for name, value in shown.items())


class _Rounding(nn.Module):
    """The base class of the three layers, whose weight is rounded before each use."""

    weight: Any
    feedback: Tensor | None
    settings: _Settings

    def _set_up(self, settings: _Settings) -> None:
        self.settings = settings
        feedback = None
        if settings.error_feedback and self.weight is not None:
            feedback = torch.zeros_like(self.weight, dtype=_wide(self.weight.dtype))
            feedback.requires_grad_(False)
        self.register_buffer("feedback", feedback, persistent=False)

    def rounded_weight(self) -> Tensor:
        """Return the rounded weight; in training mode, also update the feedback."""
        feeds = self.feedback is not None and self.training
        return through(self.weight, self._feed if feeds else self._plain)

    def _plain(self, weight: Tensor) -> Tensor:
        how = self.settings
        if how.by_rows and weight.dtype in HALVES and weight.numel():
            try:
                return round_rows(checked(weight), how.format, how.options)
            except ValueError:
                pass  # rounding the whole weight raises with the place of the error
        return round_tensor(weight, how.format, -1, how.options)

    def _feed(self, weight: Tensor) -> Tensor:
        """Return Q(w + e), and store the next error e = (w + e) - Q(w + e)."""
        wide = _wide(weight.dtype)
        assert self.feedback is not None
        if self.feedback.dtype != wide:  # the model was cast in the meantime
            self.feedback = self.feedback.to(wide)
        wished = self.feedback + weight
        rounded = narrowed(self._plain(wished), torch.empty_like(weight))
        torch.sub(wished, rounded, out=self.feedback)
        self.feedback.nan_to_num_(0.0, 0.0, 0.0)  # blocks with NaN or Inf
        return rounded

    def extra_repr(self) -> str:
        """Describe the layer and its rounding."""
        return f"{super().extra_repr()}, {self.settings}"


class Linear(_Rounding, nn.Linear):
    """`nn.Linear` with its weight in a block format.

    Parameters
    ----------
    in_features, out_features, bias, device, dtype
        As `nn.Linear` has them.
    format, error_feedback, activations, **options
        As `convert` has them.

    Raises
    ------
    ValueError, TypeError
        For unknown formats or options, as for `convert`.

    See Also
    --------
    convert : Convert the layers of a model.

    Examples
    --------
    >>> import torch
    >>> from tf32dtype.interop.torch import Linear
    >>> layer = Linear(64, 32, format="mxfp8")
    >>> layer(torch.ones(2, 64)).shape
    torch.Size([2, 32])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        format: BlockFormatNamed = "tcfp12",
        error_feedback: bool = False,
        activations: BlockFormatNamed | None = None,
        **options: Any,
    ) -> None:
        settings = _Settings(format, error_feedback, activations, options)
        super().__init__(in_features, out_features, bias, device, dtype)
        self._set_up(settings)

    def forward(self, input: Tensor) -> Tensor:
        """Multiply the input by the rounded weight, and add the bias."""
        how = self.settings
        if how.activations is not None:
            input = fake_quantize(input, how.activations, **how.input_options)
        return functional.linear(input, self.rounded_weight(), self.bias)


class LayerNorm(_Rounding, nn.LayerNorm):
    """`nn.LayerNorm` with its weight, if it has one, in a block format.

    Parameters
    ----------
    normalized_shape, eps, elementwise_affine, bias, device, dtype
        As `nn.LayerNorm` has them.
    format, error_feedback, **options
        As `convert` has them.

    Raises
    ------
    ValueError, TypeError
        For unknown formats or options, as for `convert`.

    See Also
    --------
    convert : Convert the layers of a model.

    Examples
    --------
    >>> import torch
    >>> from tf32dtype.interop.torch import LayerNorm
    >>> layer = LayerNorm(64, format="mxfp8")
    >>> layer(torch.ones(2, 64)).shape
    torch.Size([2, 64])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        format: BlockFormatNamed = "tcfp12",
        error_feedback: bool = False,
        **options: Any,
    ) -> None:
        settings = _Settings(format, error_feedback, None, options)
        super().__init__(normalized_shape, eps, elementwise_affine, bias, device, dtype)
        self._set_up(settings)

    def forward(self, input: Tensor) -> Tensor:
        """Normalize over the last axes; apply the rounded weight and the bias."""
        weight = None if self.weight is None else self.rounded_weight()
        shape = self.normalized_shape
        return functional.layer_norm(input, shape, weight, self.bias, self.eps)


class Embedding(_Rounding, nn.Embedding):
    """`nn.Embedding` with its table in a block format.

    Parameters
    ----------
    num_embeddings, embedding_dim
        As `nn.Embedding` has them.
    format, error_feedback
        As `convert` has them.
    **keywords
        All other keyword arguments of `nn.Embedding` and of `convert`.

    Raises
    ------
    ValueError, TypeError
        For unknown formats or options, as for `convert`.

    See Also
    --------
    convert : Convert the layers of a model.

    Examples
    --------
    >>> import torch
    >>> from tf32dtype.interop.torch import Embedding
    >>> layer = Embedding(10, 64, format="mxfp8")
    >>> layer(torch.tensor([1, 2])).shape
    torch.Size([2, 64])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        *,
        format: BlockFormatNamed = "tcfp12",
        error_feedback: bool = False,
        **keywords: Any,
    ) -> None:
        options = {name: keywords.pop(name) for name in _OPTIONS & keywords.keys()}
        settings = _Settings(format, error_feedback, None, options)
        super().__init__(num_embeddings, embedding_dim, **keywords)
        self._set_up(settings)

    def forward(self, input: Tensor) -> Tensor:
        """Return the rounded rows of the table."""
        if self.max_norm is not None:  # changes the rows of the parameter itself
            with torch.no_grad():
                rows = input.contiguous()
                torch.embedding_renorm_(
                    self.weight, rows, self.max_norm, self.norm_type
                )
        few = input.numel() < self.num_embeddings and self.settings.by_rows
        few = few and self.feedback is None
        rows = functional.embedding(
            input,
            self.weight if few else self.rounded_weight(),
            self.padding_idx,
            scale_grad_by_freq=self.scale_grad_by_freq,
            sparse=self.sparse,
        )
        return through(rows, self._plain) if few else rows


_KINDS = {nn.Linear: Linear, nn.LayerNorm: LayerNorm, nn.Embedding: Embedding}
_OPTIONS = {"block_size", "scale", "scale_format", "rounding", "overflow", "rng"}


def _rule(format: BlockFormatNamed) -> str:
    """Return the default rule of scales, or a fast rule instead of a slow one."""
    own = find(format).scale
    return "amax" if own == "mse" else own


def _wide(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of the feedback for weights of a dtype."""
    return torch.float64 if dtype == torch.float64 else torch.float32
