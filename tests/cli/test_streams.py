"""Each command with closed, full or unread standard streams."""

import itertools
import os

import numpy as np
import pytest

import tf32dtype as td
from tests.support import forks
from tf32dtype._cli import main as program

if not forks.AVAILABLE or not os.path.exists("/dev/full"):
    pytest.skip("needs forks and /dev/full", allow_module_level=True)
pytestmark = pytest.mark.once

X = np.arange(1, 82, dtype=np.float32).reshape(9, 9)
#: Arguments of each command that ends with 0 and prints to standard output.
COMMANDS = {
    "": [],
    "--help": ["--help"],
    "--version": ["--version"],
    "blas": ["blas", "--path"],
    "compare": ["compare", "x.npy", "x.npy", "--formats", "bf16"],
    "convert": ["convert", "x.npy", "o.safetensors", "--to", "bf16", "--force"],
    "diff": ["diff", "x.npy", "x.npy"],
    "demo": ["demo", "--help"],  # training takes seconds
    "formats": ["formats"],
    "formats --json": ["formats", "--json"],
    "check": ["check", "d.npy", "x.npy", "x.npy", "--unit", "float32"],
    "inspect": ["inspect", "1/3"],
    "inspect FILE": ["inspect", "x.npy"],
    "report": ["report", "--precision", "bf16", "silent.py"],
    "run": ["run", "--precision", "bf16", "silent.py"],
    "sizes": ["sizes", "7B"],
    "tune": [
        *("tune", "p.py", "--check", r"regex:(\S+)", "--tolerance", "1"),
        *("--precisions", "bf16"),
    ],
    "values": ["values", "fp4"],
}
#: Commands that pass the streams to a program unchanged.
OF_PROGRAMS = ("report", "run")
#: Lines of Python that change the stream with the number n.
CHANGES = {
    "closed": "os.close({n}); sys.{name} = sys.__{name}__ = None",
    "full": "os.dup2(os.open('/dev/full', os.O_WRONLY), {n})",
    "unread": "r, w = os.pipe(); os.dup2(w, {n}); os.close(r); os.close(w)",
}
STREAMS = {1: "stdout", 2: "stderr"}


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "d.npy", X @ X)
    product = "import numpy as np\na = np.ones((9, 9), 'f4')\nb = a @ a\n"
    (tmp_path / "silent.py").write_text(product)
    (tmp_path / "p.py").write_text(f"{product}print(float(b.sum()))\n")
    return tmp_path


def end(folder, words, *changes):
    """Run a command in a new process that ends as Python ends, and check the end."""
    lines = [
        "import os, signal, sys",
        "from tf32dtype._cli.main import main",
        *(CHANGES[how].format(n=n, name=STREAMS[n]) for n, how in changes),
        "sys.exit(main(sys.argv[1:]))",
    ]
    done = forks.python("-c", "\n".join(lines), *words, cwd=folder, tear_down=True)
    told = done.stdout + done.stderr
    assert "Traceback" not in told
    assert "Exception ignored" not in told
    return done


def test_every_command_is_tried():
    assert program._COMMANDS.keys() <= {name.partition(" ")[0] for name in COMMANDS}


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.sampled(8)
def test_standard_output(command, how, folder):
    done = end(folder, COMMANDS[command], (1, how))
    assert done.stdout == ""
    if command in OF_PROGRAMS:
        assert done.returncode == (command == "report" and how == "full")
        return
    assert done.returncode == (how != "unread")
    said = {
        "closed": "standard output is closed",
        "full": "No space left",
        "unread": "",
    }
    assert done.stderr.count("\n") == (how != "unread")
    assert said[how] in done.stderr
    if command == "convert":
        out = td.safetensors.load(folder / "o.safetensors")
        assert (out["x"] == X.astype(td.bf16)).all()


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.sampled(8)
def test_standard_error(command, how, folder):
    """Lose only the messages on standard error."""
    done = end(folder, COMMANDS[command], (2, how))
    assert (done.returncode, done.stderr) == (0, "")
    if command not in ("report", "tune", "inspect FILE"):  # these print times
        assert done.stdout == end(folder, COMMANDS[command]).stdout


@pytest.mark.parametrize(("out", "err"), [*itertools.product(CHANGES, CHANGES)])
@pytest.mark.sampled(9)
def test_both(out, err, folder):
    for command in ("", "formats", "convert"):
        done = end(folder, COMMANDS[command], (1, out), (2, err))
        assert done.returncode == (out != "unread")


@pytest.mark.parametrize("how", CHANGES)
def test_errors_that_nobody_reads(how, folder):
    """Keep the exit code if messages cannot be written."""
    for words in (["bogus"], ["inspect", "x"], ["convert", "x.npy", "o.bin"]):
        assert end(folder, words, (2, how)).returncode == 2


def test_standard_input_that_is_closed(folder):
    code = (
        "import os, sys\nos.close(0); sys.stdin = sys.__stdin__ = None\n"
        "from tf32dtype._cli.main import main\nsys.exit(main(sys.argv[1:]))"
    )
    done = forks.python("-c", code, "inspect", "-", cwd=folder)
    assert done.returncode == 2
    assert "standard input must have at least one number" in done.stderr


def test_files_do_not_become_standard_output(folder):
    """Keep out of the file anything that other code prints to descriptor 1."""
    lines = [
        "import os, sys",
        "from tf32dtype._cli.main import main",
        "from tf32dtype._files.convert import convert",
        "write = convert._write",
        "def prints(*rest):\n    os.system('echo print'); return write(*rest)",
        "convert._write = prints",
        CHANGES["closed"].format(n=1, name="stdout"),
        "sys.exit(main(sys.argv[1:]))",
    ]
    done = forks.python("-c", "\n".join(lines), *COMMANDS["convert"], cwd=folder)
    assert done.returncode == 1
    out = td.safetensors.load(folder / "o.safetensors")
    assert (out["x"] == X.astype(td.bf16)).all()
