"""The number format explorer in a browser: Debian's Chromium, driven by Playwright.

`python -m tests.explorer.browser` prints the path of the browser, and fails without
one.
"""

from __future__ import annotations

import shutil
import sys
from typing import Any

from tests.support.paths import ROOT

FOLDER = ROOT / "docs" / "explorer"
PAGE = (FOLDER / "index.html").as_uri()
#: Each view has a file: view_number.js has "number".
VIEWS = sorted(path.stem.removeprefix("view_") for path in FOLDER.glob("view_*.js"))
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def chromium() -> str | None:
    """Return the path of a Chromium, or None if there is none."""
    return next((path for path in map(shutil.which, _NAMES) if path), None)


class Explorer:
    """The page, opened as a file, and the problems in it."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        #: console errors, uncaught errors, and requests that failed or left the folder
        self.problems: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("requestfailed", lambda request: self.problems.append(request.url))
        self.page.on("request", self._request)

    def open(self, link: str = "") -> Explorer:
        """Go to a state, "#number?format=tf32&x=0.1", and wait until it is drawn."""
        self.page.goto(PAGE + link)
        self.page.wait_for_selector("main section:not([hidden])")
        self.settle()
        return self

    def settle(self) -> None:
        """Wait until drawings exist, which wait for the layout."""
        self.run(
            """async () => {
                for (let i = 0; i < 4; i++) {
                    await new Promise(requestAnimationFrame);
                }
            }"""
        )

    def close(self) -> None:
        self.context.close()

    def run(self, script: str, argument: Any = None) -> Any:
        """Run a function of JavaScript, and return its result."""
        return self.page.evaluate(script, argument)

    @property
    def link(self) -> str:
        """The state in the address."""
        return "#" + self.page.url.partition("#")[2]

    @property
    def text(self) -> str:
        """The text of the view."""
        self.settle()
        return str(self.page.inner_text("main section:not([hidden])"))

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def _request(self, request: Any) -> None:
        if not request.url.startswith((FOLDER.as_uri(), "data:")):
            self.problems.append(f"a request of {request.url}")


if __name__ == "__main__":
    sys.exit(print(chromium()) if chromium() else 1)
