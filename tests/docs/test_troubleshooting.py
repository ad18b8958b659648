"""The page of errors shows the messages of this version."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import errors_page

pytestmark = pytest.mark.once


def test_messages_are_those_of_this_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If not: `python -m tests.docs.errors_page` writes them."""
    monkeypatch.chdir(tmp_path)
    errors_page.prepare(tmp_path)
    page = errors_page.PAGE.read_text()
    assert page.count("\n### ") >= 20
    assert len(errors_page.PROVOKED.findall(page)) >= 20
    assert errors_page.rewritten(page, tmp_path) == page


def test_quoted_messages_are_in_the_sources() -> None:
    pieces = errors_page.quoted_pieces(errors_page.PAGE.read_text())
    assert len(pieces) >= 5
    text = errors_page.sources()
    assert [piece for piece in pieces if piece not in text] == []


def test_other_messages_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = "```py\nx = 1\n```\n\n```py\nx[0]\n```\n\n```text\nno error\n```\n"
    new = errors_page.rewritten(page, tmp_path)
    assert new == page.replace(
        "no error", "TypeError: 'int' object is not subscriptable"
    )
