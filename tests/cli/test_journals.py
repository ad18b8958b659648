"""Files with names that the package invents: no file of others is lost."""

import ast
import os
import re
import stat
from pathlib import Path

import numpy as np
import pytest

import tf32dtype as td
from tests.support.command_line import complaint
from tf32dtype._base.errors import UserError
from tf32dtype._base.journal import Journal
from tf32dtype._cli.main import main
from tf32dtype._files.convert.journal import Notes
from tf32dtype._programs.tune.journal import Trials

pytestmark = pytest.mark.once

TEXT = b"my notes\n" * 3
PROGRAM = "import numpy as np\na = np.ones((9, 9), 'f4')\nprint(float((a @ a).sum()))\n"
COMMANDS = {
    "convert": ("convert", "in.safetensors", "o.safetensors", "--to", "bf16"),
    "tune": (
        *("tune", "p.py", "--check", r"regex:(\S+)", "--tolerance", "1"),
        *("--quiet", "--resume"),
    ),
}
#: Each file that is written under a name that the user has not given.
MADE_UP = {
    "o.safetensors.part": "convert",
    "o.safetensors.part.journal": "convert",
    "plan.toml.journal": "tune",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    td.safetensors.save("in.safetensors", {"a": np.ones((8, 8), np.float32)})
    (tmp_path / "p.py").write_text(PROGRAM)
    (tmp_path / "precious").write_bytes(TEXT)
    return tmp_path


def all_files(folder):
    """Return kinds and contents of all files, by path."""
    return {
        path: (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
    }


OTHERS = {
    "a file": lambda path: path.write_bytes(TEXT),
    "bytes": lambda path: path.write_bytes(b"\xff\xfe\n"),
    "JSON": lambda path: path.write_bytes(b'{"identity": 1, "kept": 1}\n'),
    "a link": lambda path: path.symlink_to("precious"),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a folder": lambda path: path.mkdir(),
    "a pipe": lambda path: os.mkfifo(path),
    "another command's": lambda path: Journal(str(path), "other").begin({"a": 1}),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", MADE_UP)
def test_files_of_others_stay(name, other, folder, capsys):
    OTHERS[other](folder / name)
    before = all_files(folder)
    command = COMMANDS[MADE_UP[name]]
    for words in (command, [x for x in command if x != "--resume"]):
        said = complaint(capsys, *words)
        assert f"{name} already exists and is not" in said
        assert "Move or remove that file" in said
        assert all_files(folder) == before


def test_a_work_file_that_became_a_link(folder, capsys):
    """Reject a work file that became a link, although the journal is convert's own."""
    notes = Notes(str(folder / "o.safetensors.part.journal"), {"version": "0"})
    notes.begin_with({})
    notes.close()
    (folder / "o.safetensors.part").symlink_to("precious")
    before = all_files(folder)
    assert "symbolic link" in complaint(capsys, *COMMANDS["convert"])
    assert all_files(folder) == before


# -- damage ---------------------------------------------------------------------------


RECORDS = [{"key": "a", "x": 1.5}, {"key": "b", "y": [None, "é"]}, {"key": "c"}]


@pytest.fixture
def journal(tmp_path):
    path = tmp_path / "journal"
    made = Journal(str(path), "test")
    assert made.is_new
    made.begin(*RECORDS[:2])
    made.write(*RECORDS[2:])
    made.close()
    return path


def read(path):
    """Return the records, or None if the file is damaged or not a journal."""
    before = path.read_bytes()
    try:
        found = Journal(str(path), "test")
    except UserError:
        return None
    found.close()
    assert path.read_bytes() == before
    assert not (found.is_damaged and found.records)
    return None if found.is_damaged else found.records


@pytest.mark.exhaustive
def test_every_flipped_bit_is_found(journal):
    data = journal.read_bytes()
    assert read(journal) == RECORDS
    for at in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[at] ^= 1 << bit
            journal.write_bytes(changed)
            # A changed line end makes the last line a truncated one.
            assert read(journal) == (RECORDS[:2] if at == len(data) - 1 else None)


def test_every_length_and_what_is_added(journal):
    data = journal.read_bytes()
    ends = [i for i in range(len(data)) if data[i] == 10]
    for length in range(len(data)):
        journal.write_bytes(data[:length])
        lines = sum(end < length for end in ends)
        whole = RECORDS[: max(lines - 1, 0)]
        assert read(journal) == (whole if lines or not length else None)
    for added in (b"{}\n", b"[]\n", b"\n", b"\xff\n", b"00000000 \n", data):
        journal.write_bytes(data + added)
        assert read(journal) is None


def test_a_line_that_was_cut_off_is_replaced(journal):
    journal.write_bytes(journal.read_bytes()[:-3])
    found = Journal(str(journal), "test")
    assert found.records == RECORDS[:2]
    found.write({"key": "d"})
    found.close()
    assert read(journal) == [*RECORDS[:2], {"key": "d"}]


def test_one_process_at_a_time(journal):
    first = Journal(str(journal), "test")
    with pytest.raises(UserError, match="journal: another test is writing"):
        Journal(str(journal), "test")
    first.close()
    assert read(journal) == RECORDS


def damaged(path):
    """Change a letter of the last line."""
    data = path.read_bytes()
    path.write_bytes(data[:-4] + b"?" + data[-3:])


def test_convert_begins_again(folder, capsys):
    path = folder / "o.safetensors.part.journal"
    notes = Notes(str(path), {"version": "0"})
    notes.begin_with({})
    notes.close()
    damaged(path)
    assert main(COMMANDS["convert"]) == 0
    assert "starting over: the journal is damaged" in capsys.readouterr().err
    assert td.safetensors.load("o.safetensors")["a"].dtype == td.bfloat16
    assert not path.exists()


def test_tune_begins_again(tmp_path):
    path = tmp_path / "journal"
    told = []
    trials = Trials(str(path), False, told.append)
    trials.write("a", {"x": 1})
    trials.close()
    trials = Trials(str(path), True, told.append)
    assert trials.find("a") == {"key": "a", "x": 1}
    trials.close()
    assert told == []
    damaged(path)
    trials = Trials(str(path), True, told.append)
    assert told == ["begins again, since its journal is damaged"]
    assert trials.find("a") is None
    trials.close()
    assert not path.exists()


# -- all files that the package writes ------------------------------------------------

PACKAGE = Path(td.__file__).parent
#: Functions that create files, by the modules that may call them. `replacing` writes
#: all other files, under names that the user gives.
WRITERS = {
    "_base/journal.py": {"os.open"},
    "_base/whole_files.py": {"open", "tempfile.mkstemp"},
    "_files/convert/output.py": {"os.open"},
    "_programs/tune/trials.py": {"open", "tempfile.TemporaryDirectory"},
    "_base/nvrtc.py": {"tempfile.TemporaryDirectory", "path.write_bytes"},  # inside it
    "_programs/report/program_runs.py": {"tempfile.TemporaryDirectory"},
    "_programs/streams.py": {"os.open"},  # /dev/null
    "_cli/main.py": {"os.open"},  # /dev/null
}


def test_one_list_has_all_that_makes_files():
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name, text = path.relative_to(PACKAGE).as_posix(), path.read_text()
        if not re.search(r"\bopen\(|tempfile\.|\.write_(bytes|text)\(", text):
            continue
        for call in ast.walk(ast.parse(text)):
            if not isinstance(call, ast.Call) or not _makes_a_file(call):
                continue
            found.setdefault(name, set()).add(ast.unparse(call.func))
            if ast.unparse(call.func).startswith("tempfile."):
                assert "tf32dtype-" in ast.unparse(call), name
    assert found == WRITERS


def _makes_a_file(call):
    called = ast.unparse(call.func)
    if called.startswith("tempfile.") or called == "os.open":
        return True
    if called not in ("open", "io.open") and not called.endswith(
        (".write_bytes", ".write_text")
    ):
        return False
    modes = [*call.args[1:2], *(x.value for x in call.keywords if x.arg == "mode")]
    return called != "open" or any(
        set("wax+") & set(ast.unparse(mode)) for mode in modes
    )


def test_temporary_files_are_named_for_the_package(tmp_path, monkeypatch):
    seen = []
    replace = os.replace

    def noted(source, target):
        seen.append(os.path.basename(source))
        replace(source, target)

    monkeypatch.setattr(os, "replace", noted)
    td.save(tmp_path / "a.npy", np.ones(2, td.bf16))
    (name,) = seen
    assert name.startswith("tf32dtype-")
    assert stat.S_ISREG((tmp_path / "a.npy").stat().st_mode)
