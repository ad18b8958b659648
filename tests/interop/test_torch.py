"""Models of PyTorch with block-scaled weights."""

import copy
import json
import pickle
import sys
import warnings

import numpy as np
import pytest

from tests.support import documents
from tests.support.interpreters import python
from tests.support.paths import ROOT

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import tf32dtype as td  # noqa: E402
from tf32dtype import blocks  # noqa: E402
from tf32dtype.interop import torch as tt  # noqa: E402
from tf32dtype.interop.torch import rounding  # noqa: E402

FORMATS = ["tcfp8", "tcfp12", "tcfp16", "mxfp8_e4m3", "mxfp4"]
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


class Net(nn.Module):
    """Every kind of layer that is converted, tied weights, and another layer."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 40, padding_idx=3)
        self.up = nn.Linear(40, 70)
        self.norm = nn.LayerNorm(70)
        self.down = nn.Linear(70, 40, bias=False)
        self.mix = nn.Conv1d(40, 40, 1)
        self.head = nn.Linear(40, 50)
        self.head.weight = self.table.weight
        self.again = self.down

    def forward(self, tokens):
        x = self.table(tokens)
        x = self.again(self.norm(nn.functional.gelu(self.up(x))))
        return self.head(self.mix(x.mT).mT)


@pytest.fixture
def net():
    torch.manual_seed(1)
    return Net()


@pytest.fixture
def tokens():
    return torch.randint(0, 50, (3, 7), generator=torch.Generator().manual_seed(2))


def rounded(weight, form="tcfp12", **options):
    """Round the weight of a layer by the public function on arrays."""
    wide = weight.detach().to(torch.promote_types(weight.dtype, torch.float32))
    rule = "amax" if form.startswith("tcfp") else "floor"
    numbers = blocks.round(wide.numpy(), form, **{"scale": rule} | options)
    return torch.from_numpy(np.ascontiguousarray(numbers)).to(weight.dtype)


def bits(tensor):
    kinds = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.detach().contiguous().view(kinds[tensor.element_size()])


def assert_same(a, b):
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert torch.equal(bits(a), bits(b))


# -- functions -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("form", FORMATS)
def test_fake_quantize(form, dtype):
    x = torch.randn(5, 77, dtype=torch.float64).to(dtype).requires_grad_()
    y = tt.fake_quantize(x, form, scale="amax")
    assert_same(y, rounded(x, form, scale="amax"))
    assert not torch.equal(y, x) or (form, dtype) == ("tcfp16", torch.bfloat16)
    slope = torch.randn_like(x)
    y.backward(slope)
    assert_same(x.grad, slope)


def test_fake_quantize_takes_options_and_any_layout():
    x = torch.randn(64, 6, 10).permute(2, 0, 1)[::2, :, 1:]
    y = tt.fake_quantize(x, "tcfp8", 1, block_size=16, scale="floor")
    expected = blocks.round(x.numpy(), "tcfp8", 1, block_size=16, scale="floor")
    assert np.array_equal(y.numpy(), expected)
    rng = [np.random.default_rng(4) for _ in range(2)]
    y = tt.fake_quantize(x, "tcfp8", rounding="stochastic", rng=rng[0])
    expected = blocks.round(x.numpy(), "tcfp8", rounding="stochastic", rng=rng[1])
    assert np.array_equal(y.numpy(), expected)


def test_half_precision_does_not_become_infinite():
    for dtype in (torch.float16, torch.bfloat16):
        most = torch.finfo(dtype).max
        x = torch.tensor([[most, -most, 1.0]], dtype=dtype)
        y = tt.fake_quantize(x, "mxfp8_e4m3", scale="amax")
        assert torch.isfinite(y).all()
        assert y[0, 0] == -y[0, 1] == most


def test_second_derivatives_and_forward_mode():
    x = torch.randn(2, 32)
    assert torch.equal(
        torch.func.jvp(lambda v: tt.fake_quantize(v, "tcfp8"), (x,), (x,))[1], x
    )
    slope = torch.func.grad(lambda v: tt.fake_quantize(v, "tcfp8").pow(2).sum())(x)
    assert torch.equal(slope, 2 * tt.fake_quantize(x, "tcfp8"))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_quantize_and_dequantize(dtype):
    x = torch.randn(4, 50).to(dtype).requires_grad_()
    packed = tt.quantize(x, "tcfp8", block_size=16)
    wide = x.detach().to(torch.promote_types(dtype, torch.float32)).numpy()
    expected = blocks.quantize(wide, "tcfp8", block_size=16)
    assert packed == expected
    for result in DTYPES:
        y = tt.dequantize(packed, result)
        numbers = expected.dequantize(str(result).removeprefix("torch."))
        assert_same(y, torch.from_numpy(numbers.astype(np.float64)).to(result))


def test_tensors_that_it_refuses():
    for dtype in (torch.int32, torch.bool, torch.complex64, torch.float8_e4m3fn):
        with pytest.raises(TypeError, match=f"float16; got {dtype}"):
            tt.fake_quantize(torch.zeros(2, 32).to(dtype), "tcfp8")
    with pytest.raises(TypeError, match="Tensor; got an array"):
        tt.quantize(np.zeros(32), "tcfp8")
    with pytest.raises(ValueError, match="on the CPU; got a tensor on meta"):
        tt.fake_quantize(torch.zeros(2, 32, device="meta"), "tcfp8")
    with pytest.raises(TypeError, match=r"bfloat16, float16; got torch\.int8"):
        tt.dequantize(tt.quantize(torch.ones(32), "tcfp8"), torch.int8)
    x = torch.zeros(2, 32)
    x[1, 5] = torch.nan
    with pytest.raises(ValueError, match=r"got nan at x\[1, 5\]"):
        tt.fake_quantize(x, "tcfp8")


# -- models ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_converted_layers_compute_with_rounded_weights(net, tokens, form):
    plain = copy.deepcopy(net)
    assert tt.convert(net, form, include=["*"]) is net
    for name in ("table", "up", "norm", "down"):
        layer = plain.get_submodule(name)
        layer.weight = nn.Parameter(rounded(layer.weight, form))
    plain.head.weight = plain.table.weight
    assert_same(net(tokens), plain(tokens))


def test_gradients_pass_straight_through(net, tokens):
    plain = copy.deepcopy(net)
    with torch.no_grad():
        for name, weight in plain.named_parameters():
            if name.endswith("weight") and "mix" not in name:
                weight.copy_(rounded(weight))
    tt.convert(net, include=["norm"])
    for model in (net, plain):
        model(tokens).square().mean().backward()
    for (name, a), b in zip(net.named_parameters(), plain.parameters(), strict=True):
        assert_same(a.grad, b.grad)
        assert a.grad.abs().sum() > 0, name


def test_classes_and_places(net):
    net.up.register_forward_hook(lambda *_: None)
    before = dict(net.named_modules(remove_duplicate=False))
    parameters = dict(net.named_parameters())
    tt.convert(net, "tcfp8", skip=["head", "no*"], include=["*"])
    after = dict(net.named_modules(remove_duplicate=False))
    assert before.keys() == after.keys()
    assert all(after[name] is before[name] for name in before)
    kinds = {name: type(module) for name, module in after.items()}
    assert kinds["table"] is tt.Embedding
    assert kinds["up"] is kinds["down"] is kinds["again"] is tt.Linear
    assert kinds["head"] is nn.Linear
    assert kinds["norm"] is nn.LayerNorm
    assert kinds["mix"] is nn.Conv1d
    assert dict(net.named_parameters()).keys() == parameters.keys()
    assert net.head.weight is net.table.weight is parameters["table.weight"]
    assert "format=tcfp8" in repr(net.up)
    assert "in_features=40" in repr(net.up)


def test_convert_again_changes_nothing(net):
    tt.convert(net, "tcfp8")
    tt.convert(net, "tcfp16", error_feedback=True)
    assert net.up.settings.format == "tcfp8"
    assert net.up.feedback is None
    assert net.head.settings.format == "tcfp16"


#: Layers of Net that are converted by default: with more than 8 bits, all but norms.
BY_DEFAULT = {
    **{x: {"table", "up", "down", "head"} for x in ("tcfp12", "tcfp16", "int12")},
    **{x: {"up", "down"} for x in ("tcfp8", "mxfp8_e4m3", "mxfp4", "nvfp4")},
}


@pytest.mark.parametrize("form", BY_DEFAULT)
def test_what_is_left_out_by_default(net, form):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tt.convert(net, form)
        kinds = tt.Linear, tt.LayerNorm, tt.Embedding
        found = {name for name, x in net.named_modules() if isinstance(x, kinds)}
        assert found == BY_DEFAULT[form]
        tt.convert(net, form, include=["norm", "ta*"])
        assert type(net.norm) is tt.LayerNorm
        assert type(net.table) is tt.Embedding
        assert type(net.head) is (
            tt.Linear if "head" in BY_DEFAULT[form] else nn.Linear
        )


def test_routers_and_heads_are_left_out_by_their_names():
    model = nn.ModuleDict(
        {
            "mlp": nn.ModuleDict(
                {"gate": nn.Linear(8, 2), "gate_proj": nn.Linear(8, 8)}
            ),
            "lm_head": nn.Linear(8, 9),
            "embed_out": nn.Linear(8, 9),
        }
    )
    tt.convert(model, "mxfp8_e4m3")
    found = {name for name, x in model.named_modules() if isinstance(x, tt.Linear)}
    assert found == {"mlp.gate_proj"}


def warned(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    assert {x.filename for x in found} <= {__file__}
    return [str(x.message) for x in found]


@pytest.mark.parametrize("argument", ["skip", "include"])
def test_names_that_match_nothing(net, argument):
    names = ["*nrom*", "up.weight", "up", "mix"]
    found = warned(lambda: tt.convert(net, "mxfp4", **{argument: names}))
    assert [text.partition("; ")[0] for text in found] == [
        f"{argument} must have names of layers, as named_modules gives them"
    ] * 2
    assert "got '*nrom*', which matches none" in found[0]
    assert "got 'up.weight', which matches none" in found[1]


def test_models_in_which_nothing_changes(net):
    none = "convert changed no layer"
    for model, how in (
        (nn.Sequential(nn.Conv2d(3, 4, 3)), {}),
        (nn.Sequential(nn.LayerNorm(4)), {}),
        (nn.Sequential(nn.Embedding(4, 4)), {}),
        (nn.Sequential(nn.Linear(4, 4)), {"skip": ["0"]}),
    ):
        (text,) = warned(lambda m=model, h=how: tt.convert(m, "mxfp4", **h))
        assert text.startswith(none)
    tt.convert(net)
    (text,) = warned(lambda: tt.convert(net))
    assert text.startswith(none)
    assert not warned(lambda: tt.convert(nn.LayerNorm(4), "mxfp4"))


def test_a_copy_leaves_the_model(net):
    other = tt.convert(net, inplace=False)
    assert type(net.up) is nn.Linear
    assert type(other.up) is tt.Linear
    assert other.up.weight is not net.up.weight
    assert other.head.weight is other.table.weight


def test_none_is_the_default(net):
    tt.convert(net, "tcfp8", scale=None, block_size=None, rng=None)
    assert_same(net.up.rounded_weight(), rounded(net.up.weight, "tcfp8"))


def test_a_layer_is_a_model():
    layer = nn.Linear(3, 2)
    assert tt.convert(layer) is layer
    assert type(layer) is tt.Linear


def test_what_cannot_be_converted_is_said_first(net):
    for wrong in (
        {"format": "tcfp9"},
        {"scale": "best"},
        {"block_size": 31},
        {"activations": "fp8"},
        {"rounding": "stochastic"},
    ):
        with pytest.raises(ValueError, match=r"tcfp9|best|31|fp8|rng"):
            tt.convert(net, **wrong)
        with pytest.raises(ValueError, match=r"tcfp9|best|31|fp8|rng"):
            tt.Linear(3, 2, **wrong)
    with pytest.raises(TypeError):
        tt.convert(net, blocksize=16)
    for argument in ("skip", "include"):
        message = rf"{argument} must be a list of names; got 'head'. Use \['head'\]"
        with pytest.raises(TypeError, match=message):
            tt.convert(net, **{argument: "head"})
    assert type(net.up) is nn.Linear


def test_subclasses_stay_as_they_are():
    class Mine(nn.Linear):
        pass

    model = nn.Sequential(Mine(3, 3), nn.MultiheadAttention(8, 2), nn.LazyLinear(4))
    with pytest.warns(UserWarning, match="convert changed no layer"):
        kinds = [type(module) for module in tt.convert(model).modules()]
    assert not {tt.Linear, tt.LayerNorm, tt.Embedding} & set(kinds)


@pytest.mark.parametrize("feedback", [False, True])
def test_state_dicts_load_both_ways(net, tokens, feedback):
    converted = tt.convert(net, error_feedback=feedback, inplace=False)
    converted(tokens)
    assert converted.state_dict().keys() == net.state_dict().keys()
    with torch.no_grad():
        net.up.weight.mul_(2)
    converted.load_state_dict(net.state_dict(), strict=True)
    assert_same(converted.up.weight, net.up.weight)
    with torch.no_grad():
        converted.down.weight.mul_(3)
    net.load_state_dict(converted.state_dict(), strict=True, assign=True)
    assert_same(converted.down.weight, net.down.weight)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("feedback", [False, True])
def test_parameters_of_every_float(net, tokens, dtype, feedback):
    tt.convert(net.to(dtype), error_feedback=feedback)
    y = net(tokens)
    y.square().mean().backward()
    assert y.dtype == net.up.weight.grad.dtype == dtype
    assert_same(net.eval().up.rounded_weight(), rounded(net.up.weight))
    net.to(torch.float32).train()(tokens).sum().backward()
    net.to(torch.bfloat16)(tokens)
    if feedback:
        assert net.up.feedback.dtype == torch.float32


def test_autocast(net, tokens):
    expected = copy.deepcopy(net)
    tt.convert(net)
    with torch.no_grad():
        for name, weight in expected.named_parameters():
            if name.endswith("weight") and "mix" not in name:
                weight.copy_(rounded(weight))
    with torch.autocast("cpu", torch.bfloat16):
        y, z = net(tokens), expected(tokens)
    assert y.dtype == torch.bfloat16
    assert_same(y, z)
    y.float().sum().backward()
    assert net.up.weight.grad.dtype == torch.float32


def test_error_feedback_is_unbiased():
    torch.manual_seed(5)
    layer = tt.Linear(70, 9, format="mxfp4", error_feedback=True)
    weight = layer.weight.detach().double()
    plain = rounded(layer.weight, "mxfp4").double() - weight
    remembered = torch.zeros(9, 70)
    total = torch.zeros(9, 70, dtype=torch.float64)
    for _ in range(100):
        used = layer.rounded_weight()
        wished = layer.weight.detach() + remembered
        assert_same(used.detach(), rounded(wished, "mxfp4"))
        remembered = wished - used.detach()
        assert_same(layer.feedback, remembered)
        total += used.detach()
    assert (total / 100 - weight).abs().mean() < plain.abs().mean() / 20


def test_feedback_waits_outside_training(tokens):
    layer = tt.Linear(70, 9, format="tcfp8", error_feedback=True)
    x = torch.randn(4, 70)
    layer(x)
    before = layer.feedback.clone()
    assert before.abs().sum() > 0
    layer.eval()
    expected = nn.functional.linear(x, rounded(layer.weight, "tcfp8"), layer.bias)
    assert_same(layer(x), expected)
    with torch.no_grad():
        assert_same(layer(x), expected)
    assert_same(layer.feedback, before)


def test_a_refused_weight_leaves_the_feedback():
    layer = tt.Linear(32, 2, format="tcfp8", error_feedback=True)
    layer(torch.ones(32))
    before = layer.feedback.clone()
    with torch.no_grad():
        layer.weight[1, 2] = torch.inf
    with pytest.raises(ValueError, match=r"got inf at x\[1, 2\]"):
        layer(torch.ones(32))
    assert_same(layer.feedback, before)


def test_copies_and_pickles_keep_the_feedback(net, tokens):
    tt.convert(net, "tcfp8", error_feedback=True, block_size=16)
    net(tokens)
    others = [copy.deepcopy(net), pickle.loads(pickle.dumps(net))]
    for other in others:
        assert_same(other.up.feedback, net.up.feedback)
        assert other.up.feedback is not net.up.feedback
        assert other.head.weight is other.table.weight
    y = net(tokens)
    for other in others:
        assert_same(other(tokens), y)


def test_activations():
    layer = tt.Linear(40, 6, format="tcfp8", activations="mxfp8_e4m3")
    x = torch.randn(5, 40, requires_grad=True)
    narrow = tt.fake_quantize(x.detach(), "mxfp8_e4m3")
    weight = rounded(layer.weight, "tcfp8")
    assert_same(layer(x), nn.functional.linear(narrow, weight, layer.bias))
    layer(x).sum().backward()
    assert torch.allclose(x.grad, weight.sum(0).expand(5, 40))


def test_norms_and_tables_keep_their_own_options(tokens):
    norm = tt.convert(nn.LayerNorm((3, 40), elementwise_affine=False))
    x = torch.randn(2, 3, 40)
    assert_same(norm(x), nn.functional.layer_norm(x, (3, 40)))
    norm = tt.LayerNorm(40, bias=False, eps=1e-3, format="tcfp8", scale="even")
    assert norm.bias is None
    assert norm(x).shape == x.shape
    table = tt.Embedding(50, 40, max_norm=1.0, sparse=True, padding_idx=4, scale="nf")
    other = nn.Embedding(50, 40, max_norm=1.0, padding_idx=4)
    other.load_state_dict(table.state_dict())
    y, z = table(tokens), other(tokens)
    assert_same(table.weight, other.weight)  # both are renormalized
    assert_same(y, rounded(z.reshape(-1, 40), scale="nf").reshape(z.shape))
    y.sum().backward()
    assert table.weight.grad.is_sparse


@pytest.mark.filterwarnings("ignore:Initializing zero-element")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("form", ["tcfp16", "nvfp4"])
def test_weights_in_pieces(form, dtype, monkeypatch):
    monkeypatch.setattr(rounding, "_PIECE", 150)
    weight = torch.randn(70, 23).to(dtype)
    layer = tt.Linear(70, 23, dtype=dtype, format=form)
    for values in (weight.T, weight.T.contiguous()):
        layer.weight = nn.Parameter(values)
        assert_same(layer.rounded_weight(), rounded(values, form))
    empty = tt.convert(nn.Linear(0, 5, dtype=dtype), form)
    assert_same(empty(torch.ones(3, 0, dtype=dtype)), empty.bias.expand(3, 5))
    with torch.no_grad():
        layer.weight[21, 50] = torch.nan
    with pytest.raises(ValueError, match=r"got nan at x\[21, 50\]"):
        layer.rounded_weight()


@pytest.mark.parametrize("form", ["tcfp8", "nvfp4"])
def test_a_few_rows_of_a_large_table(form):
    """Round few rows of a large table after the look-up if the result is the same."""
    table = tt.Embedding(500, 40, format=form, padding_idx=3)
    tokens = torch.tensor([[3, 4, 499], [4, 17, 4]])
    y = table(tokens)
    assert_same(y, rounded(table.weight, form)[tokens])
    slope = torch.randn_like(y)
    y.backward(slope)
    expected = torch.zeros_like(table.weight)
    expected.index_add_(0, tokens.flatten(), slope.flatten(0, 1))
    expected[3] = 0
    assert torch.allclose(table.weight.grad, expected)


def test_stochastic_rounding_draws_for_the_whole_table():
    rngs = [np.random.default_rng(3) for _ in range(2)]
    how = {"rounding": "stochastic", "rng": rngs[0]}
    table = nn.Sequential(nn.Embedding(100, 40))
    model = tt.convert(table, "tcfp8", include=["*"], **how)
    expected = rounded(model[0].weight, "tcfp8", rounding="stochastic", rng=rngs[1])
    assert_same(model(torch.tensor([7, 2])), expected[[7, 2]])


def test_poisoned_weights_leave_no_feedback():
    layer = tt.Linear(64, 2, format="mxfp4", error_feedback=True)
    with torch.no_grad():
        layer.weight[1, 40] = torch.nan
        assert layer.rounded_weight()[1, 32:].isnan().all()
        assert torch.isfinite(layer.feedback).all()
        layer.weight[1, 40] = 1.0
        assert torch.isfinite(layer.rounded_weight()).all()


def test_transformers_round_in_evaluation_too():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0, batch_first=True)
    model = tt.convert(nn.TransformerEncoder(layer, 2), "mxfp4")
    x, padding = torch.randn(3, 5, 16), torch.zeros(3, 5, dtype=torch.bool)
    padding[1, 3:] = True
    expected = model(x, src_key_padding_mask=padding)
    with torch.no_grad():
        y = model.eval()(x, src_key_padding_mask=padding)
    assert torch.allclose(y, expected, atol=1e-6)


def test_an_optimizer_made_before_trains_the_model(net, tokens):
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    tt.convert(net, error_feedback=True)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 4


def test_compiled_models(net, tokens):
    tt.convert(net, error_feedback=True)
    other = copy.deepcopy(net)
    for _ in range(2):
        y, z = torch.compile(net, backend="aot_eager")(tokens), other(tokens)
        assert torch.allclose(y, z, rtol=1e-4, atol=1e-5)
        y.sum().backward()
    assert net.up.weight.grad.abs().sum() > 0
    assert_same(net.up.feedback, other.up.feedback)


# -- the page --------------------------------------------------------------------------

GUIDE = documents.HOW_TO / "blocks_training.md"
TCFP = documents.HOW_TO / "from_tcfp.md"


def test_the_code_in_the_document():
    names = {}
    torch.manual_seed(0)
    for block in documents.blocks(GUIDE, "python"):
        documents.check_block(block, names)


SEED_NAMES = """
    convert_to_tcfp TCFPMode TCFPLinear TCFPLayerNorm TCFPEmbedding quantize_tcfp8
    quantize_tcfp12 quantize_tcfp16 dequantize_tcfp8 dequantize_tcfp12
    dequantize_tcfp16 tcfp16_matmul fp8_matmul
""".split()


def test_every_name_of_tcfp_has_a_line():
    theirs = " ".join(row[0] for row in documents.table(TCFP, "TCFP"))
    assert all(name in theirs for name in SEED_NAMES)


def snr(approximate, exact):
    noise = np.square(np.asarray(approximate, float) - np.asarray(exact, float)).sum()
    return 10 * np.log10(np.square(np.asarray(exact, float)).sum() / noise)


@pytest.mark.parametrize(
    "row", documents.table(TCFP, "TCFP"), ids=lambda row: row[1].replace('"', "'")
)
def test_migration(row):
    theirs, ours = row
    torch.manual_seed(3)
    a, b, x = torch.randn(48, 96), torch.randn(96, 32), torch.randn(64, 128)
    model = nn.Sequential(nn.Linear(64, 10))
    names = vars(tt) | {"blocks": blocks, "td": td, "a": a, "b": b, "x": x}
    names |= {"model": model, "q": blocks.quantize(x.numpy(), "tcfp12")}
    value = documents.run(ours, names)
    if "_matmul" in theirs:
        least = 57 if "tcfp16" in theirs else 27
        assert snr(value, a.double() @ b.double()) > least
    elif "convert" in theirs:
        assert type(model[0]) is tt.Linear
        assert model[0].settings.options["block_size"] == 32
    elif "TCFPMode." in theirs and "(" not in theirs:
        assert set(value) <= set(blocks.formats)
    elif "mode=" in theirs:
        assert isinstance(value, (tt.Linear, tt.LayerNorm, tt.Embedding))
        assert value.settings.format == "tcfp8"
        given = torch.arange(50) if isinstance(value, tt.Embedding) else x[:, :64]
        assert torch.isfinite(value(given)).all()
    elif "dequantize" in theirs:
        assert snr(value, x) > 45
    else:
        q = names["q"]
        least = {"tcfp8": 31, "tcfp12": 45, "tcfp16": 63}[q.format]
        assert snr(tt.dequantize(q), x) > least


def test_the_benchmark_runs(tmp_path):
    path = tmp_path / "training.json"
    script = ROOT / "benchmarks" / "blocks" / "block_training.py"
    done = python(script, "--quick", "--json", path)
    assert done.returncode in (0, 1), done.stderr  # 1: a limit is missed
    for result in json.loads(path.read_text())["results"]:
        rows = {row["name"]: row["measured"] for row in result["rows"]}
        assert list(rows) == [
            "tcfp8, published 1.05",
            "tcfp12, published 2.02",
            "tcfp16, published 2.53",
        ]
        for measured in rows.values():
            assert [m["who"] for m in measured] == ["ours", "fed"]
            assert all(m["ratio"] > 0 for m in measured)


# -- without PyTorch -------------------------------------------------------------------


def test_without_torch():
    code = "import sys; sys.modules['torch'] = None; import tf32dtype.interop.torch"
    done = python("-c", code)
    assert done.returncode != 0
    assert "needs PyTorch" in done.stderr
    assert "pip install 'torch>=2.13'" in done.stderr


def test_only_who_asks_pays_for_torch():
    assert python("-c", "import tf32dtype, sys; assert 'torch' not in sys.modules")
    assert "torch" in sys.modules
