"""What a part uses of its file, by whose digest its cells are told from those of another one."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable


class _Code(ast.NodeTransformer):
    """Leaves out texts that stand alone, such as docstrings, and what a script alone runs."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) else node

    def visit_If(self, node: ast.If) -> ast.If | None:
        is_script = ast.unparse(node.test) == "__name__ == '__main__'" and not node.orelse
        return None if is_script else node


def used_digest(text: str, line: int | None) -> str:
    """16 hexadecimal digits that stand for the code of a part.

    That is its file without the other parts, and without the functions and classes that these
    alone name. Comments, layout and docstrings do not count. Another minor version of Python may
    write the same code otherwise.

    Args:
        text: of its file.
        line: in the statement that registers it; None: unknown, so that it uses all.
    """
    statements = _Code().visit(ast.parse(text)).body
    others = {each for each in statements if _registers(each) and not _has(each, line)}
    left_out = others if line is not None else set()
    while more := _named_in(left_out, set(statements) - left_out):
        left_out |= more
    while back := _named_in(set(statements) - left_out, left_out):
        left_out -= back
    code = "\n".join(ast.unparse(each) for each in statements if each not in left_out)
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def _registers(statement: ast.stmt) -> bool:
    """Whether a statement registers a part, as a decorator or by a call."""
    calls = [*getattr(statement, "decorator_list", []), getattr(statement, "value", None)]
    names = _names(each for each in calls if each)
    return any(name.startswith("register_") for name in names)


def _has(statement: ast.stmt, line: int | None) -> bool:
    """Whether a line is in a statement, which begins with its decorators."""
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(each.lineno for each in decorators)])
    return line is not None and first <= line <= (statement.end_lineno or first)


def _named_in(code: Iterable[ast.stmt], among: Iterable[ast.stmt]) -> set[ast.stmt]:
    """The functions and classes among statements that the code names."""
    names = _names(code)
    return {each for each in among if getattr(each, "name", None) in names}


def _names(code: Iterable[ast.AST]) -> set[str]:
    nodes = [node for each in code for node in ast.walk(each)]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}
