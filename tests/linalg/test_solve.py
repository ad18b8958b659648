"""Solutions, their certificates, and systems that do not converge."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.linalg.systems import (
    PRECISIONS,
    Array,
    definite,
    exact_errors,
    fractions,
    matrix,
)

mpmath = pytest.importorskip("mpmath")


def true_solution(a: Array, b: Array) -> list[Any]:
    """Return the solution with 60 digits."""
    with mpmath.workdps(60):
        rows = mpmath.matrix([[mpmath.mpf(float(v)) for v in row] for row in a])
        return list(mpmath.lu_solve(rows, mpmath.matrix([float(v) for v in b])))


def check_certificate(a: Array, b: Array, found: Any) -> None:
    """Compare the errors of a vector with the exact ones."""
    errors = found.backward_error, found.componentwise_error
    for bound, exact in zip(errors, exact_errors(a, found.x, b), strict=True):
        assert exact is not None
        assert exact <= Fraction(float(bound)) <= exact * (1 + Fraction(8, 2**52))
    assert errors == td.linalg.backward_error(a, found.x, b)


# -- solutions -------------------------------------------------------------------------


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("refinement", ["classical", "gmres"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_precision(precision: Any, refinement: Any, dtype: type) -> None:
    rng = np.random.default_rng(0)
    a = (matrix(rng, 40, 4.0) + 2 * np.eye(40)).astype(dtype)
    b = rng.standard_normal(40).astype(dtype)
    found = td.linalg.solve(a, b, precision=precision, refinement=refinement, block=8)
    assert found.converged
    assert found.precision == precision
    assert found.x.dtype == dtype
    assert found.x.shape == (40,)
    assert found.backward_error <= np.finfo(dtype).eps
    assert 1 <= found.iterations < 100
    check_certificate(a, b, found)


@pytest.mark.parametrize(
    "options",
    [
        {"precision": "bf16", "device": "H100"},
        {"precision": "tf32", "device": "A100"},
        {"precision": "f16", "device": "V100"},
        {"precision": "bf16", "device": "MI300X"},
    ],
)
def test_devices(options: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = matrix(rng, 40, 10.0), rng.standard_normal(40)
    found = td.linalg.solve(a, b, block=8, **options)
    assert found.converged
    check_certificate(a, b, found)
    plain = td.linalg.solve(a, b, block=8, precision=options["precision"])
    assert plain.converged


def test_error_of_x_follows_from_the_certificate() -> None:
    rng = np.random.default_rng(3)
    for condition in (1e1, 1e3, 1e5):
        a, b = matrix(rng, 16, condition), rng.standard_normal(16)
        found = td.linalg.solve(a, b, precision="bf16", refinement="gmres", block=4)
        true = np.array([float(x) for x in true_solution(a, b)])
        kappa = np.linalg.cond(a, np.inf) * (1 + 1e-9)
        error = np.abs(found.x - true).max() / np.abs(true).max()
        assert error <= 2.1 * kappa * found.backward_error + 1e-15


def test_integers_are_solved_exactly() -> None:
    a = [[2, 1, 0], [1, 3, 1], [0, 1, 4]]
    found = td.linalg.solve(a, [4, 10, 14], tolerance=0)
    assert np.array_equal(found.x, [1, 2, 3])
    assert (found.backward_error, found.componentwise_error) == (0, 0)
    assert found.x.dtype == np.float64
    assert found.iterations <= 3


def test_positive_definite_matrices() -> None:
    rng = np.random.default_rng(4)
    a, b = definite(rng, 40, 50.0), rng.standard_normal((40, 3))
    for refinement in ("classical", "gmres"):
        found = td.linalg.solve(
            a, b, assume_a="positive definite", refinement=refinement, block=8
        )
        assert found.converged.all()
        for i in range(3):
            column = type(found)(*(x[..., i] for x in found[:5]), found.precision)
            check_certificate(a, b[:, i], column)
    with pytest.raises(np.linalg.LinAlgError, match="a must be positive definite"):
        td.linalg.solve(-a, b, assume_a="positive definite")
    wrong = a + np.triu(np.ones_like(a), 1)  # factors of the lower triangle
    with pytest.warns(UserWarning, match="did not converge"):
        found = td.linalg.solve(wrong, b, assume_a="positive definite")
    assert not found.converged.any()


# -- systems that do not converge ------------------------------------------------------


def test_classical_refinement_reports_that_it_fails() -> None:
    rng = np.random.default_rng(5)
    a, b = matrix(rng, 64, 1e8), rng.standard_normal(64)
    with pytest.warns(
        UserWarning, match=r"for 1 of 1 right side: .*refinement='gmres'"
    ):
        found = td.linalg.solve(a, b, precision="bf16", block=8)
    assert not found.converged
    assert found.backward_error > 1e-10
    check_certificate(a, b, found)
    found = td.linalg.solve(a, b, precision="bf16", block=8, refinement="gmres")
    assert found.converged
    assert found.backward_error < 2.0**-52
    check_certificate(a, b, found)


def test_nearly_singular_matrices() -> None:
    n = 12
    hilbert = 1.0 / (np.arange(n)[:, None] + np.arange(n) + 1)
    b = hilbert.sum(axis=1)
    with pytest.warns(UserWarning, match="did not converge"):
        found = td.linalg.solve(hilbert, b, precision="bf16", block=2)
    check_certificate(hilbert, b, found)
    tiny = np.array([[1.0, 1.0], [1.0, 1 + 2.0**-52]])
    found = td.linalg.solve(tiny, [1.0, 2.0], precision=None)
    assert found.converged
    check_certificate(tiny, np.array([1.0, 2.0]), found)


def test_singular_matrices() -> None:
    a = np.array([[1.0, 2.0], [2.0, 4.0]])
    with pytest.raises(np.linalg.LinAlgError, match=r"in precision 'bf16'.*column 1$"):
        td.linalg.solve(a, [1.0, 2.0])
    with pytest.raises(np.linalg.LinAlgError, match=r"column 1 of matrix \(2,\)$"):
        td.linalg.solve(np.stack([np.eye(2), -np.eye(2), a]), [1.0, 2.0])
    with pytest.raises(np.linalg.LinAlgError, match="column 0"):
        td.linalg.solve(np.zeros((3, 3)), np.ones(3), precision=None)


def test_a_limit_of_iterations() -> None:
    rng = np.random.default_rng(6)
    a, b = matrix(rng, 40, 1e4), rng.standard_normal((40, 2))
    for refinement in ("classical", "gmres"):
        for most in (1, 2, 7):
            with pytest.warns(UserWarning, match="for 2 of 2 right sides"):
                found = td.linalg.solve(
                    a, b, refinement=refinement, max_iterations=most, block=8
                )
            assert (found.iterations <= most).all()
            assert not found.converged.any()


def test_a_tolerance() -> None:
    rng = np.random.default_rng(7)
    a, b = matrix(rng, 40, 10.0), rng.standard_normal(40)
    loose = td.linalg.solve(a, b, tolerance=1e-6, block=8)
    tight = td.linalg.solve(a, b, block=8)
    assert loose.converged
    assert 2.0**-52 < loose.backward_error <= 1e-6
    assert loose.iterations < tight.iterations


def test_each_column_stops_by_itself() -> None:
    rng = np.random.default_rng(8)
    a = np.stack([matrix(rng, 24, 5.0), matrix(rng, 24, 1e7)])
    b = rng.standard_normal((24, 3))
    b[:, 1] = 0
    with pytest.warns(UserWarning, match="for 2 of 6 right sides"):
        found = td.linalg.solve(a, b, block=6)
    assert np.array_equal(found.converged, [[True] * 3, [False, True, False]])
    assert not found.x[:, :, 1].any()
    assert not found.iterations[:, 1].any()
    for i, j in np.ndindex(2, 3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            one = td.linalg.solve(a[i], b[:, j], block=6)
        assert np.array_equal(one.x, found.x[i, :, j])
        assert one[1:5] == tuple(x[i, j] for x in found[1:5])


# -- scaling ---------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["bf16", "f16", "fp8_e4m3", "fp8_e5m2", "f32"])
@pytest.mark.parametrize("refinement", ["classical", "gmres"])
def test_numbers_out_of_range(precision: Any, refinement: Any) -> None:
    rng = np.random.default_rng(9)
    a = matrix(rng, 32, 3.0) + 2 * np.eye(32)
    b = rng.standard_normal(32)
    for power in (-900, -60, 20, 60, 900):
        found = td.linalg.solve(
            np.ldexp(a, power), b, precision=precision, refinement=refinement, block=8
        )
        assert found.converged
        wanted = td.linalg.solve(
            a, b, precision=precision, refinement=refinement, block=8
        )
        assert np.array_equal(np.ldexp(found.x, power), wanted.x)


@pytest.mark.parametrize("precision", ["bf16", "f16", "fp8_e4m3"])
def test_rows_and_columns_of_many_sizes(precision: Any) -> None:
    rng = np.random.default_rng(10)
    a = matrix(rng, 32, 3.0) + 2 * np.eye(32)
    rows, columns = rng.integers(-100, 100, (2, 32))
    b = rng.standard_normal(32)
    scaled = np.ldexp(np.ldexp(a, rows[:, None]), columns)
    found = td.linalg.solve(
        scaled, np.ldexp(b, rows), precision=precision, tolerance=2.0**-52, block=8
    )
    assert found.converged
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = td.linalg.solve(
            scaled, np.ldexp(b, rows), precision=precision, tolerance=0, block=8
        )
    assert np.allclose(np.ldexp(found.x, columns), np.linalg.solve(a, b), rtol=1e-6)


def test_an_overflow_of_factors() -> None:
    n = 24  # grows by 2 in each column
    a = np.tril(-np.ones((n, n)), -1) + np.eye(n)
    a[:, -1] = 1
    with pytest.raises(np.linalg.LinAlgError, match="not overflow in precision 'f16'"):
        td.linalg.solve(a * (1 + 2.0**-12), np.ones(n), precision="f16", block=1)


# -- shapes and arguments --------------------------------------------------------------


def test_shapes_are_those_of_numpy() -> None:
    rng = np.random.default_rng(11)
    for shape, other in (
        ((3, 3), (3,)), ((3, 3), (3, 2)), ((4, 3, 3), (3,)), ((4, 3, 3), (3, 2)),
        ((3, 3), (4, 3, 2)), ((5, 1, 3, 3), (4, 3, 1)), ((1, 1), (1,)), ((0, 0), (0,)),
        ((3, 3), (3, 0)), ((0, 3, 3), (3,)), ((2, 0, 0), (0, 4)), ((0, 0), (0, 0)),
    ):  # fmt: skip
        a = rng.standard_normal(shape) + 4 * np.eye(shape[-1])
        b = rng.standard_normal(other)
        wanted = np.linalg.solve(a, b)
        for refinement in ("classical", "gmres"):
            found = td.linalg.solve(a, b, refinement=refinement, block=2)
            assert found.x.shape == wanted.shape
            assert np.allclose(found.x, wanted)
            of_columns = wanted.shape[:-1] if len(other) == 1 else (
                *wanted.shape[:-2], wanted.shape[-1]
            )  # fmt: skip
            for figure in found[1:5]:
                assert np.shape(figure) == of_columns


def test_dtypes() -> None:
    a = np.array([[4.0, 1.0], [2.0, 3.0]])
    b = np.array([5.0, 5.0])
    f4, f8 = np.float32, np.float64
    for of_a, of_b, wanted in (
        (f4, f4, f4), (f4, f8, f8), (f8, f4, f8), (td.bfloat16, td.fp8_e4m3, f4),
        (np.float16, f4, f4), (np.int8, np.int8, f8), (">f4", ">f8", f8),
    ):  # fmt: skip
        found = td.linalg.solve(a.astype(of_a), b.astype(of_b))
        assert found.x.dtype == wanted
        assert np.allclose(found.x, 1, rtol=1e-6)
        assert found.converged


def test_arguments_are_not_changed() -> None:
    a, b = np.eye(4) * 3, np.ones((4, 2))
    for assumption in ("general", "positive definite"):
        td.linalg.solve(a, b, assume_a=assumption, precision=None)
        td.linalg.solve(a, b, assume_a=assumption, precision=None, refinement="gmres")
    assert np.array_equal(a, np.eye(4) * 3)
    assert np.array_equal(b, np.ones((4, 2)))


def test_wrong_arguments() -> None:
    a, b = np.eye(3), np.ones(3)
    solve: Any = td.linalg.solve
    for wrong in (np.ones(4), np.ones((4, 3)), np.ones((2, 1, 3)), 1.0):
        with pytest.raises(ValueError, match="b must have the shape"):
            solve(a, wrong)
    with pytest.raises(ValueError, match="stacks of matrices must broadcast"):
        solve(np.ones((2, 3, 3)), np.ones((4, 3, 1)))
    for x, y, name in ((a * np.nan, b, "a"), (a, b * np.inf, "b")):
        with pytest.raises(ValueError, match=f"{name} must be finite"):
            solve(x, y)
    with pytest.raises(TypeError, match="b must hold real numbers"):
        solve(a, b + 1j)
    for options, error, message in (
        ({"assume_a": "pos"}, ValueError, "assume_a must be 'general' or 'positive"),
        ({"refinement": "cg"}, ValueError, "refinement must be 'classical' or"),
        ({"tolerance": -1}, ValueError, "tolerance must be 0 or more; got -1"),
        ({"tolerance": np.nan}, ValueError, "tolerance must be 0 or more"),
        ({"tolerance": "x"}, TypeError, "tolerance must be a number; got 'x'"),
        ({"max_iterations": 0}, ValueError, "max_iterations must be 1 or more"),
        ({"max_iterations": 1.5}, TypeError, "max_iterations must be an integer"),
        ({"precision": "bf17"}, ValueError, "precision must be one of"),
        ({"device": "H200X"}, ValueError, "device"),
        ({"dtype": "f4"}, TypeError, "unexpected keyword argument 'dtype'"),
    ):
        with pytest.raises(error, match=message):
            solve(a, b, **options)
    with pytest.raises(ValueError, match="equally many columns"):
        td.linalg.backward_error(a, np.ones((3, 2)), np.ones((3, 1)))
    with pytest.raises(ValueError, match="x must have the shape"):
        td.linalg.backward_error(a, np.ones(2), b)


def test_fractions_of_the_reference() -> None:
    assert fractions(np.array([0.5, -3.0])) == [Fraction(1, 2), Fraction(-3)]
    assert exact_errors(np.eye(1) * 2, np.ones(1), np.ones(1)) == (
        Fraction(1, 3),
        Fraction(1, 3),
    )
