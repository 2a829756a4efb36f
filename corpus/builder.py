"""The short notation: ``litmus("X=1; Y=2 || r0=Y; r1=X")``.

``||`` separates chains, ``;`` or a line break the statements of a chain. docs/notation.md describes
the whole notation. This module reads a text word by word (`corpus.words`) and builds the test as it
reads, so that every mistake has its place in the text.

The file format expresses everything else (`litmusfuzz.corpus.textfile`).
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.condition import Condition, read_quantifier
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
from litmusfuzz.corpus.near import close, is_it
from litmusfuzz.corpus.ops import (
    DEFINED_OPS,
    DTYPES,
    Attrs,
    ConstAttrs,
    CountAttrs,
    RowsAttrs,
    SectionAttrs,
)
from litmusfuzz.corpus.out_of_range import index_operand, names_a_missing_row
from litmusfuzz.corpus.words import (
    NotationError,
    Text,
    is_name,
    is_number,
    read_proposition,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from litmusfuzz.corpus.ops import Nested

MAX_NOTATION: Final = 1 << 16
"""Characters of a test in the notation, at most. Larger tests are files."""
_SCATTERS: Final = {
    "=": "Update",
    "+=": "Add",
    "-=": "Sub",
    "*=": "Mul",
    "/=": "Div",
    "min=": "Min",
    "max=": "Max",
}
_DENSE: Final = {
    "=": "AssignVariableOp",
    "+=": "AssignAddVariableOp",
    "-=": "AssignSubVariableOp",
}
_OPERATORS: Final = {"+": "AddV2", "-": "Sub", "*": "Mul"}
_TESTS: Final = {"==": "Equal", "<": "Less"}
_ENDS: Final = frozenset({"", ";", "}", "||", "|||"})
_QUANTIFIERS: Final = ("exists", "forall")
_CONDITION: Final = frozenset({*_QUANTIFIERS, "~"})
_RESOURCE: Final = "a resource, which begins with a capital letter"


@dataclass
class _Header:
    """Declarations: what `litmus` is given beside the text, or the braces before it."""

    dtype: str
    shape: tuple[int, ...]
    init: dict[str, Nested]
    queues: dict[str, int]
    accumulators: list[str]
    client: list[Run]
    places: dict[str, int] = field(default_factory=dict)  # of what the text itself declares


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
        See docs/notation.md. What the other parameters say, its braces may say as well.
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
    NotationError
        With the place of the mistake in `text`.
    MalformedTest
        For a mistake in another parameter.
    """
    if len(text) > MAX_NOTATION:
        message = (
            f"a notation of {len(text):,} characters, of at most {MAX_NOTATION:,}: save a file"
        )
        raise MalformedTest(message)
    header = _Header(
        dtype, shape, dict(init or {}), dict(queues or {}), list(accumulators), _client(client)
    )
    return _Builder(text, header).test(name, description)


def _client(client: str) -> list[Run]:
    """Runs of graphs, separated by semicolons."""
    text = Text(client)
    found: list[Run] = []
    while text.peek():
        found.append(_run(text))
        if text.peek():
            text.expect(";")
    return found


def _run(text: Text) -> Run:
    """A run, ``c:g1 after a b fetch r0``."""
    name = text.name("a run, as in c:g1 after a b").text
    text.expect(":")
    graph = text.name("a graph, as in c:g1 after a b").text
    listed: dict[str, list[str]] = {"after": [], "fetch": []}
    for word in listed:
        if text.accept(word):
            while is_name(text.peek()) and text.peek() not in listed:
                each = text.take()
                while text.accept("."):
                    each += f".{text.name('a result').text}"
                listed[word].append(each)
            if not listed[word]:
                raise text.unexpected("a name")
    return Run(name, graph, tuple(listed["after"]), tuple(listed["fetch"]))


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


@dataclass(frozen=True)
class _Section:
    """A section that is open: where, the first node in it, and what it comes after."""

    mutex: str
    begin: int
    first: int
    after: tuple[str, ...]


class _Builder:
    """Reads a text, and builds the test."""

    def __init__(self, text: str, header: _Header) -> None:
        self.text = Text(text)
        self.header = header
        self.mutexes: list[str] = []
        self.sections: list[_Section] = []
        self.clusters: list[Cluster] = []
        # Generated names of nodes differ from every register.
        begin, end = self.statements
        self.names = FreshNames(re.findall(r"[a-z]\w*", text[begin:end], re.ASCII))
        self.scope = _Scope()
        self.depth = 0
        self.taken: set[str] = set()  # names of nodes and values
        self.begins: dict[str, int] = {}  # place of the statement that a node or cluster is of
        self.variables: dict[str, int] = {}  # with the place of their first use
        self.observed: list[str] = []  # of the present graph
        self.chains: list[dict[str, str]] = []  # by chain of all graphs: the value of each register

    # --- the whole text ------------------------------------------------------------------

    def test(self, name: str, description: str) -> LitmusTest:
        text, header = self.text, self.header
        if text.accept("{"):
            self.declarations(text.number - 1)
        parts: list[tuple[tuple[Node, ...], list[str]]] = []
        while True:
            self.graph()
            parts.append((tuple(self.scope.nodes), self.observed))
            if not text.accept("|||"):
                break
        names = ["main"] if len(parts) == 1 else [f"g{number}" for number in range(len(parts))]
        graphs = tuple(Graph(each, nodes) for each, (nodes, _) in zip(names, parts, strict=True))
        shown = {each: observed for each, (_, observed) in zip(names, parts, strict=True)}
        keys = [(run.name, run.graph) for run in header.client] or [(each, each) for each in names]
        several = len(keys) > 1
        observed = tuple(
            f"{run}.{each}" if several else each
            for run, graph in keys
            for each in shown.get(graph, ())
        )
        given = dict(header.init)
        variables = tuple(
            Variable(each, header.dtype, header.shape, given.pop(each, 0))
            for each in self.variables
        )
        if given:
            message = f"no variable {', '.join(given)} in the test"
            if places := [header.places[each] for each in given if each in header.places]:
                raise text.error(message, places[0])
            raise MalformedTest(message)
        if not (variables or self.mutexes or header.queues or header.accumulators):
            hint = "X=1 writes a variable, whose name begins with a capital letter"
            raise text.error(f"a test has at least one resource: {hint}", text.words[0].begin)
        begin = text.next.begin
        try:
            made = LitmusTest(
                name,
                variables,
                graphs,
                observed,
                description,
                mutexes=tuple(Mutex(each) for each in self.mutexes),
                queues=tuple(
                    Queue(q, header.dtype, header.shape, n) for q, n in header.queues.items()
                ),
                client=tuple(header.client),
                accumulators=tuple(
                    Accumulator(each, header.dtype, header.shape) for each in header.accumulators
                ),
                clusters=tuple(self.clusters),
            )
        except MalformedTest as error:
            raise self.placed(error) from None
        condition = self.condition(made)
        if text.peek():
            raise text.unexpected("the end")
        if condition is None:
            return made
        try:
            return made.asked(condition)
        except MalformedTest as error:
            raise text.error(error.message, begin) from None

    @property
    def statements(self) -> tuple[int, int]:
        """Where the text begins and ends without its declarations and its condition.

        A condition may name generated nodes.
        """
        depth, begin = 0, 0
        for word, following in pairwise(self.text.words):
            if depth == 0 and word.text in _QUANTIFIERS and following.text != "=":
                return begin, word.begin
            depth += {"{": 1, "}": -1}.get(word.text, 0)
            if depth == 0 and word.text == "}" and not begin and self.text.peek() == "{":
                begin = word.end
        return begin, len(self.text.text)

    def placed(self, error: MalformedTest) -> MalformedTest:
        """A rule of the format is broken: the error at the statement that breaks it."""
        first, *more = (*map(str, error.path), "")
        header = self.header
        places = {
            "graphs": [self.begins.get(each) for each in more[1:]],
            "clusters": [self.begins.get(each) for each in more],
            "variables": [header.places.get(each, self.variables.get(each)) for each in more],
        }.get(first, [header.places.get(each) for each in more])
        if "type" in header.places and not {"shape", "dtype"}.isdisjoint(more):
            places.insert(0, header.places["type"])
        place = next((each for each in places if each is not None), None)
        if place is None:
            if first in ("name", "description", "client", "queues", "accumulators"):
                return error  # of a parameter
            place = 0
        return NotationError(error.message, self.text.text, place, error.path)

    def condition(self, test: LitmusTest) -> Condition | None:
        """The final condition, if one stands here."""
        text = self.text
        quantifier = read_quantifier(text)
        if not quantifier:
            return None
        keys = {}
        for number, registers in enumerate(self.chains):
            for register, value in registers.items():
                if value in test.shown:
                    keys[f"{number}:{register}"] = keys[register] = value
        return Condition(
            quantifier,
            # A register that was assigned again means its last value, as in a statement here.
            read_proposition(
                text, lambda name: keys.get(name) or (name if name in test.shown else None)
            ),
        )

    # --- declarations --------------------------------------------------------------------

    def declarations(self, opened: int) -> None:
        """What stands in braces before the test: ``{X=5; type float32[4]; queue Q 2}``."""
        text = self.text
        while not text.accept("}"):
            if not text.peek():
                raise text.error("a brace is not closed", text.words[opened].begin)
            if text.accept(";"):
                continue
            self.declaration()
            if text.peek() not in (";", "}", "") and not text.on_a_new_line:
                raise text.unexpected("';' or '}'")

    def declaration(self) -> None:
        text, header = self.text, self.header
        begin = text.next.begin
        word = text.name("a declaration, as in X=5, type int64[2], queue Q 2 or run a:g0").text
        if word == "type":
            header.dtype, header.shape = self.type()
            header.places["type"] = begin
        elif word == "queue":
            queue = self.new(header.queues)
            header.queues[queue] = text.integer("a capacity, as in queue Q 2", 9)
        elif word == "accumulator":
            header.accumulators.append(self.new(header.accumulators))
        elif word == "run":
            header.client.append(_run(text))
            header.places[header.client[-1].name] = begin
        elif not word[0].isupper():
            message = "expected a variable, as in X=5, or type, queue, accumulator or run"
            raise text.error(f"{message}, got {word[:40]!r}", begin)
        elif word in header.places:
            raise text.error(f"{word} is declared twice", begin)
        else:
            text.expect("=")
            header.init[word] = self.contents(0)
            header.places[word] = begin

    def new(self, known: Iterable[str]) -> str:
        """The name of a resource that is declared here."""
        word = self.text.name(_RESOURCE)
        if not word.text[0].isupper():
            raise self.text.error(f"expected {_RESOURCE}, got {word.text[:40]!r}", word.begin)
        if word.text in known or word.text in self.header.places:
            raise self.text.error(f"{word.text} is declared twice", word.begin)
        self.header.places[word.text] = word.begin
        return word.text

    def type(self) -> tuple[str, tuple[int, ...]]:
        """A dtype and a shape, ``float32[3,5]``."""
        text = self.text
        word = text.name("a dtype, as in int64")
        if word.text not in DTYPES:
            message = f"no dtype {word.text[:40]!r}; there are {', '.join(DTYPES)}"
            raise text.error(message, word.begin)
        dimensions: list[int] = []
        if text.accept("["):
            while not text.accept("]"):
                if dimensions:
                    text.expect(",")
                dimensions.append(text.integer("a dimension", 9))
        return word.text, tuple(dimensions)

    def contents(self, depth: int) -> Nested:
        """Initial contents: a number, or a list."""
        text = self.text
        if not text.accept("["):
            return text.integer("a number or a list")
        if depth > MAX_NESTING:
            raise text.error("a list is nested too deeply")
        parts: list[Nested] = []
        while not text.accept("]"):
            if parts:
                text.expect(",")
            parts.append(self.contents(depth + 1))
        return tuple(parts)

    # --- chains and statements -----------------------------------------------------------

    def graph(self) -> None:
        """Chains up to the end of a graph."""
        self.scope = _Scope()
        self.observed = []
        while True:
            self.scope.registers = {}
            self.scope.previous = ()
            self.sequence()
            self.check_closed()
            self.chains.append(dict(self.scope.registers))
            if self.text.peek() == "}":
                raise self.text.error("a brace too many")
            if not self.text.accept("||"):
                return

    def check_closed(self) -> None:
        if self.sections:
            section = self.sections[-1]
            raise self.text.error(f"lock {section.mutex} without unlock", section.begin)

    def sequence(self) -> None:
        """Statements up to the end of the chain or of the braces."""
        text = self.text
        while (word := text.peek()) not in _ENDS - {";"}:
            if text.accept(";"):
                continue
            if word in _CONDITION and text.after() != "=" and not self.depth:
                return
            begin = text.next.begin
            first = len(self.scope.nodes)
            self.statement()
            for node in self.scope.nodes[first:]:
                self.begins.setdefault(node.name, begin)
            if text.peek() not in _ENDS | _CONDITION and not text.on_a_new_line:
                raise self.no_end()

    def no_end(self) -> NotationError:
        """A statement goes on where it should end."""
        text = self.text
        word = text.peek()
        before = text.words[text.number - 1].text
        if word == "|":
            return text.error("chains are separated by '||'")
        if word in _OPERATORS and text.after() == word:
            return text.error(f"there is no {word}{word}: write X{word}=1")
        if hint := self.quantifier_meant():
            return text.error(hint)
        ends = "';', '||', 'exists' or the end" if not self.depth else "';' or '}'"
        if before == "}":
            return text.unexpected(f"{ends} after the braces")
        return text.unexpected(f"an operator (+ - *), {ends}")

    def quantifier_meant(self) -> str:
        """The message if a misspelt ``exists`` or ``forall`` stands here, else ""."""
        word = self.text.peek()
        following = self.text.after()
        begins = following in ("(", "~") or is_name(following) or is_number(following)
        if self.depth or not is_name(word) or not begins:
            return ""
        near = close(word, _QUANTIFIERS)
        return f"no statement begins with {word[:40]!r}; {is_it(near)}" if near else ""

    @contextmanager
    def braces(self) -> Iterator[None]:
        """Take ``{`` before the `with` block, and ``}`` after it."""
        text = self.text
        opened = text.next
        text.expect("{")
        self.depth += 1
        if self.depth > 2 * MAX_NESTING:  # of bodies; clusters have braces as well
            raise text.error("braces are nested too deeply", opened.begin)
        yield
        if text.peek() in ("||", "|||"):
            raise text.error(f"'{text.peek()}' inside braces: they hold one chain")
        if not text.accept("}"):
            raise text.error("a brace is not closed", opened.begin)
        self.depth -= 1

    def statement(self) -> None:
        text = self.text
        word, following = text.peek(), text.after()
        named = is_name(following)
        if word == "if" and (named or is_number(following) or following in ("-", "(")):
            self.branch()
        elif word == "loop" and following not in ("=", "=="):
            self.loop()
        elif word in ("call", "cluster") and following == "{":
            self.call() if word == "call" else self.cluster()
        elif word in ("lock", "unlock", "close") and named:
            self.word_on_resource()
        elif word == "step" and named:
            text.take()
            name = self.accumulator()
            operand = self.whole("int64")
            op = "ResourceAccumulatorSetGlobalStep"
            self.effect(self.names.numbered("w"), op, name, (operand,), None)
        elif not is_name(word):
            raise text.unexpected("a statement, as in X=1 or r0=X")
        elif hint := self.quantifier_meant():
            raise text.error(hint)
        elif following == "!":
            self.put()
        elif following == "<<":
            self.apply()
        elif word[0].isupper():
            self.store()
        else:
            self.load()

    def word_on_resource(self) -> None:
        word = self.text.take()
        if word == "close":
            self.effect(self.names.numbered("w"), "QueueCloseV2", self.queue(), (), None)
        else:
            self.section(word)

    def resource(self, kind: str, known: Iterable[str], hint: str) -> str:
        """The name of a queue or accumulator that is declared."""
        word = self.text.name(kind)
        if word.text not in known:
            raise self.text.error(f"no {kind} {word.text[:40]}: {hint}", word.begin)
        return word.text

    def queue(self) -> str:
        hint = "declare it before the test, as in {queue Q 2}"
        return self.resource("queue", self.header.queues, hint)

    def accumulator(self) -> str:
        hint = "declare it before the test, as in {accumulator A}"
        return self.resource("accumulator", self.header.accumulators, hint)

    def apply(self) -> None:
        """``A<<5 at 2``: apply a gradient of a local step."""
        text = self.text
        name = self.accumulator()
        text.expect("<<")
        # The step is computed first, as it is the op's first operand.
        begin = text.number
        while text.peek() not in _ENDS and text.peek() != "at":
            text.take()
            if text.on_a_new_line and text.words[text.number - 1].text not in _OPERATORS:
                break
        has_step = text.peek() == "at" and not text.on_a_new_line
        if has_step:
            text.take()
        step = self.whole("int64") if has_step else self.constant(0, (), "int64")
        end, text.number = text.number, begin
        value = self.expression(self.header.shape)
        if has_step and text.peek() == "at":
            text.number = end
        op = "ResourceAccumulatorApplyGradient"
        self.effect(self.names.numbered("w"), op, name, (step, value), None)

    def whole(self, dtype: str) -> str:
        """A scalar of that dtype: a number, or an expression of registers."""
        text = self.text
        number = is_number(text.peek()) or (text.peek() == "-" and is_number(text.after()))
        if number:
            return self.constant(text.integer(), (), dtype)
        return self.expression(())

    def put(self) -> None:
        """``Q!1``, or ``Q!1,2`` for several elements."""
        text = self.text
        queue = self.queue()
        text.expect("!")
        begin = text.number
        text.accept("-")
        text.take()
        if text.peek() != ",":
            text.number = begin
            operand = self.expression(self.header.shape)
            self.effect(self.names.numbered("w"), "QueueEnqueueV2", queue, (operand,), None)
            return
        text.number = begin
        parts = [text.integer("a number: several elements are numbers")]
        while text.accept(","):
            parts.append(text.integer("a number: several elements are numbers"))
        many = self.constant(tuple(parts), (len(parts), *self.header.shape))
        self.effect(self.names.numbered("w"), "QueueEnqueueManyV2", queue, (many,), None)

    # --- blocks ------------------------------------------------------------------------

    def cluster(self) -> None:
        """``cluster {...}``: the statements are compiled together."""
        begin = self.text.next.begin
        self.text.take()
        first = len(self.scope.nodes)
        with self.braces():
            self.sequence()
        members = [n.name for n in self.scope.nodes[first:] if _can_be_member(n)]
        name = self.names.numbered("k")
        self.begins[name] = begin
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

    def block(self, scope: _Scope) -> None:
        """Statements in braces, built in that scope."""
        with self.braces(), self.within(scope):
            self.sequence()

    def predicate(self, *, reads: bool = False) -> str:
        """A comparison, and before it the reads of the variables that it names.

        It may stand in parentheses.
        """
        text = self.text
        opened = text.accept("(")
        operands = [self.compared(reads=reads)]
        sign = text.peek()
        if sign not in _TESTS:
            raise text.unexpected("'==' or '<', as in r0==1")
        text.take()
        operands.append(self.compared(reads=reads))
        if opened:
            text.expect(")")
        return self.pure(_TESTS[sign], tuple(operands), None)

    def compared(self, *, reads: bool) -> str:
        text = self.text
        word = text.next
        if not (reads and word.text[:1].isupper() and is_name(word.text)):
            return self.operand(self.header.shape)
        text.take()
        self.declare(word.text, word.begin)
        name = self.names.numbered("r")
        self.effect(name, "ReadVariableOp", word.text, (), None)
        return name

    def branch(self) -> None:
        """``if r0==1 {...} else {...}``."""
        text = self.text
        text.take()
        predicate = self.predicate()
        name = self.names.numbered("if")
        captures: dict[str, str] = {}
        bodies = [_Scope(self.scope, captures), _Scope(self.scope, captures)]
        self.block(bodies[0])
        if text.accept("else"):
            self.block(bodies[1])
        both = [r for r in bodies[0].assigned if r in bodies[1].assigned]
        written = []
        for scope in bodies:
            with self.within(scope):
                results = [self.leaving(name, r, scope.registers[r]) for r in both]
                # A conditional has at least one result: here a constant after all effects.
                nothing = self.constant(0, self.header.shape)
                written.append(scope.body(results or [self.leaving(name, "done", nothing)]))
        given = tuple((inside, outside) for outside, inside in captures.items())
        attrs = BranchAttrs(given, written[0], written[1], tuple(both or ["done"]))
        self.add(Node(name, "If", (predicate,), (), self.scope.previous, attrs))
        self.scope.previous = (name,)
        for register in both:
            self.assign(register, f"{name}.{register}")

    def call(self) -> None:
        """``call {...}``."""
        self.text.take()
        name = self.names.numbered("call")
        captures: dict[str, str] = {}
        body = _Scope(self.scope, captures)
        self.block(body)
        results = [body.registers[r] for r in body.assigned]
        given = tuple((inside, outside) for outside, inside in captures.items())
        attrs = CallAttrs(given, body.body(results), tuple(body.assigned))
        self.add(Node(name, "Call", (), (), self.scope.previous, attrs))
        self.scope.previous = (name,)
        for register in body.assigned:
            self.assign(register, f"{name}.{register}")

    def loop(self) -> None:
        """``loop[2] 3 free while X==0 {...}``."""
        text = self.text
        text.take()
        parallel = 10
        if text.accept("["):
            parallel = text.integer("a number of iterations, as in loop[2] 3 {...}", 9)
            text.expect("]")
        most = text.integer("a number of iterations, as in loop 3 {...}", 9)
        free = text.accept("free")
        name = self.names.numbered("loop")
        counter = self.names.numbered(f"{name}_i")
        start = self.constant(0, (), "int32")
        limit = self.constant(most, (), "int32")
        captures: dict[str, str] = {}
        condition, body = _Scope(self.scope, captures), _Scope(self.scope, captures)
        with self.within(condition):
            more = self.pure("Less", (counter, self.taken_in(limit, "limit")), None)
            if text.accept("while"):
                holds = self.predicate(reads=True)
                never = self.constant(0, (), "bool")
                more = self.pure("Select", (more, holds, never), None)
        self.block(body)
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
            after = () if free else body.previous
            self.add(Node(following[0], "AddV2", (counter, step), (), after))
            following += [self.leaving(name, r, body.registers[r]) for r in again]
        attrs = LoopAttrs(
            (counter, *carried),
            tuple((inside, outside) for outside, inside in captures.items()),
            condition.body([more]),
            body.body(following),
            parallel,
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

    def section(self, how: str) -> None:
        """Open a section, or close the one opened last."""
        text = self.text
        word = text.name("a mutex")
        mutex = word.text
        if not mutex[0].isupper() or mutex in self.header.queues or mutex in self.variables:
            raise text.error(f"{mutex[:40]} is no mutex", word.begin)
        if how == "lock":
            begin = text.words[text.number - 2].begin
            first, after = len(self.scope.nodes), self.scope.previous
            self.sections.append(_Section(mutex, begin, first, after))
            self.scope.previous = ()
            if mutex not in self.mutexes:
                self.mutexes.append(mutex)
            return
        if not self.sections or self.sections[-1].mutex != mutex:
            raise text.error(f"{mutex[:40]} is not the one locked last", word.begin)
        section = self.sections.pop()
        members = tuple(n.name for n in self.scope.nodes[section.first :] if _can_be_member(n))
        name = self.names.numbered("s")
        self.add(Node(name, "CriticalSection", (), (mutex,), section.after, SectionAttrs(members)))
        self.scope.previous = (name,)

    # --- reads and writes ----------------------------------------------------------------

    def assignment(self) -> str:
        """Take ``=``, ``+=``, ``min=`` and the like."""
        text = self.text
        word = text.peek()
        if word in ("min", "max") and text.after() == "=":
            text.take()
            text.take()
            return f"{word}="
        if word not in _SCATTERS:
            if word in _OPERATORS and text.after() == word:
                raise text.error(f"there is no {word}{word}: write X{word}=1")
            raise text.unexpected("'=', or '+=' or '-='")
        return text.take()

    def store(self) -> None:
        """``X=1``, ``X[0,2]+=r0``."""
        text, header = self.text, self.header
        target = text.name("a variable")
        if target.text in header.queues or target.text in header.accumulators:
            kind, how = (
                ("queue", "Q!1") if target.text in header.queues else ("accumulator", "A<<1")
            )
            raise text.error(f"{target.text} is a {kind}: write {how}", target.begin)
        if target.text in self.mutexes:
            raise text.error(f"{target.text} is a mutex", target.begin)
        indexed = text.peek() == "["
        rows = self.rows() if indexed else None
        equals = text.next
        sign = self.assignment()
        self.declare(target.text, target.begin)
        shape = header.shape
        attrs: Attrs | None = None
        indices: tuple[str, ...] = ()
        if isinstance(rows, str):
            op = f"ResourceScatter{_SCATTERS[sign]}"
            shape = ()  # for each row that the register names
            indices = (rows,)
        elif rows is not None:
            op = f"ResourceScatter{_SCATTERS[sign]}"
            shape = (len(rows), *header.shape[1:])
            if op in DEFINED_OPS or names_a_missing_row(rows, header.shape):
                indices = (self.places(op, rows),)
            else:
                attrs = RowsAttrs(rows)
        elif sign in _DENSE:
            op = _DENSE[sign]
        else:
            message = f"{sign} needs rows, as in {target.text[:40]}[0]{sign}2"
            raise text.error(message, equals.begin)
        operand = self.expression(shape)
        self.effect(self.names.numbered("w"), op, target.text, (*indices, operand), attrs)

    def load(self) -> None:
        """``r0=X``, and whatever else a register is assigned."""
        text = self.text
        word = text.name("a register")
        target = word.text
        if text.peek() == "[" or (text.peek() in _SCATTERS and text.peek() != "="):
            meant = f"{_capital(target[:40])}{'[0]=' if text.peek() == '[' else text.peek()}1"
            hint = f"a variable begins with a capital letter, as in {meant}"
            raise text.error(f"a register is only assigned, as in {target[:40]}=X; {hint}")
        text.expect("=")
        if self.scope.outside is None and target in self.taken:
            where = "in two chains, which share the names of registers"
            if target in self.scope.registers:
                where = "twice in this chain"
            raise text.error(
                f"register {target[:40]} is assigned {where}: write {self.unused(target)} here",
                word.begin,
            )
        # A name is a register's own at the top; inside bodies it is used again.
        name = target if self.scope.outside is None else self.names.numbered(f"{target}in")
        self.value(name)
        self.assign(target, name)

    def value(self, name: str) -> None:
        """Add the op that gives a register its value, under that name."""
        text = self.text
        first, following = text.next, text.after()
        if first.text in ("size", "count") and self.names_a_resource(following):
            text.take()
            if first.text == "size":
                self.effect(name, "QueueSizeV2", self.queue(), (), None)
            else:
                op = "ResourceAccumulatorNumAccumulated"
                self.effect(name, op, self.accumulator(), (), None)
        elif following == "?":
            queue = self.queue()
            text.take()
            if is_number(text.peek()):
                many = CountAttrs(text.integer(digits=9))
                self.effect(name, "QueueDequeueManyV2", queue, (), many)
            else:
                self.effect(name, "QueueDequeueV2", queue, (), None)
        elif following == ">>":
            accumulator = self.accumulator()
            text.take()
            needed = (self.whole("int32"),)
            self.effect(name, "ResourceAccumulatorTakeGradient", accumulator, needed, None)
        elif is_name(first.text) and first.text[0].isupper():
            self.read(name)
        else:
            self.expression(self.header.shape, name=name)

    def names_a_resource(self, following: str) -> bool:
        """True if ``size`` or ``count`` is said of the word after it, and is no register.

        Whoever forgets that a resource begins with a capital letter has no such register.
        """
        text = self.text
        if not is_name(following) or text.new_line_after:
            return False
        return following[0].isupper() or self.find(text.peek()) is None

    def read(self, name: str) -> None:
        """``X``, or rows of it."""
        text, header = self.text, self.header
        word = text.name("a variable")
        if word.text in header.queues or word.text in header.accumulators:
            kind, how = ("queue", "Q?") if word.text in header.queues else ("accumulator", "A>>1")
            raise text.error(f"{word.text} is a {kind}: write {how}", word.begin)
        if word.text in self.mutexes:
            raise text.error(f"{word.text} is a mutex", word.begin)
        rows = self.rows() if text.peek() == "[" else None
        if text.peek() in _OPERATORS and not text.on_a_new_line:
            hint = "read it into a register first, as in r0=X; r1=r0+1"
            raise text.error(f"{word.text[:40]} is a variable: {hint}", word.begin)
        self.declare(word.text, word.begin)
        if rows is None:
            self.effect(name, "ReadVariableOp", word.text, (), None)
        elif isinstance(rows, str):
            self.effect(name, "ResourceGather", word.text, (rows,), None)
        elif names_a_missing_row(rows, header.shape):
            places = self.places("ResourceGather", rows)
            self.effect(name, "ResourceGather", word.text, (places,), None)
        else:
            self.effect(name, "ResourceGather", word.text, (), RowsAttrs(rows))

    def places(self, op: str, rows: tuple[int, ...]) -> str:
        """The node with the rows that an op has as an operand."""
        node = index_operand(self.names.numbered("i"), op, rows)
        self.add(node)
        return node.name

    def rows(self) -> tuple[int, ...] | str:
        """``[0,2]``, or ``[r0]``: numbers of rows, or the value of the register that names them."""
        text = self.text
        text.expect("[")
        if is_name(text.peek()):
            named = self.operand(())
            text.expect("]")
            return named
        rows = [text.integer("a row, as in X[0,2]")]
        while text.accept(","):
            rows.append(text.integer("a row, as in X[0,2]"))
        text.expect("]")
        return tuple(rows)

    def expression(self, shape: tuple[int, ...], name: str | None = None) -> str:
        """Add the nodes that compute a value, terms from left to right; return the last."""
        text = self.text
        result = ""
        operator = ""
        while True:
            operand = self.operand(shape)
            more = text.peek() in _OPERATORS and not text.on_a_new_line
            final = None if more else name
            if operator:
                result = self.pure(_OPERATORS[operator], (result, operand), final)
            elif final:
                result = self.pure("Identity", (operand,), final)
            else:
                result = operand
            if not more:
                return result
            operator = text.take()

    def operand(self, shape: tuple[int, ...]) -> str:
        """A number, or a register."""
        text = self.text
        word = text.next
        if not is_name(word.text):
            return self.constant(text.integer("a number or a register"), shape)
        found = self.find(word.text)
        if found is not None:
            text.take()
            return found
        short = word.text[:40]
        if short[0].isupper():
            hint = f"{short} is a variable: read it into a register first, as in r0={short}"
            raise text.error(f"expected a number or a register, but {hint}")
        place = self.number_at(word.text)
        if place is not None:
            hint = f"a variable begins with a capital letter, as in {_capital(short)}"
            raise text.error(
                f"{short} is a register here, which no other chain reads: {hint}", place
            )
        hint = "a variable begins with a capital letter, a register belongs to its chain"
        raise text.error(f"no register {short} in this chain: {hint}")

    def number_at(self, register: str) -> int | None:
        """Where another chain assigns a number to that register, as one does to a variable."""
        begin, end = self.statements
        chain = 0
        found: dict[int, int] = {}  # by chain
        here = 0
        for number, word in enumerate(self.text.words):
            chain += word.text in ("||", "|||")
            here = chain if number == self.text.number else here
            equals, value = (self.text.words[number + n : number + n + 1] for n in (1, 2))
            if not (begin <= word.begin < end and word.text == register and equals and value):
                continue
            if equals[0].text == "=" and is_number(value[0].text):
                found.setdefault(chain, word.begin)
        return next((place for each, place in found.items() if each != here), None)

    def unused(self, register: str) -> str:
        """A name like that of a register, which the text does not have: r2 for r0."""
        words = {word.text for word in self.text.words}
        stem = register[:40].rstrip("0123456789")
        return next(name for n in count() if (name := f"{stem}{n}") not in words)

    def constant(self, value: Nested, shape: tuple[int, ...], dtype: str = "") -> str:
        """The constant's node; each body has one for each value and type."""
        key = (dtype or self.header.dtype, value, shape)
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

    def declare(self, variable: str, begin: int) -> None:
        self.variables.setdefault(variable, begin)


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


def _can_be_member(node: Node) -> bool:
    """True if short notation lists the node among a section's or cluster's members."""
    return not (node.definition.constant or node.members)
