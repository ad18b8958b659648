#!/usr/bin/env python3
"""Find wordings that the style guide in CONTRIBUTING.md rules out.

tools/prose_baseline.tsv holds the number of errors of each file. A count may only fall,
and a new file starts at 0. After you rename a file, run with --update --force.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import subprocess
import sys
from collections import Counter, namedtuple
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BASELINE = ROOT / "tools/prose_baseline.tsv"
FIRST_COMMIT = "e90609cd"  # the subjects of later ones are checked
SKIPPED = re.compile(r".*/core\.js|.*prose\.py")

ERRORS = {
    "alone": r"(?<!\blet )(?<!\brun )(?<!\bruns )\balone\b",
    "is-no": r"(?<![Tt]here )\b(?:is|are|was|were) no (?!(?:more|less|worse|other"
    r"|doubt|(?:long|furth|bett|fast|slow|wid|larg|small|low|high|near)er)\b)[\w`]",
    "opens": r"^[\s\"'(*]*(?:Of (?!course)|What\b(?!.*\?))",
    "what": r"\b(?:of|by|for|with|in|to|than|as|on|from|at|into) what\b(?!.*\?)",
    "per": r"(?<!many )\b(?:bits?|bytes?|(?<!to )scale|values?|codes?|[num]s|lines?|\d+"
    r"|files?|elements?|multiply-adds?|instructions?|threads?|products?|tiles?|words?"
    r"|one|rows?|kernels?|[MG]B) an? (?:value|block|second|time|item|call|file|thread"
    r"|line|row|byte|chunk|tensor|code|process|element|function|format|core|tile|matrix"
    r"|product|step|launch|instruction|lane|column|kernel)\b(?! has| takes| moves|')",
    "word": r"(?i)\b(?:(?:mend|obey)(?:s|ed|ing)?|anew|beside|lesser|for ever|nobody"
    r"|whoever|h[eo]lds? (?:\w+ )?against|go(?:es|ing)? on|greatest(?! common))\b",
}
WARNINGS = {
    "vague": r"(?i)\b(?:beyond|lies|stands|texts?|(?<!in )(?<!take )(?<!takes )places?"
    r"|(?<!in )parts?(?! of)|(?<!by the )ways?(?! to)|here"
    r"|there(?! (?:is|are|was|were|may|can|must|will)\b))\b",
    "marks": r";.*;|\w: .*\w: ",
}
RULES = {name: re.compile(rule) for name, rule in {**ERRORS, **WARNINGS}.items()}
WARNED = {*WARNINGS, "long", "code-first", "length"}
CYTHON = (".pyx", ".pxi", ".pxd")
HIDDEN = re.compile(r"(`+)[^`]+\1|(?<=\])\([^)\s]*\)|https?://\S+")
END = re.compile(r"[.!?][\"')]*\s+(?=[A-Z`\"'(*\[])")
PAGE = re.compile(r"\bdocs/[\w/]+\.md")  # in strings of the package


Hit = namedtuple("Hit", "area path line rule text")
#: A paragraph, list item, table cell, string or comment: area, line, text.
Unit = tuple[str, int, str]

#: What Markdown has besides prose: generated tables, comments, fences, indented code.
MARKUP = (
    r"<!-- (\w+):[^>]*begin -->.*?<!-- \1:.*?-->|<!--.*?-->|^ *(```|~~~).*?^ *\2",
    r"(?<=\n\n)(?:    [^\n]*\n)+",
)
#: What docstrings and reST have, too: literal blocks, directives, doctests, underlines.
CODE = (
    r"(?<=::)\n\n(?:(?: +[^\n]*)?\n)+",
    r"^( *)\.\. [^\n]*(?:\n\1 +[^\n]*|\n(?=\n\1 ))*",
    r"^ *>>> [^\n]*(?:\n *\S[^\n]*)*",
    r"^ *[-=~^|: ]{3,}$",
)


def blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def paragraphs(area: str, line: int, text: str, markup: bool = False) -> Iterator[Unit]:
    for pattern in (MARKUP + CODE) if markup else CODE:
        text = re.sub(pattern, blank, text, flags=re.S | re.M)
    held: list[str] = []
    start = indent = listed = 0
    for number, row in enumerate([*text.split("\n"), ""], line):
        said = row.strip()
        depth = len(row) - len(row.lstrip())
        begins = re.match(r"[-*+] |\d+\. |#+ |\||@\w+ |(?=\S.*\S {3,}\S)", said)
        moved = depth != indent and not markup and not listed
        if held and (not said or begins or moved):
            yield area, start, "\n".join(held)
            held = []
        if said.startswith("|"):
            yield from ((area, number, x.strip()) for x in said.split("|"))
        elif said:
            if not held:
                start, indent, listed = number, depth, bool(begins)
            held.append(said[begins.end() :] if begins else said)


def strings(area: str, tree: ast.AST) -> Iterator[Unit]:
    """The strings in an expression, with `x` for values."""
    inner: set[int] = set()  # of an f-string, which comes first
    for node in ast.walk(tree):
        said = None if id(node) in inner else getattr(node, "value", None)
        if isinstance(node, ast.JoinedStr):
            inner.update(map(id, node.values))
            values = [getattr(x, "value", None) for x in node.values]
            said = "".join(x if isinstance(x, str) else "`x`" for x in values)
        if isinstance(said, str) and " " in said:
            yield area, getattr(node, "lineno", 0), said.replace("\n", " ")


def is_option(key: ast.AST | None) -> bool:
    """Say whether a key of a dictionary is an option of `add_options`."""
    name = getattr(key, "value", None)
    return isinstance(name, str) and bool(
        re.fullmatch(r"--[\w-]+( \S+)?|\w+ [A-Z|]+", name)
    )


def python(text: str, kind: str) -> Iterator[Unit]:
    """The docstrings, comments, messages of `raise` and texts of help."""
    for m in re.finditer(r'(^ *)?r?"""(\n*)(.*?)"""', text, re.S | re.M):
        line = text.count("\n", 0, m.start(3)) + 1
        if m[1] is not None and ";\n" not in m[3]:  # the latter is C in Cython
            yield from paragraphs("docstrings", line, inspect.cleandoc(m[3]))
    bare = re.sub(r'""".*?"""', blank, text, flags=re.S)
    for m in re.finditer(r"(?<!\S)#(?! ?\d).*(?:\n *#.*)*", bare):
        said = re.sub(r"(?m)^ *#[:!]* ?|noqa.*$|type: ignore.*$", "", m[0])
        yield from paragraphs("comments", bare.count("\n", 0, m.start()) + 1, said)
    if kind in CYTHON:  # which `ast` cannot read
        for m in re.finditer(r'\braise \w[\w.]*\(\s*((?:[fr]?"[^"\n]*"\s*)+)', bare):
            said = "".join(re.findall(r'"([^"\n]*)"', m[1]))
            line = bare.count("\n", 0, m.start(1)) + 1
            yield "messages", line, re.sub(r"\{[^}]*\}", "`x`", said)
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Raise) and node.exc:
            yield from strings("messages", node.exc)
        elif isinstance(node, ast.keyword) and node.arg == "help":
            yield from strings("help", node.value)
        elif isinstance(node, ast.Dict) and all(map(is_option, node.keys)):
            for value in node.values:
                yield from strings("help", value)


#: Comments of C and JavaScript, and strings, in which // and /* begin no comment.
BRACES = re.compile(
    r"(?s)/\*.*?\*/|(?<!:)//[^\n]*(?:\n[ \t]*//[^\n]*)*"
    r'|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|`(?:[^`\\]|\\.)*`'
)


def braces(text: str, has_prose: bool) -> Iterator[Unit]:
    """The comments of C, CUDA and JavaScript, and strings if they are prose."""
    for m in BRACES.finditer(text):
        line = text.count("\n", 0, m.start()) + 1
        if m[0].startswith("/"):
            said = re.sub(r"(?m)^[ \t]*(?:/\*+|//+|\*(?!/))?[ \t]?|\*+/$", "", m[0])
            yield from paragraphs("comments", line, inspect.cleandoc(said))
        elif has_prose and re.search(r"\w[.,;]? [a-z`$].* ", m[0]):
            yield "explorer", line, re.sub(r"\$\{[^}]*\}", "`x`", m[0][1:-1])


def units(path: str, text: str) -> Iterator[Unit]:
    kind = Path(path).suffix
    if kind in (".md", ".rst"):
        return paragraphs("docs", 1, text, markup=True)
    if kind in (".py", *CYTHON) or re.match(r"#!.*python", text):
        return python(text, kind)
    if kind in (".c", ".h", ".cu", ".js"):
        return braces(text, kind == ".js" and path.startswith("docs/"))
    if kind == ".html":
        text = re.sub(r"<(script|style).*?</\1>|<[^>]*>", blank, text, flags=re.S)
        return paragraphs("explorer", 1, re.sub(r"(?m)^ +", "", text))
    return iter(())


def find(path: str, text: str, words: Counter[str]) -> Iterator[Hit]:
    """Yield the hits of a file, and add its words to those of their areas."""
    rows = text.split("\n")
    prose = 0
    for area, first, said in units(path, text):
        flat = said.replace("\n", " ")
        plain = HIDDEN.sub(lambda m: "`" * len(m[0]), flat)
        words[area] += len(plain.split())
        if area == "docs" and not rows[first - 1].lstrip().startswith(("|", "#")):
            if not prose and re.search(r"(?m)^(```|    )", "\n".join(rows[:first])):
                yield Hit(area, path, first, "code-first", flat)
            prose += len(plain.split())
        ends = [0, *(m.end() for m in END.finditer(plain)), len(plain)]
        for begin, end in pairwise(ends):
            sentence = plain[begin:end]
            found = [(m.start(), x) for x in RULES for m in RULES[x].finditer(sentence)]
            if len(sentence.split()) > 30:
                found.append((0, "long"))
            if path.startswith("tf32dtype/") and area != "comments":
                found += [(m.start(), "page") for m in PAGE.finditer(flat[begin:end])]
            for at, rule in found:
                line = first + said.count("\n", 0, begin + at)
                yield Hit(area, path, line, rule, flat[begin:end].strip())
    if prose > 1500:
        yield Hit("docs", path, 1, "length", f"{prose} words outside tables")


def git(*arguments: str) -> list[str]:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True).stdout.splitlines()


def commits(base: str, words: Counter[str]) -> Iterator[Hit]:
    """Check the subjects since `base`, unless a shallow clone lacks that commit."""
    if not git("rev-parse", "--verify", "--quiet", f"{base}^{{commit}}"):
        print(f"prose: commit {base} is not in this clone; no subjects are checked")
        return
    for row in git("log", "--no-merges", "--format=%h %s", f"{base}..HEAD"):
        name, _, subject = row.partition(" ")
        words["commits"] += len(subject.split())
        if len(subject) > 72 or ";" in subject:
            yield Hit("commits", name, len(subject), "subject", subject)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", nargs="*", help="search these files (default: all)")
    add = partial(parser.add_argument, action="store_true")
    add("--check", help="fail if a file has more errors than its baseline")
    add("--update", help="lower the baseline to the current counts")
    add("--force", help="let --update raise counts, too")
    add("--warnings", help="print warnings, too")
    parser.add_argument("--commits", metavar="BASE", default=FIRST_COMMIT)
    options = parser.parse_args()
    words: Counter[str] = Counter()
    hits: list[Hit] = []
    named = [] if options.check or options.update else options.paths
    for path in named or git("ls-files"):
        if (ROOT / path).is_file() and not SKIPPED.match(path):
            hits += find(path, (ROOT / path).read_text("utf-8", "ignore"), words)
    errors = [hit for hit in hits if hit.rule not in WARNED]
    counts = Counter(hit.path for hit in errors)
    rows = BASELINE.read_text().splitlines() if BASELINE.exists() else []
    baseline = {path: int(count) for count, path in (row.split("\t") for row in rows)}
    subjects = list(commits(options.commits, words))
    if options.update:
        kept = counts if options.force else Counter(baseline) & counts
        BASELINE.write_text("".join(f"{kept[x]}\t{x}\n" for x in sorted(kept)))
        return 0
    risen = {x: n for x, n in counts.items() if n > baseline.get(x, 0)}
    for path, count in risen.items() if options.check else ():
        print(f"prose: {path} has {count} errors; baseline: {baseline.get(path, 0)}")
    shown = hits if options.warnings else errors
    for hit in [x for x in shown if not options.check or x.path in risen] + subjects:
        print(f"{hit.path}:{hit.line}: {hit.rule}: {hit.text}")
    for area, total in [] if options.check else words.items():
        found = sum(hit.area == area for hit in errors + subjects)
        print(f"{area}: {1000 * found / max(total, 1):.1f} errors per 1,000 words")
    if options.check and not risen and counts != baseline:
        print("prose: fewer errors than the baseline; run tools/prose.py --update")
    return int(options.check and bool(risen or subjects))


if __name__ == "__main__":
    sys.exit(main())
