"""The verdict on a matrix product, as an object and as text."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .fault_map import text_map

Verdict = Literal["identical", "within bound", "wrong"]

#: Upper edges of the classes of `Check.distribution`.
EDGES = (0.0, 0.001, 0.01, 0.1, 0.5, 1.0, math.inf)


class Worst(NamedTuple):
    """The element that is most off, relative to its bound.

    See Also
    --------
    Check : The verdict on a product.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> a = np.ones((2, 2), np.float32)
    >>> td.testing.check_matmul(a + 2, a, a, unit="float32").worst.at
    (0, 0)
    """

    #: index of the element
    at: tuple[int, ...]
    #: result that was checked
    result: float
    #: exact result, in float64
    exact: float
    #: largest error that rounding in any order gives
    bound: float
    #: error as a share of the bound
    share: float


@dataclass(frozen=True, repr=False)
class Check:
    """The verdict on a matrix product, with its evidence.

    `repr` returns the verdict and the evidence as text. A `Check` is true unless the
    product is wrong.

    See Also
    --------
    tf32dtype.testing.check_matmul : Check a product.
    tf32dtype.testing.assert_matmul : Raise an error for a wrong product.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.standard_normal((2, 64, 64)).astype(np.float16)
    >>> d = td.tensor_core.matmul(a, b, device="A100")
    >>> td.testing.check_matmul(d, a, b, unit="A100")
    identical: A100 mma.sync float16 -> float32
    """

    #: "identical", "within bound" or "wrong"
    verdict: Verdict
    #: unit whose bound is used, in words
    unit: str
    #: how the results were computed, in words; None unless they are identical
    origin: str | None
    #: faults that explain the wrong elements, the most likely first
    diagnoses: tuple[str, ...]
    #: number of wrong elements
    wrong: int
    #: number of elements for which 0 would be within the bound, though it is not exact
    zeros: int
    #: where the wrong elements are, in words
    place: str
    #: number of elements of the product
    size: int
    #: the element that is most off
    worst: Worst
    #: number of elements with a share of the bound of 0, of up to 0.001, 0.01, 0.1, 0.5
    #: and 1, and above 1
    distribution: tuple[int, ...]
    #: error of each checked element as a share of its bound, shape (matrices, m, n)
    shares: NDArray[np.float32]

    @property
    def checked(self) -> int:
        """The number of elements that were checked."""
        return self.shares.size

    @property
    def worst_matrix(self) -> NDArray[np.float32]:
        """The shares of the matrix with most wrong elements, shape (m, n)."""
        most = np.argmax((self.shares > 1).sum(axis=(1, 2)))
        found: NDArray[np.float32] = self.shares[most]
        return found

    def __bool__(self) -> bool:
        """Return whether the product is not wrong."""
        return self.verdict != "wrong"

    def __repr__(self) -> str:
        """Return the verdict and its evidence."""
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the lines of the text."""
        count = self.checked
        of = f"{count:,} element{'s' * (count != 1)}"
        if count < self.size:
            of = f"a sample of {of}"
        if self.verdict == "identical":
            return [f"identical: {self.origin}", *self.notes()]
        if self.verdict == "within bound":
            return [
                f"within bound: rounding in some order explains {of}. The bits are not"
                " those of a known way",
                *self._evidence(),
                *self.notes(),
            ]
        faults = self.diagnoses or ("no known fault explains the wrong elements",)
        lines = [
            f"wrong: {self.wrong:,} of {of}; no order of additions gives them",
            f"where: {self.place}",
            *(f"fault: {text}" for text in faults),
            *self._evidence(),
            *self.notes(),
        ]
        picture = [*text_map(self.worst_matrix)]
        if any("." in line for line in picture[1:]):
            lines += picture
        return lines

    def _evidence(self) -> list[str]:
        at, result, exact, bound, share = self.worst
        off = "not possible" if math.isinf(share) else f"{share:.3g} times the bound"
        lines = [
            f"unit: {self.unit}",
            f"largest error: {result:.7g} at {list(at)}, exact {exact:.7g}, allowed +-"
            f"{bound:.2g}: {off}",
        ]
        if self.verdict != "wrong":
            parts = np.quantile(self.shares, (0.5, 0.99))
            lines.append(
                f"errors: half are up to {parts[0]:.2g} of the bound, 99 % up to"
                f" {parts[1]:.2g}"
            )
        return lines

    def notes(self) -> list[str]:
        """Return what the bound cannot tell."""
        if 2 * self.zeros <= self.checked:
            return []
        return [
            f"note: the bound exceeds {self.zeros:,} of the results, for which 0 would"
            " pass, too. Use small integers, a shorter k, or promote_every if the"
            " kernel promotes sums"
        ]

    def record(self) -> dict[str, Any]:
        """Return the check as numbers, strings and lists, for JSON."""
        finite = [x if math.isfinite(x) else str(x) for x in self.worst[1:]]
        return {
            "verdict": self.verdict,
            "unit": self.unit,
            "origin": self.origin,
            "diagnoses": list(self.diagnoses),
            "wrong": self.wrong,
            "zeros": self.zeros,
            "place": self.place,
            "checked": self.checked,
            "size": self.size,
            "worst": dict(
                zip(Worst._fields, [list(self.worst.at), *finite], strict=True)
            ),
            "distribution": {
                f"{edge:g}": count
                for edge, count in zip(EDGES, self.distribution, strict=True)
            },
        }
