"""What a part uses of its file, by whose digest its cells are told from those of another one."""

from __future__ import annotations

import ast
import hashlib
import re

_REGISTERS = {f"register_{sort}" for sort in ("paradigm", "model", "task", "study")}

_DECLARES = {*_REGISTERS, "of_images", "SearchSpace", "Preset", "By"}
"""Functions that change nothing in the file, whatever they are given."""

_DECORATES = _REGISTERS | {
    "cache", "classmethod", "dataclass", "no_grad", "property", "staticmethod",
}  # fmt: skip
"""Decorators that keep nothing elsewhere."""

_BY_TEXT = {
    "builtins", "eval", "exec", "gc", "globals", "importlib", "inspect", "locals", "metaclass",
    "sys", "vars",
}  # fmt: skip
"""They find what no name in the file tells."""

_SPECIAL = {
    "__all__", "__call__", "__future__", "__getitem__", "__init__", "__iter__", "__len__",
    "__post_init__",
}  # fmt: skip
"""They do not; others, such as `__name__` and `__init_subclass__`, may."""

_PLAIN = (
    ast.Name, ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.keyword, ast.arguments,
    ast.arg, ast.expr_context, ast.operator, ast.unaryop,
)  # fmt: skip


class _Code(ast.NodeTransformer):
    """Leaves out what never runs: texts that stand alone, such as docstrings, and the guard."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) else node

    def visit_If(self, node: ast.If) -> ast.AST | None:
        guard = ast.unparse(node.test) == "__name__ == '__main__'" and not node.orelse
        return None if guard else self.generic_visit(node)


def used_digest(text: str, line: int | None) -> str:
    """16 hexadecimal digits that stand for the code of a part.

    That is the statement that registers it; all that may do more than bind names; and those that
    bind the words in these, in those, and so on. Comments, layout and docstrings do not count. A
    file that looks itself up by text counts as a whole. Digests may differ between minor versions
    of Python, which write code down in their own ways.

    Args:
        text: of its file.
        line: in the statement that registers it; None: unknown, so that it uses all.
    """
    tree = _Code().visit(ast.parse(text))
    code = {each: ast.unparse(each) for each in tree.body}
    own, named = _defined(tree), _names(tree)
    whole = line is None or _by_text(tree)
    used = {
        each
        for each in code
        if whole
        or _has(each, line)
        or not (_bound(each) <= named if _imports(each) else _binds(each, own))
    }
    more = used
    while more:
        words = {word for each in more for word in _words(code[each])}
        more = {each for each in code if each not in used and words & _bound(each)}
        used |= more
    kept = "\n".join(code[each] for each in code if each in used)
    return hashlib.sha256(kept.encode()).hexdigest()[:16]


def _words(code: str) -> set[str]:
    """All words, those of texts, too, which may be annotations."""
    return set(re.findall(r"\w+", code))


def _by_text(tree: ast.AST) -> bool:
    """Whether a file may find what is in it in other ways than by the names it writes."""
    words = _words(ast.unparse(tree).replace(".eval(", "("))  # a method of networks
    special = {each for each in words if re.fullmatch("__.+__", each)}
    return bool(words & _BY_TEXT or special - _SPECIAL)


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _defined(tree: ast.AST) -> set[str]:
    """The names that a file binds anywhere, but for those that it only imports."""
    own = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(name, ast.Store()):
                own.add(name)
            case ast.ClassDef(name) | ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                own.add(name)
    return own


def _imports(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import | ast.ImportFrom)


def _has(statement: ast.stmt, line: int | None) -> bool:
    """Whether a line is in a statement, which begins with its decorators."""
    decorators = getattr(statement, "decorator_list", [])
    first = min(each.lineno for each in [statement, *decorators])
    return line is not None and first <= line <= (statement.end_lineno or first)


def _bound(statement: ast.stmt) -> set[str]:
    """The names by which a statement is followed; no name is that of a.b without `as`, or *."""
    match statement:
        case ast.Import(names) | ast.ImportFrom(names=names):
            return {each.asname or each.name for each in names}
        case ast.ClassDef(name) | ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
            return {name}
        case ast.Assign(targets):
            return {name for each in targets for name in _names(each)}
        case ast.AnnAssign(target):
            return _names(target)
    return set()


def _binds(statement: ast.stmt, own: set[str]) -> bool:
    """Whether all that a statement does is certainly to bind names, or to register a part.

    Args:
        statement: at the top of a file, or of a class in it.
        own: names that the file defines.
    """
    evaluated: list[ast.AST | None]
    match statement:
        case ast.Pass():
            return True
        case ast.ClassDef(bases=bases, keywords=[], body=body, decorator_list=decorators):
            evaluated = [*bases]
            if not all(_binds(each, own) for each in body):
                return False
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            evaluated = [statement.args, statement.returns]
            decorators = statement.decorator_list
        case ast.Assign(targets, value) if all(isinstance(each, ast.Name) for each in targets):
            evaluated, decorators = [value], []
        case ast.AnnAssign(ast.Name(), annotation, value):
            evaluated, decorators = [annotation, value], []
        case ast.Expr(ast.Call() as call):
            return _inert(call, own, _REGISTERS)
        case _:
            return False
    calls = [each if isinstance(each, ast.Call) else ast.Call(each, [], []) for each in decorators]
    return all(_inert(each, own) for each in evaluated) and all(
        _inert(each, own, _DECORATES) for each in calls
    )


def _inert(node: ast.AST | None, own: set[str], calls: set[str] = _DECLARES) -> bool:
    """Whether to evaluate an expression certainly changes nothing that the file can see.

    Args:
        node: of the expression.
        own: names that the file defines.
        calls: functions that may be called.
    """
    match node:
        case None:
            return True
        case (
            ast.Call(ast.Name("range" | "tuple"))
            | ast.Attribute()
            | ast.Subscript()
            | ast.BinOp()
            | ast.UnaryOp()
        ):
            inert = not own & _names(node)
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name)):
            inert = name in calls - own
        case _:
            inert = isinstance(node, _PLAIN)
    return inert and all(_inert(each, own) for each in ast.iter_child_nodes(node))
