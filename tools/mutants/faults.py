"""What a fault is, and which a tree has room for."""

import ast
import importlib.util
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

C_SUBJECTS = "formats ufuncs matmul tensor_core blocks runtime programs".split()
#: A byte is a character, so that places in a text are places in its file.
BYTES = "latin-1"


PAIRS = """< <=  > >=  == !=  + -  += -=  & |  &= |=  << >>  <<= >>=  && ||  and or
    min max  continue break  True False""".split()
SWAPS = dict(zip(PAIRS[::2], PAIRS[1::2], strict=True))
SWAPS |= {after: before for before, after in SWAPS.items()}
SWAPS |= {"is": "is not", "is not": "is"}
#: What a kind of fault changes: group 1.
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
#: What is not code, and what says what must be.
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
#: Of declarations, how large arrays are.
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
    """What a token may become."""
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
    """All faults that a file has room for, by kind."""
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
            if goes_on or (token == "|" and name.endswith(".py")):  # of types mostly
                continue
            place = text.count("\n", 0, match.start(1)) + 1, match.start(1), token
            for after in changed(kind, token, in_c):
                found.setdefault(kind, []).append(Fault(kind, name, *place, after))
    return found


def blotted(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", '"' if found[0][0] in "\"'" else " ", found[0])


def without_types(code: str, tree: ast.AST) -> str:
    """Blot out annotations, and what only type checkers read."""
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
    """The files that faults are put into, by subject."""
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
    """Is all that a file imports installed?"""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            modules.add(node.module)
    tops = {name.partition(".")[0] for name in modules} - {"tf32dtype"}
    return all(importlib.util.find_spec(name) for name in tops)


def draws(tree: Path, names: list[str], seed: str) -> Iterator[Fault]:
    """Faults of one subject, until there are hardly new ones.

    A file counts by the root of how many faults it has room for. The kinds of a file
    count alike.
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
