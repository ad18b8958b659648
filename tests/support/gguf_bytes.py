"""Write GGUF files byte by byte, both valid and damaged files."""

import struct

F32, UNKNOWN, MXFP4, TEXT, ARRAY = 0, 4000, 39, 8, 9
MANY = (1 << 64) - 1


def text(value: bytes, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(value) if length is None else length) + value


def key(name: bytes, kind: int, value: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + value


def tensor(
    name: bytes = b"w", dims: tuple[int, ...] = (4,), kind: int = F32, offset: int = 0
) -> bytes:
    axes = struct.pack(f"<I{len(dims)}Q", len(dims), *dims)
    return text(name) + axes + struct.pack("<IQ", kind, offset)


def whole(
    tensors: tuple[bytes, ...] = (),
    keys: tuple[bytes, ...] = (),
    data: int = 16,
    *,
    magic: bytes = b"GGUF",
    version: int = 3,
    counts: tuple[int, int] | None = None,
) -> bytes:
    count, pairs = counts or (len(tensors), len(keys))
    header = magic + struct.pack("<IQQ", version, count, pairs)
    header += b"".join(keys) + b"".join(tensors)
    return header + bytes(-len(header) % 32) + bytes(data)
