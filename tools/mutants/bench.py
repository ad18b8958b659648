"""Copy the checkout, plant faults in a copy, and run tests there."""

import contextlib
import filecmp
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from .faults import BYTES, Fault, sources

ROOT = Path(__file__).resolve().parents[2]
#: The folders of tests/ for subjects whose folder has another name.
FOLDERS = {"functions": "ufuncs", "measures": "cli", "base": "cli"}


class Ran(NamedTuple):
    """The outcome of a command: its status, failed tests, and times."""

    status: int | None  # None: it was stopped
    failed: list[str]
    seconds: float
    silence: float  # the longest time without output, in seconds


#: A failed test, in pytest's line at once and in its summary.
FAILED = re.compile(
    r"^(?:\[gw\d+\] \[ *\d+%\] )?(?:FAILED|ERROR) (tests.*?)(?: - .*| *)\n",
    re.MULTILINE,
)


def run(
    command: list[str],
    tree: Path,
    log: Path,
    limit: float,
    silence: float,
    until_failure: bool = False,
) -> Ran:
    """Run Python in a tree, with limits of the time and of the time without output."""
    # CI makes Hypothesis use the same examples in each run.
    variables = os.environ | {"PYTHONPATH": str(tree), "CI": "1"}
    variables.pop("TF32DTYPE_WERROR", None)
    started = heard = time.monotonic()
    text, longest, status = "", 0.0, None
    with log.open("w") as out, log.open(errors="replace") as said:
        process = subprocess.Popen(
            [sys.executable, *command], cwd=tree, env=variables, stdout=out,
            stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            while time.monotonic() < started + limit and longest < silence:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    status = process.wait(0.2)
                    break
                if new := said.read():
                    text, heard = text + new, time.monotonic()
                    if until_failure and FAILED.search(
                        text, len(text) - len(new) - 999
                    ):
                        status = 1
                        break
                longest = max(longest, time.monotonic() - heard)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        failed = [*dict.fromkeys(FAILED.findall(text + said.read()))]
    return Ran(status, failed, time.monotonic() - started, longest)


def own_tests(tree: Path, name: str) -> list[str]:
    """Return the folder of tests of a file's subject, and the tests of the whole."""
    parts = Path(name).with_suffix("").parts
    subject = parts[2 if parts[1] == "_core" else 1].lstrip("_")
    folders = f"tests/{FOLDERS.get(subject, subject)}", "tests/whole"
    return [folder for folder in folders if (tree / folder).exists()]


def git(*words: str) -> bytes:
    return subprocess.check_output(["git", *words], cwd=ROOT)


def copy_checkout(tree: Path) -> None:
    """Copy all files that git does not ignore, and build outputs, with their times."""
    listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    paths = [ROOT / name for name in listed.decode().split("\0") if name]
    for built in ("build/objects/**/*", "build/cython-*/**/*", "tf32dtype/_core/*.so"):
        paths += ROOT.glob(built)
    for path in filter(Path.is_file, paths):
        copy = tree / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)


class Bench:
    """The copies of the checkout: `clean` is unchanged, and `work` gets the faults.

    A third one has the former tests, and links to all other files of `work`.
    """

    def __init__(self, folder: Path, former: str | None, tests: list[str]) -> None:
        self.folder, self.chosen = folder, tests
        self.clean, self.work = folder / "clean", folder / "work"
        self.tiers = {"reduced": self.work}
        self.usual: dict[str, dict[str, Any]] = {}  # tiers' outcomes without a fault
        if not self.clean.exists():
            begun = folder / "begun"
            copy_checkout(begun)
            if self.build(begun) != 0:
                raise SystemExit(f"The build failed: {folder / 'build.txt'}")
            begun.rename(self.clean)
        self.restore()
        if former:
            tree = self.tiers["former"] = folder / f"former-{former[:12]}"
            tree.mkdir(exist_ok=True)
            files = ["tests", "pyproject.toml"]
            archive = git("archive", "--format=tar", former, *files)
            subprocess.run(["tar", "-x"], cwd=tree, check=True, input=archive)
            for path in self.work.iterdir():
                if path.name not in files and not (tree / path.name).exists():
                    (tree / path.name).symlink_to(path)

    def restore(self) -> None:
        """Restore the content and the time of each file of `work`, also of objects."""
        for path in filter(Path.is_file, self.clean.rglob("*")):
            copy = self.work / path.relative_to(self.clean)
            states = [(x.stat().st_size, x.stat().st_mtime_ns)
                      for x in (path, copy) if x.exists()]  # fmt: skip
            if len(states) == 1 or states[0] != states[1]:
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, copy)

    def build(self, tree: Path) -> int | None:
        command = ["setup.py", "--quiet", "build_ext", "--inplace"]
        return run(command, tree, self.folder / "build.txt", 3600, 3600).status

    def plant(self, fault: Fault) -> str | None:
        """Plant a fault and build; return why the fault is discarded, or None."""
        path = self.work / fault.path
        text = path.read_bytes()
        end = fault.start + len(fault.before)
        text = text[: fault.start] + fault.after.encode(BYTES) + text[end:]
        path.write_bytes(text)
        if path.suffix == ".py":
            with contextlib.suppress(SyntaxError):
                compile(text, fault.path, "exec")
                return None
            return "does not compile"
        if self.build(self.work) != 0:
            return "does not compile"
        differ = (
            not filecmp.cmp(path, self.clean / path.relative_to(self.work), False)
            for path in self.work.glob("build/objects/**/*.o")
        )
        return None if any(differ) else "equivalent"

    def learn(self, tier: str) -> None:
        """Run a tier without a fault, but with a new comment in each file.

        Note how long the tier takes, and which tests fail.
        """
        for name in itertools.chain(*sources(self.clean).values()):
            path, was = self.work / name, (self.clean / name).stat()
            with path.open("a") as file:
                file.write("/* . */\n" if path.suffix in (".c", ".h") else "# .\n")
            os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))  # avoids a build
        log = self.folder / f"{tier}-without-fault.txt"
        places = self.chosen or ["tests"]
        ran = self.pytest(self.tiers[tier], [], places, log, 6 * 3600, 3600)
        if ran.status not in (0, 1):
            raise SystemExit(f"The {tier} tier fails without a planted fault: {log}")
        self.usual[tier] = ran._asdict()
        self.restore()

    def pytest(
        self, tree: Path, words: list[str], places: list[str], log: Path, *limits: Any
    ) -> Ran:
        """Run the tests in some folders with the samples of a run of all tests."""
        command = ["-m", "pytest", "-v", "-n", "2", "-p", "no:cacheprovider"]
        command.append(f"--basetemp={self.folder / 'tmp'}")
        if any("::" in place for place in places):
            command += places
        else:
            command += ["-o", f"testpaths={' '.join(places)}"]
        return run([*command, *words], tree, log, *limits)

    def find(self, tier: str, fault: Fault) -> Ran:
        """Run a tier until a test fails, beginning with the tests of the subject."""
        tree, usual = self.tiers[tier], self.usual[tier]
        log = self.folder / f"{tier}.txt"
        # A file that cannot be imported has no test to deselect.
        words = [
            f"--{'deselect' if '::' in name else 'ignore'}={name}"
            for name in usual["failed"]
        ]
        limits = 300 + 5 * usual["seconds"], 120 + 3 * usual["silence"], True
        first = self.chosen or own_tests(tree, fault.path)
        ran = self.pytest(tree, words, first, log, *limits)
        if ran.status not in (0, 5) or self.chosen:  # 5: no test was collected
            return ran
        words += [f"--ignore={name}" for name in first]
        rest = self.pytest(tree, words, ["tests"], log, *limits)
        return rest._replace(seconds=ran.seconds + rest.seconds)

    def result(self, fault: Fault) -> dict[str, Any]:
        """Plant a fault, run the tiers, and return the fault's row of results.json."""
        started = time.monotonic()
        reason = self.plant(fault)
        row = {"outcome": reason, "test": "", **fault._asdict()}
        row["build seconds"] = round(time.monotonic() - started, 1)
        for tier in self.tiers if reason is None else ():
            ran = self.find(tier, fault)
            row[f"{tier} seconds"] = round(ran.seconds, 1)
            if ran.status not in (0, 5):
                row["outcome"] = tier
                how = "a limit" if ran.status is None else f"status {ran.status}"
                row["test"] = ran.failed[0] if ran.failed else how
                break
            row["outcome"] = "none"
        self.restore()
        return row
