"""`tf32dtype tune` with programs in new processes."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support import forks, interpreters
from tf32dtype import _core
from tf32dtype._base.journal import Journal
from tf32dtype._programs.plans import read_plan
from tf32dtype._programs.tune.checks import digest

if not (_core.blas_available() and _core.frames_are_known()):
    pytest.skip("needs Linux, and CPython 3.11 to 3.14", allow_module_level=True)
pytestmark = pytest.mark.once

COUNT, HEAVY = 10, 6
#: Ten products, one of which causes the loss.
TEN = "\n".join(
    [
        "import numpy as np",
        "rng = np.random.default_rng(0)",
        f"a = rng.standard_normal(({COUNT}, 20, 20)).astype(np.float32)",
        *(f"p{i} = a[{i}] @ a[0]" for i in range(COUNT)),
        f"parts = [{', '.join(f'p{i}' for i in range(COUNT))}]",
        f"weights = [1000 if i == {HEAVY} else 1 for i in range({COUNT})]",
        "np.save('out.npy', sum(w * p for w, p in zip(weights, parts)))",
    ]
)
TOLERANCE = 1e-4


def tune(folder: Path, *words: object) -> Any:
    return forks.python(*forks.FORKING, "tune", *words, cwd=folder)


def complaint(folder: Path, *words: object) -> str:
    """Return the only line on standard error; the exit code is 2, without a plan."""
    done = tune(folder, *words)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("tf32dtype tune: ")
    assert not list(folder.glob("*.toml")) + list(folder.glob("*.part"))
    return str(done.stderr)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("ten")
    (folder / "ten.py").write_text(TEN)
    done = tune(
        folder, "ten.py", "--check", "file:out.npy", "--tolerance", TOLERANCE,
        "--precisions", "bf16",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder, done


def precisions(path: Path) -> dict[str, str | None]:
    """Return the precisions of a plan by lines of source."""
    found = read_plan(str(path)).call_sites
    return {site.user.text: site.precision for site in found if site.user}


def exhaustive() -> set[int]:
    """Find the largest set of products in bf16 that passes, of all 1024 sets."""
    a = np.random.default_rng(0).standard_normal((COUNT, 20, 20)).astype(np.float32)
    own = [x @ a[0] for x in a]
    low = [td.matmul(x, a[0], precision="bf16") for x in a]
    weights = [1000 if i == HEAVY else 1 for i in range(COUNT)]

    def answer(lowered: set[int]) -> Any:
        parts = [low[i] if i in lowered else own[i] for i in range(COUNT)]
        return sum(w * p for w, p in zip(weights, parts, strict=True))

    reference = answer(set())
    passing = [
        chosen
        for count in range(COUNT + 1)
        for chosen in map(set, itertools.combinations(range(COUNT), count))
        if np.max(np.abs(answer(chosen) - reference))
        <= TOLERANCE * np.max(np.abs(reference))
    ]
    most = max(map(len, passing))
    (only,) = [chosen for chosen in passing if len(chosen) == most]
    return only


@pytest.mark.exhaustive
def test_it_finds_what_exhaustive_search_finds(tuned: tuple[Path, Any]) -> None:
    folder, done = tuned
    chosen = exhaustive()
    assert chosen == set(range(COUNT)) - {HEAVY}
    assert precisions(folder / "plan.toml") == {
        f"p{i} = a[{i}] @ a[0]": "bf16" if i in chosen else None for i in range(COUNT)
    }
    (runs,) = [x for x in done.stdout.splitlines() if x.endswith(" runs")]
    assert int(runs.split()[-2]) <= 15 < 2**COUNT / 3


def test_it_tells(tuned: tuple[Path, Any]) -> None:
    _, done = tuned
    title, header, *_ = done.stdout.splitlines()
    assert title == "Lowest sufficient precision of each call site"
    assert header.split() == [
        *"call site precision % work SNR dB routine dtype".split()
    ]
    assert "Estimated speedup on B200 at peak rates: " in done.stdout
    assert "Estimated speedup on H100 at peak rates: " in done.stdout
    assert done.stderr == ""


def test_the_folder_is_as_it_was(tuned: tuple[Path, Any]) -> None:
    folder, _ = tuned
    assert {x.name for x in folder.iterdir()} == {
        "ten.py", "plan.toml", "plan.toml.journal"
    }  # fmt: skip


def test_the_plan_keeps_its_promise_to_the_bit(
    tuned: tuple[Path, Any], tmp_path: Path
) -> None:
    folder, _ = tuned
    (tmp_path / "ten.py").write_text("# an edit\n\n" + TEN)
    run = "-m", "tf32dtype", "run", "--plan", folder / "plan.toml", "ten.py"
    done = interpreters.python(*run, cwd=tmp_path)
    assert done.returncode == 0
    assert f"{COUNT - 1} gemm" in done.stderr
    answer = np.load(tmp_path / "out.npy").astype(np.float64)
    facts = dict(read_plan(str(folder / "plan.toml")).check)
    assert facts["final"] is True
    told = digest({"": answer.ravel()})
    assert facts["answer"] == told


#: The sixth run, a trial of the search, does not end before the products.
ENDLESS = """
import os, time
if counter := os.environ.get("RUNS"):
    with open(counter, "a") as file:
        file.write("x")
        file.flush()
        if file.tell() == 6:
            time.sleep(600)
"""


def test_a_resumed_search_ends_as_one_that_was_not_cut_off(
    tuned: tuple[Path, Any], tmp_path: Path
) -> None:
    folder, _ = tuned
    here = tmp_path / "here"
    here.mkdir()
    (here / "ten.py").write_text(ENDLESS + TEN)
    words = [
        "ten.py", "--check", "file:out.npy", "--tolerance", TOLERANCE,
        "--precisions", "bf16",
    ]  # fmt: skip
    runs, stderr = tmp_path / "runs", tmp_path / "stderr"
    with stderr.open("w") as errors:
        process = forks.start(
            [sys.executable, *forks.FORKING, "tune", *map(str, words)],
            stdin=0, stdout=errors.fileno(), stderr=errors.fileno(), cwd=here,
            env=interpreters.variables() | {"RUNS": str(runs)},
        )  # fmt: skip
    for _ in range(6000):
        if runs.exists() and runs.stat().st_size == 6:
            break
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(60) == 4
    told = stderr.read_text()
    assert "plan.toml is not final" in told
    assert "Traceback" not in told
    assert dict(read_plan(str(here / "plan.toml")).check)["final"] is False
    with (here / "plan.toml.journal").open("a") as file:
        file.write('{"key": "cut o')
    done = tune(here, *words, "--resume", "--jobs", 2)
    assert (done.returncode, done.stderr) == (0, "")
    found = precisions(here / "plan.toml")
    assert found == precisions(folder / "plan.toml")
    (line,) = [x for x in done.stdout.splitlines() if x.endswith(" runs")]
    assert int(line.split()[-2]) < 13


@pytest.mark.exhaustive
def test_time_is_up(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import os, time, numpy as np\n"
        "x = np.ones((20, 20), np.float32) * np.float32(1.001)\n"
        "y = x @ x\n"
        # With any other arithmetic, the program does not end.
        "if y[0, 0] == np.float32(20): time.sleep(600)\n"
        "print(y[0, 0])\n"
    )
    start = time.monotonic()
    words = ["slow.py", "--check", "regex:.+", "--tolerance", 1]
    done = tune(tmp_path, *words, "--precisions", "bf16", "--time-limit", 3)
    assert time.monotonic() - start < 30
    assert done.returncode == 4, done.stderr
    assert "plan.toml is not final, but the best so far" in done.stderr
    assert list(precisions(tmp_path / "plan.toml").values()) == [None]
    (tmp_path / "plan.toml").unlink()
    done = tune(tmp_path, *words, "--time-limit", 0.01)
    assert done.returncode == 4
    assert done.stderr == "tf32dtype tune: time is up before any trial: no plan\n"
    assert not (tmp_path / "plan.toml").exists()


FAILS = """
import numpy as np
x = np.full((20, 20), 1.001, np.float32)
y = x @ x
z = x @ x.T.copy()
assert y[0, 0] != 20
print(np.nan if z[0, 0] == 20 else z[0, 0])
"""


def test_failures_and_nan_are_trials_that_fail(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text(FAILS)
    done = tune(
        tmp_path, "--check", "regex:.+", "--tolerance", "0.5", "--precisions", "bf16",
        "--quiet", "fails.py",
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert set(precisions(tmp_path / "plan.toml").values()) == {None}
    records = Journal(str(tmp_path / "plan.toml.journal"), "tune").records
    why = " ".join(record.get("why", "") for record in records)
    assert "exit code 1: AssertionError" in why
    assert "NaN" in why


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("import random; print(random.random())", "must be deterministic"),
        ("print(1); raise SystemExit(3)", "got none: exit code 3"),
        ("print('nan')", "the result must be finite; got NaN or Inf"),
        ("print(1)", "must make matrix multiplications to tune"),
        ("import numpy as np; x = np.ones((9, 9)); x @ x; print(1)",
         "Use --float64 or --complex64 to include float64"),
    ],
)  # fmt: skip
def test_what_cannot_be_tuned(tmp_path: Path, program: str, told: str) -> None:
    (tmp_path / "program.py").write_text(program)
    words = "program.py", "--check", "regex:.+", "--tolerance", "1e-3"
    assert told in complaint(tmp_path, *words)


def test_its_trials_are_processes_of_their_own(tmp_path: Path) -> None:
    """Run trials in new processes without forks."""
    log = tmp_path / "log"
    (tmp_path / "program.py").write_text(
        "import json, os, sys\n"
        f"with open({str(log)!r}, 'a') as file:\n"
        "    words = sys.orig_argv[1:], os.getsid(0) == os.getpid(), sys.stdin.read()\n"
        "    print(json.dumps(words), file=file)\n"
        "print(1)\n"
    )
    words = "program.py", "--check", "regex:.+", "--tolerance", "1e-3", "--", "x"
    done = interpreters.python("-m", "tf32dtype", "tune", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "must make matrix multiplications to tune" in done.stderr
    runs = [json.loads(line) for line in log.read_text().splitlines()]
    assert runs[:2] == 2 * [[["program.py", "x"], True, ""]]
    (report,) = runs[2:]
    assert report[0][:3] == ["-m", "tf32dtype", "report"]
    assert report[0][-2:] == ["program.py", "x"]
    assert report[1:] == [True, ""]


def test_wrong_words(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("")
    check = ["--check", "regex:.+"]
    for words, told in (
        (["x.py"], "--check and --tolerance must be given"),
        (
            ["x.py", *check, "--tolerance", "-1"],
            "--tolerance must be 0 or more; got -1",
        ),
        (["y.py", *check, "--tolerance", "1"], "an existing file; got y.py"),
        (["x.py", "--check", "out", "--tolerance", "1"], "--check must be file:PATH"),
        (["x.py", *check, "--tolerance", "1", "--precisions", "bf17"], "'bf17'"),
        (["x.py", *check, "--tolerance", "1", "--out", "a/b.toml"], "a does not exist"),
        (
            ["x.py", *check, "--tolerance", "1", "--resume"],
            "--resume must find a journal",
        ),
        (["x.py", *check, "--tolerance", "1", "--color"], "--color"),
    ):
        assert told in complaint(tmp_path, *words)


@pytest.mark.exhaustive
def test_words_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text(
        "import sys, numpy as np\n"
        "x = np.ones((9, 9)) / 3\n"
        "print(x.dot(x)[0, 0], sys.argv[1:] == ['--check', '-1'])\n"
    )
    done = tune(
        tmp_path, "words.py", "--check", r"regex:(\S+) True", "--tolerance", "1e-4",
        "--absolute", "--float64", "--precisions", "bf16,bf16x3", "--out", "other.toml",
        "--", "--check", "-1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert list(precisions(tmp_path / "other.toml").values()) == ["bf16x3"]
    assert read_plan(str(tmp_path / "other.toml")).float64
    assert "times FP64" in done.stdout
    done = tune(
        tmp_path, "--check", r"regex:(\S+) True", "--tolerance", "1", "words.py",
        "--check", "-1",
    )  # fmt: skip
    assert done.returncode == 2  # only float64: nothing to tune
    assert "must make matrix multiplications" in done.stderr


# -- operands ------------------------------------------------------------------------

LAYERED = """import numpy as np
rng = np.random.default_rng(0)
names = [f"layers.{i}.weight" for i in range(6)]
weights = {name: rng.standard_normal((16, 16)).astype("f") for name in names}
x = rng.standard_normal((8, 16)).astype("f")
def linear(x, w):
    return x @ w
shares = [1, 1, 1000, 1, 1, 1]
products = [linear(x + i, w) for i, w in enumerate(weights.values())]
np.save("out.npy", sum(share * y for share, y in zip(shares, products)))
"""


def test_one_layer_needs_more_bits(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(LAYERED)
    done = tune(
        tmp_path, "net.py", "--check", "file:out.npy", "--tolerance", 1e-4,
        "--precisions", "bf16,bf16x3",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    plan = read_plan(str(tmp_path / "plan.toml"))
    found = {site.operand.name: site for site in plan.call_sites if site.operand}
    assert len(found) == len(plan.call_sites) == 6
    precisions = {name: site.precision for name, site in found.items()}
    assert precisions.pop("layers.2.weight") == "bf16x3"
    assert set(precisions.values()) == {"bf16"}
    assert "[3 of 6: layers.2.weight, 16 x 16]" in done.stdout
