"""Provide tf32dtype.cuda on the host's memory or on a GPU, for its tests.

    from tests.support.cuda import backend, cupy, tfc

Tests that take the fixture `backend` run on the host and, marked `gpu`, on a GPU.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

cupy = pytest.importorskip("cupy")
if not shutil.which("g++"):
    pytest.skip("needs g++", allow_module_level=True)

from tests.support.simulator import backend as cuda_host
from tests.support.simulator.backend import HAS_GPU, tfc
from tf32dtype.cuda._runtime import backend as backends

#: One simulator for all tests, because it keeps compiled kernels.
HOST = cuda_host.Host()


@pytest.fixture(params=["host", pytest.param("gpu", marks=pytest.mark.gpu)])
def backend(request: Any) -> Iterator[Any]:
    """Yield the backend of the test's arrays; the host's counts begin at 0."""
    if request.param == "gpu":
        if not HAS_GPU:
            pytest.skip("no GPU")
        yield backends.current()
        return
    HOST.counts.clear()
    HOST.faults.clear()
    HOST.descends = False
    allocator = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(cuda_host.allocate)
    before = backends.current()
    backends.use(HOST)
    yield HOST
    backends.use(before)
    cupy.cuda.set_allocator(allocator)


__all__ = ["HAS_GPU", "HOST", "backend", "backends", "cupy", "tfc"]
