"""What a part uses of its file, by whose digest its cells are told from those of another one."""

from __future__ import annotations

import ast
import hashlib

_REGISTERS = {f"register_{sort}" for sort in ("paradigm", "model", "task", "study")}

_BY_TEXT = {"eval", "exec", "globals", "locals", "vars"}
"""They find what no name in the file tells."""


class _Code(ast.NodeTransformer):
    """Leaves out texts that stand alone, such as docstrings."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) else node


def used_digest(text: str, line: int | None) -> str:
    """16 hexadecimal digits that stand for the code of a part.

    That is the statement that registers it; those that bind the names in it, in these, and so on;
    and all that do more than bind names. Comments, layout and docstrings do not count.

    Args:
        text: of its file.
        line: in the statement that registers it; None: unknown, so that it uses all.
    """
    statements = _Code().visit(ast.parse(text)).body
    own = {name for each in statements for name in _bound(each) if not _imports(each)}
    by_text = any(_BY_TEXT & _names(each) for each in statements)
    used = {
        each
        for each in statements
        if by_text or line is None or _has(each, line) or _acts(each, own)
    }
    more = used
    while more:
        names = {name for each in more for name in _names(each)}
        more = {each for each in statements if each not in used and names & _bound(each)}
        used |= more
    code = "\n".join(ast.unparse(each) for each in statements if each in used)
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def _calls(value: ast.expr | None) -> bool:
    return value is not None and any(isinstance(node, ast.Call) for node in ast.walk(value))


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _imports(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import | ast.ImportFrom)


def _has(statement: ast.stmt, line: int) -> bool:
    """Whether a line is in a statement, which begins with its decorators."""
    first = min([statement.lineno, *(each.lineno for each in _decorators(statement))])
    return first <= line <= (statement.end_lineno or first)


def _decorators(statement: ast.stmt) -> list[ast.expr]:
    return getattr(statement, "decorator_list", [])


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement at the top of a file binds."""
    match statement:
        case ast.Import(names) | ast.ImportFrom(names=names):
            return {each.asname or each.name.partition(".")[0] for each in names}
        case ast.ClassDef(name) | ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
            return {name}
        case ast.Assign(targets):
            return {name for each in targets for name in _names(each)}
        case ast.AnnAssign(target):
            return _names(target)
    return set()


def _acts(statement: ast.stmt, own: set[str]) -> bool:
    """Whether a statement may do more, when it is imported, than bind names or register a part.

    Args:
        statement: at the top of a file.
        own: names that the file defines; a decorator among them may keep what it decorates.
    """
    match statement:
        case ast.Import(names) | ast.ImportFrom(names=names):
            return any(each.name == "*" for each in names)
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            return any(own & _names(each) for each in statement.decorator_list)
        case ast.Assign(targets, value):
            return _calls(value) or not all(isinstance(t, ast.Name | ast.Tuple) for t in targets)
        case ast.AnnAssign(target, value=value):
            return _calls(value) or not isinstance(target, ast.Name)
        case ast.Expr(ast.Call(ast.Name(name) | ast.Attribute(attr=name))):
            return name not in _REGISTERS
        case ast.If(ast.Compare(ast.Name("__name__"))):
            return False
    return True
