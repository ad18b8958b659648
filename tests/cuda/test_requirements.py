"""One line reports a missing requirement, with or without CuPy, a driver and a GPU."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import forks
from tests.support.paths import ROOT

#: The parts of CuPy that the check uses. The test replaces the names in capitals.
CUPY = """
class CUDARuntimeError(RuntimeError):
    pass
class runtime:
    CUDARuntimeError = CUDARuntimeError
    is_hip = HIP
    def getDeviceCount():
        COUNT
class cuda:
    runtime = runtime
__version__ = "VERSION"
"""
NO_DRIVER = "raise CUDARuntimeError('cudaErrorInsufficientDriver: too old')"

CASES = {
    "no CuPy": (
        "raise ImportError('No module named cupy')",
        "tf32dtype.cuda needs CuPy, which cannot be imported (No module named cupy)."
        " Use pip install 'cupy-cuda13x>=14.0.1' 'nvidia-cuda-nvrtc>=13' (CUDA 12:",
    ),
    "an old CuPy": (
        CUPY.replace("VERSION", "13.6.0").replace("COUNT", "return 1"),
        "tf32dtype.cuda needs CuPy 14.0.1 or newer, whose arrays support dtypes of"
        " other libraries; got CuPy 13.6.0. Use pip install 'cupy-cuda13x",
    ),
    "CuPy 14.0.0": (
        CUPY.replace("VERSION", "14.0.0").replace("COUNT", "return 1"),
        "got CuPy 14.0.0",
    ),
    "AMD": (
        CUPY.replace("VERSION", "14.2.0").replace("HIP", "True"),
        "tf32dtype.cuda needs an NVIDIA GPU; got a CuPy for AMD GPUs",
    ),
    "no driver": (
        CUPY.replace("VERSION", "14.2.0").replace("COUNT", NO_DRIVER),
        "tf32dtype.cuda needs an NVIDIA GPU and its driver; got"
        " cudaErrorInsufficientDriver: too old",
    ),
    "no GPU": (
        CUPY.replace("VERSION", "15.0.0rc1").replace("COUNT", "return 0"),
        "tf32dtype.cuda needs an NVIDIA GPU; got none",
    ),
}


def run(tmp_path: Path, cupy: str, *command: str) -> subprocess.CompletedProcess[str]:
    text = cupy.replace("HIP", "False").replace("COUNT", "return 1")
    (tmp_path / "cupy.py").write_text(text)
    path = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; "
    if command[0] == "-c":
        command = ("-c", path + command[1])
    return forks.python(*command, cwd=tmp_path, PYTHONPATH=f"{tmp_path}:{ROOT}")


@pytest.mark.parametrize("case", CASES)
def test_import(tmp_path: Path, case: str) -> None:
    cupy, words = CASES[case]
    code = """
try:
    import tf32dtype.cuda
except ImportError as error:
    print(error)
"""
    done = run(tmp_path, cupy, "-c", f"exec({code!r})")
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == 1
    assert words in said[0]


@pytest.mark.parametrize("case", ["no CuPy", "no driver", "no GPU"])
def test_the_recorder(tmp_path: Path, case: str) -> None:
    words = {
        "no CuPy": "CuPy is not installed (No module named cupy). Use pip install",
        "no driver": "there is no NVIDIA GPU, or no driver for it: cudaError",
        "no GPU": "there is no NVIDIA GPU",
    }[case]
    cupy, _ = CASES[case]
    done = run(tmp_path, cupy, "-m", "tools.tensor_core_recorder", "--out", "x")
    assert done.returncode == 1
    assert done.stdout == ""
    said = done.stderr.splitlines()
    assert len(said) == 1, done.stderr
    assert said[0].startswith(f"tensor_core_recorder: {words}")


def test_another_program_sees_the_error(tmp_path: Path) -> None:
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "__init__.py").write_text(
        "try:\n    import tf32dtype.cuda\nexcept ImportError:\n    print('without')\n"
    )
    (tmp_path / "program" / "part.py").write_text("print('part')\n")
    done = run(tmp_path, CASES["no CuPy"][0], "-m", "program.part")
    assert done.stdout.splitlines() == ["without", "part"], done.stderr


def test_the_real_cupy(tmp_path: Path) -> None:
    """The message names this machine's missing requirement, or nothing is missing."""
    code = "import tf32dtype.cuda as tfc; print(tfc.asarray([1.5], 'bf16').get())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          cwd=ROOT)  # fmt: skip
    if done.returncode == 0:
        assert done.stdout == "[1.5]\n"
    else:
        last = done.stderr.splitlines()[-1]
        assert last.startswith("ImportError: tf32dtype.cuda needs ")


def test_sources_are_installed(tmp_path: Path) -> None:
    """Kernels are compiled from files that are installed with the package."""
    pytest.importorskip("setuptools", "77")
    built = tmp_path / "lib"
    command = ["setup.py", "-q", "egg_info", "--egg-base", str(tmp_path), "build_py"]
    done = subprocess.run(
        [sys.executable, *command, "--build-lib", str(built)], cwd=ROOT,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    installed = built / "tf32dtype"
    spec = importlib.util.spec_from_file_location(
        "tf32dtype._base.nvrtc", installed / "_base" / "nvrtc.py"
    )
    assert spec is not None
    assert spec.loader is not None
    copied = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copied)
    assert list(copied.FOLDERS) == [installed / "sources"]
    kernels = sorted((ROOT / "src" / "cuda").rglob("*.cu"))
    assert kernels
    for kernel in kernels:
        name = kernel.relative_to(ROOT / "src").as_posix()
        assert copied.sources(name)[name] == kernel.read_text()
    modules = {x.name for x in (ROOT / "tf32dtype" / "cuda").glob("*.py")}
    assert modules <= {x.name for x in (installed / "cuda").glob("*.py")}
