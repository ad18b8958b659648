"""Damage to files: bytes, strings in headers, and JSON."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

#: The header of a file as text, and a function that puts another header into the file.
Header = tuple[bytes, Callable[[bytes], bytes]]

NUMBERS = (
    *(0, 1, -1, 2, 3, 7, 8, 64, 65, 255, 256, 10**6, 2**31 - 1, 2**31, 2**32),
    *(2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30, 10**400, -(2**63)),
)
TEXTS = (
    *("", "a", "../a", "/etc/hostname", "__metadata__", "\0", "\ud800", "é" * 3),
    *("x" * 300, "NaN", "bfloat16", "F4", "U8", "float8_e4m3fn", "<f4", "|O", "shape"),
)
VALUES = (*NUMBERS, *TEXTS, 1.5, 1e308, -0.0, True, False, None)
VALUES += ([], {}, [[]], [0], {"a": 1}, [[1] * 70], [2**40] * 3, ["a"])  # type: ignore[assignment]


class Object(list[Any]):
    """A JSON object as its pairs, which may have a key twice."""


def mutate(
    data: bytes,
    others: Sequence[bytes],
    header: Callable[[bytes], Header] | None,
    r: random.Random,
) -> bytes:
    """Return a file with one to three faults, in its header, its bytes or both."""
    for _ in range(r.choice((1, 1, 1, 2, 3))):
        if header is not None and r.random() < 0.7:
            try:
                text, put_back = header(data)
                data = put_back(_text(text, r))
                continue
            except Exception:  # an earlier round removed the header
                pass
        data = r.choice(BYTES)(data, others, r)
    return data


# -- bytes ------------------------------------------------------------------


def _flip(data: bytes, others: Sequence[bytes], r: random.Random) -> bytes:
    new = bytearray(data or b"\0")
    for _ in range(r.choice((1, 1, 2, 8))):
        new[_near_begin(len(new), r)] ^= 1 << r.randrange(8)
    return bytes(new)


def _set(data: bytes, others: Sequence[bytes], r: random.Random) -> bytes:
    new = bytearray(data or b"\0")
    at = _near_begin(len(new), r)
    new[at : at + r.choice((1, 1, 4, 16))] = bytes(
        [r.choice((0, 255, r.randrange(256)))]
    )
    return bytes(new)


def _integer(data: bytes, others: Sequence[bytes], r: random.Random) -> bytes:
    """Change a binary integer of either byte order."""
    size = r.choice((2, 4, 8))
    at = _near_begin(max(len(data) - size, 1), r)
    order: Any = r.choice(("little", "little", "big"))
    old = int.from_bytes(data[at : at + size], order)
    number = r.choice((*NUMBERS, old + 1, old - 1, 2 * old, len(data)))
    new = (number % (1 << 8 * size)).to_bytes(size, order)
    return data[:at] + new + data[at + size :]


def _cut(data: bytes, others: Sequence[bytes], r: random.Random) -> bytes:
    return data[: _near_begin(len(data) + 1, r)]


def _remove(data: bytes, others: Sequence[bytes], r: random.Random) -> bytes:
    begin, end = _range(data, r)
    return data[:begin] + data[end:]


def _repeat(data: bytes, others: Sequence[bytes], r: random.Random) -> bytes:
    begin, end = _range(data, r)
    return data[:end] + data[begin:end] * r.choice((1, 1, 2, 50)) + data[end:]


def _add(data: bytes, others: Sequence[bytes], r: random.Random) -> bytes:
    at = r.choice((len(data), _near_begin(len(data) + 1, r)))
    return data[:at] + r.randbytes(r.choice((1, 8, 100))) + data[at:]


def _splice(data: bytes, others: Sequence[bytes], r: random.Random) -> bytes:
    """Join the begin of one file and the end of another."""
    other = r.choice(others)
    at = _near_begin(min(len(data), len(other)) + 1, r)
    return data[:at] + other[at:]


BYTES = (_flip, _flip, _set, _integer, _cut, _remove, _repeat, _add, _splice)


def _near_begin(size: int, r: random.Random) -> int:
    """Draw an offset, half of the time in the usual range of headers."""
    return r.randrange(min(size, r.choice((16, 128, 512, size, size, size))) or 1)


def _range(data: bytes, r: random.Random) -> tuple[int, int]:
    begin = _near_begin(len(data) + 1, r)
    return begin, min(len(data), begin + r.choice((1, 4, 8, 60, 1000)))


# -- strings in headers -----------------------------------------------------

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|-?\d+(?:\.\d+)?|\w+|\s+|.')


def _text(text: bytes, r: random.Random) -> bytes:
    if r.random() < 0.6:
        try:
            tree = json.loads(text, object_pairs_hook=Object)
        except ValueError:
            pass
        else:
            return dump(_json(tree, r)).encode("utf-8", "surrogatepass")
    tokens = _TOKENS.findall(text.decode("latin1"))
    return r.choice(TOKENS)(tokens, r).encode("latin1", "replace")


def _other_number(tokens: list[str], r: random.Random) -> str:
    places = [i for i, token in enumerate(tokens) if token.lstrip("-").isdecimal()]
    for at in r.sample(places, min(len(places), r.choice((1, 1, 2)))):
        old = int(tokens[at][:300])
        tokens[at] = str(r.choice((*NUMBERS, old + 1, old - 1, 2 * old, old + 0.5)))
    return "".join(tokens)


def _other_text(tokens: list[str], r: random.Random) -> str:
    places = [i for i, token in enumerate(tokens) if len(token) > 1]
    if places:
        quote = tokens[at := r.choice(places)][0]
        new = r.choice((tokens[r.choice(places)], quote + r.choice(TEXTS) + quote))
        tokens[at] = new
    return "".join(tokens)


def _fewer(tokens: list[str], r: random.Random) -> str:
    begin, end = _tokens(tokens, r)
    return "".join(tokens[:begin] + tokens[end:])


def _twice(tokens: list[str], r: random.Random) -> str:
    begin, end = _tokens(tokens, r)
    times = r.choice((1, 1, 3, 200))
    return "".join(tokens[:end] + tokens[begin:end] * times + tokens[end:])


def _swapped(tokens: list[str], r: random.Random) -> str:
    if tokens:
        i, j = r.randrange(len(tokens)), r.randrange(len(tokens))
        tokens[i], tokens[j] = tokens[j], tokens[i]
    return "".join(tokens)


TOKENS = (_other_number, _other_number, _other_text, _fewer, _twice, _swapped)


def _tokens(tokens: list[str], r: random.Random) -> tuple[int, int]:
    begin = r.randrange(len(tokens) + 1)
    return begin, min(len(tokens), begin + r.choice((1, 1, 2, 5, 20)))


# -- JSON -------------------------------------------------------------------


def _json(tree: Any, r: random.Random) -> Any:
    """Return a tree with one node changed, at any depth."""
    inner = [(tree, i) for i in range(len(tree))] if isinstance(tree, list) else []
    if not inner or r.random() < 0.05:
        return r.choice(VALUES)
    while True:
        node, at = r.choice(inner)
        child = _child(node, at)
        if not isinstance(child, list) or not child or r.random() < 0.3:
            break
        inner = [(child, i) for i in range(len(child))]
    action = r.random()
    if action < 0.15:
        del node[at]
    elif action < 0.3:
        node.insert(r.randrange(len(node) + 1), node[at])
    elif action < 0.4 and isinstance(node, Object):
        node[at] = (r.choice((*TEXTS, r.choice(node)[0])), child)
    elif action < 0.55:
        _put(node, at, _child(node, r.randrange(len(node))))
    elif type(child) is int and action < 0.8:
        _put(node, at, r.choice((child + 1, child - 1, 2 * child, *NUMBERS)))
    else:
        _put(node, at, r.choice(VALUES))
    return tree


def _child(node: list[Any], at: int) -> Any:
    return node[at][1] if isinstance(node, Object) else node[at]


def _put(node: list[Any], at: int, value: Any) -> None:
    node[at] = (node[at][0], value) if isinstance(node, Object) else value


def dump(tree: Any) -> str:
    """Return the JSON of a tree, with repeated keys."""
    if isinstance(tree, Object):
        return "{" + ",".join(f"{json.dumps(k)}:{dump(v)}" for k, v in tree) + "}"
    if isinstance(tree, list):
        return "[" + ",".join(map(dump, tree)) + "]"
    return json.dumps(tree)
