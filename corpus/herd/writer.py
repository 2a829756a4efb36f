"""Writer of herd's C, and the location of each part of a test in that format."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.condition import TRUE, Atom, Condition, Name
from litmusfuzz.corpus.herd.words import RESERVED
from litmusfuzz.corpus.model import FreshNames, LitmusTest, Node, predecessors
from litmusfuzz.corpus.ops import ConstAttrs
from litmusfuzz.corpus.outcome import STATUS_KEY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.model import Graph


class DoesNotFit(ValueError):
    """A litmus test that herd's C cannot express; the message names the part."""


MAX_EXPRESSION: Final = 1000
_SIGNS: Final = str.maketrans(".(", "__")


@dataclass(frozen=True, slots=True)
class Layout:
    """Threads and locations of the parts of a test in herd's format.

    `places` has, for each name of an outcome (`LitmusTest.names`), herd's
    location: ``0:r0`` or ``X``; `threads` the effects of each thread, with the
    run that they are of, in program order. It is empty if they do not fall into
    threads: logs can be written all the same.
    """

    places: Mapping[str, str]
    threads: tuple[tuple[str, tuple[Node, ...]], ...]

    @property
    def names(self) -> dict[str, str]:
        """The name of an outcome for each location."""
        return {place: name for name, place in self.places.items()}


def layout(test: LitmusTest) -> Layout:
    """The threads and locations of a test.

    An observed node belongs to its own thread if effects form chains, else
    (a log of any test can be written) in one "thread" for each run.
    """
    fresh = FreshNames(RESERVED)
    # Not only variables and queues: the cells of an accumulator, ``A.sum``, and gradients,
    # ``grad(X)``, have locations of a name without such signs, ``A_sum`` and ``grad_X``.
    observed = frozenset(test.observe)
    contents = [name for name in test.names if name not in observed]
    variables = {n: fresh.like(_c_name(n.rstrip(")").translate(_SIGNS))) for n in contents}
    try:
        threads = _threads(test)
    except DoesNotFit:
        threads = ()
    try:
        registers = _registers(test, threads, set(variables.values()))
    except DoesNotFit:
        threads = ()
        registers = _registers(test, (), set(variables.values()))
    return Layout(registers | variables, threads)


def _threads(test: LitmusTest) -> tuple[tuple[str, tuple[Node, ...]], ...]:
    """Effects as chains, each with its run."""
    graphs = {graph.name: graph for graph in test.graphs}
    chains: dict[str, tuple[tuple[Node, ...], ...]] = {}  # by graph, which may run many times
    found: list[tuple[str, tuple[Node, ...]]] = []
    for run in test.runs:
        if run.wanted:
            raise DoesNotFit(f"run {run.name} executes a part of its graph")
        if run.after:
            raise DoesNotFit(f"run {run.name} comes after {run.after[0]}")
        if run.graph not in chains:
            chains[run.graph] = _chains(graphs[run.graph])
        found += [(run.name, chain) for chain in chains[run.graph]]
    return tuple(found)


def _chains(graph: Graph) -> tuple[tuple[Node, ...], ...]:
    """Effects of a graph as chains."""
    chains: dict[str, list[Node]] = {}  # by their first node, which precedes all that others do
    for node, above in predecessors(graph):
        if not node.definition.has_effect:
            continue
        if above.isdisjoint(chains):
            chains[node.name] = [node]
            continue
        mine = [chain for first, chain in chains.items() if first in above]
        if len(mine) > 1:
            a, b = (next(n.name for n in c if n.name in above) for c in mine[:2])
            raise DoesNotFit(f"{node.name} waits for {a} and {b}, which are in no order")
        if mine[0][-1].name not in above:
            raise DoesNotFit(f"{mine[0][-1].name} and {node.name} are in no order, but not apart")
        mine[0].append(node)
    return tuple(map(tuple, chains.values()))


def _registers(
    test: LitmusTest,
    threads: tuple[tuple[str, tuple[Node, ...]], ...],
    variables: set[str],
) -> dict[str, str]:
    """Herd's location for each observed name."""
    home = {(run, n.name): i for i, (run, chain) in enumerate(threads) for n in chain}
    runs = {run.name: number for number, run in enumerate(test.runs)}
    above = {n.name: up for graph in test.graphs for n, up in predecessors(graph)}
    places: dict[str, str] = {}
    registers: dict[int, FreshNames] = {}  # by thread
    for key in test.observe:
        run, node = key.split(".", 1) if len(test.runs) > 1 else (test.runs[0].name, key)
        base = node.partition(".")[0]
        number = runs[run]
        if threads:
            near = sorted({home[run, n] for n in (base, *above[base]) if (run, n) in home})
            if len(near) > 1:
                raise DoesNotFit(f"{key} is made of values of several threads")
            first = next((i for i, (of, _) in enumerate(threads) if of == run), 0)
            own = re.match(r"P([0-9]{1,4})_", node)
            named = int(own[1]) if own and int(own[1]) < len(threads) else first
            number = near[0] if near else named
        names = registers.setdefault(number, FreshNames(variables | RESERVED))
        register = names.like(_c_name(node.removeprefix(f"P{number}_")))
        places[key] = f"{number}:{register}"
    return places


def _c_name(name: str) -> str:
    """The name itself if a C variable can have it, else one made of it."""
    bad = name in RESERVED or re.fullmatch(r"[PL][0-9A-Za-z]*[0-9]+|[0-9_].*", name)
    return f"v_{name}" if bad else name


def condition_of(test: LitmusTest) -> Condition | None:
    """The test's condition over herd's locations; None without one, or if it does not fit.

    That is, if it asks how an execution ended.
    """
    condition = test.condition
    if condition is None or STATUS_KEY in condition.names:
        return None
    return condition.renamed(layout(test).places)


def _in_c(condition: Condition) -> Condition:
    """The condition as a file has it: ``[x]`` is the value of a variable, ``x`` its address."""

    def change(atom: Atom) -> Atom:
        right = atom.right
        if isinstance(right, Name) and ":" not in right.text:
            right = Name(f"[{right}]")
        return Atom(atom.left, right, atom.equal)

    return condition.mapped(change)


def dumps(test: LitmusTest, model: str = "rfc") -> str:
    """Herd's text of a test.

    Parameters
    ----------
    model : str
        Under which model herd, with sequential consistency, is to find the
        allowed set: ``rfc``, where an update is a load and a store, or
        ``executor``, where it is one fetch-and-add.

    Raises
    ------
    DoesNotFit
        Unless all variables are scalar ints, effects are reads, writes and
        dense adds that form chains, and values are made by ``+ - *``. Devices
        are left out: placement changes no allowed set.
    """
    writer = _Writer(test, model)
    threads = [writer.thread(i, run, chain) for i, (run, chain) in enumerate(writer.chains)]
    places = writer.layout.places
    first_line, _, _ = test.description.partition("\n")
    condition = condition_of(test)
    # litmus7 makes C and scripts of it: no sign that ends a string, a comment or a word there.
    plain = re.sub(r"[^\w ,.:;=+<>()'-]", " ", first_line)
    doc = plain
    lines = [f"C {test.name}"]
    if doc and doc.isprintable():
        lines.append(f'"{doc}"')
    lines.append("{")
    for variable in test.variables:
        kind = "int64_t " if variable.dtype == "int64" else ""
        name = places[variable.name] if kind else f"[{places[variable.name]}]"
        lines.append(f"{kind}{name} = {test.initial(variable)[0]};")
    lines += ["}", ""]
    for text in threads:
        lines += [*text, ""]
    lines.append(f"locations [{' '.join(f'{places[name]};' for name in test.names)}]")
    lines.append(str(_in_c(condition or Condition("forall", TRUE))))
    return "\n".join(lines) + "\n"


class _Writer:
    """Writes the threads of one test."""

    def __init__(self, test: LitmusTest, model: str) -> None:
        if test.mutexes or test.queues:
            what = "critical sections" if test.mutexes else "queues"
            raise DoesNotFit(f"{what} are not herd's")
        for feature in ("accumulators", "clusters", "placeholders", "uninitialized variables"):
            if feature in test.features:
                raise DoesNotFit(f"{feature} are not herd's")
        for variable in test.variables:
            if variable.shape or variable.dtype not in ("int32", "int64"):
                kind = f"{variable.name} is {variable.type}"
                raise DoesNotFit(f"{kind}; only scalar int32 and int64 fit")
        self.test = test
        self.model = model
        self.nodes = {n.name: n for graph in test.graphs for n in graph.nodes}
        for node in self.nodes.values():
            if node.definition.has_effect and node.op not in _WRITTEN:
                raise DoesNotFit(f"{node.name}: {node.op}")
        self.chains = _threads(test)
        variables = {v.name for v in test.variables}
        _registers(test, self.chains, variables)  # raises
        self.layout = layout(test)
        self.registers: dict[str, str] = {}
        self.names = FreshNames()
        if not self.chains:
            raise DoesNotFit("no op touches a variable")

    def thread(self, number: int, run: str, chain: tuple[Node, ...]) -> list[str]:
        places = self.layout.places
        shown = self.shown(number, run)
        variables = {places[v.name] for v in self.test.variables}
        self.names = FreshNames(variables | set(shown.values()) | RESERVED)
        here = {n.name for n in chain}
        # Only read values have a register while the thread runs.
        self.registers = {name: register for name, register in shown.items() if name in here}
        lines: list[str] = []
        for node in chain:
            lines += self.effect(node)
        for name, register in shown.items():
            if name not in here:
                kind = _C_TYPES.get(self.test.type_of(name).dtype)
                lines.append(f"{kind} {register} = {self.expression(name)};")
        used = {n.resources[0] for n in chain}
        parameters = [
            f"{_ATOMICS[v.dtype]}* {places[v.name]}" for v in self.test.variables if v.name in used
        ]
        return [f"P{number} ({', '.join(parameters)}) {{", *(f"  {line}" for line in lines), "}"]

    def shown(self, number: int, run: str) -> dict[str, str]:
        """Observed nodes of a thread, each with its register."""
        found = {}
        for key in self.test.observe:
            of, node = key.split(".", 1) if len(self.test.runs) > 1 else (run, key)
            thread, _, register = self.layout.places[key].partition(":")
            if of == run and int(thread) == number:
                found[node] = register
        return found

    def effect(self, node: Node) -> list[str]:
        variable = self.layout.places[node.resources[0]]
        kind = _C_TYPES[self.test.type_of(node.resources[0]).dtype]
        order = "memory_order_seq_cst"
        if node.op == "ReadVariableOp":
            register = self.registers.get(node.name) or self.fresh(node.name)
            self.registers[node.name] = register
            return [f"{kind} {register} = atomic_load_explicit({variable}, {order});"]
        value = self.expression(node.inputs[0])
        if node.op == "AssignVariableOp":
            return [f"atomic_store_explicit({variable}, {value}, {order});"]
        sign = "+" if node.op == "AssignAddVariableOp" else "-"
        operand = value if re.fullmatch(r"-?\w+", value) else f"({value})"
        if self.model == "executor":
            # Not atomic_fetch_sub: some versions of herd read it as an addition.
            added = value if sign == "+" else f"0 - {operand}"
            return [f"atomic_fetch_add_explicit({variable}, {added}, {order});"]
        register = self.fresh(node.name)
        return [
            f"/* an update of {variable}, in two halves: another thread may come between */",
            f"{kind} {register} = atomic_load_explicit({variable}, {order});",
            f"atomic_store_explicit({variable}, {register} {sign} {operand}, {order});",
        ]

    def expression(self, name: str) -> str:
        """A node's value in C; each node once, whatever shares it."""
        known: dict[str, str] = {}
        stack = [name]
        while stack:
            top = stack[-1]
            node = self.nodes.get(top)
            missing: list[str] = []
            if top in self.registers:
                known[top] = self.registers[top]
            elif node is None or (node.op not in _VALUES and not node.definition.constant):
                raise DoesNotFit(f"{top}: {node.op if node else 'a result'}")
            else:
                missing = [each for each in node.inputs if each not in known]
                if not missing:
                    known[top] = self.made(node, [known[each] for each in node.inputs])
            if missing:
                stack += missing
            else:
                stack.pop()
        return known[name]

    def made(self, node: Node, parts: list[str]) -> str:
        if node.definition.constant:
            assert isinstance(node.attrs, ConstAttrs)
            if node.attrs.shape or node.attrs.dtype not in _C_TYPES:
                raise DoesNotFit(f"{node.name} is {self.test.types[node.name]}")
            return str(self.test.constant(node)[0])
        if node.op == "Identity":
            return parts[0]
        parts = [part if re.fullmatch(r"-?\w+", part) else f"({part})" for part in parts]
        text = f" {_VALUES[node.op]} ".join(parts if len(parts) > 1 else ["0", *parts])
        if len(text) > MAX_EXPRESSION:
            raise DoesNotFit(f"{node.name}: an expression of more than {MAX_EXPRESSION} characters")
        return text

    def fresh(self, name: str) -> str:
        return self.names.like(_c_name(re.sub(r"^P[0-9]+_", "", name)))


_C_TYPES: Final = {"int32": "int", "int64": "int64_t"}
_ATOMICS: Final = {"int32": "atomic_int", "int64": "_Atomic int64_t"}
_VALUES: Final = {"AddV2": "+", "Sub": "-", "Mul": "*", "Neg": "-", "Identity": ""}
_WRITTEN: Final = frozenset(
    {"ReadVariableOp", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"}
)
