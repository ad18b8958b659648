"""tools/prose.py flags wordings against the style guide; counts may only fall."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tools import prose

pytestmark = pytest.mark.once

#: For each rule, a sentence that it flags, and one that it does not.
RULES = {
    "alone": (
        "It reads floats alone.",
        "It reads [only](a.md#alone) floats, let alone integers.",
    ),
    "is-no": ("0 is no code.", "There is no code. It is no longer one, is no faster."),
    "opens": ("It ends. Of each, 4 bits are kept.", "Of course. What is a code?"),
    "what": (
        "It fails for what is kept.",
        "It says what it keeps. In what is it kept?",
    ),
    "per": (
        "It takes 3 bits a value.",
        "How many bits a value has, and which tile a block has.",
    ),
    "word": ("The greatest number obeys.", "The greatest common divisor."),
    "vague": ("The texts are here.", "There is a way to begin in place."),
    "marks": ("It fails; it ends; it stops.", "It fails; it ends: `a: b: c`."),
    "long": (
        "One " + "word " * 30 + "ends.",
        "One " + "word " * 20 + "ends. " + "Ends. " * 20,
    ),
    "code-first": (
        "# Title\n\n```\ncode\n```\n\nProse.",
        "# Title\n\nProse.\n\n    code\n",
    ),
    "length": ("Word. " * 1501, "Word. " * 1400 + "\n\n| cell |" + " cell |" * 200),
}


def found(path: str, text: str) -> list[tuple[int, str]]:
    return [(hit.line, hit.rule) for hit in prose.find(path, text, Counter())]


@pytest.mark.parametrize("rule", RULES)
def test_rules(rule: str) -> None:
    flagged, right = RULES[rule]
    assert rule in {name for _, name in found("docs/page.md", flagged)}
    assert not found("docs/page.md", right)
    assert {*prose.RULES, "long", "code-first", "length"} == {*RULES}


FOUND_IN = {
    "a.md": "Right.\n\n```\nx alone\n```\n<!-- table:x begin -->\nx alone\n"
    "<!-- table:x end -->\n`alone`\n\n    x alone\n\n| a | b\nalone |\n- x\n  alone\n",
    "a.rst": "Right.\n\n.. code:: sh\n\n   x alone\n\nRight::\n\n    x alone\n\n"
    "x\nalone\n",
    "a.py": 'x = """alone"""\ndef f():\n    """Right.\n\n    >>> x alone\n\n    x\n'
    '    alone"""\n    # x\n    # alone\n    raise ValueError(f"{x} " "alone")\n'
    'f(help=f"x {y:alone} alone")\n',
    "a.pxi": 'cdef extern from *:\n    """\n    int alone;\n    """\nraise E(\n'
    '    f"{x} alone")  # x alone\n',
    "a.cu": '/* x\n * alone */ int alone; // x\n// alone\n"// alone";',
    "docs/explorer/a.js": 'f("x-alone", "the value alone counts"); // alone\n',
    "docs/explorer/a.html": "<p\nclass=alone>x\nalone</p><script>alone()</script>\n",
    "a.json": '"x alone"',
}
LINES = {
    "a.md": [14, 16],
    "a.rst": [12],
    "a.py": [8, 10, 11, 12],
    "a.pxi": [6, 6],
    "a.cu": [2, 3],
    "docs/explorer/a.js": [1, 1],
    "docs/explorer/a.html": [3],
    "a.json": [],
}


@pytest.mark.parametrize("path", FOUND_IN)
def test_where_prose_is(path: str) -> None:
    lines = [line for line, rule in found(path, FOUND_IN[path]) if rule == "alone"]
    assert sorted(lines) == LINES[path]


def test_a_page_is_named_only_in_comments() -> None:
    text = '"""See docs/index.md."""\n# docs/index.md\n'
    assert found("tf32dtype/a.py", text) == [(1, "page")]
    assert not found("tests/a.py", text)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    if not shutil.which("git"):
        pytest.skip("needs git")
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/prose.py", tmp_path / "tools")
    git(tmp_path, "init", "--quiet")
    (tmp_path / "a.md").write_text("It reads x alone.\n\nIt reads y alone.\n")
    git(tmp_path, "add", ".")
    assert run(tmp_path, "--update", "--force") == (0, "")
    assert run(tmp_path, "--check") == (0, "")
    return tmp_path


def git(checkout: Path, *arguments: str) -> str:
    name = ["-c", "user.name=name", "-c", "user.email=name@example.org"]
    command = ["git", "-C", str(checkout), *name, *arguments]
    return subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


def run(checkout: Path, *arguments: str) -> tuple[int, str]:
    """Return the exit code, and the output without the line on the missing commit."""
    command = [sys.executable, checkout / "tools/prose.py", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    rows = done.stdout.splitlines(keepends=True)
    return done.returncode, "".join(x for x in rows if "is not in this clone" not in x)


def test_a_count_may_only_fall(checkout: Path) -> None:
    page = checkout / "a.md"
    baseline = checkout / "tools/prose_baseline.tsv"
    assert baseline.read_text() == "2\ta.md\n"
    page.write_text("It reads x alone.\n" * 3)
    code, said = run(checkout, "--check")
    assert (code, said.count("a.md:")) == (1, 3)
    assert "a.md has 3 errors; baseline: 2" in said
    assert run(checkout, "--update") == (0, "")
    assert baseline.read_text() == "2\ta.md\n"
    page.write_text("It reads x alone.\n")
    assert run(checkout, "--check")[0] == 0
    assert run(checkout, "--update") == (0, "")
    assert baseline.read_text() == "1\ta.md\n"
    page.write_text("It reads x alone.\n" * 2)
    assert run(checkout, "--check")[0] == 1


def test_a_new_file_starts_at_0(checkout: Path) -> None:
    (checkout / "b.md").write_text("It reads x alone.\n")
    assert run(checkout, "--check")[0] == 0, "git does not know it"
    git(checkout, "add", "b.md")
    assert run(checkout, "--check")[0] == 1
    assert run(checkout, "--update") == (0, "")
    assert run(checkout, "--check")[0] == 1
    assert run(checkout, "--update", "--force") == (0, "")
    assert run(checkout, "--check") == (0, "")


def test_subjects(checkout: Path) -> None:
    git(checkout, "commit", "--quiet", "-m", "x" * 73)
    base = git(checkout, "rev-parse", "HEAD")
    git(checkout, "commit", "--quiet", "--allow-empty", "-m", "y" * 72)
    assert run(checkout, "--check", "--commits", base) == (0, "")
    for subject in ("z" * 73, "a; b"):
        git(checkout, "commit", "--quiet", "--allow-empty", "-m", subject)
        code, said = run(checkout, "--check", "--commits", base)
        assert code == 1
        assert f"subject: {subject}" in said
    assert "y" * 72 not in said


def test_rates_of_areas(checkout: Path) -> None:
    code, said = run(checkout, "a.md")
    assert code == 0
    assert said == (
        "a.md:1: alone: It reads x alone.\na.md:3: alone: It reads y alone.\n"
        "docs: 250.0 errors per 1,000 words\n"
    )
