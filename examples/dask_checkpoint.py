"""Measure what every layer of a checkpoint loses in every format, by several processes.

    python examples/dask_checkpoint.py [CHECKPOINT] [--workers 2] [--memory 1GB]

CHECKPOINT is a safetensors file, or the index of several files. Without it, the script
makes a small file. Each process reads a few rows at a time, so that a layer need not
fit into its memory. The tables have signal-to-noise ratios in dB; 6 dB more is one bit
more. Before it is rounded to a dtype, a layer is multiplied by a power of two that
brings its largest value into range. Block formats have blocks along the last axis; a
tensor scale, if they have one, is that of the rows that are read together.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, as_completed

import tf32dtype as td

NUMBERS = [name for name, form in td.formats.items() if form.signed]
BLOCKS = list(td.blocks.formats)
#: The number of values that a process reads at once.
PIECE = 1 << 20


def layer(path: str, name: str) -> da.Array:
    """Return a tensor of a file as float32; processes read its rows when needed."""
    with td.safetensors.open(path) as tensors:
        shape = tensors.info(name).shape or (1,)
    rows = max(1, PIECE // max(1, math.prod(shape[1:])))
    chunks = da.core.normalize_chunks((rows, *shape[1:]), shape)
    return da.map_blocks(
        partial(read, path, name), shape, chunks=chunks, dtype=np.float32
    )


def read(path: str, name: str, shape: Any, block_info: Any = None) -> Any:
    start, stop = block_info[None]["array-location"][0]
    with td.safetensors.open(path) as tensors:
        tensor = tensors[name].reshape(shape)
        return tensor[start:stop].astype(np.float32)


def rounded(x: da.Array, format: str) -> da.Array:
    """Round an array to a format and return the result in float64."""
    if format in BLOCKS:
        return td.interop.dask.quantize(x, format).dequantize(np.float64)
    form = td.formats[format]
    scale = da.map_blocks(partial(to_range, most=form.max), abs(x).max(), dtype="f8")
    return (x * scale).astype(form.dtype).astype(np.float64) / scale


def to_range(amax: Any, most: float) -> Any:
    """Return the power of two that brings `amax` into a format's upper binade."""
    if not 0 < amax < math.inf:
        return np.float64(1)
    return np.exp2(np.floor(np.log2(most / np.float64(amax))))


def squares(path: str, name: str, formats: list[str]) -> list[da.Array]:
    """Return the sums of the squares of a layer, and of its errors in each format."""
    x = layer(path, name)
    wide = x.astype(np.float64)
    return [(wide**2).sum(), *(((rounded(x, f) - wide) ** 2).sum() for f in formats)]


def snr(error: float, truth: float) -> float:
    if error == 0:
        return math.inf
    return 10 * math.log10(truth / error) if truth and error < math.inf else -math.inf


def floats(path: str) -> list[str]:
    """Return the names of all tensors of floats that are not empty."""
    with td.safetensors.open(path) as tensors:
        return [
            name
            for name in tensors
            if tensors.info(name).dtype.kind == "f"
            and 0 not in tensors.info(name).shape
        ]


def measured(
    client: Client, path: str, formats: list[str]
) -> Iterator[tuple[str, list[float]]]:
    """Yield the name of each layer and its SNR in each format, as layers finish."""
    names = {}
    for name in floats(path):
        names[client.compute(dask.delayed(squares(path, name, formats)))] = name
    for future in as_completed(names):
        truth, *errors = map(float, future.result())
        yield names[future], [snr(error, truth) for error in errors]


def print_table(ratios: dict[str, list[float]], formats: list[str], place: int) -> None:
    width = max(map(len, ratios))
    short = [re.sub("^float", "fp", name) for name in formats]
    columns = [max(6, len(name)) for name in short]
    names = zip(short, columns, strict=True)
    print(" " * width, *(name.rjust(n) for name, n in names), sep="  ")
    for layer_name, row in ratios.items():
        cells = zip(row[place : place + len(formats)], columns, strict=True)
        print(layer_name.ljust(width), *(f"{x:{n}.1f}" for x, n in cells), sep="  ")
    print()


def make(path: Path, width: int, layers: int) -> None:
    """Write a bfloat16 checkpoint; each layer has more columns of outliers."""
    rng = np.random.default_rng(0)
    tensors = {"embedding": rng.standard_normal((4 * width, width), np.float32)}
    for i in range(layers):
        shapes = {"attention": (width, width), "up": (4 * width, width)}
        for name, shape in shapes.items():
            tensor = rng.standard_normal(shape, np.float32) * 0.02
            tensor[:, : i + 1] *= 30
            tensors[f"layers.{i}.{name}"] = tensor
        tensors[f"layers.{i}.norm"] = 1 + rng.standard_normal(width, np.float32) / 8
    td.safetensors.save(path, {n: x.astype(td.bf16) for n, x in tensors.items()})


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "checkpoint", nargs="?", help="read this safetensors file (default: make one)"
    )
    parser.add_argument(
        "--workers", type=int, default=2, help="start N processes (default: 2)"
    )
    parser.add_argument(
        "--memory",
        default="1GB",
        help="limit the memory of each process (default: 1GB)",
    )
    parser.add_argument(
        "--width",
        type=int,
        default=256,
        help="make tensors of this width (default: 256)",
    )
    parser.add_argument(
        "--layers", type=int, default=3, help="make N layers (default: 3)"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = options.checkpoint
        if path is None:
            path = str(Path(folder, "made.safetensors"))
            make(Path(path), options.width, options.layers)
        names = floats(path)
        ratios: dict[str, list[float]] = {}
        with (
            LocalCluster(
                n_workers=options.workers,
                threads_per_worker=1,
                memory_limit=options.memory,
                dashboard_address=":0",
            ) as cluster,
            Client(cluster) as client,
        ):
            for name, row in measured(client, path, NUMBERS + BLOCKS):
                ratios[name] = row
                print(f"{len(ratios)} of {len(names)} layers", file=sys.stderr)
    ordered = {name: ratios[name] for name in names}
    print_table(ordered, NUMBERS, 0)
    print_table(ordered, BLOCKS, len(NUMBERS))


if __name__ == "__main__":
    main()
