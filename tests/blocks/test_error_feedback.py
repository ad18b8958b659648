"""td.blocks.ErrorFeedback: the rule, its state, and that the mean is unbiased."""

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tf32dtype as td
from tests.blocks.arrays import NAMES, normal, same
from tf32dtype import blocks
from tf32dtype.blocks import ErrorFeedback


@pytest.mark.parametrize("name", NAMES)
def test_the_rule(name):
    feedback = ErrorFeedback(name, axis=0)
    assert feedback.error is None
    e = np.zeros((40, 3), np.float32)
    for step in range(5):
        x = normal((40, 3), step)
        got = feedback.quantize(x) if step % 2 else feedback(x)
        want = blocks.quantize(x + e, name, 0)
        assert got == want
        e = (x + e) - want.dequantize()
        same(feedback.error, e)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["tcfp8", "tcfp12", "tcfp16", "mxfp8_e4m3"])
@pytest.mark.parametrize("moving", [False, True])
def test_the_mean_of_200_steps_is_unbiased(name, moving):
    x = normal((8, 64))
    feedback = ErrorFeedback(name)
    total = np.zeros(x.shape)
    plain = np.zeros(x.shape)
    inputs = np.zeros(x.shape)
    for step in range(200):
        y = x + np.float32(0.1) * normal(x.shape, step + 1) if moving else x
        inputs += y
        total += feedback(y).dequantize()
        plain += blocks.quantize(y, name).dequantize()
    error = np.sqrt(np.mean(((total - inputs) / 200) ** 2))
    without = np.sqrt(np.mean(((plain - inputs) / 200) ** 2))
    assert error < 2e-4
    if not moving:
        assert error < without / 20


def test_state():
    feedback = ErrorFeedback("tcfp8")
    feedback(normal((3, 40)))
    state = feedback.state_dict()
    assert state["format"] == "tcfp8"
    same(state["error"], feedback.error)
    want = [feedback(normal((3, 40), i)) for i in range(3)]
    other = ErrorFeedback("tcfp8")
    other.load_state_dict(state)
    assert [other(normal((3, 40), i)) for i in range(3)] == want
    same(state["error"], state["error"].copy())
    fresh = ErrorFeedback("tcfp8")
    fresh.load_state_dict(ErrorFeedback("tcfp8").state_dict())
    assert fresh.error is None


@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))]
)
def test_copies_go_on_alike(again):
    rng = np.random.default_rng(3)
    feedback = ErrorFeedback("tcfp12", axis=0, rounding="stochastic", rng=rng)
    feedback(normal((40, 2)))
    twin = again(feedback)
    assert repr(twin)[:40] == repr(feedback)[:40]
    for i in range(3):
        assert feedback(normal((40, 2), i)) == twin(normal((40, 2), i))


def test_state_holds_the_generator():
    def make(seed):
        rng = np.random.default_rng(seed)
        return ErrorFeedback("tcfp8", rounding="stochastic", rng=rng)

    feedback, other = make(1), make(2)
    feedback(normal(40))
    other.load_state_dict(feedback.state_dict())
    assert feedback(normal(40)) == other(normal(40))
    with pytest.raises(ValueError, match="rng"):
        ErrorFeedback("tcfp8").load_state_dict(feedback.state_dict())


def test_reset_and_shapes():
    feedback = ErrorFeedback("mxfp4")
    feedback(normal((2, 40)))
    before = feedback.error
    with pytest.raises(ValueError, match=r"\(2, 40\); got \(40,\).*reset"):
        feedback(normal(40))
    same(feedback.error, before)
    feedback.reset()
    assert feedback.error is None
    assert feedback(normal(40)) == blocks.quantize(normal(40), "mxfp4")


def test_the_error_is_a_copy():
    feedback = ErrorFeedback("mxfp4")
    feedback(normal(40))
    feedback.error[...] = 7
    assert not (feedback.error == 7).any()
    state = feedback.state_dict()
    state["error"][...] = 7
    assert not (feedback.error == 7).any()


def test_failing_steps_change_nothing():
    feedback = ErrorFeedback("tcfp8")
    feedback(normal(40))
    before = feedback.error
    with pytest.raises(ValueError, match="nan"):
        feedback(np.full(40, np.nan))
    same(feedback.error, before)


def test_steps_of_threads_lose_nothing():
    feedback, x, count = ErrorFeedback("mxfp4"), normal((64, 512)), 60
    start = threading.Barrier(6)

    def steps(_):
        start.wait()
        return sum(feedback(x).dequantize(np.float64) for _ in range(count // 6))

    with ThreadPoolExecutor(6) as threads:
        total = sum(threads.map(steps, range(6)))
    np.testing.assert_allclose(total + feedback.error, count * x, atol=1e-4)


def test_poison_passes():
    feedback = ErrorFeedback("mxfp4")
    x = normal(64)
    feedback(x)
    before = feedback.error
    x[40] = np.inf
    assert np.isnan(feedback(x).dequantize()[32:]).all()
    same(feedback.error[32:], before[32:])
    assert np.isfinite(feedback(normal(64)).dequantize()).all()


def test_the_sum_stays_finite():
    x = np.full(32, np.finfo(np.float32).max, np.float32)
    feedback = ErrorFeedback("tcfp8", scale="amax")
    feedback(np.float32(247.9 / 256) * x)  # the code is 240, and the error 7.9
    assert (feedback.error > 7 * 2.0**120).all()
    for _ in range(5):
        assert np.isfinite(feedback(x).dequantize()).all()
    beyond = np.full(32, 1e300)
    with pytest.raises(ValueError, match=r"got inf at x\[0\]"):
        feedback(beyond)
    feedback = ErrorFeedback("tcfp8", scale="amax", overflow="saturate")
    assert np.isfinite(feedback(beyond).dequantize()).all()


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        (["tcfp9"], {}, ValueError, "format must be one of"),
        (
            ["tcfp8"],
            {"scale": "best"},
            ValueError,
            "scale must be one of .*; got 'best'",
        ),
        (["tcfp8"], {"axis": 1.5}, TypeError, "axis must be an integer"),
        (["tcfp8"], {"bits": 8}, TypeError, "unexpected keyword argument 'bits'"),
        (["tcfp8"], {"rounding": "stochastic"}, ValueError, "must be given with rng"),
    ],
)
def test_options_are_checked_at_once(arguments, options, error, text):
    with pytest.raises(error, match=text):
        ErrorFeedback(*arguments, **options)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"format": "mxfp4"}, "state must be of format tcfp8; got mxfp4"),
        ({"error": np.zeros(3)}, "finite float32"),
        ({"error": np.full(3, np.nan, "f4")}, "finite float32"),
        ({"error": [1.0]}, "finite float32"),
        ({"more": 1}, "format, error and rng; got"),
    ],
)
def test_states_that_are_none(change, text):
    feedback = ErrorFeedback("tcfp8")
    with pytest.raises(ValueError, match=text):
        feedback.load_state_dict({**feedback.state_dict(), **change})
    assert feedback.error is None


def test_repr():
    assert repr(ErrorFeedback("tcfp8", axis=0)) == "ErrorFeedback('tcfp8', axis=0)"
    assert ErrorFeedback("tcfp8").format == "tcfp8"
    assert td.blocks.ErrorFeedback is ErrorFeedback
