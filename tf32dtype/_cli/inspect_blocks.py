"""`tf32dtype inspect` of numbers in a block: its scale by each rule, and its codes."""

import math
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import blocks
from .._base.errors import UserError
from .._base.text import Painted, Table, number
from .._measures.format_facts import facts
from ..blocks.formats import RULES, BlockFormat, BlockSize, Element, elements
from ..blocks.formats import formats as block_formats
from . import codes
from .exact import Number, exact_value, finite, parse, to_float, to_odd_float
from .inspect_all import Report, measure
from .sizes import checked_block_size

Array = NDArray[Any]

_TCFP = "published"  # the rule that only some formats have


@dataclass(frozen=True)
class _Numbers:
    """The numbers that the user typed, and their exact values."""

    typed: Sequence[str]
    exact: Sequence[Number]

    @property
    def floats(self) -> NDArray[np.float64]:
        """As `td.blocks` takes them: rounded to odd, so that blocks round once."""
        return np.array([to_odd_float(x) for x in self.exact])


def reports(names: list[str], typed: list[str], arguments: Namespace) -> list[Report]:
    """Return the block in each of some formats.

    Raises
    ------
    UserError
        For more numbers than a block has, for a number that the format has no code for,
        and for a string that is not a number.
    """
    numbers = _Numbers(typed, [parse(word) for word in typed])
    size = checked_block_size(arguments.block_size)
    return [
        _report(block_formats[name], numbers, arguments.scale, size) for name in names
    ]


def _report(
    row: BlockFormat, numbers: _Numbers, scale: str | None, size: BlockSize | None
) -> Report:
    length = size or row.block_size
    if len(numbers.typed) > length:
        raise UserError(
            f"a block of {row.name} must have at most {length} values; got"
            f" {len(numbers.typed)}. Use --block-size"
        )
    rules = [rule for rule in RULES if rule != _TCFP or row.name.startswith("tcfp")]
    if scale is not None and scale not in rules:
        raise UserError(
            f"--scale must be one of {', '.join(rules)} for {row.name}; got {scale}"
        )
    chosen = scale or row.scale
    found = {rule: _quantized(row, numbers, rule, size) for rule in rules}
    by_rule = [
        {"rule": rule, "chosen": rule == chosen, **_scale(block, numbers)}
        for rule, block in found.items()
    ]
    values = _values(found[chosen], numbers)
    record = {
        "format": row.name,
        "block_size": length,
        "element": row.element,
        "residual": row.residual,
        "rule": chosen,
        "rules": by_rule,
        "values": values,
    }

    def write() -> None:
        _rules_table(row, length, by_rule).print()
        print()
        _values_table(row, chosen, values).print()

    return record, write


def _quantized(
    row: BlockFormat, numbers: _Numbers, rule: Any, size: BlockSize | None
) -> blocks.BlockArray:
    try:
        return blocks.quantize(numbers.floats, row.name, scale=rule, block_size=size)
    except ValueError as error:
        raise UserError(f"{row.name}: {error}") from None


def _scale(block: blocks.BlockArray, numbers: _Numbers) -> dict[str, Any]:
    """Return the scale of the block, and what it costs."""
    code, *lower = map(int, block.scales.reshape(-1))
    errors = [
        to_float(loss)
        for loss in map(_loss, block.dequantize(np.float64), numbers.exact)
        if loss is not None
    ]
    return {
        "scale_format": block.scale_format,
        "tensor_scale": float(block.tensor_scale),
        "code": f"0x{code:02X}",
        "bits": f"{code:08b}",
        "scale": float(block.block_scales.reshape(-1)[0]),
        "residual_code": f"0x{lower[0]:02X}" if lower else None,
        "residual_unit": _unit(block) if lower else None,
        "rms_error": math.sqrt(sum(x * x for x in errors) / len(errors))
        if errors
        else None,
        "max_error": max(map(abs, errors), default=None),
    }


def _unit(block: blocks.BlockArray) -> float:
    """Return the value of a residual of 1 in the block: S R."""
    row = block_formats[block.format]
    assert row.residual is not None
    element, residual = elements[row.element], elements[row.residual]
    scale_format: Any = block.scale_format
    one = blocks.BlockArray.from_codes(
        row,
        np.zeros(block.shape, element.dtype),
        block.scales,
        np.ones(block.shape, residual.dtype),
        shape=block.shape,
        block_size=block.block_size,
        scale_format=scale_format,
        tensor_scale=float(block.tensor_scale),
    )
    return float(one.dequantize(np.float64)[0])


def _values(block: blocks.BlockArray, numbers: _Numbers) -> list[dict[str, Any]]:
    """Return a record for each number: its codes, its value and its error."""
    row = block_formats[block.format]
    parts = {"element": (elements[row.element], block.elements)}
    residuals = block.residual_elements
    if row.residual is not None and residuals is not None:
        parts["residual"] = (elements[row.residual], residuals)
    values = block.dequantize(np.float64)
    levels = _levels(block)
    records = []
    for i, (typed, exact) in enumerate(zip(numbers.typed, numbers.exact, strict=True)):
        loss = _loss(values[i], exact)
        size = finite(exact)
        relative = loss / abs(size) if loss is not None and size else None
        coded = {name: _coded(of, array[i]) for name, (of, array) in parts.items()}
        records.append(
            {
                "input": typed,
                **coded,
                "value": float(values[i]),
                "outcome": _outcome(exact, values[i], levels, [*coded.values()]),
                "absolute": None if loss is None else to_float(loss),
                "relative": None if relative is None else to_float(relative),
            }
        )
    return records


def _levels(block: blocks.BlockArray) -> list[tuple[Element, float]]:
    """Return the elements of a number, and the value of a 1 of each: S, and S R."""
    row = block_formats[block.format]
    found = [(elements[row.element], float(block.block_scales.reshape(-1)[0]))]
    if row.residual is not None:
        found.append((elements[row.residual], _unit(block)))
    return found


def _outcome(
    exact: Number,
    value: np.floating[Any],
    levels: list[tuple[Element, float]],
    coded: list[dict[str, Any]],
) -> str:
    """Describe the result of rounding a number to the block in a few words."""
    if math.isnan(value):
        became = "NaN"
    elif not value:
        became = "zero"
    else:  # of two levels the first may be subnormal or zero, and nothing is lost
        became = "normal" if len(levels) > 1 else coded[0].get("kind", "normal")
    scale = levels[0][1]
    typed = finite(exact)
    if typed is None or not math.isfinite(scale):
        return codes.happened(exact, value, became, why_nan="its scale")
    *first, (last, unit) = levels
    for (_, one), element in zip(first, coded, strict=False):
        typed -= Fraction(one) * Fraction(element["value"])
    spacing = (
        Fraction(1, 1 << last.fraction_bits)
        if last.is_integer
        else facts(last.name).spacing(Fraction(last.max))
    )
    # No other code is further from its number than half the widest spacing.
    held = Fraction(unit) * abs(Fraction(coded[-1]["value"]))
    beyond = codes.is_beyond(abs(typed), held, spacing * Fraction(unit))
    return codes.happened(exact, value, became, beyond)


def _loss(value: Any, exact: Number) -> Fraction | None:
    """Return the error of a value; None where there is no finite one."""
    typed, rounded = finite(exact), finite(exact_value(value))
    return None if typed is None or rounded is None else rounded - typed


def _coded(element: Element, value: Any) -> dict[str, Any]:
    """Return the code of an element and its fields; for integers sign and magnitude."""
    if not element.is_integer:
        return codes.coded(facts(element.name), value)
    code = int(value) & ((1 << element.width) - 1)
    digits = f"{code:0{element.width}b}"
    return {
        "value": int(value) / (1 << element.fraction_bits),
        "code": f"0x{code:0{-(-element.width // 4)}X}",
        "sign": digits[:1],
        "exponent": "",
        "mantissa": digits[1:],
    }


# -- text -----------------------------------------------------------------------


def _rules_table(row: BlockFormat, length: int, found: list[dict[str, Any]]) -> Table:
    tensor = any(each["tensor_scale"] != 1 for each in found)
    return Table(
        f"{row.name}: scale of the block by each rule (block size {length};"
        " *: rule of the codes below)",
        [
            "rule",
            "scale S",
            "code",
            "bits",
            *(["S R", "R code"] if row.residual else []),
            "scale format",
            *(["tensor scale"] if tensor else []),
            "RMS error",
            "max error",
        ],
        [
            [
                each["rule"] + (" *" if each["chosen"] else ""),
                number(each["scale"], 6),
                each["code"],
                each["bits"],
                *(_residual_cells(each) if row.residual else []),
                each["scale_format"],
                *([number(each["tensor_scale"], 6)] if tensor else []),
                measure(each["rms_error"]),
                measure(each["max_error"]),
            ]
            for each in found
        ],
    )


def _residual_cells(each: dict[str, Any]) -> list[str]:
    return [number(each["residual_unit"], 6), each["residual_code"]]


def _values_table(row: BlockFormat, rule: str, values: list[dict[str, Any]]) -> Table:
    parts = {"element": row.element, "residual": row.residual}
    names = [name for name, element in parts.items() if element is not None]
    elements = f"hi: {row.element}, lo: {row.residual}" if row.residual else row.element
    value = f"S (hi + R lo), {elements}" if row.residual else f"S x element, {elements}"
    header = [
        column
        for name in names
        for column in ("code", "bits", _HEADS[name] if row.residual else name)
    ]
    return Table(
        f"Codes by the rule {rule}: value = {value}",
        ["number", *header, "value", "error", "rel. error", "outcome"],
        [
            [
                each["input"],
                *[cell for name in names for cell in _cells(each[name])],
                number(each["value"], 6),
                measure(each["absolute"]),
                measure(each["relative"]),
                each["outcome"],
            ]
            for each in values
        ],
    )


_HEADS = {"element": "hi", "residual": "lo"}


def _cells(coded: dict[str, Any]) -> list[str | Painted]:
    return [coded["code"], codes.painted(coded), number(coded["value"], 6)]
