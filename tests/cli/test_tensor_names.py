"""Names of tensors in files, printed on a terminal."""

import pytest

from tf32dtype._base.text import printable

pytestmark = pytest.mark.once


def test_names_do_not_move_the_cursor() -> None:
    assert printable("ünï\x1b[31m\n\ud800.0") == "ünï\\x1b[31m\\n\\ud800.0"
