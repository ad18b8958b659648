"""`tf32dtype inspect` of numbers in many formats, and of many numbers in one."""

from collections.abc import Callable
from typing import Any

from .._base.errors import UserError
from .._base.text import Table, number
from .._measures.format_facts import Facts, facts, known
from . import number_line
from .codes import coded, error, painted, read
from .codes import table as codes_table
from .exact import is_code, shown

#: A report for programs, and a function that prints it as text.
Report = tuple[dict[str, Any], Callable[[], None]]


def report(forms: list[Facts], typed: str) -> Report:
    """Return a number in every format, and number lines around it in some of them."""
    if is_code(typed) and len(forms) > 1:
        raise UserError(
            f"{typed} is a code and not a number; use --format with one of"
            f" {', '.join(form.name for form in forms)}"
        )
    exact = read(typed, forms[0])
    records = [error(facts(name), exact) for name in known()]
    record = {"input": typed, "exact": shown(exact), "formats": records}

    def write() -> None:
        title = f"{typed} = {record['exact']}: nearest value in every format"
        _table(title, "format", [(each["format"], each) for each in records]).print()
        for form in forms:
            _print_line(form, typed, exact)
        if any(number_line.around(form, exact) for form in forms):
            print(f"\n{number_line.AROUND_LEGEND}")

    return record, write


def several(form: Facts, typed: list[str]) -> Report:
    """Return numbers in a format, one row per number."""
    records = []
    for word in typed:
        exact = read(word, form)
        records.append({"input": word, "exact": shown(exact), **error(form, exact)})
    rows = [(each["input"], each) for each in records]
    table = _table(f"Nearest value in {form.name}", "number", rows)
    return {"format": form.name, "numbers": records}, table.print


def code_report(typed: str) -> Report:
    """Return the value of a code in every format whose codes are at least as long."""
    forms = [facts(name) for name in known()]
    code = int(typed, 16)
    fitting = [f for f in forms if not code >> (f.bits + f.unused_low_bits)]
    if not fitting:
        raise UserError(f"code must not have more bits than any format; got {typed}")
    records = [
        {"format": form.name, **coded(form, form.from_code(code), code)}
        for form in fitting
    ]
    title = f"Value of code {typed} in every format that has it"
    table = codes_table(title, "format", [(each["format"], each) for each in records])
    return {"input": typed, "codes": records}, table.print


def measure(x: float | None) -> str:
    """Return an error in a table."""
    return "-" if x is None else number(x)


def _table(title: str, key: str, rows: list[tuple[str, dict[str, Any]]]) -> Table:
    return Table(
        f"{title} (ulps: error divided by the spacing)",
        [key, "code", "bits", "value", "rel. error", "ulps", "outcome"],
        [
            [
                name,
                each["code"],
                painted(each),
                str(each["value"]),
                measure(each["relative"]),
                measure(each["ulps"]),
                each["outcome"],
            ]
            for name, each in rows
        ],
    )


def _print_line(form: Facts, typed: str, exact: Any) -> None:
    lines = number_line.around(form, exact)
    if lines:
        apart = number_line.spacing_here(form, exact)
        print(f"\n{form.name} around {typed}" + (f", {apart}" if apart else ""))
        print("\n".join(lines))
