"""Build the extension modules. All static settings are in pyproject.toml.

The C sources do not use Python, and their kernels are compiled once per instruction
set. setuptools has one list of sources and one list of flags, which does not fit.
Therefore each C file and each Cython file is a task; the tasks run in parallel, and
setuptools only links the objects.

    src/**/*.c              baseline flags           } linked into
    src/**/kernels/*.c      each instruction set     } tf32dtype._core._core, and with
    .../kernels/plain/*.c   all sets except bfloat16's, which would not be faster
    src/**/preload/*.c      baseline flags           } that into tf32dtype_blas.so
    tf32dtype/_core/**/*.c  Python and NumPy headers }
    tf32dtype/_core/*.pyx   one extension module per file

Objects stay under build/, in a folder named after compiler and flags. An object
is compiled again only when one of its sources is newer.

Environment:
    CC                    the C compiler
    TF32DTYPE_ISAS        "native" (default): kernels for the best instruction set of
                          this machine, and for the compiler's baseline, so that the
                          package works on every machine. "all": for every set, as in
                          wheels, which any machine may install
    TF32DTYPE_PROGRESS    seconds between two lines that count the compiled files
                          (default: 10; on a terminal 0.2, on one line)
    TF32DTYPE_SANITIZE    e.g. "address,undefined": -fsanitize=..., unoptimized
    TF32DTYPE_WERROR      "1": a compiler warning in our C is an error
    TF32DTYPE_OPENMP      "0": build without OpenMP, as for a compiler without it
"""

import sys

if sys.version_info < (3, 11):  # before any code that an old Python does not have
    raise SystemExit(
        "\n\ntf32dtype needs Python 3.11 or newer; this is Python"
        f" {sys.version_info[0]}.{sys.version_info[1]} ({sys.executable}).\n"
        "Run the same command with a newer one, e.g. python3.12 -m pip ...\n"
    )

import hashlib
import logging
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import setuptools
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import CompileError

ROOT = Path(__file__).resolve().parent
CORE = "tf32dtype._core._core"  # the module that the C sources are linked into
PRELOAD = "tf32dtype_blas.so"  # preloaded into programs that are not Python
KERNEL_TABLE = Path("src/runtime/kernels/kernel_table.c")  # the preload has its own
DISPATCH = Path("src/runtime/cpu_dispatch.c")  # knows which sets are built

# Before glibc 2.34, dlopen was in a separate library.
LIBRARIES = ["m", *(["dl"] if sys.platform == "linux" else [])]

NUMPY_API = [
    ("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
    ("NPY_TARGET_VERSION", "NPY_2_4_API_VERSION"),
]

APT = "sudo apt-get install build-essential python3-dev python3-venv"


class InstructionSet(NamedTuple):
    identifier: str  # the suffix of its symbols, as in src/runtime/cpu_sets.h
    flags: list[str]
    probe: str  # C that needs those flags
    plain: str  # the set whose kernels/plain it uses: itself, or a smaller set


# A program that prints the identifiers of the machine's instruction sets.
SETS_OF_THIS_MACHINE = """
#include <stdio.h>
#include "runtime/cpu_sets.h"
int main(void)
{
#define SET(identifier, name, has) if (has) puts(#identifier);
    TF_CPU_SETS(SET)
    return 0;
}
"""

# The instruction sets, the best last. On machines other than x86-64 there is only the
# compiler's baseline.
BASELINE = InstructionSet("baseline", [], "", "baseline")
# Without -mtune, gcc reads an operand from memory again at each use. This costs a third
# if arrays are not aligned to cache lines.
V4 = ["-march=x86-64-v4", "-mtune=icelake-server", "-mprefer-vector-width=512"]
X86_64 = [
    InstructionSet(
        "x86_64_v3",
        ["-march=x86-64-v3"],
        "#include <immintrin.h>\n"
        "__m256 f(__m256 a) { return _mm256_fmadd_ps(a, a, a); }",
        "x86_64_v3",
    ),
    InstructionSet(
        "x86_64_v4",
        V4,
        "#include <immintrin.h>\n"
        "__m512 f(__m512 a) { return _mm512_mask_add_ps(a, 1, a, a); }",
        "x86_64_v4",
    ),
    InstructionSet(
        "x86_64_v4_bf16",
        [*V4, "-mavx512bf16", "-mavx512vbmi", "-mavx512vnni"],
        "#include <immintrin.h>\n"
        "__m256bh f(__m512 a) { return _mm512_cvtneps_pbh(a); }",
        "x86_64_v4",
    ),
]

# Seconds of processor time of the files that take long, on one machine. Only the order
# of compiling and the printed time left depend on them.
LONG = {
    Path("tf32dtype/_core/_core.pyx"): 14.0,
    Path("src/blocks/kernels/plain/quantize.c"): 4.5,
    Path("src/matmul/kernels/dot.c"): 2.0,
    Path("src/matmul/kernels/plain/dot_singles.c"): 1.5,
    Path("src/formats/kernels/convert.c"): 2.5,
    Path("src/ufuncs/kernels/plain/quick_near.c"): 2.5,
    Path("src/tensor_core/kernels/plain/mma.c"): 1.3,
}
SHORT = 0.25  # seconds of each other file, on average

# Results must not depend on the compiler: it must not reorder operations (fast-math,
# which CFLAGS may have) or contract them to fused operations. Our code handles
# exceptions, so that the compiler may vectorize speculative operations.
FLOATING_POINT = [
    "-fno-fast-math",
    "-fno-trapping-math",
    "-fno-math-errno",
    "-ffp-contract=off",
    # GCC 16 compiles fmod to fprem of the x87 unit, whose flags are not in MXCSR.
    "-fno-builtin-fmod",
]
# With these the linker can leave unused functions and tables out of the preload.
SECTIONS = ["-ffunction-sections", "-fdata-sections"]
COMMON = ["-std=c11", "-fvisibility=hidden", "-fPIC", *SECTIONS, *FLOATING_POINT]

SANITIZE = os.environ.get("TF32DTYPE_SANITIZE", "")
if SANITIZE:
    INSTRUMENT = [
        f"-fsanitize={SANITIZE}",
        "-fno-sanitize-recover=undefined",
        "-fno-omit-frame-pointer",
        "-DTF_CHECKED",  # preconditions, src/runtime/asserts.h
        "-g",
    ]
    OPTIMIZE = FALLBACK = COMPACT = GLUE = ["-O1", *INSTRUMENT]
    WARNINGS = ["-w"]  # instrumented code gets false warnings of uninitialized values
else:
    # No code throws: only debuggers would use the tables that unwind the stack.
    SMALL = ["-g0", "-fno-asynchronous-unwind-tables"]
    # gcc aligns loops to 16 bytes. A short loop takes up to 1.6 times as long if it
    # crosses a boundary of 64 bytes, which any change of other code may cause.
    OPTIMIZE = ["-O3", "-falign-loops=32", *SMALL]
    # Flags of the baseline kernels, if this machine uses better ones.
    FALLBACK = ["-O1", *SMALL]
    # The baseline of a wheel, which has better sets for nearly all machines. -O3 would
    # make the largest of these kernels two to five times as large.
    COMPACT = ["-O2", *SMALL]
    # Cython's C calls NumPy, Python and kernels. -O2 takes more time to compile and
    # gains nothing. With only -O1, tf32 scalars would take a quarter longer.
    # The second line makes the module a tenth smaller: many error paths are alike.
    GLUE = ["-O1", "-finline-small-functions", "-fpeephole2", "-fcaller-saves"]
    GLUE += ["-fcrossjumping", "-fipa-icf", "-fno-guess-branch-probability"]
    GLUE += ["-DCYTHON_UNPACK_METHODS=0", *SMALL]
    WARNINGS = ["-Wall", "-Wextra"]
if os.environ.get("TF32DTYPE_WERROR", "") not in ("", "0"):
    WARNINGS.append("-Werror")


def stop(message: str) -> SystemExit:
    """Return an exit with a message, separated from the compiler's output."""
    return SystemExit(f"\n\ntf32dtype cannot be built. {message}\n")


def all_sets_are_wanted() -> bool:
    """Return whether to build every instruction set that the compiler has."""
    wanted = os.environ.get("TF32DTYPE_ISAS", "")
    if wanted not in ("", "native", "all"):
        raise stop(f"TF32DTYPE_ISAS must be 'native' or 'all'; got {wanted!r}.")
    return wanted == "all"


def cpu_count() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def sources_in(folder: str, *, kernels: bool) -> list[Path]:
    """Return the kernels of a folder, or its other C files except CUDA and preload."""
    return sorted(
        path
        for path in Path(folder).rglob("*.c")
        if ("kernels" in path.parts) is kernels
        and not {"cuda", "preload"} & set(path.parts)
    )


def fingerprint(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:10]


def is_current(target: Path, depfile: Path) -> bool:
    """Return whether `target` is newer than its sources in `depfile`, a make rule.

    Files outside this folder (Python's, NumPy's) are not checked, because their
    versions are part of the folder's name.
    """
    if not (target.exists() and depfile.exists()):
        return False
    made = target.stat().st_mtime
    rule = depfile.read_text().replace("\\\n", " ")
    for name in shlex.split(rule.partition(":")[2]):
        path = Path(os.path.normpath(ROOT / name))  # "../../tmp/..." must be outside
        if not path.is_relative_to(ROOT):
            continue
        if not path.exists() or path.stat().st_mtime > made:
            return False
    return True


def numpy_headers() -> tuple[str, str]:
    """Return NumPy's version and its include folder."""
    try:
        import numpy as np
    except ImportError:
        raise stop(
            "NumPy 2.4 or newer is needed at build time and is not installed:"
            " pip install 'numpy>=2.4'."
        ) from None
    release = tuple(int(part) for part in np.__version__.split(".")[:2])
    if release < (2, 4):
        raise stop(
            f"NumPy 2.4 or newer is needed at build time; this is NumPy"
            f" {np.__version__}: pip install -U 'numpy>=2.4', or leave out"
            " --no-build-isolation."
        )
    return np.__version__, np.get_include()


def cython_version() -> str:
    try:
        import Cython
    except ImportError:
        raise stop(
            "Cython 3.1 or newer is needed and is not installed:"
            " pip install 'Cython>=3.1', or leave out --no-build-isolation."
        ) from None
    release = tuple(int(part) for part in Cython.__version__.split(".")[:2])
    if release < (3, 1):
        raise stop(
            f"Cython 3.1 or newer is needed; this is Cython {Cython.__version__}:"
            " pip install -U 'Cython>=3.1', or leave out --no-build-isolation."
        )
    return str(Cython.__version__)


class Step(NamedTuple):
    """One file to compile."""

    source: Path
    target: str  # names the library that gets the object: a module, "ours", ...
    compile: Callable[[], str]  # returns the object's path

    @property
    def cost(self) -> float:
        return LONG.get(self.source, SHORT)


class Progress:
    """Count compiled files in a line, rewritten or (not on a terminal) every 10 s."""

    def __init__(self, files: int) -> None:
        self.files = files
        self.started = self.shown = time.monotonic()
        self.rewrites = sys.stdout.isatty()
        seconds = os.environ.get("TF32DTYPE_PROGRESS", "")
        self.interval = float(seconds) if seconds else 0.2 if self.rewrites else 10.0

    def show(self, done: int, left: float) -> None:
        """Show how many files are compiled and the seconds left, if it is time to."""
        now = time.monotonic()
        if now - self.shown < self.interval and done < self.files:
            return
        self.shown = now
        line = f"tf32dtype: compiled {done} of {self.files} files"
        if done == self.files:
            line += f" in {now - self.started:.0f} s"
        elif done:
            line += f", about {left:.0f} s left"
        if self.rewrites:
            print(f"\r{line:<70}", end="\n" if done == self.files else "", flush=True)
        else:
            print(line, flush=True)


def compile_all(steps: list[Step], shown: bool) -> dict[str, list[str]]:
    """Compile in parallel, the longest steps first; return the objects by target."""
    workers = cpu_count()
    began: dict[Step, float] = {}
    took: dict[Step, float] = {}

    def timed(step: Step) -> str:
        began[step] = time.monotonic()
        compiled = step.compile()
        took[step] = time.monotonic() - began[step]
        return compiled

    pool = ThreadPoolExecutor(workers)
    progress = Progress(len(steps))
    try:
        order = sorted(steps, key=lambda step: step.cost, reverse=True)
        tasks = {step: pool.submit(timed, step) for step in order}
        waiting = set(tasks.values())
        while waiting:
            done, waiting = wait(waiting, progress.interval, FIRST_COMPLETED)
            for task in done:
                task.result()  # raises what the step raised
            if shown:
                now = time.monotonic()
                # Steps with a current object do not show the speed of this machine.
                timed_steps = [step for step in [*took] if took[step] > 0.05]
                slowness = sum(took[step] for step in timed_steps) / (
                    sum(step.cost for step in timed_steps) or 1
                )
                left = sum(
                    max(0.0, slowness * step.cost - (now - began.get(step, now)))
                    for step in steps
                    if step not in took
                )
                progress.show(len(took), left / workers)
    finally:
        pool.shutdown(cancel_futures=True)
    objects: dict[str, list[str]] = {}
    for step in steps:
        objects.setdefault(step.target, []).append(tasks[step].result())
    return objects


class BuildExt(build_ext):
    """Compile in parallel, once per instruction set, then link as usual."""

    def run(self) -> None:
        # Developers need symbols. Read `inplace` now: setuptools resets it in the run.
        self.with_symbols = bool(self.inplace or self.editable_mode)
        super().run()

    def build_extensions(self) -> None:
        os.chdir(ROOT)  # objects are named after the sources' relative paths
        self.check_tools()
        threads = self.thread_flags()
        shown = bool(self.distribution.verbose)
        objects = compile_all(self.steps(threads), shown)
        self.link(objects, threads)
        if sys.platform == "linux":
            products = [
                name for name in objects["ours"] if Path(name).stem != KERNEL_TABLE.stem
            ]
            self.link_preload([*products, *objects[PRELOAD]], threads)

    def steps(self, threads: list[str]) -> list[Step]:
        """Return all steps: Cython's modules, our C files, and the preload's C files.

        The objects of our C are "ours"; C files that use Python are "glue".
        """
        numpy_version, numpy_include = numpy_headers()
        instruction_sets = self.instruction_sets()
        # Warnings are suppressed in the headers of Python and NumPy, but not in ours.
        python_include = [d for d in self.include_dirs if Path(d).is_absolute()]
        system = [f"-isystem{d}" for d in [numpy_include, *python_include]]
        python_key = (sys.version, numpy_version)
        # Cython's output depends on NumPy's declarations for Cython (numpy.pxd).
        translator = f"{cython_version()}-numpy-{numpy_version}"
        # clang lacks some of gcc's flags.
        glue = GLUE if self.compiles("int f;", GLUE) else OPTIMIZE
        steps: list[Step] = []

        def add(target: str, label: str, source: Path, flags: list[str], *more: Any):
            compiled = partial(self.c_object, label, source, flags, *more)
            steps.append(Step(source, target, compiled))

        for ext in self.extensions:
            source = Path(ext.sources[0])
            translated = partial(
                self.cython_object, source, ext.name, translator,
                [*COMMON, *glue, "-w"], NUMPY_API, system, python_key,
            )  # fmt: skip
            steps.append(Step(source, ext.name, translated))

        best = instruction_sets[-1]
        for isa in reversed(instruction_sets):
            fallback = isa is not best and not all_sets_are_wanted()
            flags = [*COMMON, *(FALLBACK if fallback else OPTIMIZE), *WARNINGS]
            flags += isa.flags
            compact = [*COMMON, *COMPACT, *WARNINGS, *isa.flags]
            is_rare = isa is BASELINE and isa is not best and not fallback
            macros = [("TF_ISA", isa.identifier), ("TF_PLAIN_ISA", isa.plain)]
            for source in sources_in("src", kernels=True):
                is_plain = source.parent.name == "plain"
                if isa.plain == isa.identifier or not is_plain:
                    chosen = compact if is_rare and is_plain else flags
                    add("ours", isa.identifier, source, chosen, macros)
            if sys.platform == "linux":
                alone = [*macros, ("TF_PRODUCTS_ALONE", "1")]
                add(PRELOAD, isa.identifier, KERNEL_TABLE, flags, alone)

        flags = [*COMMON, *OPTIMIZE, *WARNINGS]
        built = [(f"TF_HAVE_{isa.identifier.upper()}", "1") for isa in instruction_sets]
        for source in sources_in("src", kernels=False):
            macros = built if source == DISPATCH else []
            add("ours", "common", source, [*flags, *threads], macros)
        if sys.platform == "linux":
            for source in sorted(Path("src/programs/blas/preload").glob("*.c")):
                add(PRELOAD, "common", source, flags, [])
        for source in sources_in("tf32dtype/_core", kernels=False):
            add("glue", "python", source, flags, NUMPY_API, system, python_key)
        return steps

    def instruction_sets(self) -> list[InstructionSet]:
        """Return the instruction sets to build, the best last.

        They are all sets of the compiler, or only the baseline and this machine's best.
        """
        found = [BASELINE]
        if self.compiles("#ifndef __x86_64__\n#error\n#endif\nint f;", []):
            for isa in X86_64:
                if self.compiles(isa.probe, isa.flags):
                    found.append(isa)
                else:
                    self.announce(
                        f"tf32dtype: this compiler has no {' '.join(isa.flags)};"
                        " building without that instruction set.",
                        logging.WARNING,
                    )
        if all_sets_are_wanted() or len(found) == 1:
            return found
        here = self.sets_of_this_machine()
        best = [isa for isa in found if isa.identifier in here][-1]
        if best is BASELINE:
            return [BASELINE]
        return [BASELINE, best._replace(plain=best.identifier)]

    def sets_of_this_machine(self) -> list[str]:
        """Return the identifiers of this machine's instruction sets."""
        with tempfile.TemporaryDirectory() as folder:
            source, program = Path(folder, "sets.c"), Path(folder, "sets")
            source.write_text(SETS_OF_THIS_MACHINE)
            command = [self.compiler.compiler_so[0], "-Isrc", str(source)]
            subprocess.run([*command, "-o", str(program)], check=True)
            done = subprocess.run([str(program)], stdout=subprocess.PIPE, check=True)
        return done.stdout.decode().split()

    def thread_flags(self) -> list[str]:
        """Return the flags for the threads of matrix multiplications.

        Without the flags, matrix products run on one thread; nothing else changes.
        ThreadSanitizer gets no such flags: it does not see how OpenMP's library waits,
        and would report races.
        """
        if os.environ.get("TF32DTYPE_OPENMP") == "0":
            return []
        flags = ["-fopenmp"]
        with_openmp = self.compiles("#include <omp.h>\nint f;", flags)
        return flags if with_openmp and "thread" not in SANITIZE.split(",") else []

    def link(self, objects: dict[str, list[str]], threads: list[str]) -> None:
        """Link each extension module; the core gets all of our C.

        Linking is quick and always done, because a module in build/ may have been
        linked from objects with other flags.
        """
        self.force = self.compiler.force = True
        for ext in self.extensions:
            ext.sources = []
            ext.extra_objects = objects[ext.name]
            if ext.name == CORE:
                ext.extra_objects += [*objects["ours"], *objects["glue"]]
                ext.libraries = LIBRARIES
                ext.extra_link_args += threads
            ext.extra_link_args += self.link_flags()
            self.build_extension(ext)

    def link_preload(self, objects: list[str], threads: list[str]) -> None:
        """Link the library that programs other than Python preload.

        The linker leaves out functions and tables that matrix products do not use.
        """
        self.compiler.link_shared_object(
            objects,
            str(Path(self.get_ext_fullpath(CORE)).with_name(PRELOAD)),
            libraries=LIBRARIES,
            extra_postargs=[
                "-Wl,--gc-sections",
                *threads,
                *self.link_flags(),
            ],
        )

    def link_flags(self) -> list[str]:
        """Return the flags for linking; only builds in a checkout keep the symbols."""
        strip = sys.platform == "linux" and not self.with_symbols
        return [
            *(["-Wl,--strip-all"] if strip else []),
            *([f"-fsanitize={SANITIZE}"] if SANITIZE else []),
        ]

    def copy_extensions_to_source(self) -> None:
        super().copy_extensions_to_source()
        folder = Path(*CORE.split(".")[:-1])
        built = Path(self.build_lib, folder, PRELOAD)
        if built.exists():
            self.copy_file(str(built), str(ROOT / folder / PRELOAD))

    def check_tools(self) -> None:
        if self.compiler.compiler_type != "unix":
            raise stop("It needs GCC or Clang; Microsoft's compiler will not do.")
        command = self.compiler.compiler_so[0]
        error = self.compile_errors("int f(void) { return 0; }", ["-std=c11"])
        if error is not None:
            raise stop(
                f"A working C11 compiler (GCC or Clang) is missing; {command!r}"
                f" said:\n\n{error}\n\nOn Debian and Ubuntu: {APT}\n"
                "The environment variable CC names another compiler."
            )
        include = [f"-I{directory}" for directory in self.include_dirs]
        if not self.compiles("#include <Python.h>\nint f;", include):
            version = f"{sys.version_info[0]}.{sys.version_info[1]}"
            raise stop(
                f"The header Python.h of Python {version} ({sys.executable}) is"
                f" missing.\nOn Debian and Ubuntu: {APT}\n"
                f"(for a Python that is not the system's: python{version}-dev)."
            )

    def compile_errors(self, code: str, flags: list[str]) -> str | None:
        """Compile a few lines; return the compiler's errors, or None."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "probe.c")
            source.write_text(code + "\n")
            command = [*self.compiler.compiler_so, *flags]
            command += ["-c", str(source), "-o", str(source.with_suffix(".o"))]
            try:
                done = subprocess.run(command, capture_output=True, text=True)
            except OSError as error:
                return str(error)
        return None if done.returncode == 0 else done.stderr.strip()

    def compiles(self, code: str, flags: list[str]) -> bool:
        return self.compile_errors(code, flags) is None

    def c_object(
        self,
        label: str,
        source: Path,
        flags: list[str],
        macros: list[tuple[str, str]],
        system: list[str] | None = None,
        key: object = None,
    ) -> str:
        """Compile one C file, unless its object is current; return the object's path.

        `system` has the flags for headers of Python and NumPy. The folder's name
        depends on `key` instead of these flags, because pip builds with NumPy in a new
        folder each time.
        """
        compiler = self.compiler.compiler_so
        name = fingerprint(compiler, self.compiler_version(), flags, macros, key)
        target = Path("build", "objects", f"{label}-{name}", source).with_suffix(".o")
        depfile = target.with_suffix(".d")
        if not is_current(target, depfile):
            depfile.unlink(missing_ok=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            started = time.time()
            command = [*compiler, "-Isrc", "-Itf32dtype/_core", *(system or []), *flags]
            command += [f"-D{macro}={value}" for macro, value in macros]
            command += ["-MMD", "-MF", str(depfile)]
            command += ["-c", str(source), "-o", str(target)]
            done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
            if done.returncode != 0:
                raise CompileError(f"{shlex.join(command)}\n{done.stderr}")
            if done.stderr:
                print(f"\n{done.stderr}", file=sys.stderr)
            # With the time of the start, a file that changes meanwhile counts as newer.
            os.utime(target, (started, started))
        return str(target)

    def compiler_version(self) -> str:
        if not hasattr(self, "_compiler_version"):
            done = subprocess.run(
                [self.compiler.compiler_so[0], "--version"],
                capture_output=True,
                text=True,
            )
            self._compiler_version = done.stdout
        return self._compiler_version

    def cython_object(
        self,
        source: Path,
        module: str,
        translator: str,
        flags: list[str],
        macros: list[tuple[str, str]],
        system: list[str],
        key: object,
    ) -> str:
        """Translate one Cython file and compile it; return the object's path."""
        target = Path("build", f"cython-{translator}", source).with_suffix(".c")
        depfile = Path(f"{target}.dep")
        if not is_current(target, depfile):
            target.parent.mkdir(parents=True, exist_ok=True)
            command = [sys.executable, "-m", "cython", "-3", "--depfile"]
            command += ["--module-name", module, "-I", "."]
            command += ["-o", str(target), str(source)]
            started = time.time()
            if subprocess.run(command).returncode != 0:
                raise CompileError(f"Cython could not translate {source}")
            os.utime(target, (started, started))
        return self.c_object("cython", target, flags, macros, system, key)


def with_included(sources: Iterable[Path]) -> set[Path]:
    """Return the files, and all files that they include from src/."""
    found: set[Path] = set()
    waiting = list(sources)
    while waiting:
        source = waiting.pop()
        if source not in found:
            found.add(source)
            names = re.findall(r'^#include "(.*)"', source.read_text(), re.MULTILINE)
            waiting += [ROOT / "src" / name for name in names]
    return found


class BuildPy(build_py):
    """Also copy the sources of GPU kernels, which are compiled at their first use."""

    def run(self) -> None:
        if self.editable_mode:  # the kernels' sources in the checkout are used
            super().run()
            return
        # Remove the output of earlier builds: it may hold files that no longer exist.
        shutil.rmtree(Path(self.build_lib, "tf32dtype"), ignore_errors=True)
        super().run()
        folder = Path(self.build_lib, "tf32dtype", "sources")
        for source in with_included(ROOT.glob("src/cuda/**/*.cu")):
            copy = folder / source.relative_to(ROOT / "src")
            copy.parent.mkdir(parents=True, exist_ok=True)
            self.copy_file(str(source), str(copy))


def extensions() -> list[Extension]:
    """Return an extension per Cython file; its sources also go into the sdist."""
    found = []
    for source in sorted((ROOT / "tf32dtype" / "_core").glob("*.pyx")):
        path = source.relative_to(ROOT)
        name = ".".join(path.with_suffix("").parts)
        found.append(Extension(name, [str(path)]))
    return found


if __name__ == "__main__":
    if int(setuptools.__version__.partition(".")[0]) < 77:
        raise stop(
            f"setuptools 77 or newer is needed; this is {setuptools.__version__}:"
            " pip install -U setuptools, or leave out --no-build-isolation."
        )
    setup(
        ext_modules=extensions(), cmdclass={"build_ext": BuildExt, "build_py": BuildPy}
    )
