"""Two worker processes: data larger than their memory, the bits of a single process,
and precisions that are set and reset."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.documents import blocks, check_block
from tests.support.paths import ROOT
from tf32dtype._matmul.precisions import Settings

pytest.importorskip("dask.array")
pytest.importorskip("distributed")

import dask
import dask.array as da
from distributed import Client, LocalCluster

pytestmark = pytest.mark.once

#: Memory limit of a worker; Python and NumPy take half of it.
LIMIT = 300_000_000
ROWS, K, COLUMNS = 384, 1 << 19, 8
CHUNK = ROWS // 2, 1 << 14


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    settings = {"distributed.worker.memory.pause": False}
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=LIMIT,
            dashboard_address=":0",
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def made(shape: tuple[int, ...], seed: list[int], delay: float = 0) -> Any:
    """Return bfloat16 numbers of all signs and significands, from 2^-4 to below 2^4."""
    time.sleep(delay)
    count = int(np.prod(shape))
    codes = np.frombuffer(np.random.default_rng(seed).bytes(2 * count), np.uint16)
    codes = codes & 0x83FF | 0x3D80
    return td.from_bits(codes, td.bf16).reshape(shape)


def chunk_of(block_info: Any = None, delay: float = 0) -> Any:
    info = block_info[None]
    return made(info["chunk-shape"], list(info["chunk-location"]), delay)


def large(delay: float = 0) -> da.Array:
    """Return an array of 400 MB, whose chunks are made when they are needed."""
    chunks = da.core.normalize_chunks(CHUNK, (ROWS, K))
    return da.map_blocks(chunk_of, chunks=chunks, dtype=td.bf16, delay=delay)


@pytest.fixture(scope="module")
def whole() -> Any:
    rows = [
        [made(CHUNK, [i, j]) for j in range(K // CHUNK[1])]
        for i in range(ROWS // CHUNK[0])
    ]
    return np.block(rows)


@pytest.fixture(scope="module")
def weights() -> Any:
    return made((K, COLUMNS), [7])


def assert_same(got: Any, want: Any) -> None:
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    assert got.tobytes() == want.tobytes()


def test_more_than_the_memory_of_a_worker(
    client: Client, whole: Any, weights: Any
) -> None:
    assert whole.nbytes > 1.3 * LIMIT
    x, w = large(), da.from_array(weights, chunks=(CHUNK[1], COLUMNS))
    asked = x @ w, x.sum(), x.mean(axis=1), x[:, :9999].std(), (x * x).sum(axis=1)
    product, total, means, deviation, squares = dask.compute(*asked)
    assert_same(product, whole @ weights)
    assert_same(total, whole.sum())
    assert_same(means, whole.mean(axis=1))
    assert_same(deviation, whole[:, :9999].std())
    assert_same(squares, (whole * whole).sum(axis=1))


def test_a_worker_is_killed(client: Client, whole: Any, weights: Any) -> None:
    before = client.run(os.getpid)
    x, w = large(delay=0.03), da.from_array(weights, chunks=(CHUNK[1], COLUMNS))
    product, total = client.compute([x @ w, x.sum()])
    time.sleep(0.5)
    assert not product.done()
    os.kill(next(iter(before.values())), signal.SIGKILL)
    assert_same(product.result(), whole @ weights)
    assert_same(total.result(), whole.sum())
    client.wait_for_workers(2)
    assert set(client.run(os.getpid).values()) != set(before.values())


def test_chunks_go_to_disk_and_to_the_other_worker(client: Client, whole: Any) -> None:
    """Keep half of the array, which exceeds the memory of two workers."""
    part = large()[:, : K // 2].persist()
    got = part.rechunk((ROWS, 1 << 14)).sum(axis=0).compute()
    assert_same(got, whole[:, : K // 2].sum(axis=0))
    spilled = client.run(lambda dask_worker: len(dask_worker.data.disk))
    assert sum(spilled.values()) > 0


def test_blocks_go_through_workers(client: Client) -> None:
    x = np.random.default_rng(0).standard_normal((64, 256), dtype=np.float32)
    q = td.interop.dask.quantize(da.from_array(x, chunks=(16, 64)), "mxfp8_e4m3")
    assert q.persist().compute() == td.blocks.quantize(x, "mxfp8_e4m3")
    host = td.blocks.quantize(x, "mxfp8_e4m3") @ x.T
    assert_same((q @ da.from_array(x.T, chunks=(64, 16))).compute(), host)


# -- precisions ------------------------------------------------------------------------


def asked_for() -> str | None:
    from tf32dtype._programs.context import process_settings

    settings = process_settings()
    return settings and settings.precision


def in_workers(client: Client) -> set[str | None]:
    return set(client.run(asked_for).values())


def test_a_precision_in_all_workers(client: Client) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 40), dtype=np.float32)
    d = da.from_array(x, chunks=(20, 40))
    product = d @ da.from_array(x, chunks=(40, 20))
    options: Any = {"rounding": "toward_zero"}
    with td.interop.dask.matmul_precision(client, "tf32", **options) as precision:
        assert repr(precision) == "<WorkersPrecision('tf32'), open>"
        got = product.compute()
    assert_same(got, td.matmul(x, x, precision="tf32", **options))
    assert np.allclose(product.compute(), x @ x, rtol=1e-5, atol=1e-5)
    assert in_workers(client) == {None}
    precision.close()
    assert "closed" in repr(precision)


def test_precisions_nest_and_reach_new_workers(client: Client) -> None:
    outer = td.interop.dask.matmul_precision(client, "bf16x9")
    with td.interop.dask.matmul_precision(client, "bf16"):
        assert in_workers(client) == {"bf16"}
        client.restart()
        assert in_workers(client) == {"bf16"}
    assert in_workers(client) == {"bf16x9"}
    inner = td.interop.dask.matmul_precision(client, "f32")
    client.cluster.scale(3)
    client.wait_for_workers(3)
    assert in_workers(client) == {"f32"}
    outer.close()
    assert in_workers(client) == {"f32"}
    inner.close()
    assert in_workers(client) == {None}
    client.cluster.scale(2)
    while len(client.scheduler_info()["workers"]) > 2:
        time.sleep(0.05)


def test_workers_get_back_what_they_had(client: Client) -> None:
    client.run(td.set_matmul_precision, "f16")
    seen: set[str | None] = set()
    with (
        suppress(ZeroDivisionError),
        td.interop.dask.matmul_precision(client),
    ):
        seen = in_workers(client)
        raise ZeroDivisionError
    assert seen == {None}
    assert in_workers(client) == {"f16"}
    client.run(td.set_matmul_precision)


def test_the_end_may_come_first() -> None:
    """Close a precision before a worker that has just joined has opened it."""
    from tf32dtype.interop.dask.precision import _Stack

    stack, bf16 = _Stack(), Settings("bf16")
    stack.push("one", "worker", bf16)
    stack.push("one", "other", bf16)
    stack.leave("one", "worker")
    assert asked_for() == "bf16"
    stack.close("two")
    stack.push("two", "worker", Settings("f16"))
    assert asked_for() == "bf16"
    stack.leave("one", "other")
    stack.leave("one", "other")
    assert asked_for() is None


def test_what_no_precision_is(client: Client) -> None:
    with pytest.raises(ValueError, match="precision must be"):
        td.interop.dask.matmul_precision(client, "bf17")
    with pytest.raises(TypeError, match=r"distributed\.Client; got '"):
        td.interop.dask.matmul_precision("bf16")
    with pytest.raises(TypeError, match="roundin"):
        td.interop.dask.matmul_precision(client, "tf32", roundin="toward_zero")
    assert in_workers(client) == {None}


def test_what_fails_in_workers_changes_none(client: Client) -> None:
    """Leave workers unchanged by an error, such as a missing file of a plan."""
    settings = Settings(None, plan="no/plan.json")
    with pytest.raises((OSError, ValueError), match="plan"):
        td.interop.dask.WorkersPrecision(client, settings)
    assert in_workers(client) == {None}
    with td.interop.dask.matmul_precision(client, "bf16"):
        assert in_workers(client) == {"bf16"}
    assert in_workers(client) == {None}


# -- the page --------------------------------------------------------------------------


def test_the_document() -> None:
    names: dict[str, Any] = {}
    for block in blocks(ROOT / "docs" / "how_to" / "dask.md", "python"):
        check_block(block, names)


def test_the_example(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    rng = np.random.default_rng(0)
    x = rng.standard_normal((70, 64), np.float32).astype(td.bf16)
    td.safetensors.save(
        path, {"a": x, "b": np.zeros(3, np.float32), "c": np.arange(9), "d": x[:0]}
    )
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "dask_checkpoint.py", path],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    numbers, in_blocks = done.stdout.strip().split("\n\n")
    assert "2 of 2 layers" in done.stderr
    found: dict[str, dict[str, str]] = {"a": {}, "b": {}}
    for table in (numbers, in_blocks):
        header, *rows = (line.split() for line in table.splitlines())
        assert {row[0] for row in rows} == {"a", "b"}
        for name, *cells in rows:
            found[name] |= dict(zip(header, cells, strict=True))
    signed = sum(form.signed for form in td.formats.values())
    assert len(found["a"]) == signed + len(td.blocks.formats)
    assert set(found["b"].values()) == {"inf"}
    wide = x.astype(float)
    largest = abs(wide).max()
    scale = 2.0 ** np.floor(np.log2(448 / largest))
    for column, got in [
        ("bfloat16", wide),
        ("fp8_e4m3fn", (wide * scale).astype(td.fp8_e4m3).astype(float) / scale),
        ("mxfp4", td.blocks.quantize(x, "mxfp4").dequantize("f8")),
    ]:
        error = ((got - wide) ** 2).sum()
        want = 10 * np.log10((wide**2).sum() / error) if error else np.inf
        assert found["a"][column] == f"{want:.1f}"
