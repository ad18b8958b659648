"""Run the command line in this process, in a pipe and on a terminal."""

import functools
import json
import os
import pty
import sys

import tf32dtype as td
from tests.support import forks
from tf32dtype._cli import main as program
from tf32dtype._cli.main import main

# Each call uses the same parser. To make one takes longer than most commands take.
program._parser = functools.cache(program._parser)

ALL = [*td.formats, "float16", "float32", "float64"]
SIGNED = [name for name in td.formats if name != "float8_e8m0fnu"]


def report(capsys, *argv, code=0):
    assert main([*argv, "--json"]) == code
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def plain(capsys, *argv, code=0):
    assert main(argv) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


def complaint(capsys, *argv):
    """Check for exit code 2, and return the one line on standard error."""
    try:
        code = main(argv)
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert err.startswith("tf32dtype")
    return err


def on_a_terminal(columns, *argv, cwd=None, errors_too=False):
    """Return the output of a command on a terminal that is `columns` wide.

    Standard error is part of the output if `errors_too` is true. Otherwise the command
    must not write to standard error.
    """
    ours, its = pty.openpty()
    errors, stderr = os.pipe()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
    environment["PYTHONIOENCODING"] = "utf-8"
    process = forks.start(
        [sys.executable, "-m", "tf32dtype", *argv],
        stdin=its,
        stdout=its,
        stderr=its if errors_too else stderr,
        cwd=cwd,
        env=environment,
    )
    os.close(its)
    os.close(stderr)
    chunks = []
    while chunk := _read(ours):
        chunks.append(chunk)
    os.close(ours)
    with open(errors) as file:
        assert file.read() == ""
    assert process.wait() == 0
    return b"".join(chunks).decode()


def _read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""
