"""The figures of a report: products of layers, groups of layers, and their errors."""

from __future__ import annotations

from dataclasses import dataclass

from ..hook.recipe import Role

#: The name of products of the model itself, which no part of it computes.
WHOLE = "(model)"


@dataclass(frozen=True)
class RangeLost:
    """Finite nonzero values of an operand that are out of a format's range.

    Attributes
    ----------
    values : int
        The finite nonzero values of the samples.
    zeros, infinities : int
        How many of them become 0, and Inf or NaN.
    clipped : int
        How many become the largest value of their block although they are more than
        half a step above it.

    See Also
    --------
    ProductErrors : It has this for both operands.

    Examples
    --------
    >>> import torch
    >>> from tf32dtype.interop import torch as tt
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 8))
    >>> made = tt.report(model, (torch.ones(1, 64),), ["f16"], quiet=True)
    >>> lost = made.rows[0].errors["f16"].first_lost
    >>> isinstance(lost, tt.RangeLost), lost.values, lost.infinities, lost.share
    (True, 64, 0, 0.0)
    """

    values: int
    zeros: int
    infinities: int
    clipped: int

    @property
    def share(self) -> float:
        """The share of values that are lost; 0 without values."""
        lost = self.zeros + self.infinities + self.clipped
        return lost / self.values if self.values else 0.0


@dataclass(frozen=True)
class ProductErrors:
    """The errors of a layer's product in a precision, over all samples.

    An SNR is in dB, against the float64 product of the operands before rounding. It is
    infinite without an error.

    Attributes
    ----------
    snr_db : float
        With both operands rounded; with a device, in the sums of its tensor core.
    first_db, second_db : float or None
        With only the first or the second operand rounded. None: the precision is that
        of both operands (bf16x3).
    outlier_share : float or None
        The share of the squared error that outliers cause. Outliers are the 0.1 % of
        the k (at least one) in which the first operand, the activations, has the
        largest magnitudes. The error without outliers is that of the product of the
        other k, whose scales are chosen without the outliers. It is the error that
        remains if outliers are multiplied in float32 apart. The share is negative if
        this error is larger. None: there is no error.
    first_lost, second_lost : RangeLost or None
        The values of the operands that are out of range. None: of precisions with
        several components.

    See Also
    --------
    LayerRow : It has this for each precision.

    Examples
    --------
    >>> import torch
    >>> from tf32dtype.interop import torch as tt
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 8))
    >>> made = tt.report(model, (torch.ones(1, 64),), ["f16"], quiet=True)
    >>> errors = made.rows[0].errors["f16"]
    >>> isinstance(errors, tt.ProductErrors), errors.first_db > errors.snr_db
    (True, True)
    """

    snr_db: float
    first_db: float | None
    second_db: float | None
    outlier_share: float | None
    first_lost: RangeLost | None
    second_lost: RangeLost | None

    def keeps(self, target_db: float) -> bool:
        """Return whether the SNR reaches a target.

        Parameters
        ----------
        target_db : float
            The required SNR in dB.
        """
        return self.snr_db >= target_db


@dataclass(frozen=True)
class ProductShape:
    """The shape of a product: a stack of m x k times k x n matrices."""

    stack: int
    m: int
    n: int
    k: int

    @property
    def multiply_adds(self) -> int:
        """The multiply-adds of one call."""
        return self.stack * self.m * self.n * self.k

    def __str__(self) -> str:
        stack = f"{self.stack} of " if self.stack > 1 else ""
        return f"{stack}{self.m} x {self.n} x {self.k}"


@dataclass(frozen=True)
class LayerRow:
    """A product of a layer, and its errors in each precision.

    The operands are ordered: activations come before weights.

    Attributes
    ----------
    layer : str
        The layer's name in `named_modules`; "" for the model itself, and outside of all
        modules.
    kind : str
        Which of the layer's products it is, such as "scores", "values" or "weight
        gradient"; "" if the layer has only one.
    first, second : str
        The roles of the operands: "activations", "weights", "gradients", "kv_cache" or
        "probabilities".
    is_backward : bool
        Whether it is a product of the backward pass.
    calls, multiply_adds : int
        The number of calls, and the multiply-adds of all calls.
    share : float
        The share of the multiply-adds of all rows.
    shapes : dict
        The calls by the product's shape, the most frequent ones. A shape has `stack`,
        `m`, `n` and `k`: so many products of m x k and k x n matrices.
    dtypes : tuple of str
        The dtypes of the two operands.
    samples : int
        The calls that were measured.
    elements : int
        The elements of the product that were measured.
    outliers : tuple of int
        The k in which the first operand has the largest magnitudes, the most frequent
        ones of all samples.
    errors : dict
        A `ProductErrors` for each precision.

    See Also
    --------
    LayerReport : It has a row for each product.

    Examples
    --------
    >>> import torch
    >>> from tf32dtype.interop import torch as tt
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 8))
    >>> made = tt.report(model, (torch.ones(1, 64),), ["f16"], quiet=True)
    >>> [row] = made.rows
    >>> isinstance(row, tt.LayerRow), row.name, row.calls, row.first, row.second
    (True, '0', 1, 'activations', 'weights')
    >>> [str(shape) for shape in row.shapes], row.is_below(25)
    (['1 x 8 x 64'], [])
    """

    layer: str
    kind: str
    first: Role
    second: Role
    is_backward: bool
    calls: int
    multiply_adds: int
    share: float
    shapes: dict[ProductShape, int]
    dtypes: tuple[str, str]
    samples: int
    elements: int
    outliers: tuple[int, ...]
    errors: dict[str, ProductErrors]

    @property
    def name(self) -> str:
        """The layer and the kind of the product."""
        layer = self.layer or WHOLE
        return f"{layer} [{self.kind}]" if self.kind else layer

    def is_below(self, target_db: float) -> list[str]:
        """Return the precisions that do not reach a target.

        Parameters
        ----------
        target_db : float
            The required SNR in dB.
        """
        return [name for name, one in self.errors.items() if not one.keeps(target_db)]


@dataclass(frozen=True)
class GroupRow:
    """A group of layers, and the model's outputs with only this group rounded.

    Attributes
    ----------
    name : str
        The layer, the common start of the layers' names, or the name that was given.
    layers : tuple of str
        The layers of the group.
    share : float
        The share of the multiply-adds of all rows.
    output_db : dict
        For each precision the SNR of the model's outputs in dB, against its outputs
        without rounding. Runs that were left out are missing.

    See Also
    --------
    LayerReport : It has a row for each group.

    Examples
    --------
    >>> import torch
    >>> from tf32dtype.interop import torch as tt
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 8))
    >>> made = tt.report(model, (torch.ones(1, 64),), ["f16"], quiet=True)
    >>> [group] = made.groups
    >>> isinstance(group, tt.GroupRow), group.layers, group.output_db["f16"] > 50
    (True, ('0',), True)
    """

    name: str
    layers: tuple[str, ...]
    share: float
    output_db: dict[str, float]


@dataclass(frozen=True)
class Unreached:
    """An operation that multiplies matrices and was not measured."""

    name: str
    reason: str
    calls: int
