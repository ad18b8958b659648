"""Objects of all kinds that call a BLAS: C libraries that the test builds.

The BLAS of the test writes its own number into C, which shows that it was called.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support import forks
from tests.support.precision_switch import random
from tf32dtype import _core

if not _core.blas_available():
    pytest.skip("needs Linux on x86-64 or AArch64", allow_module_level=True)
pytestmark = pytest.mark.once

# Writes MARK into C, and adds to C if another of its functions is the caller.
BLAS = """
void sgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k,
            const float *alpha, const float *a, const int *lda, const float *b,
            const int *ldb, const float *beta, float *c, const int *ldc)
{
    for (int j = 0; j < *n; j++) {
        for (int i = 0; i < *m; i++) {
            c[i + (long)j * *ldc] = MARK;
        }
    }
}
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c,
                 int ldc)
{
    sgemm_("N", "N", &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
}
"""
# The product of two n x n matrices with Fortran's interface.
DECLARED = """
extern void sgemm_(const char *, const char *, const int *, const int *, const int *,
                   const float *, const float *, const int *, const float *,
                   const int *, const float *, float *, const int *);
"""
CALL = """
void NAME(int n, const float *a, const float *b, float *c)
{
    const float one = 1, zero = 0;
    FUNCTION("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n);
}
"""
CALLER = DECLARED + CALL.replace("NAME", "multiply")
IN_DATA = DECLARED + (
    "void (*volatile in_data)() = (void (*)())sgemm_;\n"
    + CALL.replace("NAME", "multiply").replace("FUNCTION", "in_data")
)
CBLAS = """
extern void cblas_sgemm(int, int, int, int, int, int, float, const float *, int,
                        const float *, int, float, float *, int);
void multiply(int n, const float *a, const float *b, float *c)
{
    cblas_sgemm(102, 111, 111, n, n, n, 1, a, n, b, n, 0, c, n);
}
"""
IN_A_THREAD = (
    CALLER.replace("multiply", "call")
    + """
#include <pthread.h>
static struct { int n; const float *a, *b; float *out; } job;
static void *work(void *nothing)
{
    call(job.n, job.a, job.b, job.out);
    return nothing;
}
void multiply(int n, const float *a, const float *b, float *c)
{
    pthread_t thread;
    job.n = n, job.a = a, job.b = b, job.out = c;
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
}
"""
)
OPENER = """
#include <dlfcn.h>
void *open_lazily(const char *path) { return dlopen(path, RTLD_LAZY | RTLD_LOCAL); }
void *function_of(void *handle, const char *name) { return dlsym(handle, name); }
"""
Function = Any
N = 24
A, B = random(N, N), random(N, N, seed=1)
ROUNDED = td.matmul(A, B, precision="bf16")


def built(text: str, made: Path, *flags: str | Path) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    source = made.with_suffix(".c")
    source.write_text(text)
    # The code calls functions of any type, by pointers to data.
    command = ["gcc", "-std=gnu11", "-O1", "-w", "-fPIC", source, "-o", made, *flags]
    plain = {name: x for name, x in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(command, capture_output=True, text=True, env=plain)
    assert done.returncode == 0, done.stderr
    return made


def blas(folder: Path, name: str = "one", mark: int = 7) -> Path:
    """Build a library that serves as a BLAS."""
    return built(BLAS, folder / f"lib{name}.so", "-shared", f"-DMARK={mark}",
                   f"-Wl,-soname,lib{name}.so")  # fmt: skip


def caller(folder: Path, text: str, *flags: str, of: Path, name: str = "user") -> Path:
    """Build a library that calls a function of a BLAS."""
    linked = ("-shared", "-DFUNCTION=sgemm_", *flags, of, f"-Wl,-rpath,{folder}")
    return built(text, folder / f"{name}.so", *linked)


def function(library: Any, name: str = "multiply") -> Function:
    found = getattr(library, name)
    found.argtypes = [ctypes.c_int, *[ctypes.c_void_p] * 3]
    found.restype = None
    return found


def product(multiply: Function) -> str:
    """Return the computer of A B: "bf16", or the mark of a BLAS."""
    a, b = np.asfortranarray(A), np.asfortranarray(B)
    c = np.zeros((N, N), np.float32, order="F")
    multiply(N, a.ctypes.data, b.ctypes.data, c.ctypes.data)
    if np.array_equal(c, ROUNDED):
        return "bf16"
    (mark,) = np.unique(c)
    return str(int(mark))


def obeys(multiply: Function, mark: str = "7") -> None:
    """Check that products run in bf16 only in a scope, also in a second one."""
    for _ in range(2):
        with td.matmul_precision("bf16", blas=True):
            assert product(multiply) == "bf16"
        assert product(multiply) == mark


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        (CALLER, []),
        (CALLER, ["-Wl,-z,now", "-Wl,-z,relro"]),
        (CALLER, ["-Wl,-z,lazy", "-Wl,-z,norelro"]),
        (CALLER, ["-fno-plt"]),
        (CALLER, ["-fno-plt", "-Wl,-z,now", "-Wl,-z,relro"]),
        (CALLER, ["-Wl,--hash-style=sysv"]),
        (CALLER, ["-Wl,-z,pack-relative-relocs"]),
        (IN_DATA, []),
        (IN_DATA, ["-Wl,-z,now", "-Wl,-z,relro"]),
        (CBLAS, []),
    ],
)
def test_ways_to_link(text: str, flags: list[str], tmp_path: Path) -> None:
    user = caller(tmp_path, text, *flags, of=blas(tmp_path))
    obeys(function(ctypes.CDLL(str(user))))


def test_a_thread_that_python_does_not_know(tmp_path: Path) -> None:
    """Use the precision of the scope that was entered or left last."""
    user = caller(tmp_path, IN_A_THREAD, "-pthread", of=blas(tmp_path))
    multiply = function(ctypes.CDLL(str(user)))
    obeys(multiply)
    with td.matmul_precision("bf16", blas=True):
        with td.matmul_precision(None):
            assert product(multiply) == "7"
        assert product(multiply) == "bf16"
    td.set_matmul_precision("bf16", blas=True)
    try:
        assert product(multiply) == "bf16"
    finally:
        td.set_matmul_precision(None)
    assert product(multiply) == "7"


def test_opened_in_a_scope(tmp_path: Path) -> None:
    user = caller(tmp_path, CALLER, of=blas(tmp_path))
    with td.matmul_precision("bf16", blas=True):
        multiply = function(ctypes.CDLL(str(user)))
        assert product(multiply) == "bf16"
    assert product(multiply) == "7"


@pytest.mark.parametrize("called_before", [False, True])
def test_bound_at_the_first_call(called_before: bool, tmp_path: Path) -> None:
    """Intercept a function that a C library binds lazily, before a scope or in one."""
    user = caller(tmp_path, CALLER, "-Wl,-z,lazy", of=blas(tmp_path))
    opener = ctypes.CDLL(str(built(OPENER, tmp_path / "opener.so", "-shared")))
    opener.open_lazily.restype = opener.function_of.restype = ctypes.c_void_p
    opener.function_of.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    kind = ctypes.CFUNCTYPE(None, ctypes.c_int, *[ctypes.c_void_p] * 3)

    def opened() -> Function:
        handle = opener.open_lazily(str(user).encode())
        return kind(opener.function_of(handle, b"multiply"))

    if called_before:
        multiply = opened()
        assert product(multiply) == "7"
    else:
        with td.matmul_precision("bf16", blas=True):
            multiply = opened()
            assert product(multiply) == "bf16"
    obeys(multiply)


@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="it refuses deep binding")
def test_deep_binding(tmp_path: Path) -> None:
    user = caller(tmp_path, CALLER, of=blas(tmp_path))
    mode = os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND
    obeys(function(ctypes.CDLL(str(user), mode=mode)))


def test_two_blas(tmp_path: Path) -> None:
    """Call the BLAS of each caller for products that are not intercepted."""
    users = []
    for name, mark in (("one", 7), ("two", 8)):
        library = blas(tmp_path, name, mark)
        user = caller(tmp_path, CALLER, of=library, name=f"user_{name}")
        users.append((function(ctypes.CDLL(str(user))), str(mark)))
    for multiply, mark in users:
        obeys(multiply, mark)
    with td.matmul_precision("bf16", blas=True, min_size=N + 1):
        assert [product(multiply) for multiply, _ in users] == ["7", "8"]


def test_a_blas_that_calls_itself(tmp_path: Path) -> None:
    """Intercept a product once if a form of BLAS calls another."""
    library = blas(tmp_path)
    itself = ctypes.CDLL(str(library))
    with td.matmul_precision("bf16", blas=True):
        a = np.asfortranarray(A)
        c = np.zeros((N, N), np.float32, order="F")
        sizes = [ctypes.c_int(x) for x in (102, 111, 111, N, N, N)]
        one, zero, n = ctypes.c_float(1), ctypes.c_float(0), ctypes.c_int(N)
        pointer = ctypes.c_void_p(a.ctypes.data)
        out = ctypes.c_void_p(c.ctypes.data)
        itself.cblas_sgemm(*sizes, one, pointer, n, pointer, n, zero, out, n)
        # No slot leads to a function found by a handle.
        assert np.unique(c) == [7]


def close(opened: ctypes.CDLL) -> None:
    libc = ctypes.CDLL(None)
    libc.dlclose.argtypes = [ctypes.c_void_p]
    assert libc.dlclose(opened._handle) == 0


def test_closed_and_another_in_its_place(tmp_path: Path) -> None:
    library = blas(tmp_path)
    addresses = set()
    for i in range(6):
        # The library has the same size, so that it gets the same address.
        user = caller(tmp_path, CALLER, of=library, name=f"user{i}")
        opened = ctypes.CDLL(str(user))
        multiply = function(opened)
        addresses.add(ctypes.cast(multiply, ctypes.c_void_p).value)
        obeys(multiply)
        close(opened)
    assert len(addresses) < 6


#: A process of few objects, as every scope and every dlopen look at all objects.
AGAIN = """
import ctypes, sys
import tf32dtype as td
from tests.programs.blas.test_slots import close, function, product
kept, user = ctypes.CDLL(sys.argv[1]), sys.argv[2]
with td.matmul_precision("bf16", blas=True):
    for i in range(9000):
        opened = ctypes.CDLL(user)
        if i % 200 == 0 or i > 8900:
            assert product(function(opened)) == "bf16"
        close(opened)
print("done")
"""


def test_closed_and_opened_again(tmp_path: Path) -> None:
    """Open and close more often than there are stubs."""
    library = blas(tmp_path)
    user = caller(tmp_path, CALLER, of=library)
    assert forks.run("-c", AGAIN, library, user) == "done"
