"""docs/reference/libraries.md equals the tested calls."""

from importlib import import_module

import pytest

from tests.libraries.page import MODULES, PAGE, ours


@pytest.mark.parametrize("name", MODULES)
def test_the_page_has_every_call(name):
    rows = PAGE.read_text()
    calls = import_module(f"tests.libraries.test_calls_{name}").CALLS
    assert calls
    assert [ours(call) for call in calls if ours(call) not in rows] == []


def test_the_page_counts_them():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert f"Of {len(rows)} calls" in PAGE.read_text()
