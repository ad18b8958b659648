"""`tf32dtype run` and `tf32dtype blas`: the reached products, and the reports."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.programs.blas.test_slots import CALL, DECLARED, blas, built
from tests.support import forks, interpreters
from tf32dtype import _core

if not _core.blas_available():
    pytest.skip("needs Linux on x86-64 or AArch64", allow_module_level=True)
pytestmark = pytest.mark.once

HELPER = """
def far(x):
    return x.dot(x)
"""
MATRIX = """
import numpy as np
x = np.linspace(-1, 1, 900, dtype=np.float32).reshape(30, 30)
"""
# One product per line; the output has the caller and whether it was rounded.
PROGRAM = (
    MATRIX
    + """
import helper

def inner(x):
    return x.dot(x)

def outer(x):
    return inner(x)

class Model:
    def product(self):
        return x.dot(x)

for name, y in {
    "direct": x.dot(x), "inner": inner(x), "outer": outer(x), "far": helper.far(x),
    "method": Model().product(), "operator": x @ x,
}.items():
    print(name, y.tobytes().hex() == ROUNDED)
"""
)
ELSEWHERE = (
    MATRIX
    + """
d = x.astype(np.float64)
d.dot(d), (d + 1j * d).dot(d), (x + np.complex64(1j) * x).dot(x), x[0].dot(x[0])
np.linalg.solve(d + np.eye(30), d), np.einsum("ij,jk", x, x), np.fft.fft(d)
np.arange(9).reshape(3, 3) @ np.arange(3)
"""
)
CHILD = MATRIX + "print(x.dot(x).tobytes().hex() == ROUNDED, flush=True)\n"
X = np.linspace(-1, 1, 900, dtype=np.float32).reshape(30, 30)
ROUNDED = td.matmul(X, X, precision="bf16").tobytes().hex()


def tf32dtype(folder: Path, *words: object) -> Any:
    return forks.python("-m", "tf32dtype", *words, cwd=folder)


def in_a_fresh_interpreter(folder: Path, *words: object) -> Any:
    return interpreters.python("-m", "tf32dtype", *words, cwd=folder)


def emulated(folder: Path, *options: str, program: str = "program.py") -> set[str]:
    """Return the names of the emulated products."""
    done = tf32dtype(folder, "run", "--precision", "bf16", *options, program)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    return {name for name, yes in lines if yes == "True"}


def summary(folder: Path, *options: str, program: str = "elsewhere.py") -> list[str]:
    """Return the lines on standard error."""
    done = tf32dtype(folder, "run", "--precision", "bf16", *options, program)
    assert done.returncode == 0, done.stderr
    return [*done.stderr.splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = {
        "program.py": PROGRAM, "helper.py": HELPER, "elsewhere.py": ELSEWHERE,
        "child.py": CHILD, "nothing.py": "print(1)\n",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(f"ROUNDED = {ROUNDED!r}\n{text}")
    return tmp_path


ALL = {"direct", "inner", "outer", "far", "method", "operator"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ([], ALL),
        (["--no-blas"], {"operator"}),
        (["--only", "program.py"], ALL),
        (["--only", "helper.py"], {"far"}),
        (["--only", "program.py:inner"], {"inner", "outer"}),
        (["--only", "program.py:outer"], {"outer"}),
        (["--only", "program.py:Model.product"], {"method"}),
        (["--only", "program.py:inner", "--only", "helper.py"],
         {"inner", "outer", "far"}),
        (["--except", "program.py"], set()),
        (["--except", "helper.py"], ALL - {"far"}),
        (["--except", "program.py:outer"], ALL - {"outer"}),
        (["--only", "program.py", "--except", "program.py:inner"],
         ALL - {"inner", "outer"}),
        (["--min-size", "30"], ALL),
        (["--min-size", "31"], set()),
    ],
)  # fmt: skip
def test_where(options: list[str], wanted: set[str], folder: Path) -> None:
    """Emulate in a region, and in functions that the region calls."""
    assert emulated(folder, *options) == wanted


def test_the_summary(folder: Path) -> None:
    first, *others = summary(folder, program="program.py")
    assert re.fullmatch(
        r"tf32dtype: 6 matrix multiplications ran in bf16"
        r" \(100\.0 % of all multiply-adds\)",
        first,
    )
    assert others == ["  float32: 6 gemm"]


def test_unchanged_work(folder: Path) -> None:
    first, *others = summary(folder)
    assert first == (
        "tf32dtype: no matrix multiplication ran in bf16; the results are unchanged"
    )
    for part, remedy in (
        ("float64 matrix multiplications", "--float64"),
        ("complex64 matrix multiplications", "--complex64"),
        ("complex128 matrix multiplications", "--float64 --complex64"),
        ("float32 dot products and norms", "--dots"),
        ("LAPACK (dgesv)", "--lapack"),
        ("np.einsum without optimize", "optimize=True"),
        ("np.matmul of int64", "float32"),
        ("np.fft of complex128", "FFT"),
    ):
        (line,) = [line for line in others if f"  unchanged: {part}, " in line]
        assert remedy in line
    assert len(others) == 8


@pytest.mark.skipif(not hasattr(_core, "count_call"), reason="an older build")
def test_dots_of_other_dtypes(folder: Path) -> None:
    (folder / "dots.py").write_text(
        MATRIX + "i = x.astype(int)\nnp.dot(i, i), np.dot(x, i.astype(np.int8))\n"
        "np.inner(x.astype(np.float16), x.astype(np.float16)), np.vdot(i, i > 0)\n"
        "np.dot(i.astype(object), i), np.dot(i, 3), np.dot(i > 0, i > 0)\n"
    )
    first, *others = summary(folder, program="dots.py")
    assert first.startswith("tf32dtype: 1 matrix multiplication ran in bf16")
    rest = "1 call, 0 s. Convert the operands to float32"
    assert {re.sub(r", \S+ s\.", ", 0 s.", line) for line in others[1:]} == {
        f"  unchanged: np.{name}, {rest}"
        for name in (
            "dot of int64",
            "inner of float16",
            "vdot of int64",
            "dot of object",
            "dot of bool",
        )
    }


def test_ffts_of_scipy(folder: Path) -> None:
    pytest.importorskip("scipy")
    (folder / "ffts.py").write_text(
        MATRIX + "import scipy.fft as f, scipy.fftpack\n"
        "f.fft(x), f.irfft(x), f.rfft(x), f.dct(x), f.dst(x), scipy.fftpack.rfft(x)\n"
    )
    lines = summary(folder, program="ffts.py")
    assert "  unchanged: scipy.fft, 6 calls. FFTs are not supported" in [
        re.sub(r", \S+ s\.", ".", line) for line in lines
    ]


def test_what_would_reach_it(folder: Path) -> None:
    first, *others = summary(folder, "--float64", "--complex64", "--dots")
    assert first.startswith("tf32dtype: 4 matrix multiplications ran in bf16 (100.0 %")
    assert {line.split(":")[0] for line in others[:4]} == {
        f"  {kind}" for kind in ("float32", "float64", "complex64", "complex128")
    }
    assert not any("unchanged: float" in line for line in others)


def test_without_blas(folder: Path) -> None:
    first, *others = summary(folder, "--no-blas", program="program.py")
    assert first.startswith("tf32dtype: 1 matrix multiplication ran in bf16 (16.7 %")
    assert any("Omit --no-blas" in line for line in others)


def test_region_of_a_program(folder: Path) -> None:
    first, *others = summary(folder, "--only", "helper.py", program="program.py")
    assert first.startswith("tf32dtype: 1 matrix multiplication ran in bf16 (16.7 %")
    assert any("excluded by --only" in line and "5 calls" in line for line in others)


def test_json(folder: Path) -> None:
    options = ["--json", "out.json", "--quiet", "--float64"]
    assert summary(folder, *options) == []
    record = json.loads((folder / "out.json").read_text())
    assert record["precision"] == "bf16"
    assert record["emulated"]["by_dtype_and_routine"] == [
        {"dtype": "float64", "routine": "gemm", "calls": 1, "multiply_adds": 27000}
    ]
    assert 0 < record["emulated"]["share_of_multiply_adds"] < 1
    unchanged = {one["work"]: one for one in record["unchanged"]}
    one = unchanged["complex64 matrix multiplications"]
    assert one["multiply_adds"] == 4 * 27000
    assert "--complex64" in one["remedy"]


def test_strict(folder: Path) -> None:
    def code(program: str, *options: str) -> int:
        words = ("run", "--precision", "bf16", "--strict", *options, program)
        return int(tf32dtype(folder, *words).returncode)

    assert code("program.py") == 0
    assert code("nothing.py") == code("elsewhere.py") == 3
    assert code("elsewhere.py", "--float64") == 0
    assert code("program.py", "--except", "program.py") == 3
    assert code("program.py", "--no-blas") == 0
    (folder / "fails.py").write_text("raise SystemExit(7)")
    assert code("fails.py") == 7


def test_a_program_that_raises(folder: Path) -> None:
    (folder / "raises.py").write_text(f"ROUNDED = {ROUNDED!r}\n{PROGRAM}1 / 0\n")
    done = in_a_fresh_interpreter(folder, "run", "--precision", "bf16", "raises.py")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert done.stderr.endswith(
        "tf32dtype: the program raised ZeroDivisionError: division by zero\n"
    )
    assert "bf16" not in done.stderr
    assert "_cli" not in done.stderr


def test_what_is_wrong_is_one_line(folder: Path) -> None:
    """Run nothing and keep files after an invalid option."""
    for options, part in (
        (["--only", "missing.py"], "an existing file; got 'missing.py'"),
        (["--except", "program.py:missing"], "got 'missing'"),
        (["--json", "missing/x.json"], "missing does not exist"),
        (["--json", "."], "."),
        (["--min-size", "-1"], "min_size must be"),
        (["--min-size", "x"], "--min-size"),
        (["--no-blas", "--lapack"], "--no-blas"),
        (["--rounding", "toward_zero"], "toward_zero"),
    ):
        before = {
            path: path.read_bytes() for path in folder.iterdir() if path.is_file()
        }
        words = ("run", "--precision", "bf16", *options, "program.py")
        done = tf32dtype(folder, *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert re.fullmatch(r"tf32dtype.*: .+\n", done.stderr), done.stderr
        assert part in done.stderr
        after = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        assert after == before


# -- other processes -------------------------------------------------------------------


def starts(folder: Path) -> None:
    """Write a program that starts a child and a process without products."""
    (folder / "starts.py").write_text(
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, 'child.py'])\n"
        "subprocess.run(['true'])\n"
    )


def test_children(folder: Path) -> None:
    starts(folder)
    words = ("run", "--precision", "bf16")
    done = tf32dtype(folder, *words, "starts.py")
    assert done.stdout == "True\n"
    told = done.stderr.splitlines()
    assert told[0].startswith(
        "tf32dtype: 1 matrix multiplication ran in bf16"
    )  # the child's
    assert not any(line.startswith("tf32dtype: python") for line in told)
    for options, obeys in (
        (["--no-children"], False),
        (["--no-blas"], False),
        (["--only", "starts.py"], False),
        (["--device", "H100"], False),  # the preloaded library has no models
        (["--quiet"], True),
    ):
        done = tf32dtype(folder, *words, *options, "starts.py")
        assert done.stdout == f"{obeys}\n"
        assert "tf32dtype: python" not in done.stderr
        assert bool(done.stderr) == (options != ["--quiet"])


@pytest.mark.parametrize(
    ("options", "work"),
    [
        (["exact"], "in child processes or inside matmul_precision(None)"),
        (["bf16", "--device", "H100"], "in child processes or inside matmul_precision"),
        (["crt10"], "by BLAS or in child processes"),
    ],
)
def test_children_that_cannot_use_the_precision(
    options: list[str], work: str, folder: Path
) -> None:
    starts(folder)
    text = f"{MATRIX}\nx @ x\n" + (folder / "starts.py").read_text()
    (folder / "starts.py").write_text(text)
    words = ("run", "--precision", *options)
    first, second, *others = tf32dtype(folder, *words, "starts.py").stderr.splitlines()
    assert first.endswith(f"ran in {options[0]} (50.0 % of all multiply-adds)")
    assert second == "  float32: 1 gemm"
    [line] = others
    assert line.startswith(f"  unchanged: float32 matrix multiplications {work}")
    assert "1 call, 2.7e+04 multiply-adds" in line
    for option in ("--no-children", "--quiet"):
        done = tf32dtype(folder, *words, option, "starts.py")
        assert "child" not in done.stderr
        assert done.stdout == "False\n"


def test_a_child_that_runs_the_command(folder: Path) -> None:
    command = ["-m", "tf32dtype", "run", "--precision", "exact", "child.py"]
    (folder / "runs.py").write_text(
        f"{MATRIX}\nx @ x\nimport subprocess, sys\n"
        f"subprocess.run([sys.executable, *{command}])\n"
    )
    done = tf32dtype(folder, *command[2:-1], "runs.py")
    all_of_one = "tf32dtype: 1 matrix multiplication ran in exact (100.0 %"
    assert done.stderr.count(all_of_one) == 2
    assert "unchanged" not in done.stderr


def test_products_that_emulated_precisions_leave_out(folder: Path) -> None:
    (folder / "leaves.py").write_text(f"{MATRIX}\nx.dot(x), (x + 0j) @ x\n")
    words = ("run", "--precision", "crt4", "--no-children", "leaves.py")
    _, *others = tf32dtype(folder, *words).stderr.splitlines()
    for dtype, line in zip(("float32", "complex64"), others, strict=True):
        assert line.startswith(f"  unchanged: {dtype} matrix multiplications by BLAS,")
        end = "crt4 is only for real products by NumPy's functions in this process"
        assert line.endswith(end)


def test_arithmetic_is_no_advice_for_exact(folder: Path) -> None:
    for name, lines in (("bf16", 3), ("exact", 2), ("crt4", 2)):
        done = tf32dtype(folder, "run", "--precision", name, "nothing.py")
        assert len(done.stderr.splitlines()) == lines


@pytest.mark.exhaustive
def test_children_of_multiprocessing(folder: Path) -> None:
    (folder / "pools.py").write_text(
        f"ROUNDED = {ROUNDED!r}\n{MATRIX}\nimport multiprocessing as m\n"
        "def work(_):\n    return x.dot(x).tobytes().hex() == ROUNDED\n"
        "if __name__ == '__main__':\n"
        "    for how in ('fork', 'spawn', 'forkserver'):\n"
        "        with m.get_context(how).Pool(1) as pool:\n"
        "            print(how, *pool.map(work, range(3)))\n"
    )
    done = in_a_fresh_interpreter(
        folder, "run", "--precision", "bf16", "--quiet", "pools.py"
    )
    assert done.stdout.splitlines() == [
        f"{how} True True True" for how in ("fork", "spawn", "forkserver")
    ], done.stderr


def test_a_child_that_imports_tf32dtype(folder: Path) -> None:
    """Use the scopes of a child that imports tf32dtype, and report all its products."""
    starts(folder)
    text = (folder / "child.py").read_text()
    (folder / "child.py").write_text(
        text + "import tf32dtype as td\nwith td.matmul_precision(None):\n"
        "    print(x.dot(x).tobytes().hex() == ROUNDED)\n"
        "print(x.dot(x).tobytes().hex() == ROUNDED)\n"
    )
    done = tf32dtype(folder, "run", "--precision", "bf16", "starts.py")
    assert done.stdout.split() == ["True", "False", "True"]
    assert done.stderr.startswith("tf32dtype: 2 matrix multiplications ran in bf16")
    assert (
        "float32 matrix multiplications inside matmul_precision(None), 1 call"
        in done.stderr
    )


@pytest.mark.parametrize(
    "end",
    [
        "pass",
        "1 / 0",
        "os._exit(3)",
        "os.execvp('true', ['true'])",
        "os.fork() and os._exit(0)",
        *(f"os.kill(os.getpid(), {number})" for number in (2, 6, 9, 15)),
    ],
)
@pytest.mark.sampled(5)
def test_nothing_stays_of_a_run(end: str, tmp_path: Path) -> None:
    """Leave no files in the folders of the system or in memory."""
    (tmp_path / "temporary").mkdir()
    (tmp_path / "ends.py").write_text(
        f"import os, resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n{end}"
    )

    def ours() -> set[Path]:
        rooms = [Path("/dev/shm"), tmp_path / "temporary"]
        return {path for room in rooms for path in room.glob("tf32dtype*")}

    before = ours()
    words = ("run", "--precision", "bf16", "ends.py")
    forks.python(
        "-m", "tf32dtype", *words, cwd=tmp_path, TMPDIR=str(tmp_path / "temporary")
    )
    assert ours() == before


def test_children_of_a_program_that_closes_its_files(folder: Path) -> None:
    starts(folder)
    text = "import os\nos.closerange(3, 256)\n" + (folder / "starts.py").read_text()
    (folder / "closes.py").write_text(text)
    done = tf32dtype(folder, "run", "--precision", "bf16", "closes.py")
    assert done.stdout == "True\n"
    assert done.stderr.startswith("tf32dtype: 1 matrix multiplication ran in bf16")


def test_the_variable_names_no_other_file(folder: Path) -> None:
    """Ignore a closed descriptor, whose number may have become another file's."""
    starts(folder)
    (folder / "replaces.py").write_text(
        "import os\n"
        "path = os.environ['TF32DTYPE_BLAS_COUNTS']\n"
        "with open('mine', 'wb') as file:\n"
        "    file.write(bytes(os.stat(path).st_size))\n"
        "    os.dup2(file.fileno(), int(os.path.basename(path)))\n"
        + (folder / "starts.py").read_text()
    )
    done = tf32dtype(folder, "run", "--precision", "bf16", "replaces.py")
    assert done.stdout == "True\n"
    # The child reports its own products.
    assert "matrix multiplications ran in bf16 (100.0 %" in done.stderr
    assert not any((folder / "mine").read_bytes())


MAIN = """
#include <stdio.h>
int main(void)
{
    float a[900], c[900];
    for (int i = 0; i < 900; i++) {
        a[i] = -1 + i * (2.0f / 899);
    }
    multiply(30, a, a, c);
    printf("%.9g %.9g\\n", c[0], a[0]);
    return 4;
}
"""


def test_a_program_of_c(tmp_path: Path) -> None:
    """Intercept an executable that calls BLAS; exit code and output are its own."""
    calls = DECLARED + CALL.replace("NAME", "multiply")
    library = blas(tmp_path)
    made = built(
        calls + MAIN, tmp_path / "main", "-DFUNCTION=sgemm_", library,
        f"-Wl,-rpath,{tmp_path}",
    )  # fmt: skip
    plain = subprocess.run([made], capture_output=True, text=True)
    assert (plain.returncode, plain.stdout) == (4, "7 -1\n")
    done = tf32dtype(tmp_path, "blas", "--precision", "bf16", made)
    assert done.returncode == 4
    first, of_a = map(float, done.stdout.split())
    assert of_a == -1
    # In column order, the product is the transpose, with the same first element.
    x = -1 + np.arange(900, dtype=np.float32) * np.float32(2 / 899)
    wanted = td.matmul(*[x.reshape(30, 30)] * 2, precision="bf16")[0, 0]
    assert first == wanted
    assert re.fullmatch(
        r"tf32dtype: main \(\d+\): 1 of 1 matrix multiplications ran in bf16"
        r" \(100\.0 % of all multiply-adds\)\n",
        done.stderr,
    )
    # Set variables by hand: no precision counts, an invalid one is reported.
    path = tf32dtype(tmp_path, "blas", "--path").stdout.strip()
    for variables, part in (
        (
            {"TF32DTYPE_MATMUL_PRECISION": "bf16"},
            "1 of 1 matrix multiplications ran in bf16",
        ),
        ({}, "0 of 1 matrix multiplications ran in a chosen precision"),
        ({"TF32DTYPE_MATMUL_PRECISION": "bogus"}, '"bogus" is not a precision; 0'),
        *(
            (
                {"TF32DTYPE_MATMUL_PRECISION": name},
                f'"{name}" is not a precision, and block formats are only for tf32dtype'
                " report and tf32dtype compare; 0 of 1",
            )
            for name in td.blocks.formats
        ),
        (
            {"TF32DTYPE_MATMUL_PRECISION": "bf16", "TF32DTYPE_BLAS": "dots,bogus"},
            'TF32DTYPE_BLAS must not have the option "bogus" with bf16; 0 of 1',
        ),
        (
            {"TF32DTYPE_MATMUL_PRECISION": "bf16", "TF32DTYPE_BLAS": "min_size=31"},
            "unchanged: 1 (below min_size)",
        ),
    ):
        done = subprocess.run(
            [made],
            capture_output=True,
            text=True,
            env={"LD_PRELOAD": path, **variables},
        )
        assert done.returncode == 4
        assert part in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1


def test_programs_without_products_say_nothing(tmp_path: Path) -> None:
    for program in (["true"], [sys.executable, "-c", "import numpy"]):
        done = tf32dtype(tmp_path, "blas", "--precision", "bf16", *program)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_wrong_words_of_blas(tmp_path: Path) -> None:
    for words, part in (
        (["--precision", "bogus", "true"], "precision must be one of"),
        (["--precision", "bf16", "no-such-program"], "no-such-program"),
        (["--precision", "bf16"], "--path"),
        (["--rounding", "bogus", "true"], "bogus"),
    ):
        done = tf32dtype(tmp_path, "blas", *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert re.fullmatch(r"tf32dtype.*: .+\n", done.stderr), done.stderr
        assert part in done.stderr


def test_the_path_is_a_file() -> None:
    path = in_a_fresh_interpreter(Path.cwd(), "blas", "--path").stdout
    assert Path(path.strip()).is_file()
    assert path.endswith("tf32dtype_blas.so\n")
