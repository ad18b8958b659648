"""tools/gpu without a GPU: limits, kept files, and the begin of its summary."""

import importlib.machinery
import importlib.util
import sys
import tarfile
from pathlib import Path

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.once

TOOL = ROOT / "tools" / "gpu"


@pytest.fixture
def tool(monkeypatch):
    loader = importlib.machinery.SourceFileLoader("gpu_run", str(TOOL))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("gpu_run", loader)
    )
    monkeypatch.setitem(sys.modules, "gpu_run", module)
    loader.exec_module(module)
    return module


@pytest.fixture
def gpu(tool, monkeypatch):
    """Return the tool, with a build that does nothing."""
    monkeypatch.setattr(tool, "build", lambda run: [])
    return tool


def python(code):
    return [sys.executable, "-c", code]


def summary(out, step):
    return (out / f"{step}.txt").read_text().splitlines()


def kept(out, step):
    with tarfile.open(out / f"{step}.tar.gz") as tar:
        return {
            Path(member.name).name: tar.extractfile(member).read().decode()
            for member in tar.getmembers()
            if member.isfile()
        }


def test_the_first_cause_is_the_first_line(gpu, monkeypatch, tmp_path):
    def step(run, jobs):
        run.do(gpu.Part("good", python("print('fine')")))
        run.do(gpu.Part("bad", python("raise ValueError('an illegal address')")))
        run.do(gpu.Part("late", python("raise ValueError('what follows from it')")))
        return ["too few"]

    monkeypatch.setitem(gpu.STEPS, "smoke", step)
    assert gpu.main([str(tmp_path), "smoke"]) == 1
    lines = summary(tmp_path, "smoke")
    assert lines[0] == "FAILED: bad: ValueError: an illegal address"
    assert lines[-2:] == ["late: ValueError: what follows from it", "too few"]
    logs = kept(tmp_path, "smoke")
    assert set(logs) == {"good.log", "bad.log", "late.log"}
    assert "fine" in logs["good.log"]
    assert len([*tmp_path.iterdir()]) == 2


@pytest.mark.exhaustive
def test_a_part_that_hangs_is_stopped_and_its_output_kept(gpu, monkeypatch, tmp_path):
    def step(run, jobs):
        code = "import time; print('so far'); time.sleep(60)"
        run.do(gpu.Part("hangs", python(code)))
        run.do(gpu.Part("after", python("print('no time is left')")))
        return []

    monkeypatch.setitem(gpu.STEPS, "golden", step)
    assert gpu.main([str(tmp_path), "golden", "--limit", "2"]) == 1
    assert summary(tmp_path, "golden")[0].startswith(
        "FAILED: hangs: stopped after 2 s; so far"
    )
    logs = kept(tmp_path, "golden")
    assert "so far" in logs["hangs.log"]
    assert "no time" not in logs["after.log"].partition("\n")[2]


def test_results_are_saved_after_each_part(gpu, tmp_path):
    run = gpu.Run(tmp_path, "tests", 60, dry=True)
    run.do(gpu.Part("one", python("print(1)")))
    assert summary(tmp_path, "tests")[0] == "tests: ok so far"
    assert set(kept(tmp_path, "tests")) == {"one.log"}
    run.do(gpu.Part("two", python("import sys; sys.exit(5)"), passes=(0, 5)))
    assert set(kept(tmp_path, "tests")) == {"one.log", "two.log"}
    assert run.end([]) == 0
    assert summary(tmp_path, "tests")[0] == "tests: ok"


def test_steps_leave_what_others_kept(gpu, monkeypatch, tmp_path):
    """Keep the files of other steps, and of the same step in a second run."""
    runs = iter(([], [], ["worse"]))
    for step in ("smoke", "golden", "smoke"):
        monkeypatch.setitem(gpu.STEPS, step, lambda run, jobs: next(runs))
        gpu.main([str(tmp_path), step])
    assert summary(tmp_path, "smoke")[0] == "smoke: ok"
    assert summary(tmp_path, "golden")[0] == "golden: ok"
    assert summary(tmp_path, "smoke-2")[0] == "FAILED: worse"
    assert len([*tmp_path.glob("*.tar.gz")]) == 3


@pytest.mark.parametrize("line", ["differs", "opcodes other", "places differ"])
def test_a_recording_with_findings_is_not_ok(gpu, monkeypatch, tmp_path, line):
    printed = {"settled": "none", "differs": "none", "opcodes other": "none"}
    printed[line] = "mma.m16n8k8.tf32.tf32.f32"
    text = "\n".join(f"{name}: {x}" for name, x in printed.items())
    command = python(f"import sys; print({text!r}); sys.exit(1)")
    monkeypatch.setattr(gpu.Run, "python", lambda *_: command)
    assert gpu.main([str(tmp_path), "golden"]) == 1
    lines = summary(tmp_path, "golden")
    assert lines[0] == f"FAILED: golden: {line}: mma.m16n8k8.tf32.tf32.f32"
    assert lines[2].startswith("golden: status 1")


@pytest.mark.parametrize(("count", "status"), [(1249, 1), (1250, 0)])
def test_too_few_tests_are_a_failure(gpu, monkeypatch, tmp_path, count, status):
    code = f"print('== {count} passed, 3 skipped in 1.00s ==')"
    parts = [gpu.Part(name, python(code)) for name in "ab"]
    monkeypatch.setattr(gpu, "pytest_parts", lambda run, kind: iter(parts))
    assert gpu.main([str(tmp_path), "tests"]) == status
    if status:
        said = f"FAILED: only {2 * count} tests passed; 2500 must"
        assert summary(tmp_path, "tests")[0].startswith(said)


def test_pytest_runs_a_process_a_file(gpu, tmp_path):
    run = gpu.Run(tmp_path, "tests", 60, dry=False)
    parts = [*gpu.pytest_parts(run, "not exhaustive")]
    assert len({part.name for part in parts}) == len(parts) > 10
    assert parts[0].name == "test_dispatch-0"
    ends = [part.command[-4:] for part in parts]
    for path in gpu.files():
        count = gpu.SPLIT.get(path.name, 1)
        for i in range(count):
            ends.remove(
                [
                    "gpu and not exhaustive",
                    f"tests/cuda/{path.name}",
                    "--part",
                    f"{i}/{count}",
                ]
            )
    assert not ends


def test_a_test_that_hangs_ends_before_its_file_does(gpu, monkeypatch, tmp_path):
    """End a test that hangs by a thread, as it may hang in the driver."""
    monkeypatch.setattr(gpu.importlib.util, "find_spec", lambda name: True)
    run = gpu.Run(tmp_path, "tests", 60, dry=False)
    for part in gpu.pytest_parts(run, "not exhaustive"):
        command = " ".join(part.command)
        assert " --timeout 300 --timeout-method=thread " in command
        assert part.seconds == 400


def test_products_are_watched_a_check_a_process(gpu, monkeypatch, tmp_path):
    monkeypatch.setattr(gpu.shutil, "which", lambda name: name)
    seen = {}

    def do(part):
        seen[part.name] = part.command

    for step in (gpu.sanitizer, gpu.profile):
        run = gpu.Run(tmp_path, step.__name__, 60, dry=False)
        monkeypatch.setattr(run, "do", do)
        assert step(run, 1) == []
        assert ("TF32DTYPE_SMALL" in run.environment) == (step is gpu.sanitizer)
    tools = {"memcheck": "compute-sanitizer", "racecheck": "compute-sanitizer",
             "profile": "ncu"}  # fmt: skip
    products = {f"{x}-{y}" for x in tools for y in ("every_tile", "wgmma")}
    plain = {f"memcheck-{x}" for x in ("cast_add", "chain_small", "block_formats")}
    assert set(seen) > products | plain
    for name, command in seen.items():
        tool, check = name.split("-")
        assert command[0] == tools[tool]
        assert command[-2:] == ["--here", check]
    assert "regex:native|wgmma" in seen["profile-wgmma"]


def lacking(tool, monkeypatch, *programs):
    found = tool.shutil.which
    monkeypatch.setattr(
        tool.shutil, "which", lambda name: None if name in programs else found(name)
    )


def statuses(tool, monkeypatch, run, tmp_path, **of):
    """Let commands of a build end with these codes, and return the list of run ones."""
    ran = []

    def do(part):
        ran.append(part.name)
        return tool.Done(part.name, of[part.name], 0, tmp_path, part.passes)

    monkeypatch.setattr(run, "do", do)
    return ran


def test_what_building_lacks_is_said(tool, monkeypatch, tmp_path):
    run = tool.Run(tmp_path, "smoke", 60, dry=True)
    lacking(tool, monkeypatch, "gcc")
    assert tool.build(run) == []  # the existing module is enough
    statuses(tool, monkeypatch, run, tmp_path, **{"import": 1})
    (said,) = tool.build(run)
    assert said.startswith("not here: gcc")  # also Cython, if it is not installed
    assert "; nor has tf32dtype/_core/_core.cpython" in said


def test_after_a_build_that_fails_what_came_along_serves(tool, monkeypatch, tmp_path):
    monkeypatch.setattr(tool, "missing", lambda: [])
    run = tool.Run(tmp_path, "smoke", 60, dry=False)
    ran = statuses(tool, monkeypatch, run, tmp_path, build=1, **{"import": 0})
    assert tool.build(run) == []
    assert ran == ["build", "import"]
    statuses(tool, monkeypatch, run, tmp_path, build=1, **{"import": 1})
    (said,) = tool.build(run)
    assert said.startswith("no build; nor has tf32dtype/_core/_core.cpython")


def test_what_came_along_is_taken_at_once_if_it_is_asked_for(
    tool, monkeypatch, tmp_path
):
    monkeypatch.setattr(tool, "missing", lambda: [])
    run = tool.Run(tmp_path, "smoke", 60, dry=False, built=True)
    ran = statuses(tool, monkeypatch, run, tmp_path, **{"import": 0})
    assert tool.build(run) == []
    assert ran == ["import"]
    ran = statuses(tool, monkeypatch, run, tmp_path, **{"import": 1, "build": 0})
    assert tool.build(run) == []
    assert ran == ["import", "build"]


def test_only_tests_need_a_compiler_of_cpp(tool, monkeypatch, tmp_path):
    lacking(tool, monkeypatch, "g++")
    assert "g++" not in tool.missing()
    monkeypatch.setattr(tool, "build", lambda run: [])
    code = f"print('== {tool.LEAST_TESTS} passed in 1.00s ==')"
    part = tool.Part("some", python(code))
    monkeypatch.setattr(tool, "pytest_parts", lambda run, kind: iter([part]))
    monkeypatch.setattr(tool.Run, "python", lambda *_: python("print('fine')"))
    for step in ("smoke", "golden", "benchmark"):
        assert tool.main([str(tmp_path), step]) == 0
    for step in ("tests", "exhaustive"):
        assert tool.main([str(tmp_path), step]) == 1
        lines = summary(tmp_path, step)
        assert lines[0] == "FAILED: not here: g++, without which tests skip"
        assert lines[2].startswith("some: ok")


def test_our_benchmark_is_found_by_its_path(gpu, tmp_path, monkeypatch):
    seen = []

    def do(part):
        seen.append(part.command)
        (tmp_path / "log").write_text("")
        return gpu.Done(part.name, 0, 0, tmp_path / "log", (0,))

    run = gpu.Run(tmp_path, "benchmark", 60, dry=False)
    monkeypatch.setattr(run, "do", do)
    assert gpu.benchmark(run, 1) == []
    assert seen[0][1] == "benchmarks/cuda/gpu.py"


def test_an_unknown_step(gpu, tmp_path, capsys):
    with pytest.raises(SystemExit):
        gpu.main([str(tmp_path), "everything"])
    assert "choose from" in capsys.readouterr().err
