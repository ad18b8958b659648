"""Folders of Zarr that the commands read."""

import json

import numpy as np
import pytest

import tf32dtype as td

zarr = pytest.importorskip("zarr")

from tf32dtype._base.errors import UserError  # noqa: E402
from tf32dtype._files.readers import open_file  # noqa: E402

pytestmark = pytest.mark.once


def test_a_number_without_axes_is_an_array(tmp_path):
    array = zarr.create_array(tmp_path / "a.zarr", shape=(), dtype=td.bfloat16)
    array[...] = 2.5
    with open_file(str(tmp_path / "a.zarr")) as file:
        found = file["a"].get()
    assert isinstance(found, np.ndarray)
    assert (found.shape, found.dtype, found.item()) == ((), td.bfloat16, 2.5)


@pytest.mark.parametrize("key", ["shape", "chunk_shape"])
def test_what_is_announced_is_not_allocated(tmp_path, key):
    path = tmp_path / "a.zarr"
    zarr.create_array(path, shape=(4,), dtype=td.bfloat16)[...] = 1
    facts = json.loads((path / "zarr.json").read_text())
    where = facts if key == "shape" else facts["chunk_grid"]["configuration"]
    where[key] = [10**14]
    (path / "zarr.json").write_text(json.dumps(facts))
    with open_file(str(path)) as file, pytest.raises(UserError) as caught:
        file["a"].get()
    for word in (str(path), "a: ", "got 200000000000000 bytes"):
        assert word in str(caught.value)
