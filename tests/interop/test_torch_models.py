"""Small models of torchvision, timm and transformers with products in a precision."""

import warnings

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tf32dtype.interop import torch as tt  # noqa: E402

pytestmark = pytest.mark.once

FORMS = ("bf16", "fp8_e4m3:row", "mxfp8_e4m3", "nvfp4")
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 96,
    "max_position_embeddings": 64,
}
IMAGE = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
TOKENS = torch.randint(3, 90, (2, 9), generator=torch.Generator().manual_seed(2))


def torchvision_model(name, **options):
    models = pytest.importorskip("torchvision.models")
    return getattr(models, name)(num_classes=7, **options), (IMAGE,)


def timm_model(name, **options):
    timm = pytest.importorskip("timm")
    model = timm.create_model(name, pretrained=False, num_classes=7, **options)
    return model, (IMAGE,)


def transformers_model(kind, *inputs, **options):
    transformers = pytest.importorskip("transformers")
    base, _, rest = kind.partition(":")
    config = getattr(transformers, f"{base}Config")(**SIZES | options)
    return getattr(transformers, base + rest)(config), inputs


GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 96, "n_positions": 64}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
WHISPER = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "num_mel_bins": 8,
    "max_source_positions": 16,
    "vocab_size": 96,
    "pad_token_id": 0,
}
MODELS = {
    "resnet18": lambda: torchvision_model("resnet18"),
    "mobilenet_v3_small": lambda: torchvision_model("mobilenet_v3_small"),
    "vit_tiny": lambda: timm_model(
        "vit_tiny_patch16_224", img_size=64, embed_dim=48, depth=2
    ),
    "convnext": lambda: timm_model("convnext_atto", depths=(1, 1, 1, 1)),
    "bert": lambda: transformers_model("Bert:Model", TOKENS),
    "gpt2": lambda: transformers_model("GPT2:LMHeadModel", TOKENS, **GPT2),
    "llama": lambda: transformers_model(
        "Llama:ForCausalLM", TOKENS, num_key_value_heads=2
    ),
    "t5": lambda: transformers_model("T5:EncoderModel", TOKENS, vocab_size=96, **T5),
    "whisper": lambda: transformers_model(
        "Whisper:ForConditionalGeneration",
        IMAGE[:, 0, :8, :32],
        None,
        TOKENS,
        **WHISPER,
    ),
    "mamba": lambda: transformers_model(
        "Mamba:ForCausalLM", TOKENS, state_size=4, time_step_rank=4
    ),
}


@pytest.fixture(params=MODELS)
def case(request):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, inputs = MODELS[request.param]()
    return model.eval(), inputs


def output(model, inputs):
    found = model(*inputs)
    for name in ("logits", "last_hidden_state"):
        found = getattr(found, name, found)
    return found


def layers(model):
    """Return the names of layers with products."""
    kinds = nn.Linear, nn.Conv1d, nn.Conv2d
    named = model.named_modules()
    return {
        name
        for name, part in named
        if isinstance(part, kinds) or type(part).__name__ == "Conv1D"
    }


@torch.no_grad()
def test_models(case):
    """In "f32" results are near PyTorch's; other formats reach each layer."""
    model, inputs = case
    plain = output(model, inputs)
    with tt.matmul_precision("f32") as scope:
        found = output(model, inputs)
    torch.testing.assert_close(found, plain, rtol=1e-3, atol=1e-4)
    assert not scope.unreached
    reached = {*scope.calls}
    skipped = {x for x in layers(model) - reached if "pool" not in x}
    assert skipped == set()
    for form in FORMS:
        with tt.matmul_precision(form) as scope:
            rounded = output(model, inputs)
        assert {*scope.calls} == reached
        assert not scope.unreached
        assert rounded.isfinite().all()
        assert not torch.equal(rounded, plain)
        with torch.inference_mode(), tt.matmul_precision(form):
            assert torch.equal(output(model, inputs), rounded)


def test_training(case):
    """The backward pass reaches the layers of the forward pass, and no others."""
    model, inputs = case
    grads = []
    for precision, gradients in ((None, None), ("f32", None), ("bf16", "fp8_e5m2")):
        model.zero_grad()
        with tt.matmul_precision(precision, gradients=gradients) as scope:
            output(model, inputs).square().mean().backward()
        grads.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
        assert not scope.unreached
        assert {*scope.calls} <= {name for name, _ in model.named_modules()}
    for plain, wide, rounded in zip(*grads, strict=True):
        scale = plain.abs().max() + 1e-6
        assert (wide - plain).abs().max() <= 2e-3 * scale + 1e-6
        assert rounded.isfinite().all()


@pytest.mark.parametrize("form", [*FORMS, "f32"])
@pytest.mark.parametrize("name", ["llama", "gpt2"])
@torch.no_grad()
def test_generation_with_a_cache(name, form):
    """Keys and values of former tokens are rounded each time that they are used."""
    torch.manual_seed(0)
    model, (tokens,) = MODELS[name]()
    options = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
    found = []
    with tt.matmul_precision(form) as scope:
        for use_cache in (True, False):
            found.append(model.eval().generate(tokens, use_cache=use_cache, **options))
    assert not scope.unreached
    assert found[0].shape == (2, 13)
    if form in ("f32", "bf16", "fp8_e4m3:row"):
        assert torch.equal(*found)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@torch.no_grad()
def test_other_dtypes(case, dtype):
    model, inputs = case
    model = model.to(dtype)
    inputs = [
        x.to(dtype) if x is not None and x.is_floating_point() else x for x in inputs
    ]
    plain = output(model, inputs)
    with tt.matmul_precision("f32") as scope:
        found = output(model, inputs)
    assert found.dtype == plain.dtype
    assert not scope.unreached
    scale = plain.abs().max()
    assert (found - plain).abs().max() <= 0.2 * scale
