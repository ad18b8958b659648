"""Find layers of a model that are not quantized, by the names of their tensors.

Tools that write weights of 4 to 8 bits for inference leave out these layers, and tools
that read such weights support them only in the other layers:

- NVIDIA's Model Optimizer 0.47 (default_disabled_quantizers): ``*lm_head*``,
  ``*output_layer*``, ``*proj_out.*``, ``output.*``, ``*router*``, ``*mlp.gate.*``,
  ``*block_sparse_moe.gate*``, ``*mlp.shared_expert_gate.*``, ``*embed_vision*``, and
  each `nn.Embedding`;
- llm-compressor 0.14 (`model_free_ptq`): modules that end in "norm"; its examples add
  ``lm_head``, ``model.embed_tokens`` and ``re:.*gate$``;
- transformers 5 (`get_keys_to_not_convert`): the output embeddings.

This module uses these names, and the names of the same layers in GPT-2, BERT, T5, Flax
and GGUF.
"""

from __future__ import annotations

import re

from ..blocks.formats import elements
from ..blocks.formats import formats as block_formats

#: Patterns in the names of layers (without the parameter), by the kind of the layer.
_PARTS = {
    "norm": r"norm_?\d*$|(^|[./])ln(_?\w{1,4})?$",
    "output head": (
        r"lm_head|output_layer|(^|[./])(proj_out|embed_out|head|score|classifier)$"
        r"|^(model\.)?output$"
    ),
    "router": r"router|(mlp|moe)\.gate$|shared_expert_gate$|ffn_gate_inp",
    "embedding": r"embe?d|(^|[./])(wte|wpe|shared)$",
}
_PATTERNS = {part: re.compile(text, re.IGNORECASE) for part, text in _PARTS.items()}
_PARAMETER = re.compile(r"[./](weight|bias|kernel|scale)$")

#: The bits of the widest elements for inference; wider block formats are for training.
_WIDEST = 8


def part_of(name: str) -> str:
    """Return the kind of a layer or tensor that is not quantized.

    Returns
    -------
    str
        "norm", "output head", "router" or "embedding"; empty for other layers.

    Examples
    --------
    >>> part_of("model.embed_tokens.weight"), part_of("model.layers.0.mlp.up_proj")
    ('embedding', '')
    """
    layer = layer_of(name)
    found = (part for part, pattern in _PATTERNS.items() if pattern.search(layer))
    return next(found, "")


def layer_of(name: str) -> str:
    """Return the name of the layer of a tensor: "up_proj.weight" is of "up_proj"."""
    return _PARAMETER.sub("", name)


def is_for_inference(format: str) -> bool:
    """Return whether a block format has one element of 4 to 8 bits per value."""
    row = block_formats[format]
    return row.levels == 1 and elements[row.element].width <= _WIDEST
