"""The short notation: ``litmus("X=1; Y=2 || r0=Y; r1=X")``.

``||`` separates chains, ``;`` the statements of a chain. A control edge makes the effect of a
statement wait for the effect of the statement before it. Variables begin with a capital
letter, registers with a small one. A register belongs to its chain; its value is observed.

=============================  ==============================================
``X=1``, ``X=r0``, ``X=r0+1``   AssignVariableOp (operators ``+ - *``)
``X+=1``, ``X-=r0``            AssignAddVariableOp, AssignSubVariableOp
``r0=X``                       ReadVariableOp
``r1=r0*2``                    pure; observed too
``r0=X[0,2]``                  ResourceGather of rows 0 and 2
``X[0,2]=1``, ``X[0]+=1``      ResourceScatterUpdate, ...Add; ``-=`` and ``*=``
                               give Sub and Mul, ``min=`` and ``max=`` Min, Max,
                               ``/=`` Div, where 0 of an integer fails
``r1=X[r0]``, ``X[r0]+=1``     the same ops, on the rows that a register names
``Q!1``, ``r0=Q?``             QueueEnqueueV2, QueueDequeueV2
``Q!1,2``, ``r0=Q?2``          ...ManyV2: two elements
``r0=size Q``, ``close Q``     QueueSizeV2, QueueCloseV2
``A<<5 at 2``                  ResourceAccumulatorApplyGradient of 5, local step 2 (0 without)
``r0=A>>2``                    ResourceAccumulatorTakeGradient, once there are 2
``r0=count A``, ``step A 3``   ResourceAccumulatorNumAccumulated, SetGlobalStep
``lock M`` ... ``unlock M``     the statements between, as a CriticalSection
``cluster {...}``              the statements, as a cluster in that SSA order
``if r0==1 {...} else {...}``  a conditional on ``==`` or ``<``; ``else`` may be
                               left out. A register that both branches assign is
                               its result: ``if0.r1``
``call {...}``                  a function call. A register that the body assigns is
                               its result: ``call0.r1``
``loop 3 {...}``               a loop of three iterations, one after another. A
                               register from before it that the body assigns is
                               carried on: ``loop0.r0_0``
``loop 3 while X==0 {...}``    as long as that holds, three times at most; a
                               variable is read by the condition
``loop[2] 3 free {...}``       iterations in no order, but 2 at once at most
                               under ``executor`` (``parallel_iterations``)
=============================  ==============================================

``|||`` separates graphs, ``g0``, ``g1``, ..., each run once; a register of theirs is observed as
``g0.r0``. The argument ``client="a:g0; b:g0; c:g1 after a b"`` runs ``g0`` twice, then ``g1``; a
register is then observed as ``a.r0``. ``d:g0 fetch r0`` executes only what ``r0`` needs.

Braces hold one chain; the next statement waits for all of it. A register that is assigned
inside braces belongs to the inside, apart from results.

The file format expresses everything else (`litmusfuzz.corpus.textfile`).
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    MAX_NESTING,
    Accumulator,
    Body,
    BranchAttrs,
    CallAttrs,
    Cluster,
    FreshNames,
    Graph,
    LitmusTest,
    LoopAttrs,
    MalformedTest,
    Mutex,
    Node,
    Queue,
    Run,
    Variable,
)
from litmusfuzz.corpus.ops import (
    DEFINED_OPS,
    Attrs,
    ConstAttrs,
    CountAttrs,
    RowsAttrs,
    SectionAttrs,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from litmusfuzz.corpus.ops import Nested

MAX_DIGITS: Final = 18
MAX_NOTATION: Final = 1 << 16
"""Characters of a test in the notation, at most. Larger tests are files."""
_ROWS = r"[\d,\s]+|\s*[a-z]\w*\s*"
_STATEMENT = re.compile(
    rf"(?P<target>[A-Za-z]\w*)(\[(?P<rows>{_ROWS})\])?\s*(?P<how>\+|-|\*|/|min|max)?=\s*(?P<value>.+)",
    re.ASCII,
)
_TERM = re.compile(rf"-?\d+|[A-Za-z]\w*(\[({_ROWS})\])?", re.ASCII)
_OPERAND = r"-?\d+|[A-Za-z]\w*"
_TEST = re.compile(rf"\s*({_OPERAND})\s*(==|<)\s*({_OPERAND})\s*", re.ASCII)
_BLOCK = re.compile(r"(?P<head>[^{}]*)\{(?P<rest>.*)", re.ASCII | re.DOTALL)
_LOOP = re.compile(
    r"loop(\[(?P<parallel>\d{1,9})\])?\s+(?P<limit>\d{1,9})"
    r"(\s+(?P<free>free))?(\s+while\s+(?P<test>.+?))?\s*",
    re.ASCII,
)
_SCATTERS = {
    None: "Update",
    "+": "Add",
    "-": "Sub",
    "*": "Mul",
    "/": "Div",
    "min": "Min",
    "max": "Max",
}
_OPERATORS = {"+": "AddV2", "-": "Sub", "*": "Mul"}
_TESTS = {"==": "Equal", "<": "Less"}


def litmus(
    text: str,
    *,
    name: str = "litmus",
    description: str = "",
    dtype: str = "int32",
    shape: tuple[int, ...] = (),
    init: Mapping[str, Nested] | None = None,
    queues: Mapping[str, int] | None = None,
    accumulators: Iterable[str] = (),
    client: str = "",
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
    accumulators : iterable of str
        Names of accumulators; their gradients have the variables' dtype and shape.
    client : str
        Runs of graphs, ``a:g0; b:g1 after a``; each graph once if empty.

    Raises
    ------
    MalformedTest
        Naming the statement.
    """
    if len(text) > MAX_NOTATION:
        message = (
            f"a notation of {len(text):,} characters, of at most {MAX_NOTATION:,}: save a file"
        )
        raise MalformedTest(message)
    text = re.sub(r"[^\S\n]+", " ", text)  # patterns try each way to share out a run of blanks
    # Generated names of nodes differ from every register.
    reserved = frozenset(re.findall(r"[a-z]\w*", text, re.ASCII))
    builder = _Builder(dtype, shape, reserved, frozenset(queues or ()), frozenset(accumulators))
    parts = _split(text, "|||")
    names = ["main"] if len(parts) == 1 else [f"g{number}" for number in range(len(parts))]
    graphs = []
    shown: dict[str, list[str]] = {}  # by graph, its observed nodes
    for name_of_graph, part in zip(names, parts, strict=True):
        builder.scope = _Scope()
        builder.observed = shown[name_of_graph] = []
        for chain in _split(part, "||"):
            builder.chain(chain)
        builder.check_closed()
        graphs.append(Graph(name_of_graph, tuple(builder.scope.nodes)))
    runs = _runs(client)
    keys = [(run.name, run.graph) for run in runs] or [(each, each) for each in names]
    several = len(keys) > 1
    observed = [
        f"{run}.{each}" if several else each for run, graph in keys for each in shown.get(graph, ())
    ]
    given = dict(init or {})
    variables = tuple(
        Variable(each, dtype, shape, given.pop(each, 0)) for each in builder.variables
    )
    if given:
        raise MalformedTest(f"no variable {', '.join(given)} in {text[:80]!r}")
    try:
        return LitmusTest(
            name,
            variables,
            tuple(graphs),
            tuple(observed),
            description,
            mutexes=tuple(Mutex(each) for each in builder.mutexes),
            queues=tuple(Queue(q, dtype, shape, n) for q, n in (queues or {}).items()),
            client=runs,
            accumulators=tuple(Accumulator(each, dtype, shape) for each in accumulators),
            clusters=tuple(builder.clusters),
        )
    except MalformedTest as error:
        where = {"graphs": 2, "clusters": 1}.get(str(error.path[0]), 0) if error.path else 0
        if not 0 < where < len(error.path):
            raise
        message = f"{error.message}: {builder.statements[str(error.path[where])]!r}"
        raise MalformedTest(message, error.path) from None


def _split(text: str, separator: str) -> list[str]:
    """Split `text` at separators outside braces."""
    parts = []
    depth = begin = 0
    for match in re.finditer(rf"[{{}}]|{re.escape(separator)}", text):
        position = match.start()
        if match[0] != separator:
            depth += 1 if match[0] == "{" else -1
        elif depth == 0:
            parts.append(text[begin:position])
            begin = match.end()
        if depth < 0:
            raise MalformedTest(f"a brace too many: {text[: position + 1].strip()[-60:]!r}")
        if depth > 2 * MAX_NESTING:  # of bodies; clusters have braces as well
            raise MalformedTest(f"braces are nested too deeply: {text.strip()[:60]!r}")
    if depth:
        raise MalformedTest(f"a brace is not closed: {text.strip()[:60]!r}")
    return [*parts, text[begin:]]


def _runs(client: str) -> tuple[Run, ...]:
    runs = []
    for part in client.split(";") if client.strip() else ():
        match = re.fullmatch(
            r"\s*(\w+)\s*:\s*(\w+)(\s+after((\s+(?!fetch\b)\w+)+))?(\s+fetch((\s+[\w.]+)+))?\s*",
            part,
            re.ASCII,
        )
        if not match:
            raise MalformedTest(f"not a run, as in 'c:g1 after a b': {part.strip()[:80]!r}")
        after, fetches = (tuple((each or "").split()) for each in (match[4], match[7]))
        runs.append(Run(match[1], match[2], after, fetches))
    return tuple(runs)


@dataclass
class _Scope:
    """A graph or body that is being built.

    `captures` has, by the value's name outside, the name of each value that the
    body takes; all bodies of one node share it. `registers` has the present
    chain's, name to value, and `assigned` those assigned here, in order.
    """

    outside: _Scope | None = None
    captures: dict[str, str] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    constants: dict[tuple[str, Nested, tuple[int, ...]], str] = field(default_factory=dict)
    registers: dict[str, str] = field(default_factory=dict)
    assigned: dict[str, None] = field(default_factory=dict)
    previous: tuple[str, ...] = ()  # the chain's last effect

    def body(self, results: list[str]) -> Body:
        return Body(tuple(self.nodes), tuple(results))


class _Builder:
    def __init__(
        self,
        dtype: str,
        shape: tuple[int, ...],
        reserved: frozenset[str],
        queues: frozenset[str],
        accumulators: frozenset[str],
    ) -> None:
        self.accumulators = accumulators
        self.queues = queues
        self.mutexes: list[str] = []
        self.sections: list[tuple[str, int, tuple[str, ...]]] = []  # open: mutex, first node, after
        self.clusters: list[Cluster] = []
        self.dtype = dtype
        self.shape = shape
        self.names = FreshNames(reserved)
        self.scope = _Scope()
        self.taken: set[str] = set()  # names of nodes and values
        self.statements: dict[str, str] = {}  # node to the statement that it came from
        self.variables: list[str] = []
        self.observed: list[str] = []  # of the present graph

    def chain(self, text: str) -> None:
        self.scope.registers = {}
        self.scope.previous = ()
        self.check_closed()
        self.sequence(text)

    def check_closed(self) -> None:
        if self.sections:
            raise MalformedTest(f"lock {self.sections[-1][0]} without unlock")

    def sequence(self, text: str) -> None:
        for statement in _split(text, ";"):
            if statement.strip():
                first = len(self.scope.nodes)
                self.statement(statement.strip())
                for node in self.scope.nodes[first:]:
                    self.statements.setdefault(node.name, statement.strip())

    def statement(self, text: str) -> None:
        block = _BLOCK.fullmatch(text)
        if block:
            self.block(text, block["head"].strip(), text[len(block["head"]) :])
            return
        word = re.fullmatch(r"(lock|unlock|close)\s+([A-Z]\w*)", text, re.ASCII)
        if word and word[1] == "close":
            self.effect(
                self.names.numbered("w"), "QueueCloseV2", self.queue(text, word[2]), (), None
            )
            return
        if word:
            self.section(text, word[1], word[2])
            return
        apply = re.fullmatch(r"([A-Z]\w*)\s*<<\s*(.+?)(?:\s+at\s+(.+))?", text, re.ASCII)
        if apply:
            self.apply(text, self.accumulator(text, apply[1]), apply[2], apply[3] or "0")
            return
        step = re.fullmatch(r"step\s+([A-Z]\w*)\s+(.+)", text, re.ASCII)
        if step:
            name, op = self.accumulator(text, step[1]), "ResourceAccumulatorSetGlobalStep"
            operand = self.whole(text, step[2], "int64")
            self.effect(self.names.numbered("w"), op, name, (operand,), None)
            return
        put = re.fullmatch(r"([A-Z]\w*)\s*!\s*(.+)", text, re.ASCII)
        if put:
            self.put(text, self.queue(text, put[1]), put[2])
            return
        match = _STATEMENT.fullmatch(text)
        if not match:
            raise MalformedTest(f"not a statement: {text[:80]!r}")
        target, how, value = match["target"], match["how"], match["value"]
        rows = self.rows(text, match["rows"])
        if target[0].isupper():
            self.store(text, target, rows, how, value)
        elif how or rows:
            raise MalformedTest(f"a register is only assigned: {text[:80]!r}")
        else:
            self.load(text, target, value)

    def queue(self, text: str, name: str) -> str:
        if name not in self.queues:
            raise MalformedTest(f"no queue {name}: {text[:80]!r}")
        return name

    def accumulator(self, text: str, name: str) -> str:
        if name not in self.accumulators:
            raise MalformedTest(f"no accumulator {name}: {text[:80]!r}")
        return name

    def apply(self, text: str, name: str, value: str, step: str) -> None:
        operands = (self.whole(text, step, "int64"), self.expression(text, value, self.shape))
        op = "ResourceAccumulatorApplyGradient"
        self.effect(self.names.numbered("w"), op, name, operands, None)

    def whole(self, text: str, value: str, dtype: str) -> str:
        """A scalar of that dtype: a number, or a register."""
        if re.fullmatch(r"-?\d{1,18}", value, re.ASCII):
            return self.constant(int(value), (), dtype)
        return self.expression(text, value, ())

    def put(self, text: str, queue: str, value: str) -> None:
        parts = value.split(",")
        if len(parts) == 1:
            operand = self.expression(text, value, self.shape)
            self.effect(self.names.numbered("w"), "QueueEnqueueV2", queue, (operand,), None)
            return
        if not all(re.fullmatch(r"\s*-?\d{1,18}\s*", part, re.ASCII) for part in parts):
            raise MalformedTest(f"several elements are numbers: {text[:80]!r}")
        many = self.constant(tuple(map(int, parts)), (len(parts), *self.shape))
        self.effect(self.names.numbered("w"), "QueueEnqueueManyV2", queue, (many,), None)

    # --- blocks ------------------------------------------------------------------------

    def block(self, text: str, head: str, rest: str) -> None:
        """A statement with braces."""
        blocks = _blocks(text, rest)
        if head == "cluster" and len(blocks) == 1:
            self.cluster(text, blocks[0])
        elif head.startswith("if ") and len(blocks) <= 2:
            self.branch(text, head[3:], blocks)
        elif head == "call" and len(blocks) == 1:
            self.call(blocks[0])
        elif head.startswith("loop") and len(blocks) == 1:
            self.loop(text, head, blocks[0])
        else:
            raise MalformedTest(f"not a statement: {text[:80]!r}")

    def cluster(self, text: str, inner: str) -> None:
        first = len(self.scope.nodes)
        self.sequence(inner)
        members = [n.name for n in self.scope.nodes[first:] if _can_be_member(n)]
        name = self.names.numbered("k")
        self.statements[name] = text
        self.clusters.append(Cluster(name, tuple(members)))

    @contextmanager
    def within(self, scope: _Scope) -> Iterator[_Scope]:
        """Build in another scope inside the `with` block."""
        outer, self.scope = self.scope, scope
        sections, self.sections = self.sections, []
        try:
            yield scope
            self.check_closed()
        finally:
            self.scope, self.sections = outer, sections

    def predicate(self, text: str, test: str, *, reads: bool = False) -> str:
        """Add the comparison of a predicate, and first the reads of the variables that it names."""
        match = _TEST.fullmatch(test)
        if not match:
            raise MalformedTest(f"a test is as in r0==1 or r0<2: {text[:80]!r}")
        operands = []
        for term in (match[1], match[3]):
            if reads and term[0].isupper():
                self.declare(term)
                operands.append(self.names.numbered("r"))
                self.effect(operands[-1], "ReadVariableOp", term, (), None)
            else:
                operands.append(self.operand(text, term, self.shape))
        return self.pure(_TESTS[match[2]], tuple(operands), None)

    def branch(self, text: str, test: str, blocks: list[str]) -> None:
        predicate = self.predicate(text, test)
        name = self.names.numbered("if")
        captures: dict[str, str] = {}
        bodies = [_Scope(self.scope, captures), _Scope(self.scope, captures)]
        for scope, inner in zip(bodies, (*blocks, "")[:2], strict=True):
            with self.within(scope):
                self.sequence(inner)
        both = [r for r in bodies[0].assigned if r in bodies[1].assigned]
        written = []
        for scope in bodies:
            with self.within(scope):
                results = [self.leaving(name, r, scope.registers[r]) for r in both]
                # A conditional has at least one result: here a constant after all effects.
                nothing = self.constant(0, self.shape)
                written.append(scope.body(results or [self.leaving(name, "done", nothing)]))
        given = tuple((inside, outside) for outside, inside in captures.items())
        attrs = BranchAttrs(given, written[0], written[1], tuple(both or ["done"]))
        self.add(Node(name, "If", (predicate,), (), self.scope.previous, attrs))
        self.scope.previous = (name,)
        for register in both:
            self.assign(register, f"{name}.{register}")

    def call(self, inner: str) -> None:
        name = self.names.numbered("call")
        captures: dict[str, str] = {}
        body = _Scope(self.scope, captures)
        with self.within(body):
            self.sequence(inner)
        results = [body.registers[r] for r in body.assigned]
        given = tuple((inside, outside) for outside, inside in captures.items())
        attrs = CallAttrs(given, body.body(results), tuple(body.assigned))
        self.add(Node(name, "Call", (), (), self.scope.previous, attrs))
        self.scope.previous = (name,)
        for register in body.assigned:
            self.assign(register, f"{name}.{register}")

    def loop(self, text: str, head: str, inner: str) -> None:
        match = _LOOP.fullmatch(head)
        if not match:
            raise MalformedTest(f"a loop is as in 'loop 3 while X==0 {{...}}': {text[:80]!r}")
        name = self.names.numbered("loop")
        counter = self.names.numbered(f"{name}_i")
        start = self.constant(0, (), "int32")
        limit = self.constant(int(match["limit"]), (), "int32")
        captures: dict[str, str] = {}
        condition, body = _Scope(self.scope, captures), _Scope(self.scope, captures)
        with self.within(condition):
            more = self.pure("Less", (counter, self.taken_in(limit, "limit")), None)
            if match["test"]:
                holds = self.predicate(text, match["test"], reads=True)
                never = self.constant(0, (), "bool")
                more = self.pure("Select", (more, holds, never), None)
        with self.within(body):
            self.sequence(inner)
        again = [r for r in body.assigned if self.find(r) is not None]
        first = [self.find(r) or "" for r in again]
        # Inside, a carried value keeps the name of its capture.
        carried = [
            captures.pop(value) if value in captures else self.names.numbered(f"{register}_")
            for register, value in zip(again, first, strict=True)
        ]
        with self.within(body):
            step = self.constant(1, (), "int32")
            following = [self.names.numbered(f"{name}_next")]
            after = () if match["free"] else body.previous
            self.add(Node(following[0], "AddV2", (counter, step), (), after))
            following += [self.leaving(name, r, body.registers[r]) for r in again]
        attrs = LoopAttrs(
            (counter, *carried),
            tuple((inside, outside) for outside, inside in captures.items()),
            condition.body([more]),
            body.body(following),
            int(match["parallel"] or 10),
        )
        self.add(Node(name, "While", (start, *first), (), self.scope.previous, attrs))
        self.scope.previous = (name,)
        for register, inside in zip(again, carried, strict=True):
            self.assign(register, f"{name}.{inside}")

    def leaving(self, owner: str, register: str, value: str) -> str:
        """Return a value from a body, after the body's last effect."""
        name = self.names.numbered(f"{owner}_{register}")
        self.add(Node(name, "Identity", (value,), (), self.scope.previous))
        return name

    def taken_in(self, value: str, name: str) -> str:
        """Name in this body of a value from outside; captured on first use."""
        if value not in self.scope.captures:
            self.scope.captures[value] = self.names.numbered(f"{name}_")
        return self.scope.captures[value]

    def find(self, register: str) -> str | None:
        """Value of a register in this scope, captured from outside if need be; None without one."""
        scope = self.scope
        if register in scope.registers:
            return scope.registers[register]
        if scope.outside is None:
            return None
        with self.within(scope.outside):
            outer = self.find(register)
        return None if outer is None else self.taken_in(outer, register)

    def assign(self, register: str, value: str) -> None:
        """Give a register its value; outside bodies it is observed."""
        self.scope.registers[register] = value
        self.scope.assigned[register] = None
        if self.scope.outside is None:
            self.observed.append(value)

    def section(self, text: str, how: str, mutex: str) -> None:
        """Open a section, or close the one opened last."""
        if mutex in self.queues or mutex in self.variables:
            raise MalformedTest(f"{mutex} is no mutex: {text[:80]!r}")
        if how == "lock":
            self.sections.append((mutex, len(self.scope.nodes), self.scope.previous))
            self.scope.previous = ()
            if mutex not in self.mutexes:
                self.mutexes.append(mutex)
            return
        if not self.sections or self.sections[-1][0] != mutex:
            raise MalformedTest(f"{mutex} is not the one locked last: {text[:80]!r}")
        _, first, after = self.sections.pop()
        members = tuple(n.name for n in self.scope.nodes[first:] if _can_be_member(n))
        name = self.names.numbered("s")
        self.add(Node(name, "CriticalSection", (), (mutex,), after, SectionAttrs(members)))
        self.scope.previous = (name,)

    def store(
        self,
        text: str,
        target: str,
        rows: tuple[int, ...] | str | None,
        how: str | None,
        value: str,
    ) -> None:
        self.declare(target)
        shape = self.shape
        attrs: Attrs | None = None
        indices: tuple[str, ...] = ()
        if isinstance(rows, str):
            op = f"ResourceScatter{_SCATTERS[how]}"
            shape = ()  # for each row that the register names
            indices = (rows,)
        elif rows is not None:
            op = f"ResourceScatter{_SCATTERS[how]}"
            shape = (len(rows), *self.shape[1:])
            if op in DEFINED_OPS:  # its places are operands
                places = Node(
                    self.names.numbered("i"),
                    "Const",
                    attrs=ConstAttrs("int32", (len(rows),), rows),
                )
                self.add(places)
                indices = (places.name,)
            else:
                attrs = RowsAttrs(rows)
        elif how in ("+", "-"):
            op = "AssignAddVariableOp" if how == "+" else "AssignSubVariableOp"
        elif how:
            raise MalformedTest(f"{how}= needs rows: {text[:80]!r}")
        else:
            op = "AssignVariableOp"
        operand = self.expression(text, value, shape)
        self.effect(self.names.numbered("w"), op, target, (*indices, operand), attrs)

    def load(self, text: str, target: str, value: str) -> None:
        if self.scope.outside is None and target in self.taken:
            raise MalformedTest(f"register {target} is assigned twice: {text[:80]!r}")
        # A name is a register's own at the top; inside bodies it is used again.
        name = target if self.scope.outside is None else self.names.numbered(f"{target}in")
        value = value.strip()
        take = re.fullmatch(r"([A-Z]\w*)\s*\?\s*(\d{1,9})?", value, re.ASCII)
        size = re.fullmatch(r"size\s+([A-Z]\w*)", value, re.ASCII)
        taken = re.fullmatch(r"([A-Z]\w*)\s*>>\s*(\S+)", value, re.ASCII)
        count = re.fullmatch(r"count\s+([A-Z]\w*)", value, re.ASCII)
        source = re.fullmatch(rf"([A-Z]\w*)(?:\[({_ROWS})\])?", value, re.ASCII)
        if take and take[2]:
            many = CountAttrs(int(take[2]))
            self.effect(name, "QueueDequeueManyV2", self.queue(text, take[1]), (), many)
        elif take:
            self.effect(name, "QueueDequeueV2", self.queue(text, take[1]), (), None)
        elif taken:
            needed = (self.whole(text, taken[2], "int32"),)
            op = "ResourceAccumulatorTakeGradient"
            self.effect(name, op, self.accumulator(text, taken[1]), needed, None)
        elif count:
            op = "ResourceAccumulatorNumAccumulated"
            self.effect(name, op, self.accumulator(text, count[1]), (), None)
        elif size:
            self.effect(name, "QueueSizeV2", self.queue(text, size[1]), (), None)
        elif source:
            self.declare(source[1])
            rows = self.rows(text, source[2])
            if rows is None:
                self.effect(name, "ReadVariableOp", source[1], (), None)
            elif isinstance(rows, str):
                self.effect(name, "ResourceGather", source[1], (rows,), None)
            else:
                self.effect(name, "ResourceGather", source[1], (), RowsAttrs(rows))
        else:
            self.expression(text, value, self.shape, name=name)
        self.assign(target, name)

    def expression(
        self, text: str, value: str, shape: tuple[int, ...], name: str | None = None
    ) -> str:
        """Add the nodes that compute `value`, terms from left to right; return the last."""
        position = 0
        result = ""
        operator = ""
        value = value.strip()
        while True:
            term = _TERM.match(value, position)
            if not term:
                raise MalformedTest(f"not an expression: {text[:80]!r}")
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
                raise MalformedTest(f"not an expression: {text[:80]!r}")
            value, position = rest[1:].lstrip(), 0

    def rows(self, text: str, rows: str | None) -> tuple[int, ...] | str | None:
        """Numbers of rows, or the value of the register that names them; None without any."""
        if rows is None or not rows.strip()[:1].isalpha():
            return _rows(text, rows)
        return self.operand(text, rows.strip(), ())

    def operand(self, text: str, term: str, shape: tuple[int, ...]) -> str:
        if not term.lstrip("-").isdigit():
            found = self.find(term)
            if found is None:
                raise MalformedTest(f"no register {term} in this chain: {text[:80]!r}")
            return found
        if len(term) > MAX_DIGITS:
            raise MalformedTest(f"a number of more than {MAX_DIGITS} digits: {text[:80]!r}")
        return self.constant(int(term), shape)

    def constant(self, value: Nested, shape: tuple[int, ...], dtype: str = "") -> str:
        """The constant's node; each body has one for each value and type."""
        key = (dtype or self.dtype, value, shape)
        constants = self.scope.constants
        if key not in constants:
            number = value if isinstance(value, int) else value[0]
            sign = "m" if isinstance(number, int) and number < 0 else ""
            digits = abs(number) if isinstance(number, int) else 0
            constants[key] = self.names.numbered(f"c{sign}{digits}_")
            self.add(Node(constants[key], "Const", attrs=ConstAttrs(key[0], shape, value)))
        return constants[key]

    def pure(self, op: str, inputs: tuple[str, ...], name: str | None) -> str:
        node = Node(name or self.names.numbered("t"), op, inputs)
        self.add(node)
        return node.name

    def effect(
        self, name: str, op: str, resource: str, inputs: tuple[str, ...], attrs: Attrs | None
    ) -> None:
        self.add(Node(name, op, inputs, (resource,), self.scope.previous, attrs))
        self.scope.previous = (name,)

    def add(self, node: Node) -> None:
        self.scope.nodes.append(node)
        self.taken.add(node.name)
        self.names.take(node.name)

    def declare(self, variable: str) -> None:
        if variable not in self.variables:
            self.variables.append(variable)


def _can_be_member(node: Node) -> bool:
    """True if short notation lists the node among a section's or cluster's members."""
    return not (node.definition.constant or node.members)


def _blocks(text: str, rest: str) -> list[str]:
    """Texts inside the braces of ``{...}`` or ``{...} else {...}``."""
    inner: list[str] = []
    while rest:
        end, depth = 0, 0
        while end < len(rest):
            depth += {"{": 1, "}": -1}.get(rest[end], 0)
            end += 1
            if depth == 0:
                break
        inner.append(rest[1 : end - 1])
        rest = rest[end:].strip()
        if rest:
            match = re.fullmatch(r"else\s*(\{.*)", rest, re.DOTALL)
            if not match:
                raise MalformedTest(f"not a statement: {text[:80]!r}")
            rest = match[1]
    return inner


def _rows(text: str, rows: str | None) -> tuple[int, ...] | None:
    if rows is None:
        return None
    parts = [part.strip() for part in rows.split(",")]
    if not all(part.isdigit() and len(part) <= MAX_DIGITS for part in parts):
        raise MalformedTest(f"not a list of rows: {text[:80]!r}")
    return tuple(map(int, parts))
