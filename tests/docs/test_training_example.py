"""examples/train_digits.py, with PyTorch if it is installed, and without."""

import importlib.util
import sys

import numpy as np
import pytest

from tests.docs.images import variables_of_stub
from tests.support.interpreters import python
from tests.support.paths import ROOT
from tf32dtype import blocks

if importlib.util.find_spec("sklearn") is None:
    pytest.skip("no scikit-learn", allow_module_level=True)
sys.path.insert(0, str(ROOT / "examples"))

import digits_numpy
import train_digits

BLOCKS = [name for name in train_digits.FORMATS if name in blocks.formats]
RUNS = [("float32", False), ("bf16", False)]
RUNS += [(name, feedback) for name in BLOCKS for feedback in (False, True)]


@pytest.fixture(scope="module")
def data():
    return digits_numpy.load()


def test_the_slopes_are_those_of_the_loss(data):
    """Compare with central differences in float64."""
    start = digits_numpy.initial_layers(1)
    layers = [(w.astype(float), b.astype(float) + 0.1) for w, b in start]
    weights, biases = map(list, zip(*layers, strict=True))
    x, labels = data.images[:30].astype(float), data.digits[:30]

    def loss():
        return digits_numpy.step(weights, biases, x, labels, lambda v: v)[0]

    _, slopes = digits_numpy.step(weights, biases, x, labels, lambda v: v)
    rng = np.random.default_rng(1)
    layers = zip(weights, biases, strict=True)
    for parameters, found in zip(layers, slopes, strict=True):
        for p, slope in zip(parameters, found, strict=True):
            flat, step = p.reshape(-1), 1e-6
            for i in rng.integers(0, flat.size, 5):
                kept = flat[i]
                flat[i] = kept + step
                above = loss()
                flat[i] = kept - step
                below = loss()
                flat[i] = kept
                expected = (above - below) / 2 / step
                assert slope.flat[i] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("name", "feedback"), RUNS)
def test_torch_and_numpy_train_alike(data, name, feedback):
    pytest.importorskip("torch")
    options = {"feedback": feedback, "epochs": 2, "seed": 4}
    ours = digits_numpy.train(data, name, **options)
    theirs = train_digits.train_torch(data, name, **options)
    close = 0.05 if name in ("bf16", "mxfp4") else 0.005
    assert theirs.losses == pytest.approx(ours.losses, rel=close)
    assert theirs.accuracy == pytest.approx(ours.accuracy, abs=0.02)


#: Losses of two epochs, which are equal on all machines but for the last bit of a log.
RECORDED = {
    ("float32", False): [1.365347270389619, 0.3918489700236809],
    ("mxfp8_e4m3", True): [1.370793837321237, 0.40656390840993495],
    ("mxfp4", True): [1.4295266291784887, 0.4296229843694893],
}


@pytest.mark.parametrize(("name", "feedback"), RECORDED)
def test_numpy_trains_alike_on_every_machine(data, name, feedback):
    found = digits_numpy.train(data, name, feedback=feedback, epochs=2, seed=0)
    assert found.losses == pytest.approx(RECORDED[name, feedback], rel=1e-12)


@pytest.fixture(scope="module")
def plain(data):
    return digits_numpy.train(data, "float32", epochs=12)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("feedback", [False, True])
def test_accuracy_holds(data, plain, feedback):
    """Check that tcfp12 and tcfp16 are within 1 % of float32."""
    assert plain.accuracy > 0.95
    for name in ("tcfp12", "tcfp16"):
        found = digits_numpy.train(data, name, feedback=feedback, epochs=12)
        assert abs(found.accuracy - plain.accuracy) <= 0.01
        assert found.losses[-1] == pytest.approx(plain.losses[-1], rel=0.1)


@pytest.mark.parametrize("missing", ["sklearn", "matplotlib"])
def test_what_is_missing_is_said_first(missing, monkeypatch, capsys):
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == missing else 1
    )
    with pytest.raises(SystemExit):
        train_digits.main(["--plot", "losses.png"])
    package = {"sklearn": "scikit-learn"}.get(missing, missing)
    assert f"{package} is missing: pip install {package}" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--numpy"], []], ids=["numpy", "torch"])
def test_the_script(tmp_path, options):
    if not options:
        pytest.importorskip("torch")
    script = ROOT / "examples" / "train_digits.py"
    arguments = ["--epochs", "1", "--seeds", "1", *options]
    drawn = tmp_path / "figures" / "losses.png"
    if importlib.util.find_spec("matplotlib"):
        arguments += ["--plot", str(drawn)]
    done = python(script, *arguments, **variables_of_stub(tmp_path))
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(RUNS)
    assert [line.split()[1] for line in lines[2:]] == [name for name, _ in RUNS]
    assert done.stdout.startswith("NumPy" if options else "PyTorch")
    said = done.stderr.splitlines()
    assert len(said) == 1 + len(RUNS)
    assert all("s left" in line and "loss" in line for line in said[1:])
    if importlib.util.find_spec("matplotlib"):
        assert drawn.stat().st_size > 1000
