"""The site: links that work, and a reference that has every public name.

`make docs` builds the site. Tests of its pages skip if the pages are missing, unless
TF32DTYPE_NEED_SITE is set. No test uses the network: links to other sites are checked
by their hosts.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.support.documents import DOCUMENTS, REFERENCE
from tests.support.paths import ROOT

pytestmark = pytest.mark.once

SITE = ROOT / "build" / "docs"
TEXTS = [*DOCUMENTS, ROOT / "src" / "README.md", ROOT / "CONTRIBUTING.md"]

#: Hosts that the pages link to.
HOSTS = set(
    "arxiv.org cupy.dev docs.nvidia.com github.com pypi.org www.intel.com"
    " www.opencomputeproject.org scientific-python.org".split()
)

#: Modules with public names, by the folders and files of tf32dtype/.
MODULES = """
    __init__ blocks/__init__ tensor_core/__init__ cuda/__init__ cuda/blocks/__init__
    linalg safetensors hdf5 testing interop/arrow interop/dask/__init__ interop/gguf
    interop/numba interop/onnx interop/torch/__init__ interop/zarr
""".split()


# -- sources of pages ------------------------------------------------------------------


def plain(path: Path) -> str:
    """Return the source of a page without its code."""
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", path.read_text(), flags=re.M | re.S)


def links(path: Path) -> list[str]:
    """Return the links and the pictures of a page."""
    text = plain(path)
    found = re.findall(r"\]\(<?([^)>\s]+)>?\)", text)
    return found + re.findall(r"""(?:src|srcset)=["']([^"']+)["']""", text)


@cache
def headings(path: Path) -> set[str]:
    """Return the anchors that GitHub makes from the headings of a page."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", x.lower()).replace(" ", "-") for x in titles}


def broken(path: Path) -> Iterator[str]:
    """Yield the broken links of a page."""
    for link in links(path):
        target, _, anchor = link.partition("#")
        if "://" in target or target.endswith("explorer/index.html"):
            continue
        there = path.parent / target if target else path
        if not there.exists() or (
            anchor and there.suffix == ".md" and anchor not in headings(there)
        ):
            yield link


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    assert list(broken(path)) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text(
        "# A `b`, c\n[1](#a-b-c) [2](#b) [3](no.md)\n<img src='no.png'>\n"
        "[4](a.md#a-b-c) [5](https://example.org)\n`[6](no.md)`\n"
    )
    assert list(broken(path)) == ["#b", "no.md", "no.png"]


def test_addresses_of_others_are_known() -> None:
    found = {link for path in TEXTS for link in links(path) if "://" in link}
    assert len(found) > 10
    assert {urlsplit(link).hostname for link in found} <= HOSTS
    assert {urlsplit(link).scheme for link in found} == {"https"}


# -- the reference ---------------------------------------------------------------------


def public(module: str) -> set[str]:
    """Read the public names of a module from its file: libraries may be missing."""
    tree = ast.parse((ROOT / "tf32dtype" / f"{module}.py").read_text())
    own = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            assert isinstance(node.value, ast.List)
            return {x.value for x in node.value.elts if isinstance(x, ast.Constant)}
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            own.add(node.name)
    return {name for name in own if not name.startswith("_")}


def dotted(module: str) -> str:
    return ".".join(["tf32dtype", *module.split("/")]).removesuffix(".__init__")


def documented(path: Path) -> set[str]:
    """Return the full names that a page of the reference describes."""
    found, module = set(), ""
    for line in path.read_text().splitlines():
        if home := re.match(r"\.\. (?:auto)?module:: (\S+)", line):
            module = home[1]
        elif name := re.match(r"\.\. auto(?:class|function|data):: (\S+)", line):
            found.add(f"{module}.{name[1]}")
    return found


#: Aliases, modules, and a string.
OTHERS = {
    "tf32dtype": set(
        """__version__ bf16 blocks fp4 fp8_e4m3 fp8_e5m2 hdf5 interop linalg
        safetensors tensor_core testing""".split()
    ),
    "tf32dtype.cuda": {"blocks"},
}


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_in_the_reference(module: str) -> None:
    home = dotted(module)
    names = public(module) - OTHERS.get(home, set())
    assert names
    found = set().union(*(documented(path) for path in REFERENCE.glob("*.rst")))
    of_module = {x for x in found if x.rpartition(".")[0] == home}
    assert of_module == {f"{home}.{name}" for name in names}


def test_the_modules_are_all_there_are() -> None:
    interop = ast.parse((ROOT / "tf32dtype" / "interop" / "__init__.py").read_text())
    [names] = [
        ast.literal_eval(node.value)
        for node in interop.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    shown = {dotted(x).rpartition(".")[2] for x in MODULES if x.startswith("interop/")}
    assert shown == set(names)
    modules = {x.name.removesuffix(".py") for x in (ROOT / "tf32dtype").glob("[a-z]*")}
    assert modules & OTHERS["tf32dtype"] == {
        *(x.partition("/")[0] for x in MODULES if x != "__init__" and "cuda" not in x)
    }


def test_the_index_has_every_function() -> None:
    """List functions by task, but not classes of results and variants of a function."""
    text = (REFERENCE / "api.rst").read_text()
    listed = {f"tf32dtype.{name}" for name in re.findall(r"^   ([\w.]+)$", text, re.M)}
    every = set().union(*(documented(path) for path in REFERENCE.glob("*.rst")))
    modules = "blocks tensor_core linalg cuda safetensors hdf5 testing"
    pages = {dotted(name) for name in modules.split()}
    listed -= pages | {"tf32dtype.interop", "tf32dtype.tf32dtype"}
    assert listed <= every
    left = {name.removeprefix("tf32dtype.") for name in every - listed}
    assert left == set(
        """cuda.empty_like cuda.full_like cuda.ones_like cuda.zeros_like
        interop.arrow.NumberArray interop.arrow.NumberScalar interop.arrow.NumberType
        interop.dask.WorkersPrecision interop.gguf.File interop.torch.GroupRow
        interop.torch.LayerRow interop.torch.ProductErrors interop.torch.RangeLost
        safetensors.SafeTensors safetensors.TensorInfo""".split()
    )


# -- the pages -------------------------------------------------------------------------


class Page(HTMLParser):
    """The anchors and links of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors |= {given[x] or "" for x in ("id", "name") if x in given}
        self.links += [given[x] or "" for x in ("href", "src") if x in given]


@pytest.fixture(scope="module")
def pages() -> dict[Path, Page]:
    if not (SITE / "index.html").exists():
        if "TF32DTYPE_NEED_SITE" in os.environ:
            pytest.fail("make docs has made no site")
        pytest.skip("make docs has not been run")
    files = [x for x in SITE.rglob("*.html") if "_static" not in x.parts]
    return {path: Page(path) for path in files if "explorer" not in path.parts}


def test_pages_lead_somewhere(pages: dict[Path, Page]) -> None:
    missing = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("//"):
                continue
            target = unquote(parts.path)
            there = (path.parent / target).resolve() if target else path
            anchor = unquote(parts.fragment)
            known = pages[there].anchors if there in pages else None
            if not there.exists() or (
                anchor and known is not None and anchor not in known
            ):
                missing.append(f"{path.relative_to(SITE)}: {link}")
    assert not missing, "\n".join(missing)


def test_every_text_is_a_page(pages: dict[Path, Page]) -> None:
    texts = [path for path in DOCUMENTS if path.parent != ROOT]
    names = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in texts]
    assert [name for name in names if SITE / name not in pages] == []


def test_every_public_name_has_an_anchor(pages: dict[Path, Page]) -> None:
    every = set().union(*(documented(path) for path in REFERENCE.glob("*.rst")))
    anchors = set().union(*(page.anchors for page in pages.values()))
    assert every <= anchors


def test_pages_load_nothing_from_others(pages: dict[Path, Page]) -> None:
    """Check that scripts, styles and pictures are the site's own."""
    for path in pages:
        loaded = re.findall(
            r'<(?:script|img|iframe)[^>]*\ssrc="([^"]+)"'
            r'|<link[^>]*rel="stylesheet"[^>]*href="([^"]+)"',
            path.read_text(),
        )
        assert loaded or 'http-equiv="refresh"' in path.read_text()
        assert [x for pair in loaded for x in pair if "//" in x] == [], path.name
