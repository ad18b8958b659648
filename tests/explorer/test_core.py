"""docs/explorer/core.js is built from the C and the tables of this repository."""

from __future__ import annotations

import re

import pytest

from tests.support.paths import ROOT
from tools.explorer import build

pytestmark = pytest.mark.once

ADVICE = "core.js is of other sources: run `make explorer`"


def member(name: str) -> str:
    found = re.search(rf'^{name}: "([^"]*)",$', build.CORE.read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def test_it_is_of_these_sources():
    assert member("digest") == build.digest(), ADVICE


def test_sources():
    """The digest covers all of the C and its includes."""
    names = {path.relative_to(ROOT).as_posix() for path in build.sources()}
    assert {"src/formats/formats.h", "src/tensor_core/scaled_mma_model.h",
            "src/blocks/scale_search.h", "src/runtime/inline.h",
            "docs/explorer/source/include/string.h"} <= names  # fmt: skip


def test_it_is_small():
    assert build.CORE.stat().st_size < 300_000


def test_it_is_what_the_compiler_makes():
    try:
        compiler = build.compiler()
    except build.BuildError as error:
        pytest.skip(str(error))
    if compiler != member("compiler"):
        pytest.skip(f"core.js was made by {member('compiler')}, this is {compiler}")
    assert build.text(compiler, build.module()) == build.CORE.read_text(), ADVICE
