"""The report of a PyTorch model's layers."""

import doctest
import json
import math
from html.parser import HTMLParser
from io import StringIO
from itertools import pairwise

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tf32dtype.interop import torch as tt  # noqa: E402
from tf32dtype.interop.torch.hook.multiply import way_of  # noqa: E402
from tf32dtype.interop.torch.hook.operand_format import operand_format  # noqa: E402
from tf32dtype.interop.torch.hook.unit import Unit  # noqa: E402
from tf32dtype.interop.torch.layer_report.recording import Recorder  # noqa: E402
from tf32dtype.interop.torch.layer_report.sampling import (  # noqa: E402
    chosen,
    samples,
)
from tf32dtype.interop.torch.layer_report.sensitivity import groups_of  # noqa: E402
from tf32dtype.interop.torch.layer_report.table import print_report  # noqa: E402

FORMATS = [
    *("bf16", "tf32", "f16", "bf16x3", "fp8_e4m3", "fp8_e5m2", "fp8_e4m3:row"),
    *("fp8_e4m3:block", "fp8_e4m3:tile", "mxfp8", "mxfp4", "nvfp4", "tcfp12", "int8"),
]
F32 = operand_format("f32")


class Attention(nn.Module):
    """Attention as models write it, with two products that have no weights."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, count, width = x.shape
        q, k, v = (
            y.reshape(batch, count, self.heads, -1).transpose(1, 2)
            for y in self.qkv(x).chunk(3, -1)
        )
        weights = (q @ k.mT / math.sqrt(width // self.heads)).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(x.shape))


class Net(nn.Module):
    """Embedding, attention, a convolution, normalization, dropout and a head."""

    def __init__(self, width=64):
        super().__init__()
        self.table = nn.Embedding(50, width)
        self.attention = Attention(width, 4)
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Conv1d(width, width, 3, padding=1)
        self.batch = nn.BatchNorm1d(width)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(width, 50)

    def forward(self, tokens, scale=1.0):
        x = self.table(tokens)
        x = x + self.attention(self.norm(x))
        x = x + self.drop(self.batch(nn.functional.gelu(self.mix(x.mT))).mT)
        return {"logits": self.head(x) * scale, "tokens": tokens}


@pytest.fixture
def net():
    torch.manual_seed(1)
    return Net().eval()


@pytest.fixture
def tokens():
    return torch.randint(0, 50, (2, 12), generator=torch.Generator().manual_seed(2))


def stack(*sizes, seed=1):
    torch.manual_seed(seed)
    layers = [nn.Linear(a, b, bias=False) for a, b in pairwise(sizes)]
    return nn.Sequential(*layers).eval()


def made(model, *inputs, precisions=("bf16", "nvfp4"), **options):
    return tt.report(model, inputs, precisions, quiet=True, **options)


def decibels(result, exact):
    error, truth = (float((x * x).sum()) for x in (result - exact, exact))
    return 10 * math.log10(truth / error) if error else math.inf


# -- figures ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("device", [None, "H100", "B200"])
def test_products_have_the_snr_of_an_own_computation(name, device):
    form = operand_format(name)
    try:
        way = way_of(form, form, Unit(device))
    except (ValueError, TypeError) as error:
        with pytest.raises(type(error)):
            made(stack(8, 8), torch.ones(1, 8), precisions=[name], device=device)
        return
    model, x = stack(96, 40), torch.randn(30, 96)
    report = made(model, x, precisions=[name], device=device, sensitivities=False)
    [row] = report.rows
    a, b = x.numpy(), model[0].weight.detach().numpy().T
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert (row.layer, row.kind, row.first, row.second) == (
        *("0", ""),
        *("activations", "weights"),
    )
    assert (row.samples, row.elements, row.multiply_adds) == (1, 1200, 30 * 96 * 40)
    errors = row.errors[name]
    assert errors.snr_db == pytest.approx(decibels(way.multiply(a, b), exact))
    if name == "bf16x3":
        assert errors.first_db is errors.second_db is errors.first_lost is None
        return
    for pair, snr in (
        ((form, F32), errors.first_db),
        ((F32, form), errors.second_db),
    ):
        own = way_of(*pair, Unit()).multiply(a, b)
        assert snr == pytest.approx(decibels(own, exact))
        assert snr > errors.snr_db
    top = np.abs(a).max(0).argmax()
    assert row.outliers == (top,)
    a, b = a.copy(), b.copy()
    a[:, top] = b[top] = 0
    rest = a.astype(np.float64) @ b.astype(np.float64)
    left = float(np.square(way_of(form, form, Unit()).multiply(a, b) - rest).sum())
    if device is None:
        error = float(np.square(exact).sum()) / 10 ** (errors.snr_db / 10)
        assert errors.outlier_share == pytest.approx(1 - left / error)


@pytest.mark.parametrize("name", FORMATS)
def test_samples_have_the_bits_of_the_whole_product(name):
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, 600, 70)), rng.standard_normal((2, 70, 700))
    a *= np.exp(2 * rng.standard_normal(a.shape))
    a, b = a.astype(np.float32), b.astype(np.float32)
    a[0, 5, 3], b[1, 4, 7] = 1e4, -1e3
    form = operand_format(name)
    way = way_of(form, form, Unit())
    band = 128 if name.endswith("tile") else 1
    found = list(samples(a, b, 0, band, np.random.default_rng(1)))
    assert len(found) == 2
    for i, sample in enumerate(found):
        rows, columns = sample.a.lines, sample.b.lines
        assert (len(rows), len(columns)) == ((128, 128) if band > 1 else (32, 128))
        whole = way.multiply(a[i], b[i])[np.ix_(rows, columns)]
        assert sample.product(way).tobytes() == whole.tobytes()
        x, y = a[i].copy(), b[i].copy()
        x[:, sample.outliers] = y[sample.outliers] = 0
        rest = way.multiply(x, y)[np.ix_(rows, columns)]
        assert sample.without_outliers().product(way).tobytes() == rest.tobytes()


def test_lines_are_spread_and_in_order():
    rng = np.random.default_rng(0)
    lines = chosen(1000, 64, 1, rng)
    assert len(lines) == 64
    assert (np.diff(lines) > 0).all()
    parts = np.arange(64) * 1000 // 64
    assert (np.searchsorted(parts, lines, side="right") == np.arange(1, 65)).all()
    bands = chosen(1000, 256, 128, rng)
    assert (bands.reshape(2, 128)[:, 0] % 128 == 0).all()
    assert chosen(130, 128, 128, rng).tolist() == list(range(128))
    assert chosen(5, 64, 1, rng).tolist() == list(range(5))


def test_nan_and_inf_are_left_out():
    model, x = stack(40, 8), torch.randn(6, 40)
    want = made(model, x[1:], precisions=["mxfp8"], sensitivities=False)
    x[0, 3] = math.inf
    found = made(model, x, precisions=["mxfp8"], sensitivities=False)
    assert found.rows[0].elements == want.rows[0].elements == 40
    snr = [one.rows[0].errors["mxfp8"].snr_db for one in (found, want)]
    assert snr[0] == pytest.approx(snr[1])


def test_a_channel_of_outliers_is_found():
    model, x = stack(256, 256, 32), torch.randn(64, 256)
    x[:, 77] *= 100
    report = made(model, x, precisions=["nvfp4", "fp8_e4m3"])
    first, second = report.rows
    assert first.outliers == (77,)
    assert first.errors["nvfp4"].outlier_share > 0.9
    assert second.errors["nvfp4"].outlier_share < 0.2
    assert "Outliers cause most of the error in 1 product: 0 (k = 77;" in (
        report.to_text()
    )


def test_one_in_1000_channels_is_an_outlier():
    model, x = stack(3500, 4), torch.randn(8, 3500)
    x[:, [3, 30, 300]] = 50
    [row] = made(model, x, sensitivities=False).rows
    assert sorted(row.outliers) == [3, 30, 300]


def test_a_sensitive_layer_is_found():
    model, x = stack(64, 64, 64, 64, 64), torch.randn(32, 64)
    with torch.no_grad():
        # Differences of nearly equal numbers: what layer 1 rounds away is large then.
        model[1].weight[1::2] = model[1].weight[::2] * 1.001
        model[2].weight[:, 1::2] = -model[2].weight[:, ::2]
    report = made(model, x, precisions=["fp8_e4m3", "bf16"])
    for name in report.precisions:
        worst = sorted(report.groups, key=lambda group: group.output_db[name])
        assert {worst[0].name, worst[1].name} == {"1", "2"}
        assert worst[0].output_db[name] < worst[2].output_db[name] - 10
    assert "Most of the output's error comes from" in report.to_text()


@pytest.mark.parametrize("name", ["bf16", "fp8_e4m3", "nvfp4"])
def test_outputs_are_those_of_matmul_precision(name, net, tokens):
    report = made(net, tokens, precisions=[name])
    with torch.no_grad():
        usual = net(tokens)["logits"].double()
        for names in (["*"], *([group.name] for group in report.groups)):
            with tt.matmul_precision(name, only=names, model=net):
                rounded = net(tokens)["logits"].double()
            found = report.output_db[name]
            for group in report.groups:
                if [group.name] == names:
                    found = group.output_db[name]
            want = decibels(rounded, usual)
            assert found == pytest.approx(want, abs=0.01)


def test_values_out_of_range_are_counted():
    model, x = stack(32, 16), torch.rand(4, 32) + 0.5
    x[0, 0], x[1, 1], x[2, 2] = 1e6, 0, 1e-9
    [row] = made(model, x, precisions=["f16", "bf16", "fp8_e4m3"]).rows
    lost = row.errors["f16"].first_lost
    assert (lost.values, lost.zeros, lost.infinities, lost.clipped) == (127, 1, 1, 0)
    assert lost.share == 2 / 127
    assert row.errors["bf16"].first_lost.share == 0
    assert row.errors["fp8_e4m3"].first_lost.zeros == 126  # the scale is that of 1e6
    assert row.errors["f16"].snr_db == -math.inf
    assert not row.errors["f16"].keeps(25)


def test_clipped_values_are_counted():
    model, x = stack(32, 1), torch.ones(1, 32)
    x[0, 0] = 1.9 * 2.0**8  # the scale is 1
    x[0, 1] = 449  # rounds to 448
    [row] = made(model, x, precisions=["mxfp8"]).rows
    lost = row.errors["mxfp8"].first_lost
    assert (lost.values, lost.clipped, lost.share) == (32, 1, 1 / 32)


def test_precisions_with_names_of_scales_and_devices():
    report = made(
        stack(256, 64), torch.randn(8, 256), precisions="fp8_e4m3:row", device="H100"
    )
    assert report.precisions == ("fp8_e4m3:row",)
    assert report.device == "H100"
    assert "in fp8_e4m3:row on H100" in report.to_text()


# -- recording -------------------------------------------------------------------------


def test_a_recorded_run_has_the_bits_of_an_unrecorded_one(net, tokens):
    with torch.no_grad():
        want = net(tokens)["logits"]
        with Recorder(FORMATS, model=net) as recorder:
            found = net(tokens)["logits"]
    assert torch.equal(found, want)
    names = [row.name for row in recorder.rows]
    for name in ("attention.qkv", "attention [scores]", "attention [values]", "head"):
        assert name in names
    assert recorder.unreached == ()
    with torch.inference_mode(), Recorder(["bf16"], model=net) as again:
        assert torch.equal(net(tokens)["logits"], want)
    assert [row.name for row in again.rows] == names
    assert sum(row.share for row in again.rows) == pytest.approx(1)


def test_a_recorded_training_has_its_usual_bits():
    def losses():
        model = stack(16, 24, 4)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for seed in range(11):
            torch.manual_seed(seed)
            loss = model(torch.randn(8, 16)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            yield loss.item()

    want = [*losses()]
    with Recorder(["fp8_e5m2"]) as recorder:
        assert [*losses()] == want
    rows = {row.name: row for row in recorder.rows}
    kinds = ("weights", "input gradient", "weight gradient")
    assert {*rows} == {f"1 [{kind}]" for kind in kinds} | {
        "0 [weights]",
        "0 [weight gradient]",
    }
    row = rows["1 [input gradient]"]
    assert (row.first, row.second, row.is_backward) == ("gradients", "weights", True)
    # Calls 1 to 4 and 8 of 11.
    assert (row.calls, row.samples) == (11, 5)


def test_rows_count_calls_and_shapes():
    model = stack(16, 8)
    batches = [(torch.randn(n, 16),) for n in (3, 3, 5)]
    [row] = tt.report(model, batches, ["bf16"], quiet=True).rows
    assert {str(shape): calls for shape, calls in row.shapes.items()} == {
        "3 x 8 x 16": 2,
        "5 x 8 x 16": 1,
    }
    assert (row.calls, row.multiply_adds) == (3, 11 * 8 * 16)
    assert row.dtypes == ("float32", "float32")


def test_the_model_is_as_before(net, tokens):
    net.train()
    before = {name: x.clone() for name, x in net.state_dict().items()}
    state = torch.get_rng_state()
    with pytest.warns(UserWarning, match="in training mode: batch, drop"):
        first = made(net, tokens)
    assert torch.equal(torch.get_rng_state(), state)
    assert net.training
    for name, x in net.state_dict().items():
        assert torch.equal(x, before[name]), name
    with pytest.warns(UserWarning, match="in training mode: batch, drop"):
        again = made(net, tokens)
    assert first.output_db == again.output_db, "the same random numbers in each run"
    assert first.output_db["bf16"] > 30


def test_batches_and_keywords(net, tokens):
    one = made(net, tokens, kwargs={"scale": 2.0})
    named = [{"tokens": tokens, "scale": 2.0}]
    other = tt.report(net, named, ["bf16", "nvfp4"], quiet=True)
    assert one.output_db == other.output_db
    assert one.rows == other.rows


def test_inputs_that_a_model_changes_are_copied():
    class Appends(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x, cache):
            cache.append(x)
            x += 1
            return self.linear(x) * len(cache)

    cache, x = [], torch.zeros(1, 4)
    made(Appends().eval(), x, cache)
    assert cache == []
    assert not x.any()


# -- groups ----------------------------------------------------------------------------


def test_groups():
    names = ["a", "b.0.x", "b.0.y", "b.1.x", "b.1.y", "c"]
    assert groups_of(names) == {name: (name,) for name in names}
    assert groups_of(names, most=4) == {
        "a": ("a",),
        "b.0": ("b.0.x", "b.0.y"),
        "b.1": ("b.1.x", "b.1.y"),
        "c": ("c",),
    }
    assert groups_of(names, most=3)["b"] == tuple(names[1:5])
    many = [str(i) for i in range(10)]
    assert groups_of(many, most=4) == {
        "0 ... 2": ("0", "1", "2"),
        "3 ... 5": ("3", "4", "5"),
        "6 ... 8": ("6", "7", "8"),
        "9": ("9",),
    }
    given = {"ends": ["a", "c"], "middle": "b.*"}
    assert groups_of(names, given) == {"ends": ("a", "c"), "middle": tuple(names[1:5])}


def test_given_groups_are_rounded_together(net, tokens):
    report = made(net, tokens, groups={"all": "*", "ends": ["attention.*", "head"]})
    whole, ends = report.groups
    assert whole.output_db == report.output_db
    assert ends.layers == ("attention.qkv", "attention.out", "head")
    assert 0 < ends.share < whole.share
    with pytest.raises(ValueError, match=r"groups\['x'\] must match layers .*'heads'"):
        made(net, tokens, groups={"x": ["heads"]})
    with pytest.raises(ValueError, match="groups must be a dict"):
        made(net, tokens, groups={})


def test_a_model_that_is_one_layer():
    report = made(nn.Linear(16, 4), torch.ones(2, 16))
    assert [row.name for row in report.rows] == ["(model)"]
    [group] = report.groups
    assert group.output_db == report.output_db


# -- Ctrl-C, time and errors -----------------------------------------------------------


class Interrupted(nn.Module):
    """Two layers, and Ctrl-C in a call."""

    def __init__(self, call, place=2):
        super().__init__()
        self.layers, self.left, self.place = stack(16, 16, 16), call, place

    def forward(self, x):
        self.left -= 1
        for i, layer in enumerate(self.layers):
            if self.left == 0 and i == self.place:
                raise KeyboardInterrupt
            x = layer(x)
        if self.left == 0:
            raise KeyboardInterrupt
        return x


def test_ctrl_c_leaves_a_partial_report():
    # The calls are: recording, no rounding, twice all layers, then single layers.
    report = made(Interrupted(6), torch.ones(1, 16))
    assert report.is_partial
    assert [*report.output_db] == ["bf16", "nvfp4"]
    assert [[*group.output_db] for group in report.groups] == [["bf16"], []]
    text = "Ctrl-C ended the report after 3 of 6 runs in a precision"
    assert text in report.to_text()
    assert json.loads(report.to_json())["is_partial"] is True
    assert "Ctrl-C" in report.to_html()

    report = made(Interrupted(1, 1), torch.ones(1, 16))
    assert [row.layer for row in report.rows] == ["layers.0"]
    assert "it covers the calls before that" in report.to_text()
    with pytest.raises(KeyboardInterrupt):
        made(Interrupted(1, 0), torch.ones(1, 16))


def test_the_time_is_estimated(monkeypatch, capsys):
    from tf32dtype.interop.torch.layer_report import sensitivity

    now = 0.0

    class Slow(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = stack(4, 4, 4, 4)

        def forward(self, x):
            nonlocal now
            now += 10
            return self.layers(x)

    monkeypatch.setattr(sensitivity, "perf_counter", lambda: now)
    report = tt.report(Slow().eval(), (torch.ones(1, 4),), ["bf16", "f16"])
    assert report.estimated_seconds == 60  # 3 layers, 2 precisions
    assert (
        "runs the model 6 times, about 60 s; Ctrl-C leaves" in capsys.readouterr().err
    )
    tt.report(Slow().eval(), (torch.ones(1, 4),), ["bf16"], quiet=True)
    assert not capsys.readouterr().err


class Gives(nn.Module):
    """A layer whose output a function makes."""

    def __init__(self, output):
        super().__init__()
        torch.manual_seed(1)
        self.layer, self.output = nn.Linear(4, 4), output

    def forward(self, x):
        return self.output(self.layer(x))


def test_outputs_must_be_numbers():
    def of(output):
        return made(Gives(output).eval(), torch.ones(2, 4))

    with pytest.raises(ValueError, match=r"must have tensors of floats.*has NoneType"):
        of(lambda x: None)
    with pytest.raises(ValueError, match="must have tensors of floats"):
        of(lambda x: x > 0)
    with pytest.raises(ValueError, match="got 8 NaN among 8 values of tensor 0"):
        of(lambda x: x * math.nan)
    with pytest.raises(ValueError, match="got only Inf for batch 0"):
        of(lambda x: [x * math.inf])
    masked = of(lambda x: (x[0], x[1].masked_fill(x[1] == x[1].max(), -math.inf)))
    assert 20 < masked.output_db["bf16"] < 100
    pair = of(lambda x: torch.view_as_complex(x.reshape(2, 2, 2).contiguous()))
    assert pair.output_db == of(lambda x: x).output_db
    assert of(lambda x: torch.zeros(1)).output_db["bf16"] == math.inf


@pytest.mark.parametrize("name", ["int8", "fp8_e4m3:tile"])
def test_layers_that_cannot_be_rounded_are_named(name):
    model = Gives(lambda x: x[1:])
    model.layer = stack(32, 32)
    x = torch.ones(2, 32)
    x[0, 3] = math.inf
    report = made(model.eval(), x, precisions=[name, "bf16"])
    [row] = report.rows
    assert row.elements == 32
    assert row.errors[name].snr_db > 20
    [((group, precision), error)] = report.failures.items()
    assert (group, precision) == ("", name)
    assert error.startswith("layer 'layer.0', activations x weights: ")
    assert report.output_db[name] == -math.inf
    assert f"{name}: all layers cannot be rounded: layer 'layer.0'" in report.to_text()
    assert json.loads(report.to_json())["failures"][0]["precision"] == name


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((torch.tanh, (torch.ones(1),)), {}, TypeError, "model must be a torch.nn"),
        ((None, torch.ones(1)), {}, TypeError, r"inputs must be a tuple.*\(inputs,\)"),
        ((None, []), {}, ValueError, "inputs must have at least one batch"),
        ((None, [3]), {}, TypeError, "inputs must be a tuple"),
        ((None, ()), {"kwargs": {3: 4}}, TypeError, "kwargs must have names"),
        ((None, ()), {"kwargs": 3}, TypeError, "kwargs must have names"),
        ((None, (), ["bf17"]), {}, ValueError, "format must be one of.*'bf17'"),
        ((None, (), []), {}, ValueError, "precisions must name at least one"),
        ((None, (), [3]), {}, TypeError, "precisions must be strings"),
        ((None, ()), {"device": "H101"}, ValueError, "H101"),
        ((None, ()), {"target_db": 0}, ValueError, "target_db must be more than 0"),
        ((None, ()), {"target_db": "a"}, TypeError, "target_db must be a number"),
    ],
)
def test_wrong_arguments(arguments, options, error, message):
    model, *others = arguments
    with pytest.raises(error, match=message):
        tt.report(model or stack(4, 4), *others, **options)


def test_a_plan_does_not_count(net, tokens):
    usual = made(net, tokens)
    tt.apply(tt.Plan(default="nvfp4"), net)
    tt.apply(tt.Plan(default="nvfp4"), net.head)
    forwards = [vars(x)["forward"] for x in (net, net.head)]
    found = made(net, tokens)
    assert (found.rows, found.unreached) == (usual.rows, usual.unreached)
    assert found.output_db == usual.output_db
    assert [vars(x)["forward"] for x in (net, net.head)] == forwards


def test_usual_precisions_are_those_of_the_device(net, tokens):
    found = tt.report(net, (tokens,), device="H100", sensitivities=False, quiet=True)
    assert found.precisions == ("bf16", "fp8_e4m3", "mxfp8")


def test_a_model_without_products():
    with pytest.raises(ValueError, match=r"must multiply matrices.*got none"):
        made(nn.ReLU().eval(), torch.ones(3))
    with pytest.raises(ValueError, match=r"got aten.addmm.default of float64"):
        made(nn.Linear(4, 4).double().eval(), torch.ones(1, 4).double())


def test_unreached_operations_are_listed():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(x).double() @ torch.eye(4).double()

    report = made(Mixed().eval(), torch.ones(1, 4))
    [one] = report.unreached
    assert (one.name, one.reason, one.calls) == ("aten.mm.default", "of float64", 1)
    assert "Not measured: aten.mm.default of float64 (1 call)" in report.to_text()


# -- files -----------------------------------------------------------------------------


@pytest.fixture
def report(net, tokens):
    return made(
        net, tokens, precisions=["bf16", "fp8_e4m3", "mxfp8", "nvfp4", "bf16x3"]
    )


def test_text(report, capsys):
    text = report.to_text()
    report.print()
    assert capsys.readouterr().out == text
    lines = text.splitlines()
    assert lines[0].startswith("Net: 5 layers, ") or lines[0].startswith("Net: ")
    assert "Products of layers: SNR in dB against float64" in text
    [head] = [line for line in lines if line.startswith("head ")][:1]
    row = next(row for row in report.rows if row.layer == "head")
    assert f"{row.errors['nvfp4'].snr_db:.1f}*" in head
    assert f"{row.errors['bf16'].snr_db:.1f} " in head
    count = len(report.rows)
    assert f"bf16: {count} of {count} products keep 25 dB; with all layers" in text
    assert f"nvfp4: 0 of {count} products keep 25 dB" in text


def test_the_worst_rows_of_many_are_shown():
    model = stack(*[8] * 52)
    with torch.no_grad():
        model[7].weight[0, 0] = 100
    report = made(model, torch.randn(4, 8), precisions=["bf16"], sensitivities=False)
    text = report.to_text()
    assert "The tables show the 40 products with the lowest SNR, not 11 more" in text
    assert not report.groups
    assert not report.output_db


def test_json(report):
    def refuse(text):
        raise ValueError(text)

    record = json.loads(report.to_json(), parse_constant=refuse)
    assert (record["kind"], record["version"]) == ("tf32dtype layer report", 1)
    assert record["precisions"] == list(report.precisions)
    assert record["target_db"] == 25
    assert len(record["products"]) == len(report.rows)
    for one, row in zip(record["products"], report.rows, strict=True):
        assert (one["layer"], one["calls"]) == (row.layer, row.calls)
        for errors in one["precisions"]:
            want = row.errors[errors["precision"]]
            assert float(errors["snr_db"]) == want.snr_db
            assert errors["keeps_target"] == want.keeps(25)
            assert errors["outlier_share"] == want.outlier_share
            lost = errors["lost"][0]
            assert (lost and lost["share"]) == (
                want.first_lost and want.first_lost.share
            )
    assert record["output_db"] == report.output_db
    assert [x["name"] for x in record["groups"]] == [x.name for x in report.groups]
    exact = made(stack(4, 4), torch.zeros(1, 4), precisions=["bf16"])
    assert json.loads(exact.to_json())["output_db"] == {"bf16": "inf"}


class Page(HTMLParser):
    """Check that tags match, and collect attributes and texts."""

    VOID = ("meta", "br", "rect")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.data = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID or (tag == "rect" and not self._is_closed()):
            self.open.append(tag)

    def _is_closed(self):
        return self.get_starttag_text().endswith("/>")

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.data.append(data)


def test_html(report):
    page = Page(report.to_html())
    assert not page.open
    for _, attributes in page.tags:
        for name in ("src", "href", "xlink:href"):
            assert attributes.get(name, "#").startswith("#")
    assert "http" not in report.to_html()
    assert "@import" not in report.to_html()
    ids = [x["id"] for _, x in page.tags if "id" in x]
    assert len(ids) == len({*ids})
    links = {x["href"][1:] for tag, x in page.tags if tag == "a"}
    assert links <= {*ids}
    assert len(links) == len(report.rows)
    [svg] = [x for tag, x in page.tags if tag == "svg"]
    assert svg["role"] == "img"
    assert {*svg["aria-labelledby"].split()} <= {*ids}
    cells = sum(
        tag == "rect" and "far above near below none".find(x["class"]) >= 0
        for tag, x in page.tags
    )
    precisions = len(report.precisions)
    assert cells == precisions * (len(report.rows) + len(report.groups)) + 4
    text = "".join(page.data)
    for row in report.rows:
        assert row.name in text


def test_names_are_escaped_in_html():
    model = nn.Sequential()
    model.add_module("<b>&", nn.Linear(4, 4))
    page = Page(made(model.eval(), torch.ones(1, 4)).to_html())
    assert "b" not in {tag for tag, _ in page.tags}
    assert "<b>&" in "".join(page.data)


def test_files(report, tmp_path):
    for ending, text in (
        (".html", report.to_html()),
        (".json", report.to_json()),
        (".TXT", report.to_text()),
    ):
        path = tmp_path / f"layers{ending}"
        report.save(path)
        assert path.read_text() == text
    assert len([*tmp_path.iterdir()]) == 3
    with pytest.raises(ValueError, match=r"must be one of '.html', '.json' or '.txt'"):
        report.save(tmp_path / "layers.csv")
    with pytest.raises(ValueError, match="must be in an existing folder"):
        report.save(tmp_path / "no" / "layers.html")
    with pytest.raises(TypeError, match="path must be the path"):
        report.save(3)


@pytest.mark.parametrize(
    "name",
    ["report", "LayerReport", "LayerRow", "GroupRow", "ProductErrors", "RangeLost"],
)
def test_examples(name):
    [test] = doctest.DocTestFinder(recurse=False).find(getattr(tt, name), name)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_notebooks_show_tables(report):
    fragment = Page(report._repr_html_())
    assert not fragment.open
    assert sum(tag == "table" for tag, _ in fragment.tags) == 2
    stream = StringIO()
    print_report(report, stream)
    assert stream.getvalue() == report.to_text()
