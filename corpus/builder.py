"""The short notation: ``litmus("X=1; Y=2 || r0=Y; r1=X")``.

Chains stand between ``||``, statements of a chain between ``;``. A statement's
effect waits for that of the one before it, by a control edge. Variables begin
with a capital, registers with a small letter; a register belongs to its chain
and, when it holds what a statement read, is observed.

============================  ===============================================
``X=1``, ``X=r0``, ``X=r0+1``  AssignVariableOp (operators ``+ - *``)
``X+=1``, ``X-=r0``           AssignAddVariableOp, AssignSubVariableOp
``r0=X``                      ReadVariableOp
``r1=r0*2``                   pure; observed too
``r0=X[0,2]``                 ResourceGather of rows 0 and 2
``X[0,2]=1``, ``X[0]+=1``     ResourceScatterUpdate, ...Add; ``-=`` and ``*=``
                              give Sub and Mul, ``min=`` and ``max=`` Min, Max
``Q!1``, ``r0=Q?``            QueueEnqueueV2, QueueDequeueV2
``lock M`` ... ``unlock M``    the statements between, as a CriticalSection
============================  ===============================================

Between ``|||`` stand graphs of their own, ``g0``, ``g1``, ..., each run once; what
is observed of them is ``g0.r0``.

For everything else there is the file (`corpus.textfile`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from corpus.graph import Graph, LitmusTest, MalformedTest, Mutex, Node, Queue, Variable
from corpus.ops import Attrs, ConstAttrs, RowsAttrs, SectionAttrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpus.ops import Nested

MAX_DIGITS: Final = 18
_STATEMENT = re.compile(
    r"(?P<target>[A-Za-z]\w*)(\[(?P<rows>[\d,\s]+)\])?\s*(?P<how>\+|-|\*|min|max)?=\s*(?P<value>.+)",
    re.ASCII,
)
_TERM = re.compile(r"-?\d+|[A-Za-z]\w*(\[[\d,\s]+\])?", re.ASCII)
_SCATTERS = {None: "Update", "+": "Add", "-": "Sub", "*": "Mul", "min": "Min", "max": "Max"}
_OPERATORS = {"+": "AddV2", "-": "Sub", "*": "Mul"}


def litmus(
    text: str,
    *,
    name: str = "litmus",
    about: str = "",
    dtype: str = "int32",
    shape: tuple[int, ...] = (),
    init: Mapping[str, Nested] | None = None,
    queues: Mapping[str, int] | None = None,
) -> LitmusTest:
    """The litmus test that the notation describes.

    Parameters
    ----------
    text : str
        See the module's docstring.
    dtype, shape
        Of every variable; statements on rows need a shape with rows.
    init : mapping, optional
        Initial contents by variable; 0 where not given.
    queues : mapping, optional
        Capacity by queue; their elements have the variables' dtype and shape.

    Raises
    ------
    MalformedTest
        Naming the statement.
    """
    # Nodes that we name ourselves keep clear of every register.
    reserved = frozenset(re.findall(r"[a-z]\w*", text, re.ASCII))
    builder = _Builder(dtype, shape, reserved, frozenset(queues or ()))
    parts = text.split("|||")
    graphs = []
    for number, part in enumerate(parts):
        builder.begin("" if len(parts) == 1 else f"g{number}.")
        for chain in part.split("||"):
            builder.chain(chain)
        if builder.sections:
            raise MalformedTest(f"lock {builder.sections[-1][0]} without unlock")
        name_of_graph = "main" if len(parts) == 1 else f"g{number}"
        graphs.append(Graph(name_of_graph, tuple(builder.nodes[builder.first :])))
    given = dict(init or {})
    variables = tuple(
        Variable(each, dtype, shape, given.pop(each, 0)) for each in builder.variables
    )
    if given:
        raise MalformedTest(f"no variable {', '.join(given)} in {text!r}")
    try:
        return LitmusTest(
            name,
            variables,
            tuple(graphs),
            tuple(builder.observed),
            about,
            mutexes=tuple(Mutex(each) for each in builder.mutexes),
            queues=tuple(Queue(q, dtype, shape, n) for q, n in (queues or {}).items()),
        )
    except MalformedTest as error:
        if len(error.path) < 3 or error.path[0] != "graphs":
            raise
        message = f"{error.message}: {builder.statements[error.path[2]]!r}"
        raise MalformedTest(message, error.path) from None


class _Builder:
    def __init__(
        self,
        dtype: str,
        shape: tuple[int, ...],
        reserved: frozenset[str],
        queues: frozenset[str],
    ) -> None:
        self.queues = queues
        self.mutexes: list[str] = []
        self.sections: list[tuple[str, int, tuple[str, ...]]] = []  # open: mutex, first node, after
        self.first = 0  # of the present graph's nodes
        self.prefix = ""  # of its observed names
        self.dtype = dtype
        self.shape = shape
        self.reserved = reserved
        self.nodes: list[Node] = []
        self.statements: dict[str | int, str] = {}  # node to the statement that it came from
        self.variables: list[str] = []
        self.observed: list[str] = []
        self.constants: dict[tuple[int, tuple[int, ...]], str] = {}
        self.registers: dict[str, str] = {}  # of the current chain: name to node
        self.previous: tuple[str, ...] = ()  # the chain's last effect

    def begin(self, prefix: str) -> None:
        """Start a graph; constants are not shared between graphs."""
        self.first = len(self.nodes)
        self.prefix = prefix
        self.constants = {}

    def chain(self, text: str) -> None:
        self.registers = {}
        self.previous = ()
        if self.sections:
            raise MalformedTest(f"lock {self.sections[-1][0]} without unlock")
        for statement in text.split(";"):
            if statement.strip():
                self.statement(statement.strip())
                for node in self.nodes[len(self.statements) :]:
                    self.statements[node.name] = statement.strip()

    def statement(self, text: str) -> None:
        lock = re.fullmatch(r"(lock|unlock)\s+([A-Z]\w*)", text, re.ASCII)
        if lock:
            self.section(text, lock[1], lock[2])
            return
        put = re.fullmatch(r"([A-Z]\w*)\s*!\s*(.+)", text, re.ASCII)
        if put:
            if put[1] not in self.queues:
                raise MalformedTest(f"no queue {put[1]}: {text!r}")
            operand = self.expression(text, put[2], self.shape)
            self.effect(self.fresh("w"), "QueueEnqueueV2", put[1], (operand,), None)
            return
        match = _STATEMENT.fullmatch(text)
        if not match:
            raise MalformedTest(f"not a statement: {text!r}")
        target, how, value = match["target"], match["how"], match["value"]
        rows = _rows(text, match["rows"])
        if target[0].isupper():
            self.store(text, target, rows, how, value)
        elif how or rows:
            raise MalformedTest(f"a register is only assigned: {text!r}")
        else:
            self.load(text, target, value)

    def section(self, text: str, how: str, mutex: str) -> None:
        """Open a section, or close the one opened last."""
        if mutex in self.queues or mutex in self.variables:
            raise MalformedTest(f"{mutex} is no mutex: {text!r}")
        if how == "lock":
            self.sections.append((mutex, len(self.nodes), self.previous))
            self.previous = ()
            if mutex not in self.mutexes:
                self.mutexes.append(mutex)
            return
        if not self.sections or self.sections[-1][0] != mutex:
            raise MalformedTest(f"{mutex} is not the one locked last: {text!r}")
        _, first, after = self.sections.pop()
        members = tuple(
            n.name for n in self.nodes[first:] if n.op not in ("Const", "CriticalSection")
        )
        name = self.fresh("s")
        attrs = SectionAttrs(members)
        self.nodes.append(Node(name, "CriticalSection", (), (mutex,), after, attrs))
        self.previous = (name,)

    def store(
        self, text: str, target: str, rows: tuple[int, ...] | None, how: str | None, value: str
    ) -> None:
        self.declare(target)
        shape = self.shape
        attrs: Attrs | None = None
        if rows is not None:
            op = f"ResourceScatter{_SCATTERS[how]}"
            shape = (len(rows), *self.shape[1:])
            attrs = RowsAttrs(rows)
        elif how in ("+", "-"):
            op = "AssignAddVariableOp" if how == "+" else "AssignSubVariableOp"
        elif how:
            raise MalformedTest(f"{how}= needs rows: {text!r}")
        else:
            op = "AssignVariableOp"
        operand = self.expression(text, value, shape)
        self.effect(self.fresh("w"), op, target, (operand,), attrs)

    def load(self, text: str, target: str, value: str) -> None:
        if target in {n.name for n in self.nodes}:
            raise MalformedTest(f"register {target} is assigned twice: {text!r}")
        take = re.fullmatch(r"([A-Z]\w*)\s*\?", value.strip(), re.ASCII)
        source = re.fullmatch(r"([A-Z]\w*)(?:\[([\d,\s]+)\])?", value.strip(), re.ASCII)
        if take:
            if take[1] not in self.queues:
                raise MalformedTest(f"no queue {take[1]}: {text!r}")
            self.effect(target, "QueueDequeueV2", take[1], (), None)
            self.registers[target] = target
        elif source:
            self.declare(source[1])
            rows = _rows(text, source[2])
            if rows is None:
                self.effect(target, "ReadVariableOp", source[1], (), None)
            else:
                self.effect(target, "ResourceGather", source[1], (), RowsAttrs(rows))
            self.registers[target] = target
        else:
            self.registers[target] = self.expression(text, value, self.shape, name=target)
        self.observed.append(self.prefix + self.registers[target])

    def expression(
        self, text: str, value: str, shape: tuple[int, ...], name: str | None = None
    ) -> str:
        """The node that computes `value`: terms joined from left to right."""
        position = 0
        result = ""
        operator = ""
        value = value.strip()
        while True:
            term = _TERM.match(value, position)
            if not term:
                raise MalformedTest(f"not an expression: {text!r}")
            operand = self.operand(text, term.group(), shape)
            position = term.end()
            rest = value[position:].lstrip()
            final = name if name and not rest else None
            if operator:
                result = self.pure(_OPERATORS[operator], (result, operand), final)
            elif final:
                result = self.pure("Identity", (operand,), final)
            else:
                result = operand
            if not rest:
                return result
            operator = rest[0]
            if operator not in _OPERATORS:
                raise MalformedTest(f"not an expression: {text!r}")
            value, position = rest[1:].lstrip(), 0

    def operand(self, text: str, term: str, shape: tuple[int, ...]) -> str:
        if not term.lstrip("-").isdigit():
            if term not in self.registers:
                raise MalformedTest(f"no register {term} in this chain: {text!r}")
            return self.registers[term]
        if len(term) > MAX_DIGITS:
            raise MalformedTest(f"a number of more than {MAX_DIGITS} digits: {text[:80]!r}")
        key = (int(term), shape)
        if key not in self.constants:
            sign = "m" if key[0] < 0 else ""
            self.constants[key] = self.fresh(f"c{sign}{abs(key[0])}_")
            attrs = ConstAttrs(self.dtype, shape, key[0])
            self.nodes.append(Node(self.constants[key], "Const", attrs=attrs))
        return self.constants[key]

    def pure(self, op: str, inputs: tuple[str, ...], name: str | None) -> str:
        node = Node(name or self.fresh("t"), op, inputs)
        self.nodes.append(node)
        return node.name

    def effect(
        self, name: str, op: str, variable: str, inputs: tuple[str, ...], attrs: Attrs | None
    ) -> None:
        self.nodes.append(Node(name, op, inputs, (variable,), self.previous, attrs))
        self.previous = (name,)

    def declare(self, variable: str) -> None:
        if variable not in self.variables:
            self.variables.append(variable)

    def fresh(self, prefix: str) -> str:
        taken = {n.name for n in self.nodes} | self.reserved
        number = 0
        while f"{prefix}{number}" in taken:
            number += 1
        return f"{prefix}{number}"


def _rows(text: str, rows: str | None) -> tuple[int, ...] | None:
    if rows is None:
        return None
    parts = [part.strip() for part in rows.split(",")]
    if not all(part.isdigit() and len(part) <= MAX_DIGITS for part in parts):
        raise MalformedTest(f"not a list of rows: {text[:80]!r}")
    return tuple(map(int, parts))
