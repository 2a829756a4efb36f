"""Forward substitution in Python text: what is used once goes to where it is used.

The text is that of a script over JAX's references, where a name is bound once unless it is bound
again on purpose. What is executed stays the same, and so does the order of reads and effects, but
that reads may change places with reads.
"""

from __future__ import annotations

import ast
from collections import Counter
from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH: Final = 88
"""No substitution makes a line longer."""
_ARRAYS: Final = ("jnp", "np")
"""Modules whose functions only compute."""
_METHODS: Final = ("astype", "reshape")
_MAPPINGS: Final = ("a", "c", "v", "refs")
"""Names of dictionaries in a script: to look up a key reads no reference."""
_OPAQUE: Final = (
    *(ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    *(ast.IfExp, ast.BoolOp),
)
"""Expressions that evaluate a part of themselves later, often or never."""


class _Kind(IntEnum):
    """What the evaluation of an expression does beside its value."""

    PURE = 0
    READ = 1
    EFFECT = 2


def inlined(text: str) -> str:
    """The text with values that are used once in the place of their names; without empty lines."""
    module = ast.parse(text)
    _Inliner(module).block(module.body, 0)
    lines = ast.unparse(module).splitlines()
    return "\n".join(line for line in lines if line.strip()) + "\n"


class _Inliner:
    """Substitutes in a module, whose names it counts once: a substitution removes a whole name."""

    def __init__(self, module: ast.Module) -> None:
        names = [node for node in ast.walk(module) if isinstance(node, ast.Name)]
        self._loads = Counter(node.id for node in names if isinstance(node.ctx, ast.Load))
        self._stores = Counter(node.id for node in names if isinstance(node.ctx, ast.Store))
        for node in ast.walk(module):
            if isinstance(node, ast.arg):
                self._stores[node.arg] += 1
            elif isinstance(node, ast.FunctionDef):
                self._stores[node.name] += 1

    def block(self, body: list[ast.stmt], depth: int) -> None:
        """Substitute in statements and in the blocks within them."""
        for statement in body:
            for inner in _blocks(statement):
                self.block(inner, depth + 1)
        place = 0
        while place < len(body):
            if self._goes_on(body, place, depth):
                del body[place]
                place = 0
            else:
                place += 1

    def _goes_on(self, body: list[ast.stmt], place: int, depth: int) -> bool:
        """Put the value of an assignment where it is used, if it may; True if it is there."""
        if (named := _named(body[place])) is None:
            return False
        name, value = named
        kind = _kind(value)
        if self._stores[name] != 1 or self._loads[name] != 1:
            return False
        needs = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
        for using in body[place + 1 :]:
            if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(using)):
                return _substituted(using, name, value, kind, depth)
            if not _commute(kind, _statement_kind(using)) or needs & _bound(using):
                return False
        return False


def _named(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """The name that a statement binds, and its value; a function of one expression is a lambda."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        (target,) = statement.targets
        return (target.id, statement.value) if isinstance(target, ast.Name) else None
    if isinstance(statement, ast.FunctionDef) and not statement.decorator_list:
        last = statement.body[0]
        if isinstance(last, ast.Return) and last.value is not None:
            return statement.name, ast.Lambda(statement.args, last.value)
    return None


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse"):
        if inner := getattr(statement, field, None):
            yield inner


def _bound(statement: ast.stmt) -> set[str]:
    """Names that a statement binds."""
    names = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
    return {node.id for node in names if isinstance(node.ctx, ast.Store)}


def _commute(one: _Kind, other: _Kind) -> bool:
    return one + other <= _Kind.EFFECT


def _statement_kind(statement: ast.stmt) -> _Kind:
    if isinstance(statement, ast.FunctionDef):
        return _Kind.PURE if not statement.decorator_list else _Kind.EFFECT
    if isinstance(statement, ast.Assign):
        (target,) = statement.targets
        return _kind(statement.value) if isinstance(target, ast.Name | ast.Tuple) else _Kind.EFFECT
    return _Kind.EFFECT


def _kind(expression: ast.expr) -> _Kind:
    """The most that the evaluation of an expression does."""
    return max((_own_kind(node) for node in _evaluated(expression)), default=_Kind.PURE)


def _own_kind(node: ast.AST) -> _Kind:
    """What a node does beside what its operands do."""
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute):
            base = function.value
            if function.attr in _METHODS or (isinstance(base, ast.Name) and base.id in _ARRAYS):
                return _Kind.PURE
        return _Kind.EFFECT
    if isinstance(node, ast.Subscript):
        base = node.value
        known = isinstance(base, ast.Name) and base.id in _MAPPINGS
        return _Kind.PURE if known else _Kind.READ
    if isinstance(node, _OPAQUE) and not isinstance(node, ast.Lambda):
        return max(_own_kind(inner) for inner in ast.walk(node) if inner is not node)
    return _Kind.PURE


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes in the order in which their evaluation ends; an opaque expression is one node."""
    if not isinstance(node, _OPAQUE):
        for child in _children(node):
            yield from _evaluated(child)
    yield node


def _children(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Assign):  # the value is evaluated first
        yield node.value
        yield from node.targets
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            yield from (key, value) if key is not None else (value,)
    else:
        yield from ast.iter_child_nodes(node)


def _substituted(statement: ast.stmt, name: str, value: ast.expr, kind: _Kind, depth: int) -> bool:
    """Put a value in the place of its name in a statement, if it may stand there."""
    if isinstance(statement, ast.If):
        root: ast.AST = statement.test
        if isinstance(root, ast.Name):
            return False
    elif isinstance(statement, ast.Assign | ast.Expr | ast.Return):
        root = statement
    else:
        return False
    for node in _evaluated(root):
        if isinstance(node, ast.Name) and node.id == name:
            return _put(statement, root, node, value, depth)
        if not _commute(kind, _own_kind(node)):
            return False
    return False


def _put(statement: ast.stmt, root: ast.AST, name: ast.Name, value: ast.expr, depth: int) -> bool:
    """Put a value in the place of a name, unless the line gets too long."""
    for parent in ast.walk(root):
        for field, old in ast.iter_fields(parent):
            new: object = value
            if isinstance(old, list) and any(each is name for each in old):
                new = [value if each is name else each for each in old]
            elif old is not name:
                continue
            setattr(parent, field, new)
            line = ast.unparse(statement).partition("\n")[0]
            if 4 * depth + len(line) <= WIDTH:
                return True
            setattr(parent, field, old)
            return False
    raise AssertionError(name.id)
