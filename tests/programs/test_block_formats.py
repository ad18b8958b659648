"""Block formats are measured, but rejected as a precision, wherever one is named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tf32dtype._cli.main import main

NAMES = [*td.blocks.formats, "mxfp8", "NVFP4"]
A = np.ones((2, 2), np.float32)


def message(name: str, kinds: str) -> str:
    """Return the message of the error."""
    return (
        "precision must not be a block format, which intercepted matrix"
        f" multiplications cannot use; got {name!r}. To measure it, use `tf32dtype"
        f" report --precision {kinds} PROGRAM` or `tf32dtype compare A B --precision"
        f" {kinds}`. To multiply in it, use td.blocks.quantize"
    )


def kinds_of(name: str) -> str:
    if name == "mxfp6":
        return "mxfp6_e2m3,mxfp6_e3m2"
    return td.blocks.formats[name].name


@pytest.mark.parametrize("name", [*NAMES, "mxfp6"])
def test_functions(name: str) -> None:
    wanted = message(name, kinds_of(name))
    for call in (
        lambda: td.matmul_precision(name),  # type: ignore[arg-type]
        lambda: td.matmul_precision(name, blas=True),  # type: ignore[arg-type]
        lambda: td.set_matmul_precision(name),  # type: ignore[arg-type]
        lambda: td.matmul(A, A, precision=name),  # type: ignore[call-overload]
        lambda: td.matmul(A, A, precision=name, device="H100"),  # type: ignore[call-overload]
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(wanted)}$"):
            call()


def test_dask() -> None:
    da = pytest.importorskip("dask.array")
    x = da.from_array(A)
    with pytest.raises(ValueError, match=re.escape(message("mxfp4", "mxfp4"))):
        td.interop.dask.matmul(x, x, precision="mxfp4")  # type: ignore[arg-type]


@pytest.mark.parametrize("default", [True, False])
def test_plans(tmp_path: Path, default: bool) -> None:
    path = tmp_path / "plan.toml"
    site = (
        '[[call_site]]\nprecision = "nvfp4"\n'
        'user = {file = "a.py", function = "<module>", text = "a @ a"}\n'
    )
    path.write_text("version = 1\n" + ('default = "nvfp4"\n' if default else site))
    wanted = re.escape(f"{path}: {message('nvfp4', 'nvfp4')}")
    with pytest.raises(ValueError, match=f"^{wanted}$"):
        td.matmul_precision(plan=path)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "command",
    [
        ["run", "--precision", "NAME", "prog.py"],
        ["run", "--no-blas", "--precision", "NAME", "prog.py"],
        ["run", "--precision", "NAME", "--device", "H100", "prog.py"],
        ["blas", "--precision", "NAME", "true"],
        [
            "tune",
            "--precisions=bf16,NAME",
            "--check=file:x",
            "--tolerance=1",
            "prog.py",
        ],
    ],
)
def test_commands(
    name: str, command: list[str], tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    (tmp_path / "prog.py").write_text("print(1)\n")
    monkeypatch.chdir(tmp_path)
    words = [word.replace("NAME", name) for word in command]
    assert main(words) == 2
    wanted = message(name, kinds_of(name))
    assert capsys.readouterr().err == f"tf32dtype {words[0]}: {wanted}\n"


def test_a_plan_on_the_command_line(
    tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    (tmp_path / "plan.toml").write_text('version = 1\ndefault = "mxfp4"\n')
    (tmp_path / "prog.py").write_text("print(1)\n")
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--plan", "plan.toml", "prog.py"]) == 2
    assert message("mxfp4", "mxfp4") in capsys.readouterr().err


@pytest.mark.parametrize("also", [{}, {"TF32DTYPE_BLAS": "float64"}])
def test_the_environment_variable(also: dict[str, str]) -> None:
    variables = {"TF32DTYPE_MATMUL_PRECISION": "mxfp4", **also}
    done = subprocess.run(
        [sys.executable, "-c", "import tf32dtype"],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    names = " and ".join(variables)
    last = done.stderr.splitlines()[-1]
    assert last == f"ImportError: {names}: {message('mxfp4', 'mxfp4')}"


def test_the_commands_that_the_message_names(
    tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", A)
    for name in td.blocks.formats:
        assert main(["compare", "a.npy", "a.npy", "--precision", name]) == 0
        assert name in capsys.readouterr().out
    x = np.ones((64, 64), np.float32)
    with td.report(precision=[*td.blocks.formats]) as r:
        x @ x
    assert [*r.call_sites[0].figures.errors] == ["f32", *td.blocks.formats]


def test_what_only_looks_like_one() -> None:
    for name in ("mxfp5", "nvfp8"):
        with pytest.raises(ValueError, match="precision must be one of"):
            td.matmul_precision(name)  # type: ignore[arg-type]
