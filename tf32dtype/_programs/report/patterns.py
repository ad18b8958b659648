"""Patterns of source code whose products lose digits afterward."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache

_PRODUCTS = ("dot", "matmul", "inner", "einsum", "tensordot")


def expansion_line(file: str, line: int) -> int | None:
    """Return the line that subtracts twice the product of a line.

    That is `a - 2 * x @ y.T + b`, also if the product has a name first: how squared
    distances are expanded. None if there is none in the same function.
    """
    scope = _scope(file, line)
    if scope is None:
        return None
    products = [x for x in ast.walk(scope) if _is_product(x) and _is_at(x, line)]
    names = {
        target.id
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign) and node.value in products
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(scope):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            is_sum = isinstance(node.op, ast.Add)
            terms = [(node.right, -2 if is_sum else 2)]
            terms += [(node.left, -2)] if is_sum else []
            for term, factor in terms:
                factors = [*_factors(term)]
                twice = any(_number(x) == factor for x in factors)
                if twice and any(_is_one_of(x, products, names) for x in factors):
                    return term.lineno
    return None


def is_recurrence(file: str, line: int) -> bool:
    """Return whether a product of a line is assigned to one of its operands.

    That is `x = x @ a` in a loop: each step takes up the errors of the one before.
    """
    scope = _scope(file, line)
    if scope is None:
        return False
    for loop in ast.walk(scope):
        if not isinstance(loop, ast.For | ast.While):
            continue
        for node in ast.walk(loop):
            if isinstance(node, ast.AugAssign) and _is_at(node, line):
                if isinstance(node.op, ast.MatMult):
                    return True
            elif isinstance(node, ast.Assign) and _is_at(node, line):
                own = {x.id for t in node.targets for x in _names(t)}
                products = filter(_is_product, ast.walk(node.value))
                if any(x.id in own for product in products for x in _names(product)):
                    return True
    return False


def is_difference_of_squares(file: str, line: int) -> bool:
    """Return whether a line is like `mean(x * x) - mean(x) ** 2`."""
    scope = _scope(file, line)
    return scope is not None and any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Sub)
        and _is_at(node, line)
        and _is_square(node.right)
        for node in ast.walk(scope)
    )


@lru_cache(maxsize=256)
def _scope(file: str, line: int) -> ast.AST | None:
    """Return the function around a line, or the module; None without its source."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None
    scope: ast.AST = tree
    for node in ast.walk(tree):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if is_function and _is_at(node, line):
            scope = node  # inner ones come later
    return scope


def _names(node: ast.AST) -> Iterator[ast.Name]:
    return (x for x in ast.walk(node) if isinstance(x, ast.Name))


def _is_square(node: ast.AST) -> bool:
    if not isinstance(node, ast.BinOp):
        return False
    if isinstance(node.op, ast.Pow):
        return _number(node.right) == 2
    is_product = isinstance(node.op, ast.Mult)
    return is_product and ast.dump(node.left) == ast.dump(node.right)


def _factors(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the factors of a term, products of matrices among them."""
    yield node
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.MatMult):
        yield from _factors(node.left)
        yield from _factors(node.right)


def _number(node: ast.AST) -> object:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _number(node.operand)
        return -value if isinstance(value, int | float) else None
    return node.value if isinstance(node, ast.Constant) else None


def _is_product(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else ""
        return name in _PRODUCTS
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)


def _is_one_of(node: ast.AST, products: list[ast.AST], names: set[str]) -> bool:
    return node in products or (isinstance(node, ast.Name) and node.id in names)


def _is_at(node: ast.AST, line: int) -> bool:
    first = getattr(node, "lineno", 0)
    return bool(first <= line <= (getattr(node, "end_lineno", None) or first))
