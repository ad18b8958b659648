"""Models whose layers have block-scaled weights."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from fnmatch import fnmatchcase
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
    """Have a model compute with block-scaled weights.

    Every `nn.Linear` and `nn.Embedding` becomes the class of that name in this module:
    the same object, with its parameters, hooks and place, that rounds its weight along
    the last axis before it uses it. Biases stay as they are, and so do layers of
    subclasses, which have code of their own (the projection inside
    `nn.MultiheadAttention` among them), and those that are converted already.

    By default every `nn.LayerNorm` stays as it is. Formats of 4 to 8 bits also leave
    out every `nn.Embedding`, and layers whose names say that they are the output head
    or the router of experts, as ``tf32dtype convert`` does.

    Parameters
    ----------
    model : Module
        The root of the tree; it may itself be such a layer.
    format : str
        A block format; see `tf32dtype.blocks.quantize`.
    error_feedback : bool
        Whether a layer remembers what its weight has lost by rounding, and adds it to
        the weight before the next: the mean of the rounded weights over many steps is
        then the weight's. Only in training mode is it added and updated, once a call
        of the layer; in evaluation the weight is rounded by itself.
    activations : str, optional
        A block format that linear layers round their inputs to, along the last axis,
        with the `block_size` and `overflow` of the weights.
    skip : iterable of str
        Names of layers that stay as they are, as `named_modules` gives them; ``*``
        stands for any characters.
    include : iterable of str
        Names of layers that are converted although they are left out by default:
        ``["*"]`` converts all of the three classes.
    inplace : bool
        False converts a deep copy.
    **options
        `block_size`, `scale`, `scale_format`, `rounding`, `overflow`, `rng` of
        `tf32dtype.blocks.round`. The default of `scale` is the format's own, but "amax"
        instead of "mse", the rule of the tcfp and int formats: the search would take
        longer than the rest of a training step.

    Returns
    -------
    Module
        The model.

    Raises
    ------
    ValueError, TypeError
        For unknown formats or options, before any layer is changed.

    Warns
    -----
    UserWarning
        If no layer has changed, and for a name in `skip` or `include` that no layer
        has.

    Notes
    -----
    What a layer remembers is in the buffer `feedback`, which no state dict holds, so
    state dicts load both ways between the model and the converted one. `copy.deepcopy`
    and pickle keep it.

    Rounded weights have the parameter's dtype, and the layer computes in it. float32
    holds all numbers of `tcfp8` and nearly all of the others (they are rounded to it
    once); bfloat16 holds those of `tcfp8`, of MX and NVFP4 elements under scales that
    are powers of two, while `tcfp12` and `tcfp16` carry more digits than it has.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"model must be a torch.nn.Module; got {brief(model)}. For a tensor use"
            " tf32dtype.interop.torch.fake_quantize"
        )
    skipped, included = _patterns("skip", skip), _patterns("include", include)
    settings = _Settings(format, error_feedback, activations, options)
    if not inplace:
        model = copy.deepcopy(model)
    has_changed = False
    for name, module in model.named_modules():
        kind = _KINDS.get(type(module))
        if kind is None or _matches(name, skipped):
            continue
        if _is_left_out(name, kind, format) and not _matches(name, included):
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
        # In evaluation these would hand all weights to one kernel, layers unasked.
        if isinstance(module, nn.TransformerEncoderLayer):
            module.activation_relu_or_gelu = 0
        elif isinstance(module, nn.TransformerEncoder):
            module.use_nested_tensor = False
    return model


def _patterns(argument: str, names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise TypeError(
            f"{argument} must be a list of names; got {brief(names)}. Use"
            f" [{brief(names)}]"
        )
    return tuple(names)


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _is_left_out(name: str, kind: type[_Rounding], format: BlockFormatNamed) -> bool:
    """Whether a layer stays as it is by default; the root never does."""
    if not name:
        return False
    if kind is LayerNorm:
        return True
    return is_for_inference(find(format).name) and (
        kind is Embedding or part_of(name) != ""
    )


def _warn_of_names(model: nn.Module, **given: tuple[str, ...]) -> None:
    """Warn of patterns that match no layer, by the argument that has them."""
    layers = [
        name
        for name, module in model.named_modules()
        if isinstance(module, _Rounding) or not [*module.children()]
    ]
    for argument, patterns in given.items():
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in layers):
                nearest = did_you_mean(pattern, layers)
                text = (
                    f"{argument} must have names of layers, as named_modules gives"
                    f" them; got {brief(pattern)}, which matches none. {nearest}"
                )
                warn(text.strip())


class _Settings:
    """How a layer rounds: checked once, shared by the layers of a model."""

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
        #: A row does not depend on the others, through a scale of them all or draws.
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
    """What the three layers share: a weight that is rounded before it is used."""

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
        """The weight as the layer uses it; in training mode, a step of feedback."""
        feeds = self.feedback is not None and self.training
        return through(self.weight, self._feed if feeds else self._plain)

    def _plain(self, weight: Tensor) -> Tensor:
        how = self.settings
        if how.by_rows and weight.dtype in HALVES and weight.numel():
            try:
                return round_rows(checked(weight), how.format, how.options)
            except ValueError:
                pass  # the whole names the place of what is wrong
        return round_tensor(weight, how.format, -1, how.options)

    def _feed(self, weight: Tensor) -> Tensor:
        """Q(w + e), and the next e = (w + e) - Q(w + e)."""
        wide = _wide(weight.dtype)
        assert self.feedback is not None
        if self.feedback.dtype != wide:  # the model was cast since
            self.feedback = self.feedback.to(wide)
        wished = self.feedback + weight
        rounded = narrowed(self._plain(wished), torch.empty_like(weight))
        torch.sub(wished, rounded, out=self.feedback)
        self.feedback.nan_to_num_(0.0, 0.0, 0.0)  # of a poisoned block
        return rounded

    def extra_repr(self) -> str:
        """What the layer is, and how it rounds."""
        return f"{super().extra_repr()}, {self.settings}"


class Linear(_Rounding, nn.Linear):
    """`nn.Linear` with its weight in a block format.

    Parameters
    ----------
    in_features, out_features, bias, device, dtype
        As `nn.Linear` has them.
    format, error_feedback, activations, **options
        As `convert` has them.
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
        """The product with the rounded weight, and the bias."""
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
        """Normalized over the last axes, times the rounded weight, and the bias."""
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
        All others, of `nn.Embedding` and of `convert`.
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
        """The rounded rows."""
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
    """The rule of scales that a training can afford."""
    own = find(format).scale
    return "amax" if own == "mse" else own


def _wide(dtype: torch.dtype) -> torch.dtype:
    """What feedback to a weight is kept in."""
    return torch.float64 if dtype == torch.float64 else torch.float32
