"""Ctrl-C during intercepted calls of BLAS, if a library has its own handler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.interpreters import run

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="calls are caught on Linux"),
    pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer is preloaded"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler"),
]

HANDLER = """
#include <signal.h>

static struct sigaction before;
static int calls;

static void on_signal(int number, siginfo_t *information, void *context)
{
    calls++;
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(number, information, context);
    } else {
        before.sa_handler(number);
    }
}

int install(void)
{
    struct sigaction own = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    return sigaction(SIGINT, &own, &before);
}

int count(void) { return calls; }
"""

PROGRAM = """
import ctypes, signal, sys, tf32dtype as td
signal.signal(signal.SIGINT, signal.default_int_handler)
library = ctypes.CDLL(sys.argv[1])

def interrupt():
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        print(library.count())

with td.matmul_precision("bf16", blas=True):
    assert library.install() == 0
    interrupt()
with td.matmul_precision("bf16", blas=True):
    interrupt()
interrupt()
"""


def test_a_handler_that_calls_the_one_before(tmp_path: Path) -> None:
    """Install the handler once only, as the other handler calls the one before it."""
    source, library = tmp_path / "handler.c", tmp_path / "handler.so"
    source.write_text(HANDLER)
    words = ["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", source, "-o", library]
    subprocess.run(words, check=True, timeout=60)
    assert run("-c", PROGRAM, library).split() == ["1", "2", "3"]
