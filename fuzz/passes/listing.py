"""Prints a cluster as pseudocode, before and after SSA conversion, in the notation of BLOG.

References
----------
BLOG, "XLA Clusters and Resource Variables (sort of)".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import BranchAttrs, LoopAttrs, all_nodes
from litmusfuzz.corpus.ops import ConstAttrs, MomentumAttrs, PureAttrs, RowsAttrs, SliceAttrs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from litmusfuzz.corpus.model import Cluster, LitmusTest, Node
    from litmusfuzz.fuzz.passes.ssa import Block, Function, Statement

_SHORT: Final = {"ReadVariableOp": "Read", "AssignVariableOp": "Assign"}
_INFIX: Final = {
    "AddV2": "+",
    "Sub": "-",
    "Mul": "*",
    "Less": "<",
    "Equal": "==",
    "AssignAddVariableOp": "+",
    "AssignSubVariableOp": "-",
}
_ALIASES: Final = ("ReadVariableOp", "AssignVariableOp", "Identity")
"""Ops that only rename a value after SSA conversion."""


def serialized(test: LitmusTest, cluster: Cluster) -> str:
    """The members of a cluster as text, in SSA order."""
    nodes = {n.name: n for n in test.nodes}
    members = [nodes[name] for name in cluster.members]
    variables = dict.fromkeys(v for n in all_nodes(members) for v in n.resources)
    literals = _literals(nodes.values())
    lines = [*map(_declaration, variables)]
    lines += [_was(n, literals) for n in members if n.name not in literals]
    return "\n".join(lines) + "\n"


def listing(function: Function) -> str:
    """A converted cluster as text: initial reads, pure computation, final writes."""
    finals = function.finals
    variables = dict.fromkeys((*function.initial, *(each.variable for each in finals)))
    reads = zip(function.block.parameters, function.initial, strict=False)
    lines = ["// Initial reads:", *map(_declaration, variables)]
    lines += [f"{name} = Read({variable})" for name, variable in reads]
    lines += ["", "// Pure computation:"]
    names: dict[str, str] = {}
    pure = [*_statements(function.block, names)]
    width = max((len(code) for code, was in pure if was), default=0)
    lines += [f"{code:{width}}  // Was: {was}" if was else code for code, was in pure]
    lines += ["", "// Final writes:"]
    for each in finals:
        condition = f"if {each.written}: " if each.written else ""
        lines.append(f"{condition}Assign({each.variable}, {names.get(each.value, each.value)})")
    return "\n".join(lines) + "\n"


def _declaration(variable: str) -> str:
    return f"{variable} = Var('{variable}')"


def _literals(nodes: Iterable[Node]) -> dict[str, str]:
    """Text of each constant by name; it replaces the name wherever that is used."""
    return {n.name: _nested(n.attrs.value) for n in nodes if isinstance(n.attrs, ConstAttrs)}


def _nested(value: object) -> str:
    return f"[{', '.join(map(_nested, value))}]" if isinstance(value, tuple) else str(value)


def _statements(block: Block, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Lines of code, each with the original op; adds the constants to `names`."""
    names |= _literals(statement.node for statement in block.statements)
    for statement in block.statements:
        if statement.blocks:
            yield from _nest(statement, names)
        elif statement.node.name not in names:
            yield _assignment(statement, names), _was(statement.node, names)


def _nest(statement: Statement, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    operands = ", ".join(names.get(name, name) for name in statement.operands)
    yield f"{', '.join(statement.results)} = {statement.node.op}({operands}):", ""
    loop = isinstance(statement.node.attrs, LoopAttrs)
    parts = ("while", "do") if loop else ("then", "else")
    for part, block in zip(parts, statement.blocks, strict=True):
        yield f"  {part} ({', '.join(block.parameters)}):" if loop else f"  {part}:", ""
        for code, was in _statements(block, names):
            yield f"    {code}", was
        yield f"    return {', '.join(names.get(name, name) for name in block.results)}", ""


def _assignment(statement: Statement, names: Mapping[str, str]) -> str:
    node = statement.node
    operands = [names.get(name, name) for name in statement.operands]
    value = operands[0] if node.op in _ALIASES else _expression(node, operands)
    return f"{', '.join(statement.results)} = {value}"


def _was(node: Node, names: Mapping[str, str]) -> str:
    operands = [*node.resources, *(names.get(name, name) for name in node.inputs)]
    if isinstance(node.attrs, (BranchAttrs, LoopAttrs)):
        return f"{node.name} = {node.op}({', '.join(operands)})"
    call = _call(node, operands) if node.resources else _expression(node, operands)
    returns = node.definition.has_value
    return f"{node.name} = {call}" if returns else call


def _expression(node: Node, operands: Sequence[str]) -> str:
    if node.op in _INFIX:
        return f" {_INFIX[node.op]} ".join(operands)
    return _call(node, operands)


def _call(node: Node, operands: Sequence[str]) -> str:
    attrs = node.attrs
    more = []
    if isinstance(attrs, RowsAttrs):
        more = [_nested(attrs.indices)]
    elif isinstance(attrs, SliceAttrs):
        more = [f"{attrs.begin}:{attrs.end}:{attrs.strides}"]
    elif isinstance(attrs, MomentumAttrs):
        more = [f"use_nesterov={attrs.use_nesterov}"]
    elif isinstance(attrs, PureAttrs):
        more = [f"{name}={_nested(value)}" for name, value in attrs.values]
    return f"{_SHORT.get(node.op, node.op)}({', '.join([*operands, *more])})"
