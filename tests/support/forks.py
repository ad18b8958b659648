"""Runs Python in forks of one interpreter that has imported the package already.

Each is a process of its own, but starts in a tenth of the time: most of that goes into
imports. What is about the start (the first import of a module, variables that are read
then) needs `tests.support.interpreters`.
"""

from __future__ import annotations

import atexit
import gc
import json
import math
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import tf32dtype as td
from tests.support import interpreters
from tests.support.paths import ROOT

#: Sanitizers are preloaded, and not all of them can go on in a fork.
AVAILABLE = sys.platform == "linux" and "LD_PRELOAD" not in os.environ
#: Code: a function for the most memory that the process has had, in KiB. A program has
#: the ru_maxrss of the process that started it, if that is more.
MEMORY = (
    "def use():\n    with open('/proc/self/status') as file:\n"
    "        return int(file.read().split('VmHWM:')[1].split()[0])\n"
)
#: Bytes of a number in what is told of a process.
_WIDTH = 12
_line: socket.socket | None = None


class Process:
    """As `subprocess.Popen`, for a command that is Python's: a script, -m, or -c.

    The streams are open descriptors. Python takes down all that is imported when it
    ends, which takes longer than most of what tests run: only if `tear_down` says so.
    """

    def __init__(
        self,
        command: Sequence[str],
        stdin: int,
        stdout: int,
        stderr: int,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        start_new_session: bool = False,
        tear_down: bool = False,
    ) -> None:
        self.args = command
        self.returncode: int | None = None
        request = {
            "words": command[1:],
            "folder": str(cwd or os.getcwd()),
            "environment": dict(os.environ if env is None else env),
            "session": start_new_session,
            "tear down": tear_down,
        }
        line = _the_line()
        self._told, its = os.pipe()
        socket.send_fds(
            line,
            [json.dumps(request).encode()],
            [stdin, stdout, stderr, its, line.fileno()],
        )
        os.close(its)
        self.pid = self._next()

    def _next(self) -> int:
        told = os.read(self._told, _WIDTH)
        if not told:
            raise RuntimeError("the interpreter that forks has ended")
        return int(told)

    def poll(self) -> int | None:
        """The exit code, if it has ended."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """The exit code."""
        if self.returncode is None:
            seconds = None if timeout == math.inf else timeout
            if not select.select([self._told], [], [], seconds)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = self._next()
            os.close(self._told)
        return self.returncode


def variables() -> dict[str, str]:
    """Those of this process, and where modules are."""
    path = f"{Path(td.__file__).parents[1]}{os.pathsep}{ROOT}"
    return {**os.environ, "PYTHONPATH": path}


def start(command: Sequence[str], *, tear_down: bool = False, **options: Any) -> Any:
    """A `Process`; where there are no forks, `subprocess.Popen` with these options."""
    options = {"env": variables()} | options
    if AVAILABLE:
        return Process(command, tear_down=tear_down, **options)
    return subprocess.Popen(command, **options)


def python(
    *arguments: object,
    cwd: Path | None = None,
    input: str | None = None,
    timeout: float | None = 120,
    tear_down: bool = False,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """As `interpreters.python`; where there are no forks it is that."""
    if not AVAILABLE:
        return interpreters.python(
            *arguments, cwd=cwd, input=input, timeout=timeout, **environment
        )
    command = [sys.executable, *map(str, arguments)]
    (stdin, typing), (out, stdout), (errors, stderr) = (os.pipe() for _ in range(3))
    os.write(typing, (input or "").encode())  # a pipe takes what a test types
    os.close(typing)
    process = Process(
        command, stdin, stdout, stderr, cwd, variables() | environment,
        tear_down=tear_down,
    )  # fmt: skip
    for descriptor in (stdin, stdout, stderr):
        os.close(descriptor)
    with ThreadPoolExecutor(2) as pool:
        texts = pool.map(_text, (out, errors))
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            raise
        return subprocess.CompletedProcess(command, code, *texts)


def _text(descriptor: int) -> str:
    with open(descriptor) as file:
        return file.read()


# -- the interpreter that forks --------------------------------------------------------


def _the_line() -> socket.socket:
    """Where requests go; a fork has that of the process that asked for it."""
    global _line
    if _line is None:
        _line, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            code = f"from tests.support.forks import serve; serve({its.fileno()})"
            server = subprocess.Popen(
                [sys.executable, "-c", code],
                # Its streams are made for pipes, and so are those of its forks.
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[its.fileno()],
                # Products of tests are small: more threads would only wait for them.
                env=variables() | {"OPENBLAS_NUM_THREADS": "1"},
                start_new_session=True,
            )
        atexit.register(_end, server, os.getpid())
    return _line


def _end(server: subprocess.Popen[bytes], process: int) -> None:
    if os.getpid() == process:
        server.kill()
        server.wait()


def serve(descriptor: int) -> None:
    """Fork for each request, until there is nobody left to ask."""
    import tf32dtype._cli.main  # noqa: F401

    # Shells may have had it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.collect()
    gc.freeze()  # else the end of each fork would copy all that is imported
    with socket.socket(fileno=descriptor) as line:
        while True:
            message, descriptors, *_ = socket.recv_fds(line, 1 << 20, 5)
            if not message:
                return
            if not _fork():
                break
            _close(descriptors)
            _forget_what_has_ended()
    *streams, told, asking = descriptors
    if process := _fork():
        _close([*streams, asking])
        _watch(process, told)
    _become(json.loads(message), streams, told, asking)


def _watch(process: int, told: int) -> NoReturn:
    """Tell how it ends. Until somebody has taken note its number stays its own."""
    end = os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    assert end is not None
    code = end.si_status if end.si_code == os.CLD_EXITED else -end.si_status
    os.write(told, f"{code:{_WIDTH}}".encode())
    reader = select.poll()
    reader.register(told, 0)
    reader.poll()
    os.waitpid(process, 0)
    os._exit(0)


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's, about threads, which BLAS may have
        return os.fork()


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _forget_what_has_ended() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _become(
    request: dict[str, Any], streams: Sequence[int], told: int, asking: int
) -> None:
    """Be what was asked for, and run it."""
    global _line
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    _close(streams)
    os.set_inheritable(asking, False)
    _line = socket.socket(fileno=asking)
    if request["session"]:
        os.setsid()
    os.write(told, f"{os.getpid():{_WIDTH}}".encode())
    os.close(told)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.stdout.reconfigure(  # type: ignore[union-attr]
        encoding=os.environ.get("PYTHONIOENCODING"), line_buffering=os.isatty(1)
    )
    sys.modules["__main__"] = ModuleType("__main__")
    if request["tear down"]:
        _run(*request["words"])
    else:
        _run_and_leave(request["words"])


def _run(first: str, *rest: str) -> None:
    if first == "-m":
        sys.path[0], sys.argv = os.getcwd(), [*rest]
        vars(runpy)["_run_module_as_main"](rest[0])  # as Python itself does
        return
    main = sys.modules["__main__"]
    if first == "-c":
        code, *rest = rest
        sys.path[0], path = "", "<string>"
    else:
        sys.path[0], path = os.path.dirname(os.path.realpath(first)), first
        code = Path(first).read_text(encoding="utf-8")
        vars(main)["__file__"] = first
    sys.argv = [first, *rest]
    exec(compile(code, path, "exec"), vars(main))


def _run_and_leave(words: Sequence[str]) -> None:
    code: Any = 0
    try:
        _run(*words)
    except SystemExit as end:
        code = end.code or 0
        if not isinstance(code, int):
            print(code, file=sys.stderr)
            code = 1
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        code = 1
    vars(threading)["_shutdown"]()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
