"""Our own reducer: a smaller litmus test that still shows what was found.

Executors are not deterministic, so whether a smaller test "still fails" is a
question for a caller who runs it often enough; Hypothesis's shrinker would
call such tests flaky. Here stands only which smaller tests there are, and in
which order they are tried: first what removes most.

References
----------
Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input",
TSE 2002, section 3 (ddmin), for dropping effects in halves before one by one.
MacIver, Hypothesis, ``shrinker.py``: passes repeated until none succeeds.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ParamSpec

from corpus.graph import (
    BranchAttrs,
    Graph,
    LitmusTest,
    LoopAttrs,
    MalformedTest,
    Node,
    Variable,
)
from corpus.ops import (
    BOOL,
    Attrs,
    ConstAttrs,
    Kind,
    MomentumAttrs,
    RowsAttrs,
    SliceAttrs,
    TensorType,
)

if TYPE_CHECKING:
    from corpus.ops import Nested

Reduction = Generator[LitmusTest, bool, LitmusTest]
"""Yields candidates; is sent whether the candidate still shows it; returns the
smallest that did."""


def reduce(test: LitmusTest) -> Reduction:
    """Make `test` smaller while the answers are yes.

    Every candidate is a valid test, smaller than the last one accepted in some
    way, and is asked for once.
    """
    asked = {test}
    current = test
    progress = True
    while progress:
        progress = False
        for pass_ in _PASSES:
            improved = True
            while improved:
                improved = False
                for candidate in _valid(pass_, current):
                    if candidate in asked:
                        continue
                    asked.add(candidate)
                    if (yield candidate):
                        current = candidate
                        progress = improved = True
                        break
    return current


_Pass = Callable[[LitmusTest], Iterator[LitmusTest]]


def _valid(pass_: _Pass, test: LitmusTest) -> Iterator[LitmusTest]:
    """A pass's candidates, tidied.

    A pass that changes types need not know every rule of the format; it goes
    through `_attempt`, which leaves out what is not a well-formed test.
    """
    for candidate in pass_(test):
        yield _tidy(candidate)


_P = ParamSpec("_P")


def _attempt(
    make: Callable[_P, LitmusTest], *args: _P.args, **kwargs: _P.kwargs
) -> Iterator[LitmusTest]:
    try:
        made = make(*args, **kwargs)
    except MalformedTest:
        return
    yield made


def _with_nodes(
    test: LitmusTest, nodes: list[Node], variables: tuple[Variable, ...] | None = None
) -> LitmusTest:
    names = {n.name for n in nodes}
    return replace(
        test,
        variables=test.variables if variables is None else variables,
        graphs=(Graph(test.graph.name, tuple(nodes)),),
        observe=tuple(name for name in test.observe if name in names),
    )


def _without(test: LitmusTest, gone: set[str]) -> LitmusTest:
    """The test less some nodes.

    What waited for a node that is gone waits for what that one waited for, and
    what used its value uses a constant.
    """
    nodes: list[Node] = []
    waits: dict[str, tuple[str, ...]] = {}
    for node in test.graph.nodes:
        before: dict[str, None] = {}
        for name in node.after:
            before.update(dict.fromkeys(waits.get(name, (name,))))
        if node.name in gone:
            for name in node.inputs:
                if name in waits:
                    before.update(dict.fromkeys(waits[name]))
                else:
                    before[name] = None
            waits[node.name] = tuple(before)
            continue
        inputs = []
        for name in node.inputs:
            if name in gone:
                kind = test.type_of(name)
                constant = f"{name}k"
                if all(n.name != constant for n in nodes):
                    nodes.append(
                        Node(constant, "Const", attrs=ConstAttrs(kind.dtype, kind.shape, 1))
                    )
                inputs.append(constant)
            else:
                inputs.append(name)
        after = tuple(name for name in before if name not in inputs)
        nodes.append(replace(node, inputs=tuple(inputs), after=after))
    return _with_nodes(test, nodes)


def _tidy(test: LitmusTest) -> LitmusTest:
    """Remove what does nothing: unused pure nodes, waits for constants, variables.

    Keeps at least one variable; keeps every order between effects.
    """
    sources = {n.name for n in test.graph.nodes if n.op == "Const" and not n.after}
    used = set(test.observe)
    kept: list[Node] = []
    for node in reversed(test.graph.nodes):
        if not node.definition.has_effect and node.name not in used:
            continue
        node = replace(node, after=tuple(name for name in node.after if name not in sources))
        used.update(node.inputs, node.after)
        kept.append(node)
    touched = {name for node in kept for name in node.resources}
    variables = tuple(v for v in test.variables if v.name in touched)
    return _with_nodes(test, kept[::-1], variables or test.variables[:1])


def _drop_effects(test: LitmusTest) -> Iterator[LitmusTest]:
    effects = [n.name for n in test.graph.effects]
    size = max(1, len(effects) // 2)
    while True:
        for start in range(0, len(effects), size):
            gone = set(effects[start : start + size])
            if len(gone) < len(effects):
                yield _without(test, gone)
        if size == 1:
            return
        size //= 2


def _drop_pure(test: LitmusTest) -> Iterator[LitmusTest]:
    """A pure node's value becomes a constant."""
    for node in test.graph.nodes:
        if not node.definition.has_effect and node.op != "Const":
            yield _without(test, {node.name})


def _bypass_pure(test: LitmusTest) -> Iterator[LitmusTest]:
    """What uses a pure node uses one of its inputs instead."""
    for node in test.graph.nodes:
        if node.definition.has_effect:
            continue
        for name in dict.fromkeys(node.inputs):
            if test.types[name] != test.types[node.name] or node.after:
                continue
            nodes = [
                replace(
                    n,
                    inputs=tuple(name if i == node.name else i for i in n.inputs),
                    after=tuple(dict.fromkeys(name if a == node.name else a for a in n.after)),
                )
                for n in test.graph.nodes
                if n.name != node.name
            ]
            yield _with_nodes(test, nodes)


def _cut_data(test: LitmusTest) -> Iterator[LitmusTest]:
    """A value that an op uses becomes a constant, without an edge in its place."""
    for position, node in enumerate(test.graph.nodes):
        for which, name in enumerate(node.inputs):
            source = next(n for n in test.graph.nodes if n.name == name)
            if source.op == "Const":
                continue
            kind = test.type_of(name)
            constant = Node(
                f"{node.name}k{which}", "Const", attrs=ConstAttrs(kind.dtype, kind.shape, 1)
            )
            inputs = (*node.inputs[:which], constant.name, *node.inputs[which + 1 :])
            nodes = list(test.graph.nodes)
            nodes[position : position + 1] = [constant, replace(node, inputs=inputs)]
            yield from _attempt(_with_nodes, test, nodes)


def _drop_edges(test: LitmusTest) -> Iterator[LitmusTest]:
    for position, node in enumerate(test.graph.nodes):
        for name in node.after:
            nodes = list(test.graph.nodes)
            nodes[position] = replace(node, after=tuple(n for n in node.after if n != name))
            yield _with_nodes(test, nodes)


def _observe_less(test: LitmusTest) -> Iterator[LitmusTest]:
    for name in test.observe:
        yield replace(test, observe=tuple(n for n in test.observe if n != name))


def _merge_variables(test: LitmusTest) -> Iterator[LitmusTest]:
    for kept in test.variables:
        for gone in test.variables:
            if gone.name <= kept.name or gone.type != kept.type:
                continue
            nodes = [
                replace(n, resources=tuple(kept.name if r == gone.name else r for r in n.resources))
                for n in test.graph.nodes
            ]
            yield from _attempt(_with_nodes, test, nodes)


def _fewer_rows(test: LitmusTest) -> Iterator[LitmusTest]:
    """Fewer rows touched by an op, then fewer rows at all."""
    for node in test.graph.nodes:
        for attrs in _smaller_attrs(node.attrs):
            changed = replace(node, attrs=attrs)
            yield from _attempt(_refit, test, test.variables, changed)
    rows = max((v.shape[0] for v in test.variables if v.shape), default=0)
    if rows > 1 and not test.whole:
        variables = tuple(
            replace(v, shape=(min(v.shape[0], rows - 1), *v.shape[1:]), init=_cut(v.init, rows - 1))
            if v.shape
            else v
            for v in test.variables
        )
        yield from _attempt(_refit, test, variables)


def _smaller_attrs(attrs: object) -> Iterator[Attrs]:
    if isinstance(attrs, RowsAttrs):
        for position in range(len(attrs.indices)):
            rest = attrs.indices[:position] + attrs.indices[position + 1 :]
            if rest:
                yield RowsAttrs(rest)
        if attrs.indices != tuple(range(len(attrs.indices))):
            yield RowsAttrs(tuple(range(len(attrs.indices))))
    if isinstance(attrs, SliceAttrs):
        if len(attrs.rows) > 1:
            yield SliceAttrs(attrs.begin, attrs.begin + 1, 1)
        if attrs.begin:
            yield SliceAttrs(0, attrs.end - attrs.begin, attrs.strides)
        if attrs.strides > 1:
            yield SliceAttrs(attrs.begin, attrs.end, 1)
    if isinstance(attrs, MomentumAttrs) and attrs.use_nesterov:
        yield MomentumAttrs(use_nesterov=False)


def _cut(value: Nested, rows: int) -> Nested:
    return value if isinstance(value, int) else value[:rows]


def _fewer_lanes(test: LitmusTest) -> Iterator[LitmusTest]:
    width = max((v.type.size // v.shape[0] for v in test.variables if v.shape), default=0)
    if test.whole or all(len(v.shape) < 2 for v in test.variables):
        return
    for smaller in ((), (width // 4,), (width // 2,)):
        if smaller and not 1 < smaller[0] < width:
            continue
        variables = tuple(
            replace(v, shape=(v.shape[0], *smaller)) if v.shape else v for v in test.variables
        )
        yield from _attempt(_refit, test, variables)


def widened(test: LitmusTest) -> Iterator[LitmusTest]:
    """The test with wider lanes, widest first: what tears seldom tears more often.

    Not a reduction: done before one, so that its steps can be told apart.
    """
    width = max((v.type.size // v.shape[0] for v in test.variables if v.shape), default=0)
    if test.whole:
        return
    for lanes in (4096, 1024):
        if 0 < width < lanes:
            variables = tuple(
                replace(v, shape=(v.shape[0], lanes)) if v.shape else v for v in test.variables
            )
            yield from _attempt(_refit, test, variables)


def _simpler_dtype(test: LitmusTest) -> Iterator[LitmusTest]:
    for dtype in ("int32", "float32"):
        if test.variables[0].dtype == dtype:
            return
        variables = tuple(replace(v, dtype=dtype) for v in test.variables)
        yield from _attempt(_refit, test, variables)


def _smaller_values(test: LitmusTest) -> Iterator[LitmusTest]:
    """All values as small as they get at once; then one by one."""
    plainest = [
        replace(n, attrs=replace(n.attrs, value=1)) if isinstance(n.attrs, ConstAttrs) else n
        for n in test.graph.nodes
    ]
    yield _with_nodes(test, plainest, tuple(replace(v, init=0) for v in test.variables))
    for position, variable in enumerate(test.variables):
        if variable.init != 0:
            variables = list(test.variables)
            variables[position] = replace(variable, init=0)
            yield replace(test, variables=tuple(variables))
    number = 0
    for position, node in enumerate(test.graph.nodes):
        if not isinstance(node.attrs, ConstAttrs):
            continue
        number += 1
        for value in (1, number):
            if isinstance(node.attrs.value, int) and abs(node.attrs.value) <= value:
                break
            nodes = list(test.graph.nodes)
            nodes[position] = replace(node, attrs=replace(node.attrs, value=value))
            yield _with_nodes(test, nodes)


def _refit(
    test: LitmusTest, variables: tuple[Variable, ...], changed: Node | None = None
) -> LitmusTest:
    """The test with other variable types, every constant's shape and dtype following.

    Raises
    ------
    MalformedTest
        If the types do not fit together any more.
    """
    old = {v.name: v for v in test.variables}
    new = {v.name: v for v in variables}
    wanted: dict[str, TensorType] = {}  # of nodes, from their users, going upwards
    nodes: list[Node] = []
    for node in reversed(test.graph.nodes):
        if changed is not None and node.name == changed.name:
            node = changed
        if node.resources:
            target = new[node.resources[0]]
            assert not isinstance(node.attrs, (BranchAttrs, LoopAttrs))
            attrs = _clip(node.attrs, target, old[node.resources[0]])
            node = replace(node, attrs=attrs)
            for role, name in zip(node.definition.operands, node.inputs, strict=True):
                wanted[name] = _operand_type(test, role, name, attrs, target)
        elif isinstance(node.attrs, ConstAttrs):
            kind = wanted.get(node.name)
            if kind is not None:
                value = _cut(node.attrs.value, kind.shape[0]) if kind.shape else node.attrs.value
                node = replace(node, attrs=ConstAttrs(kind.dtype, kind.shape, value))
        elif node.name in wanted:
            kind = wanted[node.name]
            for name in node.inputs:
                scalar = not test.type_of(name).shape
                dtype = test.type_of(name).dtype
                wanted[name] = TensorType(
                    kind.dtype if dtype != BOOL else BOOL, () if scalar else kind.shape
                )
        nodes.append(node)
    return _with_nodes(test, nodes[::-1], variables)


def _operand_type(
    test: LitmusTest, role: str, name: str, attrs: Attrs | None, target: Variable
) -> TensorType:
    if role in ("alpha", "lr", "momentum") or not test.type_of(name).shape:
        return TensorType(target.dtype, ())
    if isinstance(attrs, RowsAttrs):
        return TensorType(target.dtype, (len(attrs.indices), *target.shape[1:]))
    if isinstance(attrs, SliceAttrs):
        return TensorType(target.dtype, (len(attrs.rows), *target.shape[1:]))
    return target.type


def _clip(attrs: Attrs | None, target: Variable, before: Variable) -> Attrs | None:
    """Rows that the smaller variable still has."""
    if target.shape == before.shape or not target.shape:
        return attrs
    rows = target.shape[0]
    if isinstance(attrs, RowsAttrs):
        kept = tuple(i for i in attrs.indices if i < rows)
        return RowsAttrs(kept or (0,))
    if isinstance(attrs, SliceAttrs):
        begin = min(attrs.begin, rows - 1)
        return SliceAttrs(begin, max(begin + 1, min(attrs.end, rows)), attrs.strides)
    return attrs


_PASSES: tuple[_Pass, ...] = (
    _drop_effects,
    _fewer_lanes,  # early: the narrower, the quicker each later candidate runs
    _drop_pure,
    _bypass_pure,
    _cut_data,
    _drop_edges,
    _merge_variables,
    _fewer_rows,
    _smaller_values,
    _simpler_dtype,
    _observe_less,
)


def normalized(test: LitmusTest, name: str) -> LitmusTest:
    """The same test with names that say what a node does, counted from 0.

    Reads become r0, r1, ...; writes and updates w0, ...; constants c0, ...;
    other nodes t0, ...; variables X, Y, Z, V3, ....
    """
    prefixes = {Kind.READ: "r", Kind.WRITE: "w", Kind.UPDATE: "w", Kind.PURE: "t"}
    counts: dict[str, int] = {}
    names: dict[str, str] = {}
    for node in test.graph.nodes:
        prefix = "c" if node.op == "Const" else prefixes[node.definition.kind]
        names[node.name] = f"{prefix}{counts.get(prefix, 0)}"
        counts[prefix] = counts.get(prefix, 0) + 1
    variables = {
        v.name: "XYZ"[i] if i < len("XYZ") else f"V{i}" for i, v in enumerate(test.variables)
    }
    nodes = tuple(
        replace(
            n,
            name=names[n.name],
            inputs=tuple(names[i] for i in n.inputs),
            after=tuple(names[i] for i in n.after),
            resources=tuple(variables[r] for r in n.resources),
        )
        for n in test.graph.nodes
    )
    return LitmusTest(
        name,
        tuple(replace(v, name=variables[v.name]) for v in test.variables),
        (Graph(test.graph.name, nodes),),
        tuple(names[n] for n in test.observe),
        test.about,
    )
