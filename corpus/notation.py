"""Tests as text for a person: the short notation where it can say the test, else the file.

The inverse of `builder`, for chains of accesses to variables and queues, which small tests mostly
are. A text is given only if the test that `builder` makes of it is the same: the same ops with the
same operands, in the same order, on the same contents. Names of ops without a register may differ.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import MalformedTest
from litmusfuzz.corpus.ops import ConstAttrs, CountAttrs, RowsAttrs
from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    from typing import Any

    from litmusfuzz.corpus.model import LitmusTest, Node

_SYMBOLS: Final = {"AddV2": "+", "Sub": "-", "Mul": "*"}
_STORES: Final = {
    "AssignVariableOp": "=",
    "AssignAddVariableOp": "+=",
    "AssignSubVariableOp": "-=",
    "QueueEnqueueV2": "!",
}
_SCATTERS: Final = {
    "ResourceScatterUpdate": "=",
    "ResourceScatterAdd": "+=",
    "ResourceScatterSub": "-=",
    "ResourceScatterMul": "*=",
    "ResourceScatterMin": "min=",
    "ResourceScatterMax": "max=",
}
_LOADS: Final = {
    "ReadVariableOp": "{}",
    "ResourceGather": "{}[{}]",
    "QueueDequeueV2": "{}?",
    "QueueDequeueManyV2": "{}?{}",
    "QueueSizeV2": "size {}",
}
_REGISTER: Final = re.compile(r"[a-z]\w*", re.ASCII)
_RESOURCE: Final = re.compile(r"[A-Z]\w*", re.ASCII)


class _CannotSay(Exception):
    """The notation does not say this test, or this module does not."""


def spelled(test: LitmusTest) -> str:
    """A test as Python code that makes it: `litmus` with the notation, or `loads` with the file.

    The same test, but for names that nobody sees and its description.
    """
    from litmusfuzz.corpus.textfile import Entry, dumps

    try:
        text, options = _notation(test)
    except _CannotSay:
        return f'loads("""\n{dumps(Entry(test))}""").test'
    given = "".join(f", {name}={value!r}" for name, value in options.items())
    return f'litmus("{text}"{given})'


def notation(test: LitmusTest) -> str | None:
    """A test in the short notation; None if that, or this module, cannot say it."""
    try:
        return _notation(test)[0]
    except _CannotSay:
        return None


def _notation(test: LitmusTest) -> tuple[str, dict[str, Any]]:
    """The text and the further arguments of `litmus`."""
    if test.features - {"queues"} or len(test.graphs) != 1 or test.condition is not None:
        raise _CannotSay
    chains = _chains(test)
    text = " || ".join("; ".join(_statement(test, each) for each in chain) for chain in chains)
    kinds = {(each.dtype, each.shape) for each in test.variables}
    kinds |= {(each.dtype, each.shape) for each in test.queues}
    if len(kinds) != 1:
        raise _CannotSay
    ((dtype, shape),) = kinds
    options: dict[str, tuple[Any, Any]] = {
        "name": ("litmus", test.name),
        "dtype": ("int32", dtype),
        "shape": ((), shape),
        "init": ({}, {each.name: each.init for each in test.variables if each.init != 0}),
        "queues": ({}, {each.name: each.capacity for each in test.queues}),
    }
    given = {name: value for name, (default, value) in options.items() if value != default}
    try:
        made = litmus(text, **given)
    except MalformedTest:
        raise _CannotSay from None
    if not _same(test, made, [node.name for chain in chains for node in chain]):
        raise _CannotSay
    return text, given


def _chains(test: LitmusTest) -> list[list[Node]]:
    """The effects and the observed pure nodes, in chains; those of a chain are a total order."""
    before = _before(test)
    stated = [node for node in test.graph.nodes if node.resources or node.name in test.observe]
    chains: list[list[Node]] = []
    for node in stated:
        needed = {each.name for each in stated} & before[node.name]
        ends = [chain for chain in chains if needed & {each.name for each in chain}]
        if not needed:
            chains.append([node])
        elif len(ends) == 1 and needed >= {each.name for each in ends[0] if each.resources}:
            ends[0].append(node)
        else:
            raise _CannotSay
    return chains


def _before(test: LitmusTest) -> dict[str, frozenset[str]]:
    """By node, all nodes that its edges order before it."""
    before: dict[str, frozenset[str]] = {}
    for node in test.graph.nodes:
        direct = {*node.inputs, *node.after}
        before[node.name] = frozenset(direct).union(*(before[name] for name in direct))
    return before


def _statement(test: LitmusTest, node: Node) -> str:
    if not node.resources:
        return f"{_register(test, node)}={_pure(test, node)}"
    resource = node.resources[0]
    if not _RESOURCE.fullmatch(resource) or len(node.resources) > 1:
        raise _CannotSay
    if node.op == "QueueCloseV2":
        return f"close {resource}"
    if node.op in _STORES and node.attrs is None:
        return f"{resource}{_STORES[node.op]}{_operand(test, node.inputs[0])}"
    if node.op in _SCATTERS and isinstance(node.attrs, RowsAttrs):
        rows = ",".join(map(str, node.attrs.indices))
        return f"{resource}[{rows}]{_SCATTERS[node.op]}{_operand(test, node.inputs[-1])}"
    if node.op not in _LOADS:
        raise _CannotSay
    attrs = node.attrs
    what: list[object] = [resource]
    what += [attrs.count] if isinstance(attrs, CountAttrs) else []
    what += [",".join(map(str, attrs.indices))] if isinstance(attrs, RowsAttrs) else []
    form = _LOADS[node.op]
    if form.count("{}") != len(what):
        raise _CannotSay
    return f"{_register(test, node)}={form.format(*what)}"


def _register(test: LitmusTest, node: Node) -> str:
    if node.name not in test.observe or not _REGISTER.fullmatch(node.name):
        raise _CannotSay
    return node.name


def _pure(test: LitmusTest, node: Node) -> str:
    """The terms of a pure node, from left to right."""
    if node.op == "Identity":
        return _operand(test, node.inputs[0])
    if node.op not in _SYMBOLS:
        raise _CannotSay
    first, second = (_operand(test, name) for name in node.inputs)
    if not re.fullmatch(r"-?\w+", second, re.ASCII):
        raise _CannotSay
    return f"{first}{_SYMBOLS[node.op]}{second}"


def _operand(test: LitmusTest, name: str) -> str:
    node = next(each for each in test.graph.nodes if each.name == name)
    if name in test.observe:
        return _register(test, node)
    if isinstance(node.attrs, ConstAttrs) and isinstance(node.attrs.value, int):
        return str(node.attrs.value)
    if node.resources or node.op == "Identity":
        raise _CannotSay
    return _pure(test, node)


def _same(test: LitmusTest, made: LitmusTest, stated: list[str]) -> bool:
    """True if `made` is the test, whose statements are `stated`, under other names."""
    theirs = [n.name for n in made.graph.nodes if n.resources or n.name in made.observe]
    if len(stated) != len(theirs) or sorted(test.observe) != sorted(made.observe):
        return False
    if sorted(test.variables, key=str) != sorted(made.variables, key=str):
        return False
    if sorted(test.queues, key=str) != sorted(made.queues, key=str):
        return False
    named = dict(zip(stated, theirs, strict=True))
    ours, others = ({n.name: n for n in each.graph.nodes} for each in (test, made))

    def alike(left: str, right: str) -> bool:
        """True if two nodes have the same value; statements are the same if they are paired."""
        return named[left] == right if left in named else equal(ours[left], others[right])

    def equal(left: Node, right: Node) -> bool:
        return (
            _bare(left) == _bare(right)
            and len(left.inputs) == len(right.inputs)
            and all(map(alike, left.inputs, right.inputs))
        )

    before, after = _before(test), _before(made)
    return all(
        equal(ours[name], others[other])
        and {named[each] for each in before[name] if each in named}
        == after[other] & set(named.values())
        for name, other in named.items()
    )


def _bare(node: Node) -> Node:
    """A node without names of others; whatever else it has is compared."""
    return replace(node, name="", inputs=(), after=())
