"""Citations of pages: the package, installed without docs/, names none of its files."""

import ast
import re

import pytest

from tests.support.paths import ROOT
from tf32dtype._base import version
from tf32dtype._base.wording import PAGES, page

pytestmark = pytest.mark.once

PACKAGE = ROOT / "tf32dtype"


def strings(path):
    """Return the strings and docstrings of a Python file, or a whole Cython file."""
    if path.suffix != ".py":
        return [path.read_text()]
    nodes = ast.walk(ast.parse(path.read_text()))
    return [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


SOURCES = [x for x in PACKAGE.rglob("*.p*") if x.suffix in (".py", ".pyx", ".pxi")]


@pytest.fixture(scope="module")
def found():
    """Return every string of the package, with its file."""
    return [(x.relative_to(ROOT), text) for x in SOURCES for text in strings(x)]


def exists(name):
    return any((ROOT / "docs" / f"{name}{end}").exists() for end in (".md", ".rst"))


def test_no_string_names_a_file_of_the_documentation(found):
    assert len(SOURCES) > 200
    assert [path for path, text in found if "docs/" in text] == []


def test_pages_of_docstrings_exist(found):
    cited = {name for _, text in found for name in re.findall(r":doc:`([^`]+)`", text)}
    assert len(cited) >= 5
    assert [x for x in cited if not (x.startswith("/") and exists(x[1:]))] == []


@pytest.mark.parametrize("path", PAGES)
def test_a_message_names_a_page_by_its_title_and_its_entry_in_the_menu(path):
    folder, name = path.split("/")
    title = (ROOT / "docs" / f"{path}.md").read_text().partition("\n")[0]
    menu = (ROOT / "docs" / folder / "index.md").read_text()
    assert title == f"# {PAGES[path]}"
    assert re.findall(rf"^(.+) <{name}>$", menu, re.M) == [PAGES[path]]
    assert f"[{PAGES[path]}]({name}.md)" in menu


def test_a_page_is_named_until_the_site_has_an_address(monkeypatch):
    words = 'the page "Number formats" of the documentation'
    monkeypatch.setattr(version, "DOCUMENTATION", "")
    assert page("concepts/formats") == words
    for address in ("https://example.org/td", "https://example.org/td/"):
        monkeypatch.setattr(version, "DOCUMENTATION", address)
        assert (
            page("concepts/formats") == "https://example.org/td/concepts/formats.html"
        )
