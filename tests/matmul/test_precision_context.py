"""Scopes of a precision, and NumPy's own functions after them."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import inspect
import os
import re
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.interpreters import python, run_code
from tests.support.precision_switch import (
    OWN,
    PLAIN,
    ROUNDED,
    A,
    B,
    is_own,
    random,
    same,
)

pytestmark = pytest.mark.usefixtures("own_numpy")


def bits() -> str:
    """Return the current precision, detected by two functions."""
    found = {"own": PLAIN} | BY_NAME
    (way,) = [name for name, wanted in found.items() if same(A @ B, wanted)]
    assert same(np.dot(A, B), found[way])
    return way


BY_NAME = {
    name: td.matmul(A, B, precision=name) for name in ("bf16", "tf32", "fp8_e4m3")
}


def test_nesting() -> None:
    with td.matmul_precision("bf16"):
        assert bits() == "bf16"
        with td.matmul_precision("tf32"):
            assert bits() == "tf32"
            with td.matmul_precision(None):
                assert bits() == "own"
                with td.matmul_precision("fp8_e4m3"):
                    assert bits() == "fp8_e4m3"
                assert bits() == "own"
            assert bits() == "tf32"
        assert bits() == "bf16"
    assert bits() == "own"
    with td.matmul_precision(None):
        assert np.dot is OWN["dot"]


def test_one_object_many_times() -> None:
    low = td.matmul_precision("bf16")
    with low as given:
        assert given is low
        with low, td.matmul_precision("tf32"), low:
            assert bits() == "bf16"
        assert bits() == "bf16"
    with low:
        assert bits() == "bf16"
    assert repr(low) == "<matmul_precision('bf16')>"


def test_exceptions() -> None:
    kept = []
    for _ in range(2):
        try:
            with td.matmul_precision("bf16"), td.matmul_precision("tf32"):
                td.matmul(A, A, precision="f16")
        except ValueError as error:  # its traceback must not keep the blocks
            kept.append(error)
        assert is_own()
    low = td.matmul_precision("bf16")
    with pytest.raises(ValueError, match="core dimension"), low:
        A @ A
    assert is_own()
    with pytest.raises(KeyboardInterrupt), low:
        raise KeyboardInterrupt
    assert len(kept) == 2


def test_decorator() -> None:
    @td.matmul_precision("bf16")
    def function(depth: int, /, *, key: int) -> list[str]:
        """Says so."""
        return [bits(), *(function(depth - 1, key=key) if depth else []), bits()]

    assert function(3, key=1) == ["bf16"] * 8
    assert function.__doc__ == "Says so."
    assert str(inspect.signature(function)).startswith("(depth: 'int', /, *, key")
    assert bits() == "own"

    class Model:
        @td.matmul_precision("tf32")
        def method(self) -> str:
            return bits()

        @td.matmul_precision("fp8_e4m3")
        def fail(self) -> None:
            raise KeyError

    assert Model().method() == "tf32"
    with pytest.raises(KeyError):
        Model().fail()

    with pytest.raises(TypeError, match="generator"):

        @td.matmul_precision("bf16")
        def generator() -> Iterator[None]:
            yield

    with pytest.raises(TypeError, match="generator"):

        @td.matmul_precision("bf16")
        async def async_generator() -> Any:
            yield


@pytest.mark.parametrize(
    ("keyword", "value", "needed"),
    [
        *[
            (keyword, value, "must be True or False")
            for keyword in ("float64", "complex64", "blas", "dots", "lapack")
            for value in ("False", "no", 1, 0, 1.0, np.float32(1), [])
        ],
        *[
            (keyword, None, "must be True or False")
            for keyword in ("float64", "blas", "dots")
        ],
        *[("min_size", value, "must be an integer") for value in (1.5, "3", None)],
    ],
)
def test_wrong_types_are_told(keyword: str, value: Any, needed: str) -> None:
    for precision in ("bf16", None):
        for ask in (td.matmul_precision, td.set_matmul_precision):
            with pytest.raises(TypeError) as caught:
                ask(precision, **{keyword: value})
            assert str(caught.value) == f"{keyword} {needed}; got {value!r}"


def test_numpys_bools_and_integers() -> None:
    options: Any = {
        "float64": np.bool(True), "dots": np.bool(False), "min_size": np.int64(4)
    }  # fmt: skip
    with td.matmul_precision("bf16", **options):
        assert same(A @ B, ROUNDED if A.shape[1] >= 4 else PLAIN)
        assert same(A[:, :3] @ B[:3], td.matmul(A[:, :3], B[:3], precision=None))


def test_decorated_coroutines() -> None:
    @td.matmul_precision("bf16")
    async def low() -> list[str]:
        before = bits()
        await asyncio.sleep(0)
        return [before, bits()]

    async def main() -> Any:
        other = asyncio.create_task(plain())
        return await asyncio.gather(low(), low(), other)

    async def plain() -> list[str]:
        await asyncio.sleep(0)
        return [bits()]

    assert inspect.iscoroutinefunction(low)
    assert asyncio.run(main()) == [["bf16"] * 2, ["bf16"] * 2, ["own"]]


def test_generators() -> None:
    """Open scopes of a generator where it is advanced, as with np.errstate."""

    def generator() -> Iterator[str]:
        with td.matmul_precision("bf16"):
            yield bits()
            yield bits()

    steps = generator()
    assert next(steps) == "bf16"
    assert bits() == "bf16"
    with td.matmul_precision("tf32"):
        assert bits() == "tf32"
        assert next(steps) == "tf32"
        steps.close()  # out of order
        assert bits() == "tf32"
    assert bits() == "own"
    with td.matmul_precision("tf32"):
        steps = generator()
        next(steps)
        del steps
        assert bits() == "tf32"
    steps = generator()
    assert contextvars.copy_context().run(next, steps) == "bf16"
    assert bits() == "own"
    with pytest.raises(RuntimeError, match="entered in another thread, task or cont"):
        steps.close()
    del steps
    gc.collect()


NOT_OPEN = re.escape("<matmul_precision('bf16')> must be open in this context")


def test_blocks_that_are_not_open_cannot_be_left() -> None:
    low = td.matmul_precision("bf16")
    with pytest.raises(RuntimeError, match=NOT_OPEN):
        low.__exit__(None, None, None)
    with td.matmul_precision("tf32"):
        with pytest.raises(RuntimeError, match=NOT_OPEN):
            low.__exit__(None, None, None)
        assert bits() == "tf32"
        low.__enter__()
        low.__exit__(None, None, None)
        with pytest.raises(RuntimeError, match=NOT_OPEN):
            low.__exit__(None, None, None)
        assert bits() == "tf32"
        with low, low:
            low.__exit__(None, None, None)
            assert bits() == "bf16"
            low.__enter__()
        assert bits() == "tf32"
    with pytest.raises(RuntimeError, match=NOT_OPEN):
        low.__exit__(None, None, None)


def test_blocks_are_left_where_they_were_entered() -> None:
    """Leave a block only where it was entered, not in a thread or task with a copy."""
    low = td.matmul_precision("bf16")

    def leave() -> str:
        before = bits()
        with pytest.raises(RuntimeError, match=NOT_OPEN):
            low.__exit__(None, None, None)
        assert bits() == before
        with low:
            assert bits() == "bf16"
        assert bits() == before
        return before

    async def late() -> str:
        return leave()

    async def main() -> list[str]:
        with low:
            task = asyncio.create_task(late())
            return [await task, bits()]

    assert asyncio.run(main()) == ["bf16", "bf16"]
    with ThreadPoolExecutor(1) as pool, low:
        assert pool.submit(leave).result() == "own"
        assert pool.submit(contextvars.copy_context().run, leave).result() == "bf16"
        assert contextvars.copy_context().run(leave) == "bf16"
        assert bits() == "bf16"


def test_one_context_may_run_in_several_threads() -> None:
    context = contextvars.copy_context()
    low = td.matmul_precision("bf16")
    with ThreadPoolExecutor(1) as pool:
        pool.submit(context.run, low.__enter__).result()
        assert context.run(bits) == "bf16"
        context.run(low.__exit__, None, None, None)
        assert pool.submit(context.run, bits).result() == "own"


def test_tasks() -> None:
    names = ["own", *BY_NAME] * 2

    async def work(name: str) -> set[str]:
        seen = set()
        for _ in range(20):
            if name == "own":
                await asyncio.sleep(0)
                seen.add(bits())
                continue
            with td.matmul_precision(name):
                await asyncio.sleep(0)
                seen.add(bits())
                await asyncio.sleep(0)
                seen.add(bits())
        return seen

    async def main() -> list[set[str]]:
        return await asyncio.gather(*map(work, names))

    assert asyncio.run(main()) == [{name} for name in names]


def test_a_task_has_the_precision_of_where_it_was_made() -> None:
    async def late(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return bits()

    async def main() -> list[str]:
        with td.matmul_precision("bf16"):
            tasks = [asyncio.create_task(late(0)), asyncio.create_task(late(0.01))]
            thread = asyncio.create_task(asyncio.to_thread(bits))
            await asyncio.sleep(0)
        assert bits() == "own"
        return [*(await asyncio.gather(*tasks)), await thread, bits()]

    assert asyncio.run(main()) == ["bf16", "bf16", "bf16", "own"]
    gc.collect()


def test_copies_of_contexts() -> None:
    with td.matmul_precision("bf16"):
        context = contextvars.copy_context()
    assert bits() == "own"
    assert context.run(bits) == "bf16"
    del context


def test_threads_start_without_one() -> None:
    with td.matmul_precision("bf16"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(bits).result() == "own"
        assert pool.submit(contextvars.copy_context().run, bits).result() == "bf16"
        pool.submit(contextvars.copy_context).result()


def test_many_threads() -> None:
    """Switch over 10^3 times in threads; outside of blocks, NumPy's bits remain."""
    a, b = random(4, 4), random(4, 4, seed=1)
    own = {"own": a @ b, "double": a.astype(float) @ b}
    wanted = {name: td.matmul(a, b, precision=name) for name in BY_NAME}
    names = ["own", "double", *BY_NAME, *BY_NAME]
    start = threading.Barrier(len(names))

    def work(name: str) -> int:
        start.wait()
        wrong = 0
        x, y = (a.astype(float), b) if name == "double" else (a, b)
        for _ in range(3_000 // len(names)):
            if name in own:
                results = x @ y, np.dot(x, y), np.inner(x, y.T)
                wrong += not all(
                    r.tobytes() == own[name].tobytes() for r in results[:1]
                )
                wrong += not all(np.allclose(r, own[name]) for r in results)
                continue
            with td.matmul_precision(name):
                results = x @ y, np.dot(x, y), np.inner(x, y.T)
                wrong += not all(r.tobytes() == wanted[name].tobytes() for r in results)
        return wrong

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(len(names)) as pool:
            assert list(pool.map(work, names)) == [0] * len(names)
    finally:
        sys.setswitchinterval(interval)


def test_large_products_on_threads() -> None:
    """Multiply large matrices in threads, for which NumPy releases the GIL."""
    a = random(70, 70)
    wanted = {name: td.matmul(a, a, precision=name) for name in BY_NAME}
    plain = a @ a

    def work(name: str) -> bool:
        if name == "own":
            return all(same(a @ a, plain) for _ in range(5))
        with td.matmul_precision(name):
            return all(same(a @ a, wanted[name]) for _ in range(5))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, ["own", *BY_NAME] * 4))


def test_scopes_come_and_go_while_others_compute() -> None:
    """Keep replaced loops while a thread may be in one."""
    a = random(6, 6)
    plain = a @ a
    stop = threading.Event()

    def open_and_close(name: str) -> bool:
        wanted, right = td.matmul(a, a, precision=name), True
        for _ in range(300):
            with td.matmul_precision(name):
                right &= same(a @ a, wanted)
            right &= same(a @ a, plain)
        return right

    def compute() -> bool:
        right = True
        while not stop.is_set():
            right &= same(a @ a, plain) and same(np.vecdot(a, a), np.vecdot(a, a))
        return right

    with ThreadPoolExecutor(8) as pool:
        others = [pool.submit(compute) for _ in range(4)]
        try:
            assert all(pool.map(open_and_close, ["bf16", "tf32", "f32", "bf16x9"]))
        finally:
            stop.set()
        assert all(other.result() for other in others)


# -- precision of the process --------------------------------------------------


def test_of_the_process() -> None:
    try:
        td.set_matmul_precision("bf16")
        assert bits() == "bf16"
        assert same(td.matmul(A, B), ROUNDED)
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(bits).result() == "bf16"
        with td.matmul_precision("tf32"):
            assert bits() == "tf32"
            td.set_matmul_precision("fp8_e4m3")
            assert bits() == "tf32"
        assert bits() == "fp8_e4m3"
        with td.matmul_precision(None):
            assert bits() == "own"
        with pytest.raises(ValueError, match="precision must be one of"):
            td.set_matmul_precision("bogus")
        assert bits() == "fp8_e4m3"
        td.set_matmul_precision("bf16", float64=True)
        assert same(A.astype(float) @ B, ROUNDED.astype(float))
        td.set_matmul_precision(None)
        assert bits() == "own"
        assert is_own()
    finally:
        td.set_matmul_precision(None)


SHOW = """
import numpy as np
import tf32dtype as td
a = np.full((2, 2), 1.001, np.float32)
double = np.full(2, 1.001) @ a[0]
print(float((a @ a)[0, 0]), float(np.dot(a, a)[0, 0]), float(double) > 2)
"""


def test_environment() -> None:
    done = python("-c", SHOW, TF32DTYPE_MATMUL_PRECISION="bf16")
    assert (done.stdout, done.stderr) == ("2.0 2.0 True\n", "")
    done = python("-c", SHOW, TF32DTYPE_MATMUL_PRECISION="BF16_BF16_F32")
    assert done.stdout == "2.0 2.0 True\n"
    done = python("-c", SHOW, TF32DTYPE_MATMUL_PRECISION="")
    assert done.stdout.startswith("2.004")
    done = python("-c", SHOW, TF32DTYPE_MATMUL_PRECISION="bogus")
    assert done.returncode == 1
    *_, last = done.stderr.splitlines()
    assert last.startswith(
        "ImportError: TF32DTYPE_MATMUL_PRECISION: precision must be one of "
        "those in `tf32dtype run --help`; got 'bogus'. "
        "For example, use bf16, tf32 or f16"
    )


ENDS = {
    "in the process's": 'td.set_matmul_precision("bf16")',
    "in a block": 'with td.matmul_precision("bf16"): sys.exit()',
    "in a block never left": 'td.matmul_precision("bf16").__enter__()',
    "in a generator": """
def steps():
    with td.matmul_precision("bf16"):
        yield
kept = steps()
next(kept)
""",
    "in a context": """
with td.matmul_precision("bf16"):
    kept = contextvars.copy_context()
""",
    "in a thread": """
def work():
    with td.matmul_precision("bf16"):
        inside.set()
        time.sleep(100)
inside = threading.Event()
threading.Thread(target=work, daemon=True).start()
inside.wait()
""",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("end", ENDS)
def test_the_interpreter_ends_quietly(end: str) -> None:
    modules = "import contextvars, sys, threading, time\n"
    done = python("-c", f"{modules}{SHOW}{ENDS[end]}")
    assert (done.returncode, done.stderr) == (0, "")


FORKS = """
import os, sys, threading, warnings
import numpy as np, tf32dtype as td
warnings.simplefilter("ignore")
a = np.full((2, 2), 1.001, np.float32)

def work():
    while running:
        with td.matmul_precision("bf16"):
            pass

running = True
sys.setswitchinterval(1e-5)
thread = threading.Thread(target=work)
thread.start()
for _ in range(30):
    child = os.fork()
    if child == 0:
        with td.matmul_precision("bf16"):
            os._exit(float((a @ a)[0, 0]) != 2)
    assert os.waitpid(child, 0)[1] == 0
running = False
thread.join()
print(float((a @ a)[0, 0]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_children_of_a_fork() -> None:
    assert run_code(FORKS).startswith("2.004")
