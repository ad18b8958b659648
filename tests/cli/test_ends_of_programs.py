"""`tf32dtype run` and `report` at the end of a program, after anything it did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import forks
from tests.support.command_line import on_a_terminal
from tests.support.interpreters import python
from tf32dtype import _core

if not _core.blas_available():
    pytest.skip("needs Linux on x86-64 or AArch64", allow_module_level=True)
pytestmark = pytest.mark.once

PRODUCTS = """
import os, sys, threading, time
import numpy as np
a = np.ones((20, 20), np.float32)
a @ a
"""
COMMANDS = {
    "run": ("run", "--precision", "bf16"),
    "report": ("report", "--precision", "bf16"),
}
TOLD = {"run": "tf32dtype: ", "report": "ends.py: "}


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def end(
    folder: Path, command: str, code: str, *options: str, tear_down: bool = True
) -> Any:
    """Run a program that ends with this code, and return how the process ended."""
    (folder / "ends.py").write_text(PRODUCTS + code + "\n")
    words = (*COMMANDS[command], *options, "ends.py")
    return forks.python("-m", "tf32dtype", *words, cwd=folder, tear_down=tear_down)


def times_told(command: str, done: Any) -> int:
    return int((done.stdout + done.stderr).count(TOLD[command]))


@pytest.mark.parametrize("ending", ["sys.exit(0)", "sys.exit(3)", "1 / 0", "pass"])
@pytest.mark.sampled(5)
def test_a_forked_child_tells_nothing(
    command: str, ending: str, tmp_path: Path
) -> None:
    code = (
        f"pid = os.fork()\nif pid == 0:\n    {ending}\n"
        "else:\n    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        "    open('there', 'w').write(str(os.path.exists('o.json')))"
    )
    done = end(tmp_path, command, code, "--json", "o.json")
    assert done.returncode == 0
    assert times_told(command, done) == 1
    code_of_child = {"sys.exit(3)": "3", "1 / 0": "1"}.get(ending, "0")
    assert done.stdout.split()[0] == code_of_child
    assert (tmp_path / "there").read_text() == "False"
    json.loads((tmp_path / "o.json").read_text())


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("sys.exit('')", 1),
        ("import asyncio; raise asyncio.CancelledError", 1),
        ("raise GeneratorExit('x')", 1),
        ("class Own(BaseException): pass\nraise Own", 1),
    ],
)
def test_how_it_ends(code: str, wanted: int, tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text(PRODUCTS + code + "\n")
    plain = python("ends.py", cwd=tmp_path)
    for command in COMMANDS:
        done = end(tmp_path, command, code, "--json", f"{command}.json")
        assert done.returncode == plain.returncode == wanted
        assert plain.stderr in done.stderr
        assert "_cli" not in done.stderr
        assert times_told(command, done) == 1
        json.loads((tmp_path / f"{command}.json").read_text())


@pytest.mark.parametrize(
    "wait",
    [
        "threading.Thread(target=work).start()",
        "from concurrent.futures import ThreadPoolExecutor as Pool\n"
        "pool = Pool(); pool.submit(work)",
    ],
)
@pytest.mark.sampled(2)
def test_interrupted_while_threads_work(
    command: str, wait: str, tmp_path: Path
) -> None:
    code = (
        # shells may ignore it
        "import signal; signal.signal(2, signal.default_int_handler)\n"
        "def work():\n    time.sleep(0.5)\n    os.kill(os.getpid(), 2)\n"
        f"    time.sleep(300)\n{wait}"
    )
    done = end(tmp_path, command, code, "--json", "o.json")
    assert done.returncode == 130
    assert times_told(command, done) == 1
    json.loads((tmp_path / "o.json").read_text())


def test_a_pool_that_nobody_shuts_down(command: str, tmp_path: Path) -> None:
    """End the threads of a pool when Python ends."""
    code = (
        "from concurrent.futures import ThreadPoolExecutor as Pool\n"
        "pool = Pool(1); pool.submit(print, 'done')"
    )
    done = end(tmp_path, command, code)
    assert done.returncode == 0
    assert done.stdout.startswith("done\n")
    assert times_told(command, done) == 1


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("sys.stderr.close()", {"report"}),
        ("os.close(2)", {"report"}),
        ("sys.stderr = None", {"run", "report"}),
        ("sys.stdout.close()", {"run", "report"}),
        ("os.close(1)", {"run", "report"}),
        ("sys.stdout = open(sys.stdout.detach().fileno(), 'w')", {"run", "report"}),
        ("os.close(1); os.close(2)", set()),
        ("sys.stdout.close(); sys.stderr.close()", set()),
    ],
)
@pytest.mark.parametrize("exits", [0, 7])
@pytest.mark.sampled(6)
def test_closed_streams(
    command: str, code: str, told: set[str], exits: int, tmp_path: Path
) -> None:
    done = end(tmp_path, command, f"{code}\nsys.exit({exits})", "--json", "o.json")
    assert done.returncode == exits
    assert times_told(command, done) == (command in told)
    assert "Traceback" not in done.stderr
    json.loads((tmp_path / "o.json").read_text())


def test_a_folder_that_is_gone(command: str, tmp_path: Path) -> None:
    for exits in (0, 7):
        (tmp_path / "gone").mkdir()
        code = f"import shutil; shutil.rmtree('gone'); sys.exit({exits})"
        done = end(tmp_path, command, code, "--json", "gone/o.json", tear_down=False)
        assert done.returncode == (exits or 1)
        assert times_told(command, done) == 1
        (line,) = [x for x in done.stderr.splitlines() if "o.json" in x]
        assert line.startswith(f"tf32dtype {command}: ")
        assert line.endswith("o.json: No such file or directory")


# -- files that are not regular --------------------------------------------------------


def test_a_pipe_is_written_and_stays(command: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        done = end(tmp_path, command, "", "--json", "pipe", tear_down=False)
        assert done.returncode == 0
        json.loads(reader.communicate()[0])
    assert pipe.is_fifo()


@pytest.mark.sampled(2)
def test_devices(command: str, tmp_path: Path) -> None:
    quietly = ("--quiet", "--json")
    done = end(tmp_path, command, "", *quietly, "/dev/null", tear_down=False)
    assert done.returncode == 0
    assert Path("/dev/null").is_char_device()
    done = end(tmp_path, command, "print(1)", *quietly, "/dev/stdout")
    one, record = done.stdout.split("\n", 1)
    assert one == "1"
    json.loads(record)
    if os.path.exists("/dev/full"):
        done = end(tmp_path, command, "", *quietly, "/dev/full")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"tf32dtype {command}: /dev/full: No space")


@pytest.mark.sampled(2)
def test_standard_output_in_a_file(command: str, tmp_path: Path) -> None:
    """Append to standard output in a file without losing the program's lines."""
    (tmp_path / "ends.py").write_text(
        PRODUCTS + "import atexit\nprint(1)\natexit.register(print, 2)\n"
    )
    words = (*COMMANDS[command], "--quiet", "--json", "/dev/stdout", "ends.py")
    with open(tmp_path / "out", "w") as out:
        process = forks.start(
            [sys.executable, "-m", "tf32dtype", *words],
            stdin=0, stdout=out.fileno(), stderr=2, cwd=tmp_path, tear_down=True,
        )  # fmt: skip
        assert process.wait() == 0
    one, *record, two = (tmp_path / "out").read_text().splitlines()
    assert (one, two) == ("1", "2")
    json.loads("\n".join(record))


# -- modules ---------------------------------------------------------------------------

AFTER = """
import atexit
np.linalg.solve(np.eye(3), np.eye(3))
before = set(sys.modules)
atexit.register(lambda: open("after", "w").write(str({*sys.modules} - before)))
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "options",
    [
        ("run", "--precision", "bf16", "--arithmetic", "bf16"),
        ("report", "--device", "H100", "--html", "o.html"),
        ("report", "--arithmetic", "bf16", "--html", "o.html"),
    ],
)
@pytest.mark.parametrize("terminal", [False, True])
def test_nothing_is_imported_after_the_program(
    options: tuple[str, ...], terminal: bool, tmp_path: Path
) -> None:
    """Import nothing after the program, as Python would search the program's folder."""
    (tmp_path / "ends.py").write_text(PRODUCTS + AFTER)
    words = (*options, "--json", "o.json", "ends.py")
    if terminal:
        on_a_terminal(80, *words, cwd=tmp_path, errors_too=True)
    else:
        done = forks.python("-m", "tf32dtype", *words, cwd=tmp_path)
        assert done.returncode == 0, done
    assert (tmp_path / "after").read_text() == "set()"


def test_files_named_as_modules(command: str, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    for name in ("html", "linecache", "rich", "tempfile", "textwrap"):
        (tmp_path / "inner" / f"{name}.py").write_text("1 / 0\n")
    (tmp_path / "inner" / "ends.py").write_text(PRODUCTS)
    words = (*COMMANDS[command], "--json", "o.json", "inner/ends.py")
    # `report` imports the most modules. A new process has not imported any of them.
    run = python if command == "report" else forks.python
    done = run("-m", "tf32dtype", *words, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("Error")) == (0, 0)
