"""Tables of the block formats and of the values of scale codes."""

from __future__ import annotations

from accuracy import markdown

from tf32dtype.blocks.formats import POWERS, formats
from tf32dtype.blocks.formats import scale_formats as mantissas

HEADER = ("format", "element", "M", "residual", "block size", "bits per value",
          "scale format", "default rule")  # fmt: skip
WHOLE = ("scale format", "value of code c", "largest value", "binades of normal scales")


def block_formats() -> str:
    """Return a Markdown table with one row per block format."""
    return markdown(
        HEADER,
        [
            (
                f"`{name}`",
                row.element,
                f"{row.max:.10g}",
                row.residual or "",
                str(row.block_size),
                f"{row.bits_per_value:g}",
                row.scale_format or "the finest that fits",
                f"`{row.scale}`",
            )
            for name, row in formats.items()
        ],
    )


def scale_formats() -> str:
    """Return a table of the scale formats, without the factor `tensor_scale`."""
    rows = []
    for name, bits in mantissas.items():
        if name == POWERS:
            rows.append((f"`{name}`", "2^(c - 127), 255 is NaN", "2^127", "255"))
            continue
        one = 1 << bits
        if name == "ue4m3":
            code = "float8_e4m3fn without its sign"
            rows.append((f"`{name}`", code, "448 (0x7E)", "15"))
            continue
        fields = (1 << 8 - bits) - 1
        low = f"f = c >> {bits}, b = the low {bits} bits"
        code = f"b if f = 0, else ({one} + b) 2^(f - 1), with {low}"
        largest = f"{2 * one - 1} 2^{fields - 1}"
        rows.append((f"`{name}`", code, largest, str(fields)))
    return markdown(WHOLE, rows)


TABLES = {"block_formats": block_formats, "scale_formats": scale_formats}
