"""Operands that tell the products of one line apart."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Operand:
    """A constant matrix that a line multiplies by, one of several."""

    #: number of the operand, from 1 on in the order of first use, and their count
    number: int
    of: int
    #: side of the operand: "A" or "B"; also "A" if the other operand is a vector
    side: str
    rows: int
    columns: int
    #: digest of the shape and of some elements; "": not known
    digest: str = ""
    #: name such as "layers.2.weight"; "": not known
    name: str = ""

    def __str__(self) -> str:
        name = f"{self.name}, " if self.name else ""
        return f"[{self.number} of {self.of}: {name}{self.rows} x {self.columns}]"
