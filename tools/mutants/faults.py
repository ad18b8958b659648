"""Find the faults that can be planted in a tree, and draw some of them."""

import ast
import importlib.util
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

C_SUBJECTS = "formats ufuncs matmul tensor_core blocks runtime programs".split()
#: In this encoding a byte is a character: offsets in a string are offsets in its file.
BYTES = "latin-1"


PAIRS = """< <=  > >=  == !=  + -  += -=  & |  &= |=  << >>  <<= >>=  && ||  and or
    min max  continue break  True False""".split()
SWAPS = dict(zip(PAIRS[::2], PAIRS[1::2], strict=True))
SWAPS |= {after: before for before, after in SWAPS.items()}
SWAPS |= {"is": "is not", "is not": "is"}
#: The patterns of each kind of fault, which changes group 1.
KINDS = {
    "comparison": r"(?<= )([<>]=?|[=!]=)(?= )",
    "sum": r"(?<= )([-+]=?)(?= )",
    "bits": r"(?<= )((?:[&|]|<<|>>)=?)(?= )",
    "logic": r"(?<= )(&&|\|\||and|or)(?= )",
    "identity": r"\b(is not|is)\b",
    "truth": r"\b(True|False)\b",
    "extreme": r"(?<![A-Za-z])f?(min|max)(?=(?:_\w+)?\()",
    "jump": r"\b(continue|break)\b",
    "real": r"(?<![\w.])(\d+\.\d*(?:[eE][-+]?\d+)?)(?=[fF]?(?![\w.]))",
    "integer": r"(?<![\w.])(?<!\d[eEpP][-+])(0[xX][0-9a-fA-F]+|0|[1-9]\d*)"
    r"(?=[uUlL]*(?![\w.]))",
}
NESTED = r"(?:[^()\n]|\((?:[^()\n]|\((?:[^()\n]|\([^()\n]*\))*\))*\))+"
C = KINDS | {
    "condition": rf"\b(?:if|while) \(({NESTED})\)",
    "return": r"\breturn ([^;\n]+);",
}
PYTHON = KINDS | {
    "condition": r"\b(?:if|elif|while) ([^\n]+):(?= *$)",
    "return": r"\breturn (\S[^\n]*?) *$",
}
#: Comments, strings, preprocessor lines and assertions, in which no fault is planted.
QUOTED = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
NOT_C = re.compile(
    rf"/\*(?s:.*?)\*/|//[^\n]*|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|{QUOTED}"
    r"|\b(?:TF_ASSERT\w*|_?[Ss]tatic_assert)\([^;]*;",
    re.MULTILINE,
)
NOT_PYTHON = re.compile(
    rf'"""(?:\\.|[^\\])*?"""|{QUOTED}|#[^\n]*|^[ \t]*assert [^\n]*',
    re.MULTILINE | re.DOTALL,
)
#: The sizes of arrays in declarations.
BOUNDS = re.compile(
    r"\b(?!(?:return|else|case|in|not|and|or|if|is|yield|await|del|raise)\b)"
    r"[A-Za-z_]\w* +\**\w+((?:\[[^\]\n]*\])+)"
)


class Fault(NamedTuple):
    kind: str
    path: str
    line: int
    start: int
    before: str
    after: str


def changed(kind: str, token: str, in_c: bool) -> list[str]:
    """Return the tokens that may replace a token."""
    if token in SWAPS:
        return [SWAPS[token]]
    if kind == "integer":
        is_hex = token[:2] in ("0x", "0X")
        return [hex(int(token, 16) + 1) if is_hex else str(int(token) + 1)]
    if kind == "real":
        return [repr(float(token) * 1.5 or 1.0)]
    opposite = f"!({token})" if in_c else f"not ({token})"
    if kind == "condition":
        return [opposite]
    nothing = "0" if in_c else "None"
    return [nothing, opposite] if token != nothing else []


def faults_in(tree: Path, name: str) -> dict[str, list[Fault]]:
    """Return all possible faults of a file, by kind."""
    text = (tree / name).read_bytes().decode(BYTES)
    in_c = name.endswith((".c", ".h"))
    code = (NOT_C if in_c else NOT_PYTHON).sub(blotted, text)
    if name.endswith(".py"):
        code = without_types(code, ast.parse(text.encode(BYTES)))
    else:
        code = BOUNDS.sub(lambda m: m[0].replace(m[1], " " * len(m[1])), code)
    found: dict[str, list[Fault]] = {}
    for kind, pattern in (C if in_c else PYTHON).items():
        for match in re.finditer(pattern, code, re.MULTILINE):
            token = text[match.start(1) : match.end(1)]
            goes_on = any(
                token.count(a) != token.count(b) for a, b in ("()", "[]", "{}")
            )
            # In Python, | mostly joins types.
            if goes_on or (token == "|" and name.endswith(".py")):
                continue
            place = text.count("\n", 0, match.start(1)) + 1, match.start(1), token
            for after in changed(kind, token, in_c):
                found.setdefault(kind, []).append(Fault(kind, name, *place, after))
    return found


def blotted(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", '"' if found[0][0] in "\"'" else " ", found[0])


def without_types(code: str, tree: ast.AST) -> str:
    """Replace annotations, and code that only type checkers read, by spaces."""
    lines = code.split("\n")
    for node in ast.walk(tree):
        part: ast.AST | None = None
        if isinstance(node, ast.arg | ast.AnnAssign):
            part = node.annotation
        elif isinstance(node, ast.FunctionDef):
            part = node.returns
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            part = node
        if isinstance(part, ast.expr | ast.stmt):
            first, last = part.lineno - 1, (part.end_lineno or 0) - 1
            for number in range(first, last + 1):
                line = lines[number]
                start = part.col_offset if number == first else 0
                end = part.end_col_offset if number == last else None
                blank = " " * len(line[start:end])
                lines[number] = line[:start] + blank + line[start + len(blank) :]
    return "\n".join(lines)


def sources(tree: Path) -> dict[str, list[str]]:
    """Return the files in which faults are planted, by subject."""
    found = {name: [*Path(tree, "src", name).rglob("*.[ch]")] for name in C_SUBJECTS}
    found["Cython"] = [*Path(tree, "tf32dtype/_core").rglob("*.pxi")]
    found["Python"] = [
        path
        for path in Path(tree, "tf32dtype").rglob("*.py")
        if not path.is_relative_to(tree / "tf32dtype/cuda") and has_imports(path)
    ]
    return {
        subject: sorted(
            str(path.relative_to(tree))
            for path in paths
            if "windows" not in path.name and path.stem != "asserts"
        )
        for subject, paths in found.items()
    }


def has_imports(path: Path) -> bool:
    """Return whether all modules that a file imports are installed."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            modules.add(node.module)
    tops = {name.partition(".")[0] for name in modules} - {"tf32dtype"}
    return all(importlib.util.find_spec(name) for name in tops)


def draws(tree: Path, names: list[str], seed: str) -> Iterator[Fault]:
    """Draw different faults of one subject, until 1000 draws in a row are not new.

    The chance of a file is proportional to the root of its number of possible faults.
    All kinds of faults of a file have the same chance.
    """
    chance = random.Random(seed)
    found = [faults for name in names if (faults := faults_in(tree, name))]
    weights = [sum(map(len, faults.values())) ** 0.5 for faults in found]
    seen: set[Fault] = set()
    repeated = 0
    while repeated < 1000:
        [faults] = chance.choices(found, weights)
        fault = chance.choice(faults[chance.choice([*faults])])
        repeated += 1
        if fault not in seen:
            seen.add(fault)
            repeated = 0
            yield fault
