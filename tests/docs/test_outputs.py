"""The pages for beginners show the outputs and messages of this version.

If one of these tests fails, `python -m tests.docs.outputs` writes the pages again.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs import outputs

pytestmark = pytest.mark.once


@pytest.fixture(autouse=True)
def _in_a_folder_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outputs.prepare(tmp_path)


def test_messages() -> None:
    page = outputs.ERRORS.read_text()
    assert len(outputs.SHOWN.findall(page)) >= 20
    assert outputs.rewritten(page) == page


def squeezed(text: str) -> str:
    """Replace all numbers by 0, as times differ between runs."""
    text = re.sub(r"\d+(\.\d+)?", "0", text)
    return re.sub(r"-+", "-", re.sub(r" +", " ", text))


def test_quick_start() -> None:
    page = outputs.START.read_text()
    assert len(outputs.SHOWN.findall(page)) == 2
    assert squeezed(outputs.rewritten(page)) == squeezed(page)


def test_quoted_messages_are_in_the_sources() -> None:
    pieces = outputs.quoted_pieces(outputs.ERRORS.read_text())
    assert len(pieces) >= 5
    text = outputs.sources()
    assert [piece for piece in pieces if piece not in text] == []


def test_another_message_is_found() -> None:
    page = (
        "```py\nimport tf32dtype\n```\n\n```py\nint([])\n```\n\n```text\nnothing\n```\n"
    )
    assert "TypeError: int() argument must be" in outputs.rewritten(page)
