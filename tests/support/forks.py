"""Run Python programs as forks of one interpreter that has imported the package.

Each program is a separate process. A fork starts in a tenth of the time of a fresh
interpreter, because most of that time is spent on imports. Use
`tests.support.interpreters` if a test is about the first import of a module, or about
environment variables that the package reads during its import.
"""

from __future__ import annotations

import atexit
import gc
import importlib
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

from tests.support import interpreters

#: Whether programs can be forks. Not all preloaded sanitizers can continue in a fork.
AVAILABLE = sys.platform == "linux" and "LD_PRELOAD" not in os.environ
#: The command `tf32dtype`, whose trials of a program are forks too.
FORKING = "-m", "tests.support.forked_trials"
#: Python code of a function that returns the peak memory of its process in KiB. The
#: value of ru_maxrss is at least the memory of the process that started the program.
MEMORY = (
    "def use():\n    with open('/proc/self/status') as file:\n"
    "        return int(file.read().split('VmHWM:')[1].split()[0])\n"
)
#: The socket of the server. The server's forks know the same address.
_address = b""


class Process:
    """Run a Python command in a fork, with the interface of `subprocess.Popen`.

    The command runs a script, -m MODULE or -c CODE. The streams are open descriptors.
    The end of Python frees all imported modules, which takes longer than most programs
    of tests. The fork skips this step unless `tear_down` is true.
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
        environment = dict(os.environ if env is None else env)
        folder = str(cwd or os.getcwd())
        request = [command[1:], folder, environment, start_new_session, tear_down]
        self._connection = _connect()
        streams = [stdin, stdout, stderr]
        socket.send_fds(self._connection, [json.dumps(request).encode()], streams)
        self.pid = self._receive()

    def _receive(self) -> int:
        message = self._connection.recv(20)
        if not message:
            raise RuntimeError("the interpreter that forks has ended")
        return int(message)

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code after the end of the process."""
        if self.returncode is None:
            seconds = None if timeout == math.inf else timeout
            if not select.select([self._connection], [], [], seconds)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = self._receive()
            self._connection.close()
        return self.returncode


def start(command: Sequence[str], *, tear_down: bool = False, **options: Any) -> Any:
    """Start a `Process`, or a `subprocess.Popen` on systems without forks."""
    options = {"env": interpreters.variables()} | options
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
    """Run `python *arguments` in a fork, as `interpreters.python` does without one."""
    if not AVAILABLE:
        return interpreters.python(
            *arguments, cwd=cwd, input=input, timeout=timeout, **environment
        )
    command = [sys.executable, *map(str, arguments)]
    (stdin, typing), (out, stdout), (errors, stderr) = (os.pipe() for _ in range(3))
    os.write(typing, (input or "").encode())  # the input of a test fits into a pipe
    os.close(typing)
    variables = interpreters.variables() | environment
    process = Process(
        command, stdin, stdout, stderr, cwd, variables, tear_down=tear_down
    )
    _close([stdin, stdout, stderr])
    with ThreadPoolExecutor(2) as pool:
        texts = pool.map(_text, (out, errors))
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            raise
        return subprocess.CompletedProcess(command, code, *texts)


def run(*arguments: object, **options: Any) -> str:
    """Return the standard output of `python *arguments`, which must succeed."""
    return interpreters.output(python(*arguments, **options))


def _text(descriptor: int) -> str:
    with open(descriptor) as file:
        return file.read()


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


# -- the server: the interpreter that forks --------------------------------------------


def _connect() -> socket.socket:
    """Return a connection to the server. The first call starts the server."""
    global _address
    if not _address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind("")  # Linux chooses a free address
            listener.listen()
            number = listener.fileno()
            code = f"from tests.support.forks import serve; serve({number})"
            server = subprocess.Popen(
                [sys.executable, "-c", code],
                # Python sets up its streams for pipes, and most forks have pipes.
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[number],
                # The matrices of tests are small: more threads would not save time.
                env=interpreters.variables() | {"OPENBLAS_NUM_THREADS": "1"},
                start_new_session=True,
            )
            _address = listener.getsockname()
        atexit.register(_end, server, os.getpid())
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(_address)
    return connection


def _end(server: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() == owner:
        server.kill()
        server.wait()


def serve(number: int) -> None:
    """Fork for each connection until the process that started the server has ended."""
    global _address
    from tf32dtype._cli.main import _COMMANDS

    for command in _COMMANDS:
        importlib.import_module(f"tf32dtype._cli.{command}")
    # A shell may have started the tests with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # The CPU time of forks counts as the server's after this call to waitpid.
    signal.signal(signal.SIGCHLD, lambda *_: os.waitpid(-1, 0))
    gc.collect()
    gc.freeze()  # otherwise the end of each fork would copy all imported objects
    with socket.socket(fileno=number) as listener:
        _address = listener.getsockname()
        while True:
            if 0 in select.select([listener, 0], [], [])[0]:
                return  # the other end of standard input is closed
            connection, _ = listener.accept()
            if not _fork():
                break
            connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, streams, *_ = socket.recv_fds(connection, 1 << 20, 3)
    if process := _fork():
        _close(streams)
        _watch(process, connection)
    _become(connection, streams, *json.loads(message))


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns about the threads of BLAS
        return os.fork()


def _watch(process: int, connection: socket.socket) -> NoReturn:
    """Send the exit code of a process.

    The process stays a zombie until the client has received the exit code. Signals of
    the client therefore cannot reach another process with the same number.
    """
    end = os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    assert end is not None
    code = end.si_status if end.si_code == os.CLD_EXITED else -end.si_status
    connection.send(str(code).encode())
    select.select([connection], [], [])
    os.waitpid(process, 0)
    os._exit(0)


def _become(
    connection: socket.socket,
    streams: Sequence[int],
    arguments: Sequence[str],
    folder: str,
    environment: Mapping[str, str],
    new_session: bool,
    tear_down: bool,
) -> None:
    """Give this process the properties of the requested one, and run its program."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    _close(streams)
    if new_session:
        os.setsid()
    connection.send(str(os.getpid()).encode())
    connection.close()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[1:1] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    sys.stdout.reconfigure(  # type: ignore[union-attr]
        encoding=environment.get("PYTHONIOENCODING"), line_buffering=os.isatty(1)
    )
    sys.modules["__main__"] = ModuleType("__main__")
    # Some benchmarks restart themselves by this command.
    sys.orig_argv = [sys.executable, *arguments]
    if tear_down:
        _run(*arguments)
    else:
        _run_and_exit(arguments)


def _run(first: str, *rest: str) -> None:
    if first == "-m":
        sys.path[0], sys.argv = os.getcwd(), [*rest]
        vars(runpy)["_run_module_as_main"](rest[0])  # the function that Python calls
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


def _run_and_exit(arguments: Sequence[str]) -> None:
    """Run the program and end as Python does, but do not free the modules."""
    code: Any = 0
    try:
        _run(*arguments)
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
