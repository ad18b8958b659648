"""Damaged files: every reader reports the fault, and does no harm.

    python -m tests.fuzz.files --files 100000 --seed 1 [--reader NAME ...]

Each file is a valid one of `tests/fuzz/readers.py` with one to three things wrong
(`tests/fuzz/mutations.py`), and is read in full. A failure is

* an exception other than those that the reader documents,
* an exception whose message does not name the file,
* more memory than `--memory`, or more time than `--seconds`,
* a crash: the parent process names the file, and continues with the next one.

File `n` depends only on (seed, n) and the reader: `--start n --files 1` repeats it, and
`--keep FOLDER` keeps it in that folder.
"""

from __future__ import annotations

import argparse
import faulthandler
import mmap
import os
import random
import re
import resource
import shutil
import signal
import struct
import sys
import tempfile
import warnings
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from tests.fuzz.mutations import mutate
from tests.fuzz.readers import READERS, Reader, Seed

MEGABYTE = 1 << 20
MOST_FAILURES = 20


class Failure(Exception):
    """A result that a damaged file must not have."""


class Fuzzer:
    """Damage files for one reader."""

    def __init__(self, reader: Reader, seed: int, folder: Path) -> None:
        self.reader = reader
        self.seed = seed
        self.folder = folder
        self.seeds = reader.seeds()
        #: number of files by the shape of the answer
        self.answers: Counter[str] = Counter()

    def draw(self, number: int) -> Seed:
        r = random.Random(self.seed << 40 | number)
        files = dict(r.choice(self.seeds))
        name = r.choice(list(files))
        others = [other for seed in self.seeds for other in seed.values()]
        files[name] = mutate(files[name], others, self.reader.header, r)
        return files

    def run(self, number: int) -> None:
        """Read one file. Raises Failure."""
        files = self.draw(number)
        path = self.write(files, self.folder)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.reader.read(path)
        except self.reader.errors as error:
            text = str(error)
            names = [path.name, *(Path(name).name for name in files)]
            if not any(name in text for name in names):
                raise Failure(f"no file is named: {error!r}") from error
            plain = re.sub(r"['\"\[(].*?['\"\])]|\S*/\S*|\d+", "_", text)
            self.answers[f"{type(error).__name__}: {plain[:100]}"] += 1
        except Failure:
            raise
        except Exception as error:
            raise Failure(
                f"{type(error).__name__} is not a documented error: {error}"
            ) from error
        else:
            self.answers["read"] += 1

    def write(self, files: Seed, folder: Path) -> Path:
        """Write the files to an empty folder, and return the path to read."""
        for old in folder.iterdir():
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        for name, data in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        return folder / next(iter(files)) if len(files) == 1 else folder


def limit(memory: int) -> None:
    """Limit this process to so many bytes more than it has."""
    if memory and "asan" not in os.environ.get("LD_PRELOAD", ""):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def too_long(signal: int, frame: FrameType | None) -> NoReturn:
    raise Failure("it takes too long")


def work(fuzzer: Fuzzer, first: int, end: int, options: Any, counter: mmap.mmap) -> int:
    """Read files, keep the current number in shared memory; return the failures."""
    faulthandler.enable()
    limit(options.memory * MEGABYTE)
    signal.signal(signal.SIGALRM, too_long)
    failures = 0
    for number in range(first, end):
        struct.pack_into("q", counter, 0, number)
        signal.setitimer(signal.ITIMER_REAL, options.seconds)
        try:
            fuzzer.run(number)
        except Failure as failure:
            failures += 1
            print(f"{fuzzer.reader.name} {number}: {failure}", flush=True)
            if failures == MOST_FAILURES:
                print(f"{MOST_FAILURES} failures: stopped")
                break
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    show(fuzzer, options.answers)
    return failures


def show(fuzzer: Fuzzer, every: bool) -> None:
    total, read = fuzzer.answers.total(), fuzzer.answers["read"]
    print(
        f"{fuzzer.reader.name}: {total} files answered, {read} of them read, and "
        f"{len(fuzzer.answers)} kinds of answers",
        flush=True,
    )
    if every:
        for answer, count in fuzzer.answers.most_common():
            print(f"{count:>8}  {answer}")


def fuzz(reader: Reader, options: Any, folder: Path) -> bool:
    """Return whether a reader has no failure; each crash costs a process."""
    fuzzer = Fuzzer(reader, options.seed, folder)
    counter = mmap.mmap(-1, 8)
    first, end = options.start, options.start + options.files
    good = True
    while first < end:
        child = os.fork()
        if child == 0:
            code = 2
            try:
                code = 1 if work(fuzzer, first, end, options, counter) else 0
            finally:
                sys.stdout.flush()
                os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status >= 0:
            return good and status == 0
        (number,) = struct.unpack("q", counter[:8])
        print(f"{reader.name} {number}: died of signal {-status}", flush=True)
        good, first = False, number + 1
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--files", type=int, default=10_000, help="try N files for each reader (10,000)"
    )
    parser.add_argument("--reader", nargs="+", choices=READERS, default=list(READERS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="begin with file N (0)")
    parser.add_argument(
        "--memory", type=int, default=1024, help="limit memory to N MB (1024)"
    )
    parser.add_argument(
        "--seconds", type=float, default=20, help="limit a read to N seconds (20)"
    )
    parser.add_argument("--answers", action="store_true", help="list the answers")
    parser.add_argument(
        "--keep", type=Path, help="write the first file here; read none"
    )
    options = parser.parse_args()
    rows = [READERS[name] for name in options.reader]
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
        for reader in rows:
            fuzzer = Fuzzer(reader, options.seed, options.keep)
            print(fuzzer.write(fuzzer.draw(options.start), options.keep))
        return 0
    good = True
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    for reader in rows:
        if find_spec(reader.needs) is None:
            print(f"{reader.name}: {reader.needs} is not installed")
            continue
        with tempfile.TemporaryDirectory(dir=memory) as folder:
            good &= fuzz(reader, options, Path(folder))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
