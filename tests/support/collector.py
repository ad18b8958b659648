"""Replace the collector of the report by one in Python, for tests.

It wraps np.matmul and np.dot by their names. `install` puts it in place of the
package's collector. `python -m tests.support.collector ...` runs the command `tf32dtype
...` with this collector.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections import Counter
from typing import Any

import numpy as np

import tf32dtype as td
from tf32dtype._programs.report import collect
from tf32dtype._programs.report.call_sites import (
    CallSite,
    Frame,
    NotReached,
    Run,
    Sample,
)

NAMES = ("matmul", "dot")
MOST = 3  # samples per call site


class Collector:
    """Wrap the two functions from `start` to `stop`."""

    def __init__(self, options: Any, argv: tuple[str, ...] = ()) -> None:
        self.options, self.argv = options, argv
        self.seen: dict[Any, dict[str, Any]] = {}
        self.own = {name: getattr(np, name) for name in NAMES}

    def start(self) -> None:
        self.began = time.perf_counter()
        for name in NAMES:
            setattr(np, name, self.watched(name))

    def stop(self) -> Run:
        for name in NAMES:
            setattr(np, name, self.own[name])
        return Run(
            self.argv,
            time.perf_counter() - self.began,
            tuple(self.call_site(key, seen) for key, seen in self.seen.items()),
            (NotReached("LAPACK", "dgesv", 2, 0.01, "--lapack"),),
            platform.python_version(),
            np.__version__,
            td.__version__,
        )

    def watched(self, name: str) -> Any:
        def function(a: Any, b: Any, **options: Any) -> Any:
            start = time.perf_counter()
            result = self.own[name](a, b, **options)
            self.take(sys._getframe(1), a, b, time.perf_counter() - start)
            return result

        return function

    def take(self, frame: Any, a: Any, b: Any, seconds: float) -> None:
        code = frame.f_code
        site = Frame(
            os.path.abspath(code.co_filename), frame.f_lineno, code.co_qualname
        )
        a, b = np.array(a, ndmin=2), np.array(b)
        b = b[:, None] if b.ndim == 1 else b
        dtype = np.result_type(a, b)
        (m, k), n = a.shape, b.shape[1]
        seen = self.seen.setdefault(
            (site, dtype.name),
            {"calls": 0, "work": 0, "seconds": 0.0, "shapes": Counter(), "samples": []},
        )
        seen["calls"] += 1
        seen["work"] += m * n * k
        seen["seconds"] += seconds
        seen["shapes"][m, n, k] += 1
        if len(seen["samples"]) < MOST:
            sample = Sample(a.astype(dtype), b.astype(dtype), m, n, k, True)
            seen["samples"].append(sample)

    def call_site(self, key: Any, seen: dict[str, Any]) -> CallSite:
        frame, dtype = key
        return CallSite(
            user=frame,
            library=None,
            caller="_multiarray_umath.so",
            routine="gemm",
            dtype=dtype,
            calls=seen["calls"],
            multiply_adds=seen["work"],
            seconds=seen["seconds"],
            shapes=dict(seen["shapes"].most_common(8)),
            samples=tuple(seen["samples"]),
        )


def install() -> None:
    collect.Collector = Collector  # type: ignore[assignment,misc]


if __name__ == "__main__":
    from tf32dtype._cli.main import main

    install()
    sys.exit(main())
