"""One safetensors file, mapped into memory or read piece by piece."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ..._base.mapping import map_file
from ..._base.wording import brief
from ..._formats import bit_packing
from ..._formats.table import formats
from . import header
from .dtypes import KINDS, carrier_of
from .header import Entry

#: The metadata key that names the formats of tensors stored as their carrier.
FORMATS_KEY = "tf32dtype.formats"


class File:
    """The tensors of a file, which is mapped after its header is checked.

    Arrays that view the mapping keep it alive, also after `close`.
    """

    def __init__(self, path: str, mapped: bool) -> None:
        self.path = path
        self._stream = open(path, "rb")  # noqa: SIM115 (until `close`)
        self._map: NDArray[np.uint8] | None = None
        self._lock = threading.Lock()
        try:
            fd = self._stream.fileno()
            size = os.fstat(fd).st_size
            self.entries: dict[str, Entry]
            self.metadata: dict[str, str]
            self.entries, self.metadata = header.parse(self._stream, size, path)
            self._carried = self._read_formats()
            if mapped:
                self._map = map_file(fd, size)
        except BaseException:
            self._stream.close()
            raise
        if mapped:
            self._stream.close()

    def _read_formats(self) -> dict[str, np.dtype[Any]]:
        """Return the formats that metadata name, because the file has no such dtype.

        Other programs may have removed or converted tensors. A tensor that is not
        stored as `save` stores it keeps the dtype in the header.
        """
        text = self.metadata.pop(FORMATS_KEY, None)
        if text is None:
            return {}
        try:
            named = header.parse_object(text.encode())
            found = {name: formats[which] for name, which in named.items()}
        except ValueError as error:
            raise ValueError(f"{self.path}: metadata {FORMATS_KEY}: {error}") from None
        return {
            name: form.dtype
            for name, form in found.items()
            if name in self.entries
            and self.entries[name].dtype == carrier_of(form).name
        }

    def dtype(self, name: str) -> np.dtype[Any]:
        """Return the dtype of the array of a tensor."""
        return self._carried.get(name, KINDS[self.entries[name].dtype].dtype)

    def array(self, name: str) -> NDArray[Any]:
        """Return a tensor as a read-only view of the mapping, or as a new array."""
        entry = self.entries[name]
        kind = KINDS[entry.dtype]
        data = self._data(entry)
        if kind.is_packed:
            data = bit_packing.unpack(data, kind.bits)
        array = data.view(self.dtype(name)).reshape(entry.shape)
        array.flags.writeable = self._map is None
        _core.name_tensor(array, name)
        return array

    def _data(self, entry: Entry) -> NDArray[np.uint8]:
        if self._map is not None:
            return self._map[entry.begin : entry.end]
        data = np.empty(entry.end - entry.begin, np.uint8)
        with self._lock:  # all threads share the position in the file
            self._stream.seek(entry.begin)
            read = self._stream.readinto(data.data)
        if read < data.size:
            raise ValueError(
                f"{self.path}: tensor {brief(entry.name)} cannot be read: the file "
                "was truncated after it was opened"
            )
        return data

    @property
    def closed(self) -> bool:
        return self._map is None and self._stream.closed

    def close(self) -> None:
        self._map = None
        self._stream.close()
