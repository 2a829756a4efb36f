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
    from collections.abc import Iterator, Mapping

WIDTH: Final = 100
"""No substitution makes a line longer."""
_ARRAYS: Final = ("jnp", "np")
"""Modules whose functions only compute."""
_METHODS: Final = ("astype", "reshape")
_MAPPINGS: Final = ("a", "c", "v", "refs")
"""Names of dictionaries in a script: to look up a key reads no reference."""
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp)
_OPAQUE: Final = (ast.Lambda, *_COMPREHENSIONS, ast.GeneratorExp, ast.IfExp, ast.BoolOp)
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
            if (
                self._looked_up(body, place)
                or self._taken_apart(body, place)
                or self._goes_on(body, place, depth)
            ):
                del body[place]
                place = 0
            else:
                body[place] = self._without_unused(body[place])
                place += 1

    def _without_unused(self, statement: ast.stmt) -> ast.stmt:
        """A statement without the names that it binds, if none is used."""
        if not isinstance(statement, ast.Assign):
            return statement
        names = _bound(statement)
        (target,) = statement.targets
        if not isinstance(target, ast.Name | ast.Tuple) or any(map(self._loads.get, names)):
            return statement
        return ast.Expr(statement.value)

    def _goes_on(self, body: list[ast.stmt], place: int, depth: int) -> bool:
        """Put the value of an assignment where it is used, if it may; True if it is there."""
        if (named := _named(body[place])) is None:
            return False
        name, value = named
        kind = _kind(value)
        if self._stores[name] == 1 and not self._loads[name] and kind is _Kind.PURE:
            self._loads.subtract(n.id for n in ast.walk(value) if isinstance(n, ast.Name))
            return True
        if self._stores[name] != 1 or self._loads[name] != 1:
            return False
        needs = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
        for using in body[place + 1 :]:
            if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(using)):
                return _substituted(using, name, value, kind, depth)
            if not _commute(kind, _statement_kind(using)) or needs & _bound(using):
                return False
        return False

    def _looked_up(self, body: list[ast.stmt], place: int) -> bool:
        """Look a reference up in `refs` wherever it is used; True if that is done now.

        The mapping is a parameter, and its references are the same all the time.
        """
        if (named := _named(body[place])) is None or self._stores[named[0]] != 1:
            return False
        name, value = named
        if not isinstance(value, ast.Subscript) or not isinstance(value.value, ast.Name):
            return False
        if value.value.id != "refs" or not isinstance(value.slice, ast.Constant):
            return False
        using = _Instead(name, value)
        body[place + 1 :] = [using.visit(statement) for statement in body[place + 1 :]]
        self._loads["refs"] += self._loads[name] - 1
        return True

    def _taken_apart(self, body: list[ast.stmt], place: int) -> bool:
        """Put the parts of a tuple that are used once where they are used; True if all are there.

        The tuple is a parameter that is bound once: `x, y = going` becomes `going[0]`, `going[1]`.
        """
        if (parts := _parts(body[place])) is None:
            return False
        whole, names = parts
        if any(self._stores[each] != 1 for each in (whole, *names)):
            return False
        if any(self._loads[each] > 1 for each in names):
            return False
        numbers = {name: number for number, name in enumerate(names)}
        using = _Parts(whole, numbers)
        body[place + 1 :] = [using.visit(statement) for statement in body[place + 1 :]]
        self._loads[whole] += sum(self._loads[each] for each in names) - 1
        self._loads.subtract(dict.fromkeys(names, 1))
        return True


class _Instead(ast.NodeTransformer):
    """A name becomes an expression."""

    def __init__(self, name: str, value: ast.expr) -> None:
        self._name, self._value = name, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """The expression, if it is the name."""
        return self._value if node.id == self._name else node


class _Parts(ast.NodeTransformer):
    """Names of the parts of a tuple become subscripts."""

    def __init__(self, whole: str, numbers: Mapping[str, int]) -> None:
        self._whole, self._numbers = whole, numbers

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """The subscript, if the name is one of a part."""
        if node.id not in self._numbers:
            return node
        number = ast.Constant(self._numbers[node.id])
        return ast.Subscript(ast.Name(self._whole, ast.Load()), number, ast.Load())


def _parts(statement: ast.stmt) -> tuple[str, list[str]] | None:
    """A tuple and the names that its parts get, if a statement is such an assignment."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Name):
        return None
    (target,) = statement.targets
    if not isinstance(target, ast.Tuple):
        return None
    names = [each.id for each in target.elts if isinstance(each, ast.Name)]
    return (statement.value.id, names) if len(names) == len(target.elts) else None


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
    if isinstance(node, _COMPREHENSIONS):  # what it iterates over is evaluated first, and once
        yield from _evaluated(node.generators[0].iter)
    elif not isinstance(node, _OPAQUE):
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
