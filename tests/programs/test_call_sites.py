"""The layout of frames is known for each CPython that the package supports."""

import sys
from pathlib import Path

import numpy as np

import tf32dtype as td
from tf32dtype import _core


def test_frames_are_known() -> None:
    known = sys.implementation.name == "cpython" and sys.version_info < (3, 15)
    assert _core.frames_are_known() == known


def test_the_line_and_the_function_are_found() -> None:
    a = np.ones((8, 8), np.float32)
    with td.report() as report:
        a @ a
    [found] = report.call_sites
    frame = found.call_site.user
    assert frame is not None
    assert Path(frame.file) == Path(__file__)
    assert Path(__file__).read_text().splitlines()[frame.line - 1].strip() == "a @ a"
    assert frame.function == "test_the_line_and_the_function_are_found"
