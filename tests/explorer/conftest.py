"""A browser for all tests of a process, and the page for each test."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .browser import Explorer, chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright")
    path = chromium()
    if path is None:
        pytest.skip("no Chromium")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def explorer(browser: Any) -> Iterator[Callable[..., Explorer]]:
    """Yield a function that opens a page with options of a browser's context. The page
    must have no problems, except for those that a test removes from its list."""
    opened = []

    def new(**options: Any) -> Explorer:
        opened.append(Explorer(browser, **options))
        return opened[-1]

    yield new
    for one in opened:
        one.close()
        assert one.problems == []
