"""Operands that tell the products of one line apart."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Operand:
    """A constant matrix that a line multiplies by, one of several."""

    #: which one, from 1 on in the order of first use, and how many there are
    number: int
    of: int
    #: "A" or "B"; "A" too if the other operand is a vector
    side: str
    rows: int
    columns: int
    #: of the shape and of some elements; "": not known
    digest: str = ""
    #: "layers.2.weight"; "": not known
    name: str = ""

    def __str__(self) -> str:
        name = f"{self.name}, " if self.name else ""
        return f"[{self.number} of {self.of}: {name}{self.rows} x {self.columns}]"
