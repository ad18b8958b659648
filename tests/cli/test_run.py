"""`tf32dtype run`: a program as in Python, except for matrix multiplications."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import tf32dtype as td
from tests.support import command_line, forks, interpreters
from tf32dtype._exact.rounding import ExactRounding

PRODUCTS = """
import numpy as np
a = np.array([[1.001, 2], [-3, 0.1]], np.float32)
print((a @ a).tobytes().hex(), np.dot(a, a).tobytes().hex())
print((a.astype(float) @ a).tobytes().hex(), ((1 + 1j) * a @ a).tobytes().hex())
"""
A = np.array([[1.001, 2], [-3, 0.1]], np.float32)

# Print how the program was started, except for sys.orig_argv and sys.flags.
WORLD = """
import sys, os, __main__
print(sys.argv, sys.path[0], __name__, __file__, __package__, __spec__ is None)
print(os.path.basename(__loader__.path), __main__.__dict__ is globals(), __doc__)
print(sys.modules["__main__"] is __main__, sys.stdin.read())
"""


def python(*arguments: object, folder: Path, **environment: str) -> Any:
    return interpreters.python(*arguments, cwd=folder, input="typed", **environment)


def tf32dtype(*arguments: object, folder: Path, tear_down: bool = False) -> Any:
    words = ("-m", "tf32dtype", "run", *arguments)
    return forks.python(*words, cwd=folder, input="typed", tear_down=tear_down)


def afresh(*arguments: object, folder: Path, **environment: str) -> Any:
    """Run the command in a new interpreter."""
    return python("-m", "tf32dtype", "run", *arguments, folder=folder, **environment)


def as_python_runs_it(folder: Path, *words: object, **environment: str) -> str:
    """Run a program with and without tf32dtype; return the equal output."""
    wanted = python(*words, folder=folder, **environment)
    quietly = ("--precision", "bf16", "--quiet")
    run = afresh if environment else tf32dtype
    got = run(*quietly, *words, folder=folder, **environment)
    assert (got.returncode, got.stdout, got.stderr) == (
        wanted.returncode,
        wanted.stdout,
        wanted.stderr,
    )
    return got.stdout


def complaint(folder: Path, *arguments: object) -> str:
    """Return the only line on standard error; the exit code must be 2."""
    done = tf32dtype(*arguments, folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"tf32dtype.*: .+\n", done.stderr), done.stderr
    return str(done.stderr)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "world.py").write_text(WORLD)
    (tmp_path / "products.py").write_text(PRODUCTS)
    return tmp_path


def product(a: Any = A, b: Any = A, **keywords: Any) -> str:
    return str(td.matmul(a, b, **keywords).tobytes().hex())


@pytest.mark.parametrize("name", ["exact", "crt5", "int8x3"])
def test_products_of_precisions_without_float32_sums(folder: Path, name: Any) -> None:
    done = tf32dtype("--precision", name, "products.py", folder=folder)
    lines = done.stdout.split()
    assert lines[:2] == [product(precision=name)] * 2
    wide = td.matmul(A.astype(float), A.astype(float), precision=name)
    assert lines[2] == wide.tobytes().hex()
    assert f"ran in {name}" in done.stderr


def test_products_obey(folder: Path) -> None:
    lines = tf32dtype(
        "--precision", "bf16", "products.py", folder=folder
    ).stdout.split()
    wanted = product(precision="bf16")
    assert lines[:2] == [wanted, wanted]
    assert lines[2] == (A.astype(float) @ A).tobytes().hex()
    long = tf32dtype("--precision=BF16_BF16_F32", "products.py", folder=folder)
    assert long.stdout.split() == lines
    other = afresh(
        "--precision", "f32", "products.py", folder=folder,
        TF32DTYPE_MATMUL_PRECISION="bf16",
    )  # fmt: skip
    assert other.stdout.split()[0] == product(precision="f32")


def test_options(folder: Path) -> None:
    def first(*options: str) -> list[str]:
        done = tf32dtype(*options, "products.py", folder=folder)
        return [*done.stdout.split()]

    down = first("--precision", "tf32", "--rounding", "toward_zero")[0]
    assert down == product(precision="tf32", rounding="toward_zero")
    rows = first("--precision", "fp8_e4m3", "--scale", "row")[0]
    assert rows == product(precision="fp8_e4m3", scale="row")
    split = first("--precision", "bf16x3", "--special-values", "saturate")[0]
    assert split == product(precision="bf16x3", special_values="saturate")
    _, _, double, complex_ = first("--precision", "bf16", "--float64", "--complex64")
    with td.matmul_precision("bf16", float64=True, complex64=True):
        assert double == (A.astype(float) @ A).tobytes().hex()
        assert complex_ == ((1 + 1j) * A @ A).tobytes().hex()


def test_the_program_is_as_python_runs_it(folder: Path) -> None:
    assert "typed" in as_python_runs_it(folder, "world.py")
    inner = folder / "inner"
    inner.mkdir()
    (inner / "world.py").write_text(WORLD)
    assert str(inner) in as_python_runs_it(folder, "inner/world.py", "x")
    (folder / "link.py").symlink_to(inner / "world.py")
    as_python_runs_it(folder, "link.py")
    as_python_runs_it(folder, inner / "world.py", PYTHONSAFEPATH="1")


def test_a_program_on_standard_input_is_as_python_runs_it(folder: Path) -> None:
    program = (
        "import sys, __main__\nimport world_of_it\n"
        "print(sys.argv, __name__, __file__, sys.stdin.read() == '')\n"
        "print(__main__.__dict__ is globals())\n{}"
    )
    (folder / "world_of_it.py").write_text("print('imported')\n")
    for end in ("raise SystemExit(3)", "1 / 0", "1 +"):
        options = {"cwd": folder, "input": program.format(end)}
        wanted = interpreters.python("-", "a", "-b", **options)
        words = ("-m", "tf32dtype", "run", "--precision", "bf16", "--quiet", "-")
        done = forks.python(*words, "a", "-b", **options)
        assert (done.returncode, done.stdout) == (wanted.returncode, wanted.stdout)
        assert done.stderr.splitlines()[-1:] == wanted.stderr.splitlines()[-1:]
    words = ("-m", "tf32dtype", "report", "--precision", "bf16", "-")
    done = forks.python(*words, cwd=folder, input=PRODUCTS)
    assert "<stdin>:4" in done.stdout
    words = ("tune", "--check", "regex:.", "--tolerance", "1", "-")
    done = forks.python("-m", "tf32dtype", *words, cwd=folder, input=PRODUCTS)
    assert (done.returncode, done.stdout) == (2, "")
    assert "must be a file" in done.stderr


def test_a_module_is_as_python_runs_it(folder: Path) -> None:
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    text = "import sys; print(sys.argv, sys.path[0], __name__, __package__, __file__)"
    (package / "__main__.py").write_text(text)
    (package / "part.py").write_text(text + "; from . import __name__ as n; print(n)")
    assert "package" in as_python_runs_it(folder, "-m", "package", "-m", "--json", "-1")
    assert "package" in as_python_runs_it(folder, "-m", "package.part", "x")


def test_all_words_after_its_name_are_its_own(folder: Path) -> None:
    words = ["-1", "-inf", "--json", "--precision", "f32", "-m", "--", "-h", "", " x"]
    assert str(words)[1:-1] in as_python_runs_it(folder, "world.py", *words)
    done = tf32dtype("--precision", "bf16", "--", "world.py", "--", "x", folder=folder)
    assert "['world.py', '--', 'x']" in done.stdout


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.exit(7)",
        "import sys; sys.exit('a message')",
        "raise SystemExit",
        "import os; os._exit(3)",
        "import sys; sys.stdout.close()",
        "import sys; print('x'); sys.stdout = None",
        "import atexit, __main__ as m; f = 1; atexit.register(lambda: print(m.f))",
        "import threading, time, sys\nf = 1\ndef work():\n    time.sleep(0.2)\n"
        "    print(sys.modules['__main__'].f)\nthreading.Thread(target=work).start()",
        "raise OSError('gone')",
        "def f():\n    raise KeyError('x')\n\ndef g():\n    try:\n        f()\n"
        "    except KeyError as error:\n        raise ValueError from error\n\ng()",
        "import json; json.loads('{')",
        "import sys; sys.excepthook = lambda *a: print('hook', a[0]); 1 / 0",
        "raise KeyboardInterrupt",
        "x = = 3",
        "x = '\\0",
        "# coding: latin-1\nprint('\xe9')",
        "import bogus",
        "raise ExceptionGroup('several', [ValueError(1), OSError(2)])",
    ],
)
def test_how_it_ends(code: str, folder: Path) -> None:
    (folder / "ends.py").write_bytes(code.encode("latin-1"))
    wanted = python("ends.py", folder=folder)
    words = ("--precision", "bf16", "--quiet", "ends.py")
    got = tf32dtype(*words, folder=folder, tear_down=True)
    # Python ends by the signal itself.
    code_wanted = {-signal.SIGINT: 130}.get(wanted.returncode, wanted.returncode)
    assert (got.returncode, got.stdout) == (code_wanted, wanted.stdout)
    assert got.stderr == wanted.stderr


def test_a_precision_behind_the_program_is_its_own(folder: Path) -> None:
    done = tf32dtype("ends.py", "--precision", "bf16", folder=folder)
    assert done.returncode == 2
    assert "before the program" in done.stderr
    assert "tf32dtype run --precision NAME ends.py" in done.stderr


def test_its_own_precision_comes_first(folder: Path) -> None:
    (folder / "own.py").write_text(
        PRODUCTS + "import tf32dtype as td\nwith td.matmul_precision('tf32'):\n"
        "    print((a @ a).tobytes().hex())\n"
        "td.set_matmul_precision(None)\nprint((a @ a).tobytes().hex())\n"
    )
    *_, inside, after = tf32dtype(
        "--precision", "bf16", "own.py", folder=folder
    ).stdout.split()
    assert inside == product(precision="tf32")
    assert after == product()


def test_what_is_wrong_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for program in ("missing.py", "missing/x.py", "."):
        assert program in complaint(folder, "--precision", "bf16", program)
    for module in ("missing", "missing.x", "..", ""):
        complaint(folder, "--precision", "bf16", "-m", module)
    monkeypatch.chdir(folder)
    bf16 = ("--precision", "bf16")
    for words, said in (
        (
            ("--precision", "bogus", "world.py"),
            "precision must be one of those in `tf32dtype run --help`; got 'bogus'",
        ),
        ((*bf16, "--rounding", "toward_zero", "world.py"), "toward_zero"),
        ((*bf16, "--scale", "column", "world.py"), "column"),
        ((*bf16, "--bogus", "world.py"), "--bogus"),
        (("world.py",), "--precision"),
        (bf16, "script.py"),
        ((*bf16, "--json", ".", "world.py"), "."),
        ((), "script.py"),
    ):
        assert said in command_line.complaint(capsys, "run", *words)


def test_roundings_of_exact_results(folder: Path) -> None:
    found = set()
    for rounding in get_args(ExactRounding):
        words = ("--precision", "exact", "--rounding", rounding)
        line, *_ = tf32dtype(*words, "products.py", folder=folder).stdout.split()
        assert line == product(precision="exact", rounding=rounding)
        found.add(line)
    assert len(found) > 2


def test_help() -> None:
    done = tf32dtype("--help", folder=Path.cwd())
    assert done.returncode == 0
    assert "--precision" in done.stdout
    assert "bf16x9" in done.stdout
    assert "--rounding " + "|".join(get_args(ExactRounding)) in done.stdout
    assert "--strict" in done.stdout
