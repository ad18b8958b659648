"""Runs the command line: in this process, in a pipe, on a terminal."""

import json
import os
import pty
import subprocess
import sys

import tf32dtype as td
from tf32dtype._cli.main import main

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
    """The one line on standard error; exit code 2."""
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


def on_a_terminal(columns, *argv):
    """What a terminal of some width gets."""
    ours, its = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
    environment["PYTHONIOENCODING"] = "utf-8"
    with subprocess.Popen(
        [sys.executable, "-m", "tf32dtype", *argv],
        stdin=its,
        stdout=its,
        stderr=subprocess.PIPE,
        env=environment,
    ) as process:
        os.close(its)
        chunks = []
        while chunk := _read(ours):
            chunks.append(chunk)
        os.close(ours)
        assert process.stderr.read() == b""
    assert process.returncode == 0
    return b"".join(chunks).decode()


def _read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""
