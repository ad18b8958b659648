"""The wheel that pip builds from a checkout: its files, and that they are enough."""

from __future__ import annotations

import configparser
import email
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import tf32dtype as td
from tests.support.paths import ROOT, SRC
from tf32dtype._base.nvrtc import sources

pytestmark = pytest.mark.once

#: The size of a wheel without libgomp, which auditwheel adds: two thirds is compiled.
MOST_BYTES = 3_320_000
#: The build requires it, as setup.py says.
SETUPTOOLS = "77"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
KERNELS = sorted(str(path.relative_to(SRC)) for path in SRC.glob("cuda/**/*.cu"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel for this Python, without compiling objects in build/ again.

    Parallel processes of tests would write to the same folders in build/. The first
    process builds, and the others take its wheel.
    """
    pytest.importorskip("Cython")
    pytest.importorskip("setuptools", minversion=SETUPTOOLS)
    fcntl = pytest.importorskip("fcntl")
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder /= "wheel"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not any(folder.glob("*.whl")):
            build_wheel(folder)
    (found,) = folder.glob("*.whl")
    return found


def build_wheel(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def files(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def information(files: dict[str, bytes]) -> str:
    """Return the folder of metadata."""
    return f"tf32dtype-{td.__version__}.dist-info/"


def test_it_has_every_file_of_the_package(files):
    package = ROOT / "tf32dtype"
    wanted = [*package.rglob("*.py"), *package.rglob("*.pyi"), package / "py.typed"]
    wanted += package.glob("cuda/crossover/*.json")
    wanted += [package / "_cli" / "digits.npz"]
    missing = {str(path.relative_to(ROOT)) for path in wanted} - files.keys()
    assert len(wanted) > 100
    assert not missing


def test_it_has_what_gpu_kernels_are_made_of_and_no_other_source(files):
    wanted = {name for kernel in KERNELS for name in sources(kernel)}
    wanted = {f"tf32dtype/sources/{name}" for name in wanted if (SRC / name).exists()}
    found = {name for name in files if name.startswith("tf32dtype/sources/")}
    assert found == wanted


def test_it_has_nothing_else(files, information):
    folders = {name.partition("/")[0] + "/" for name in files}
    assert folders == {"tf32dtype/", information}
    others = {
        name
        for name in files
        if name.startswith("tf32dtype/")
        and not name.startswith("tf32dtype/sources/")
        and not name.endswith((".py", ".pyi", ".so", "py.typed", ".json", ".npz"))
    }
    assert not others


def test_it_has_the_libraries_without_symbols(files):
    libraries = {Path(name).name: files[name] for name in files if name.endswith(".so")}
    if sys.platform == "linux":
        assert "tf32dtype_blas.so" in libraries
        # The name of the section exists even if the table is empty.
        assert not [name for name, data in libraries.items() if b"\0.symtab\0" in data]
    assert any(name.startswith("_core.") for name in libraries)


@pytest.mark.skipif(
    os.environ.get("TF32DTYPE_ISAS") != "all", reason="has not all instruction sets"
)
def test_it_is_small(wheel):
    assert wheel.stat().st_size <= MOST_BYTES


def test_it_does_not_know_where_it_was_built(files):
    here = str(ROOT).encode()
    assert not [name for name, data in files.items() if here in data]


def test_metadata(files, information):
    found = email.message_from_bytes(files[information + "METADATA"])
    assert found["Name"] == "tf32dtype"
    assert found["Version"] == td.__version__
    assert found["Requires-Python"] == PROJECT["requires-python"]
    needed = [x for x in found.get_all("Requires-Dist", []) if "extra ==" not in x]
    assert needed == PROJECT["dependencies"]
    assert set(found.get_all("Provides-Extra")) == {*PROJECT["optional-dependencies"]}
    assert files[information + "licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()


def test_entry_points(files, information):
    found = configparser.ConfigParser(delimiters="=")
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read_string(files[information + "entry_points.txt"].decode())
    wanted = {"console_scripts": PROJECT["scripts"], **PROJECT["entry-points"]}
    assert {name: dict(found[name]) for name in found.sections()} == wanted


TRIED = """
import sys
import tarfile
import numpy as np, tf32dtype as td
from tf32dtype._base import nvrtc
from tf32dtype._cli.main import main

print(td.__file__)
assert td.isa() and float((np.ones(4, td.bf16) @ np.ones(4, td.bf16))) == 4
assert all(nvrtc.sources(kernel) for kernel in sys.argv[1:])
main(["formats"])
main(["run", "--precision", "tf32", "--quiet", "multiply.py"])
"""


def test_it_works_where_there_is_no_checkout(wheel, tmp_path):
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    (tmp_path / "multiply.py").write_text(
        "import numpy as np\n"
        "a = np.full((4, 4), 1 + 2**-12, np.float32)\n"
        "print('products', (a @ a)[0, 0])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", TRIED, *KERNELS],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(installed))
    assert "products 4.0" in done.stdout  # 2^-12 is below half of tf32's spacing


def test_workflows_are_yaml_that_runs_what_is_there():
    yaml = pytest.importorskip("yaml")
    for name in ("tests", "wheels"):
        text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text()
        found = yaml.safe_load(text)
        assert found["name"] == name
        assert found["permissions"] == {"contents": "read"}
        for job in found["jobs"].values():
            steps = job["steps"]
            assert steps[0]["uses"].startswith("actions/checkout@")
            assert all(("run" in step) != ("uses" in step) for step in steps)
        assert "Untested" in text
    assert (ROOT / ".ci" / "run").exists()


def test_citation_and_templates_are_yaml():
    yaml = pytest.importorskip("yaml")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == td.__version__
    assert cited["license"] == PROJECT["license"]
    assert cited["abstract"] == PROJECT["description"]
    forms = [*(ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")]
    assert len(forms) == 3
    for form in map(yaml.safe_load, (path.read_text() for path in forms)):
        assert form.keys() == {"name", "description", "labels", "body"}
        assert {x["type"] for x in form["body"]} <= {"textarea", "checkboxes"}


def test_cibuildwheel_copies_what_the_tests_read():
    """Copy all of the checkout but the package, so that the installed one is tested."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    copied = project["tool"]["cibuildwheel"]["test-sources"]
    assert all((ROOT / name).exists() for name in copied)
    assert "tf32dtype" not in copied


def test_sdist_has_the_checkout_and_nothing_that_was_built(tmp_path):
    pytest.importorskip("setuptools", minversion=SETUPTOOLS)
    if not (ROOT / ".git").exists():
        pytest.skip("no clone of the repository")
    code = "import sys; from setuptools.build_meta import build_sdist; "
    code += "build_sdist(sys.argv[1])"
    command = [sys.executable, "-c", code, str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(tmp_path / f"tf32dtype-{td.__version__}.tar.gz") as archive:
        members = [x.name for x in archive.getmembers() if x.isfile()]
    found = {name.partition("/")[2] for name in members}
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    kept = {name for name in listed.stdout.split("\n") if (ROOT / name).is_file()}
    assert kept - found == {".gitignore"}
    assert not [
        name
        for name in found
        if name.startswith(("build/", "dist/")) or name.endswith((".so", ".o", ".pyc"))
    ]
