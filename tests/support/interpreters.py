"""Runs code in a fresh interpreter that finds the package as this one did."""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import tf32dtype as td
from tests.support.paths import ROOT


def _path() -> str:
    return f"{Path(td.__file__).parents[1]}{os.pathsep}{ROOT}"


def python(
    *arguments: object,
    cwd: Path | None = None,
    input: str | None = None,
    timeout: float | None = 120,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """`python *arguments`, with what `environment` adds to this one's."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=cwd,
        input=input,
        env=os.environ | {"PYTHONPATH": _path()} | environment,
    )


def run(*arguments: object, **options: Any) -> str:
    """Standard output of `python *arguments`; it must end well."""
    done = python(*arguments, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def run_code(code: str) -> str:
    """Standard output of the code; it must end well."""
    return run("-c", code)


#: Forks a child for each program that standard input tells of, and prints how it ended.
_SERVER = """
import atexit, gc, importlib, json, os, runpy, sys, traceback
for name in sys.argv[1:]:
    importlib.import_module(name)
gc.freeze()
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if not child:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
for number, path, how in (
    (0, os.devnull, os.O_RDONLY), (1, job["out"], flags), (2, job["err"], flags)
):
    opened = os.open(path, how)
    os.dup2(opened, number)
    os.close(opened)
os.chdir(job["cwd"])
os.environ.update(job["environment"])
if "PYTHONPATH" in job["environment"]:
    sys.path[1:1] = job["environment"]["PYTHONPATH"].split(os.pathsep)
first, *words = job["arguments"]
code = 0
try:
    if first == "-c":
        sys.argv = [first, *words[1:]]
        exec(compile(words[0], "<string>", "exec"), {"__name__": "__main__"})
    elif first == "-m":
        sys.argv = words
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [first, *words]
        sys.path[0] = os.path.dirname(first)
        runpy.run_path(first, run_name="__main__")
except SystemExit as end:
    code = int(end.code or 0)
except BaseException:
    traceback.print_exc()
    code = 1
# As Python ends, but that it does not tear down what it has imported.
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)
"""


class Warm:
    """An interpreter that has imported some modules, and forks for every program.

    A fork spares the start of Python and the imports. What reads variables of the
    environment at import, or is about the import or the end of Python, needs `python`.
    """

    def __init__(self, *modules: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._server = subprocess.Popen(
            [sys.executable, "-c", _SERVER, *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": _path()},
        )
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._jobs, self._codes = self._server.stdin, self._server.stdout

    def python(
        self,
        *arguments: object,
        cwd: Path | None = None,
        timeout: float = 120,
        **environment: str,
    ) -> subprocess.CompletedProcess[str]:
        """`python` with `-m MODULE`, `-c CODE` or a script and its words, in a fork."""
        words = [*map(str, arguments)]
        out, err = (Path(self._folder.name, name) for name in ("stdout", "stderr"))
        job = {
            "arguments": words, "cwd": str(cwd or Path.cwd()), "out": str(out),
            "err": str(err), "environment": environment,
        }  # fmt: skip
        print(json.dumps(job), file=self._jobs, flush=True)
        if not select.select([self._codes], [], [], timeout)[0]:
            self._server.kill()
            raise subprocess.TimeoutExpired(words, timeout)
        code = int(self._codes.readline())
        return subprocess.CompletedProcess(
            words, code, out.read_text(), err.read_text()
        )

    def run(self, *arguments: object, **options: Any) -> str:
        """Standard output of `python *arguments`; it must end well."""
        done = self.python(*arguments, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def close(self) -> None:
        """End the interpreter."""
        self._jobs.close()
        self._codes.close()
        self._server.wait()
        self._folder.cleanup()


@functools.cache
def warm(*modules: str) -> Warm:
    """The interpreter that has imported these modules, until this process ends."""
    server = Warm(*modules)
    atexit.register(server.close)
    return server
