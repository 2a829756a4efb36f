"""Loading and saving of litmus files: YAML, one file for each test.

Loading never executes anything. It accepts a small part of YAML only (plain mappings,
lists, strings, ints and booleans; no anchors, tags or repeated keys; no control
characters), and reports the first mistake as file, line and field. Saving is byte-stable:
a saved file that is loaded and saved again has the same bytes.

References
----------
docs/file-format.md describes the format by example, docs/decisions/0002-file-format.md says why it
is so.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import yaml

from litmusfuzz.corpus.condition import Condition, read_quantifier
from litmusfuzz.corpus.document import Document, FileError, Path_, read_text
from litmusfuzz.corpus.model import (
    CONTROL,
    Accumulator,
    Body,
    BranchAttrs,
    CallAttrs,
    Cluster,
    Graph,
    LitmusTest,
    LoopAttrs,
    Mutex,
    NestAttrs,
    Node,
    Queue,
    Resource,
    Run,
    Variable,
    bodies,
)
from litmusfuzz.corpus.ops import (
    BOOL,
    COMPUTED,
    MAX_MAGNITUDE,
    OPS,
    Attrs,
    ConstAttrs,
    CountAttrs,
    HandleAttrs,
    Kind,
    MalformedTest,
    MomentumAttrs,
    Nested,
    PlaceholderAttrs,
    PureAttrs,
    RowsAttrs,
    SectionAttrs,
    SliceAttrs,
)
from litmusfuzz.corpus.out_of_range import with_index_operands
from litmusfuzz.corpus.outcome import (
    STATUS_KEY,
    TORN,
    Outcome,
    Plain,
    Status,
    Value,
    digest,
    plain_value,
)
from litmusfuzz.corpus.schedule import BEGIN, Decision, node_of
from litmusfuzz.corpus.words import NotationError, Text, read_proposition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from litmusfuzz.corpus.ops import OpDef

FORMAT_VERSION: Final = 2
MAX_LISTED: Final = 1000
"""Allowed sets with more outcomes are saved as their number and digest."""
MAX_POINT: Final = 200
"""Characters of a point of a schedule, at most."""
_PLAIN: Final[deque[tuple[LitmusTest, dict[str, Any]]]] = deque(maxlen=64)
"""Tests as plain data, the newest first: as many as wait in the queues of a campaign."""

Setting = int | bool | str
"""The value of one setting of an executor, with its type: ``8``, ``true``, ``'8'`` differ."""


@dataclass(frozen=True, slots=True)
class Digest:
    """A set of outcomes too large to list: how many, and `outcome.digest`."""

    count: int
    sha256: str

    def matches(self, outcomes: Iterable[Outcome]) -> bool:
        """True if the digest is that of these outcomes."""
        listed = list(outcomes)
        return len(listed) == self.count and digest(listed) == self.sha256


@dataclass(frozen=True, slots=True)
class Schedule:
    """One controlled execution, as an executor that can be scheduled recorded it.

    It has either `choices` or `events`.

    Parameters
    ----------
    outcome : Outcome
        Outcome of the execution.
    choices : tuple of (int, int, int)
        Index of each event chosen, how many could have come next, and a digest
        of which.
    events : tuple of Decision
        The events by name, where the executor names them.
    """

    outcome: Outcome
    choices: tuple[tuple[int, int, int], ...] = ()
    events: tuple[Decision, ...] = ()


class Script(StrEnum):
    """Result of running the standalone script of a finding."""

    SHOWS_IT = "shows it"
    UNCONFIRMED = "unconfirmed"


@dataclass(frozen=True, slots=True)
class Finding:
    """A forbidden outcome that an executor showed, and how to reproduce it.

    Parameters
    ----------
    executor, configuration : str
        The executor that showed the outcome, and the simplest configuration that does.
    model : str
        The model that forbids the outcome.
    forbidden : tuple of (Outcome, int)
        Each forbidden outcome with its count; most frequent first, but torn ones after those that
        the finding is about.
    executions : int
        Number of executions in which these outcomes were counted.
    noise : mapping
        Fields of `fuzz.executors.protocol.Noise`.
    settings : mapping of str to Setting
        The executor's settings by name, as typed values.
    versions : mapping of str to str
        Versions of the frameworks, by name; by device, its name and the version of its driver.
    seed, index : int
        Of the campaign, and of the graph in it: with `family` they generate the graph again.
    family : str
        The family that generated the graph.
    minimized : bool
        True if the reducer came to an end.
    confirmed : bool
        True if the outcome showed again in a fresh process.
    cause : str, optional
        Name of the known cause: lower-case words joined by hyphens.
    first_seen_in : str, optional
        The configuration that showed the outcome first, if it is another one.
    run_seed : int, optional
        Seed of the run that showed the outcome again.
    schedule : Schedule, optional
        A controlled execution that shows the outcome, to be replayed choice by choice.
    script : Script, optional
        Result of running the standalone script; None if there is no script.
    needs_names : tuple of str
        Names of nodes and resources without which the test does not show it: renamed, one by one,
        it did not. Empty if it shows under canonical names.
    needs_order : bool
        True if it did not show with the nodes in another order.
    executed : LitmusTest, optional
        The test as it was executed, if the entry's own test differs from it: names and
        order of nodes from before anything was renamed, reordered or normalized.
    unreduced : LitmusTest, optional
        The generated test that the reducer started from.
    """

    executor: str
    configuration: str
    model: str
    forbidden: tuple[tuple[Outcome, int], ...]
    executions: int
    noise: Mapping[str, int | bool]
    settings: Mapping[str, Setting]
    versions: Mapping[str, str]
    seed: int
    index: int
    family: str
    minimized: bool
    confirmed: bool
    cause: str | None = None
    first_seen_in: str | None = None
    run_seed: int | None = None
    schedule: Schedule | None = None
    script: Script | None = None
    needs_names: tuple[str, ...] = ()
    needs_order: bool = False
    executed: LitmusTest | None = None
    unreduced: LitmusTest | None = None

    @property
    def count(self) -> int:
        """Executions that showed a forbidden outcome."""
        return sum(count for _, count in self.forbidden)


@dataclass(frozen=True, slots=True)
class Entry:
    """Contents of one file: a test, its allowed sets by model, and its finding."""

    test: LitmusTest
    allowed: Mapping[str, frozenset[Outcome] | Digest] = field(default_factory=dict)
    finding: Finding | None = None


# --- schemas: what may stand in a file -------------------------------------------------


_Rows1 = int | list[int]
_Rows2 = int | list[_Rows1]
_Rows3 = int | list[_Rows2]
_Rows4 = int | list[_Rows3]
_Rows5 = int | list[_Rows4]
_Rows6 = int | list[_Rows5]
_Rows7 = int | list[_Rows6]
_Literal = int | list[_Rows7]
"""As many dimensions as a test may have."""


class _Strict(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    pass


class _Top(_Strict, kw_only=True):
    litmusfuzz: int
    name: str
    description: str = ""
    variables: dict[str, Any] = {}
    mutexes: dict[str, Any] = {}
    queues: dict[str, Any] = {}
    accumulators: dict[str, Any] = {}
    graphs: dict[str, Any]
    client: dict[str, Any] = {}
    clusters: dict[str, Any] = {}
    observe: list[str] = []
    condition: str | None = None
    allowed: dict[str, Any] = {}
    finding: dict[str, Any] | None = None


class _Variable(_Strict, kw_only=True):
    dtype: str
    shape: list[int] = []
    init: _Literal | msgspec.UnsetType = msgspec.UNSET
    initialized: bool = True
    gradient: bool = False
    device: str = ""


class _Mutex(_Strict, kw_only=True):
    device: str = ""


class _Queue(_Strict, kw_only=True):
    dtype: str
    shape: list[int] = []
    capacity: int
    init: list[_Literal] = []
    device: str = ""


class _Accumulator(_Strict, kw_only=True):
    dtype: str
    shape: list[int] = []
    device: str = ""


class _Run(_Strict, kw_only=True):
    graph: str
    after: list[str] = []
    fetches: list[str] = []
    targets: list[str] = []
    feeds: dict[str, Any] = {}


class _Node(_Strict, kw_only=True):
    op: str
    resources: list[str] = []
    inputs: list[str] = []
    after: list[str] = []
    device: str = ""
    handle: str = ""

    def attrs(self) -> Attrs | None:
        return None


class _ConstNode(_Node, kw_only=True):
    dtype: str
    shape: list[int] = []
    value: _Literal

    def attrs(self) -> Attrs:
        return ConstAttrs(self.dtype, tuple(self.shape), _freeze(self.value))


class _PlaceholderNode(_Node, kw_only=True):
    dtype: str
    shape: list[int] = []

    def attrs(self) -> Attrs:
        return PlaceholderAttrs(self.dtype, tuple(self.shape))


class _RowsNode(_Node, kw_only=True):
    indices: list[int]

    def attrs(self) -> Attrs:
        return RowsAttrs(tuple(self.indices))


class _SliceNode(_Node, kw_only=True):
    begin: int
    end: int
    strides: int = 1

    def attrs(self) -> Attrs:
        return SliceAttrs(self.begin, self.end, self.strides)


class _MomentumNode(_Node, kw_only=True):
    use_nesterov: bool = False

    def attrs(self) -> Attrs:
        return MomentumAttrs(self.use_nesterov)


class _SectionNode(_Node, kw_only=True):
    members: list[str]

    def attrs(self) -> Attrs:
        return SectionAttrs(tuple(self.members))


class _CountNode(_Node, kw_only=True):
    count: int

    def attrs(self) -> Attrs:
        return CountAttrs(self.count)


class _HandleNode(_Node, kw_only=True):
    variable: str

    def attrs(self) -> Attrs:
        return HandleAttrs(self.variable)


class _Body(_Strict, kw_only=True):
    nodes: dict[str, Any] = {}
    results: list[str]


class _BranchNode(_Node, kw_only=True, rename={"orelse": "else"}):
    captures: dict[str, str] = {}
    then: dict[str, Any]
    orelse: dict[str, Any]
    results: list[str]


class _LoopNode(_Node, kw_only=True):
    carried: list[str]
    captures: dict[str, str] = {}
    parallel_iterations: int = 10
    condition: dict[str, Any]
    body: dict[str, Any]


class _CallNode(_Node, kw_only=True):
    captures: dict[str, str] = {}
    body: dict[str, Any]
    results: list[str] = []


_NODE_SCHEMAS: Final[Mapping[type[Attrs] | None, type[_Node]]] = {
    None: _Node,
    ConstAttrs: _ConstNode,
    PlaceholderAttrs: _PlaceholderNode,
    RowsAttrs: _RowsNode,
    SliceAttrs: _SliceNode,
    MomentumAttrs: _MomentumNode,
    SectionAttrs: _SectionNode,
    CountAttrs: _CountNode,
    HandleAttrs: _HandleNode,
}


class _Digest(_Strict, kw_only=True):
    count: int
    sha256: str


class _Seen(_Strict, kw_only=True):
    count: int
    outcome: dict[str, Any]


class _Finding(_Strict, kw_only=True):
    executor: str
    configuration: str
    model: str
    cause: str | None = None
    executions: int
    forbidden: list[Any]
    noise: dict[str, Any]  # int | bool
    settings: dict[str, Any]  # Setting: the type of a value counts
    versions: dict[str, Any]  # str
    seed: int
    index: int
    family: str
    minimized: bool
    confirmed: bool
    first_seen_in: str | None = None
    run_seed: int | None = None
    schedule: dict[str, Any] | None = None
    script: Script | None = None
    needs_names: list[str] = []
    needs_order: bool = False
    executed: str | None = None
    unreduced: str | None = None


class _Schedule(_Strict, kw_only=True):
    outcome: dict[str, Any]
    choices: list[str] | None = None
    events: list[dict[str, Any]] | None = None


class _Event(_Strict, kw_only=True):
    run: str = ""
    node: str
    instance: str = ""
    point: str = BEGIN
    again: int = 0


# --- loading ---------------------------------------------------------------------------


def load(path: str | os.PathLike[str], check: Callable[[Finding], None] | None = None) -> Entry:
    """The entry in a file.

    Parameters
    ----------
    path : path
    check : callable, optional
        Checks what only a finding's executor knows, such as settings. It raises
        `MalformedTest`, with a path below the finding.

    Raises
    ------
    FileError
        For anything that is wrong with it, in one line.
    """
    return loads(read_text(path), os.fspath(path), check)


def loads(
    text: str, source: str = "<text>", check: Callable[[Finding], None] | None = None
) -> Entry:
    """The entry in a text; `source` stands in errors for its name."""
    reader = _Reader(text, source)
    entry = reader.entry()
    if check is not None and entry.finding is not None:
        try:
            check(entry.finding)
        except MalformedTest as error:
            raise reader.error(("finding", *error.path), error.message) from None
    return entry


_VERSION_1: Final = (
    "is version 1 of the format, this program reads version 2: rename the fields"
    " 'about' to 'description', 'takes' to 'captures' and 'config' to 'configuration',"
    " and set the version to 2"
)


class _Reader(Document):
    """A litmus file while it is read."""

    def entry(self) -> Entry:
        top = self.top()
        test = self.test(top)
        allowed = {model: self.allowed(test, model, each) for model, each in top.allowed.items()}
        finding = None if top.finding is None else self.finding(test, top.finding)
        return Entry(test, allowed, finding)

    def top(self) -> _Top:
        if not isinstance(self.data, dict):
            raise self.error((), "a litmus file is a mapping")
        version = self.data.get("litmusfuzz")
        if version is None:
            raise self.error((), "no field 'litmusfuzz' (the format's version)")
        if version == 1 and not isinstance(version, bool):
            raise self.error(("litmusfuzz",), _VERSION_1)
        if version != FORMAT_VERSION or isinstance(version, bool):
            text = f"unknown version {version!r:.40}; this program reads version {FORMAT_VERSION}"
            raise self.error(("litmusfuzz",), text)
        top: _Top = self.convert(self.data, _Top, ())
        return top

    def test(self, top: _Top) -> LitmusTest:
        variables = tuple(self.variable(name, each) for name, each in top.variables.items())
        graphs = tuple(self.graph(name, each) for name, each in top.graphs.items())
        graphs = with_index_operands(graphs, {each.name: each.shape for each in variables})
        try:
            test = LitmusTest(
                name=top.name,
                variables=variables,
                graphs=graphs,
                observe=tuple(top.observe),
                description=top.description,
                mutexes=tuple(self.mutex(name, each) for name, each in top.mutexes.items()),
                queues=tuple(self.queue(name, each) for name, each in top.queues.items()),
                client=tuple(self.run(name, each) for name, each in top.client.items()),
                clusters=tuple(self.cluster(name, each) for name, each in top.clusters.items()),
                accumulators=tuple(
                    self.accumulator(name, each) for name, each in top.accumulators.items()
                ),
            )
            return test if top.condition is None else test.asked(_condition(test, top.condition))
        except MalformedTest as error:
            raise self.error(error.path, error.message) from None

    def test_inside(self, text: str | None, path: Path_) -> LitmusTest | None:
        """The test whose file is the value of the field `path`; its mistakes get our lines.

        Such a file has no finding of its own, so that files do not nest further.
        """
        if text is None:
            return None
        try:
            reader = _Reader(text, self.source)
            top = reader.top()
            for name in ("allowed", "finding"):
                if getattr(top, name):
                    raise reader.error((name,), "a test inside a finding has none")
            return reader.test(top)
        except FileError as error:
            line = self.line(path) + (error.line if self.is_block(path) else 0)
            raise FileError(self.source, line, (*path, *error.fields), error.message) from None

    def variable(self, name: str, data: Any) -> Variable:
        raw: _Variable = self.convert(data, _Variable, ("variables", name))
        init = None if raw.init is msgspec.UNSET else _freeze(raw.init)
        if raw.initialized:
            init = 0 if init is None else init
        elif init is not None:
            message = "has no initial value, as 'initialized' says"
            raise self.error(("variables", name, "init"), message)
        shape = tuple(raw.shape)
        return Variable(name, raw.dtype, shape, init, raw.device, raw.gradient)

    def mutex(self, name: str, data: Any) -> Mutex:
        raw: _Mutex = self.convert(data, _Mutex, ("mutexes", name))
        return Mutex(name, raw.device)

    def queue(self, name: str, data: Any) -> Queue:
        raw: _Queue = self.convert(data, _Queue, ("queues", name))
        init = tuple(_freeze(element) for element in raw.init)
        return Queue(name, raw.dtype, tuple(raw.shape), raw.capacity, init, raw.device)

    def accumulator(self, name: str, data: Any) -> Accumulator:
        raw: _Accumulator = self.convert(data, _Accumulator, ("accumulators", name))
        return Accumulator(name, raw.dtype, tuple(raw.shape), raw.device)

    def run(self, name: str, data: Any) -> Run:
        raw: _Run = self.convert(data, _Run, ("client", name))
        feeds = tuple(
            (fed, _freeze(self.convert(value, _Literal, ("client", name, "feeds", fed))))
            for fed, value in raw.feeds.items()
        )
        wanted = tuple(raw.fetches), tuple(raw.targets)
        return Run(name, raw.graph, tuple(raw.after), *wanted, feeds)

    def cluster(self, name: str, data: Any) -> Cluster:
        members: list[str] = self.convert(data, list[str], ("clusters", name))
        return Cluster(name, tuple(members))

    def graph(self, name: str, data: Any) -> Graph:
        path = ("graphs", name)
        nodes: dict[str, Any] = self.convert(data, dict[str, Any], path)
        return Graph(name, tuple(self.node(n, each, (*path, n)) for n, each in nodes.items()))

    def node(self, name: str, data: Any, path: Path_) -> Node:
        fields: dict[str, Any] = self.convert(data, dict[str, Any], path)
        op = fields.get("op")
        if not isinstance(op, str):
            raise self.error((*path, "op"), "a node needs its op, a name")
        if op not in OPS:
            raise self.error((*path, "op"), f"unknown op {op[:80]!r}")
        attrs: Attrs | NestAttrs | None
        raw: _Node
        if OPS[op].kind is Kind.BRANCH:
            branch: _BranchNode = self.convert(fields, _BranchNode, path)
            then = self.body(branch.then, (*path, "then"))
            orelse = self.body(branch.orelse, (*path, "else"))
            captures = tuple(branch.captures.items())
            raw, attrs = branch, BranchAttrs(captures, then, orelse, tuple(branch.results))
        elif OPS[op].kind is Kind.LOOP:
            loop: _LoopNode = self.convert(fields, _LoopNode, path)
            raw = loop
            attrs = LoopAttrs(
                tuple(loop.carried),
                tuple(loop.captures.items()),
                self.body(loop.condition, (*path, "condition")),
                self.body(loop.body, (*path, "body")),
                loop.parallel_iterations,
            )
        elif OPS[op].kind is Kind.CALL:
            call: _CallNode = self.convert(fields, _CallNode, path)
            inside = self.body(call.body, (*path, "body"))
            raw = call
            attrs = CallAttrs(tuple(call.captures.items()), inside, tuple(call.results))
        else:
            row = _row(op, fields)
            if row.attrs is PureAttrs:
                raw, attrs = self.pure(row, fields, path)
            else:
                raw = self.convert(fields, _NODE_SCHEMAS[row.attrs], path)
                attrs = raw.attrs()
        edges = (tuple(raw.inputs), tuple(raw.resources), tuple(raw.after))
        return Node(name, op, *edges, attrs, raw.device, raw.handle)

    def pure(self, op: OpDef, fields: dict[str, Any], path: Path_) -> tuple[_Node, PureAttrs]:
        """A node of an op that says itself which attributes it has."""
        row = op.meaning
        assert row is not None
        own = {each.name for each in row.fields}
        given = {name: value for name, value in fields.items() if name in own}
        rest = {name: value for name, value in fields.items() if name not in own}
        raw: _Node = self.convert(rest, _Node, path)
        try:
            return raw, row.attributes(
                {k: tuple(v) if isinstance(v, list) else v for k, v in given.items()}
            )
        except MalformedTest as error:
            raise self.error((*path, *error.path), error.message) from None

    def body(self, data: Any, path: Path_) -> Body:
        raw: _Body = self.convert(data, _Body, path)
        nodes = (self.node(n, each, (*path, "nodes", n)) for n, each in raw.nodes.items())
        return Body(tuple(nodes), tuple(raw.results))

    def allowed(self, test: LitmusTest, model: str, data: Any) -> frozenset[Outcome] | Digest:
        path: Path_ = ("allowed", model)
        self.check_model(model, path)
        if isinstance(data, dict):
            raw: _Digest = self.convert(data, _Digest, path)
            if raw.count <= MAX_LISTED:
                text = f"a digest stands for more than {MAX_LISTED} outcomes, got {raw.count}"
                raise self.error((*path, "count"), text)
            if not re.fullmatch("[0-9a-f]{64}", raw.sha256):
                text = f"must be 64 hex digits, got {raw.sha256[:80]!r}"
                raise self.error((*path, "sha256"), text)
            return Digest(raw.count, raw.sha256)
        listed: list[Any] = self.convert(data, list[Any], path)
        if len(listed) > MAX_LISTED:
            text = f"more than {MAX_LISTED} outcomes are kept as count and sha256: {len(listed)}"
            raise self.error(path, text)
        found: set[Outcome] = set()
        for position, each in enumerate(listed):
            here = (*path, position)
            outcome = self.outcome(test, each, here)
            for name, value in outcome.values:
                why = _never_allowed(test, name, value)
                if why:
                    raise self.error((*here, name), why)
            if outcome in found:
                raise self.error(here, "stands twice")
            found.add(outcome)
        if not found:
            raise self.error(path, "an allowed set is never empty")
        return frozenset(found)

    def check_model(self, model: str, path: Path_) -> None:
        if model not in ("rfc", "executor", "acd", "program", "sequential", "one_cluster"):
            raise self.error(path, f"unknown model {model[:80]!r}")

    def check_least(self, value: int, least: int, path: Path_) -> None:
        if value < least:
            raise self.error(path, f"must be >= {least}, got {value}")

    def outcome(self, test: LitmusTest, data: Any, path: Path_) -> Outcome:
        fields = self.mapping(data, int | list[int | list[int]] | str, path)
        try:
            return outcome_from_plain(test, fields)
        except MalformedTest as error:
            raise self.error((*path, *error.path), error.message) from None

    def finding(self, test: LitmusTest, data: Any) -> Finding:
        raw: _Finding = self.convert(data, _Finding, ("finding",))
        for name in ("executor", "configuration", "family", "first_seen_in"):
            text = getattr(raw, name)
            if text is not None and (not text or "\n" in text):
                raise self.error(("finding", name), "must be one line, not empty")
        versions = self.mapping(raw.versions, str, ("finding", "versions"))
        for name, text in versions.items():
            if not (name.isprintable() and text.isprintable()):
                raise self.error(("finding", "versions", name), "must be one line")
        self.check_model(raw.model, ("finding", "model"))
        if raw.cause is not None and not is_cause_name(raw.cause):
            text = f"a cause is lower-case words joined by hyphens, got {raw.cause[:80]!r}"
            raise self.error(("finding", "cause"), text)
        for name, least in (("executions", 1), ("seed", 0), ("index", 0), ("run_seed", 0)):
            if getattr(raw, name) is not None:
                self.check_least(getattr(raw, name), least, ("finding", name))
        path: Path_ = ("finding", "forbidden")
        forbidden: dict[Outcome, int] = {}
        most: int | None = None  # that the next one may count
        most_torn: int | None = None
        for position, each in enumerate(raw.forbidden):
            here = (*path, position)
            seen: _Seen = self.convert(each, _Seen, here)
            self.check_least(seen.count, 1, (*here, "count"))
            outcome = self.outcome(test, seen.outcome, (*here, "outcome"))
            if outcome in forbidden:
                raise self.error((*here, "outcome"), "stands twice")
            # A finding of a wrong value may list torn ones that are more frequent.
            limit = most_torn if outcome.torn else most
            if limit is not None and seen.count > limit:
                raise self.error((*here, "count"), "the most frequent outcome stands first")
            most = seen.count if most is None else min(most, seen.count)
            if outcome.torn:
                most_torn = seen.count
            forbidden[outcome] = seen.count
        if not forbidden:
            raise self.error(path, "a finding shows at least one outcome")
        count = sum(forbidden.values())
        if count > raw.executions:
            text = f"must be >= {count}, which the outcomes below count, got {raw.executions}"
            raise self.error(("finding", "executions"), text)
        return Finding(
            executor=raw.executor,
            configuration=raw.configuration,
            model=raw.model,
            forbidden=tuple(forbidden.items()),
            executions=raw.executions,
            noise=self.mapping(raw.noise, int | bool, ("finding", "noise")),
            settings=self.mapping(raw.settings, Setting, ("finding", "settings")),
            versions=versions,
            seed=raw.seed,
            index=raw.index,
            family=raw.family,
            minimized=raw.minimized,
            confirmed=raw.confirmed,
            cause=raw.cause,
            first_seen_in=raw.first_seen_in,
            run_seed=raw.run_seed,
            schedule=None if raw.schedule is None else self.schedule(test, raw.schedule),
            script=raw.script,
            needs_names=self.needed(test, raw.needs_names),
            needs_order=raw.needs_order,
            executed=self.test_inside(raw.executed, ("finding", "executed")),
            unreduced=self.test_inside(raw.unreduced, ("finding", "unreduced")),
        )

    def needed(self, test: LitmusTest, names: list[str]) -> tuple[str, ...]:
        """The names that a finding needs, each of which the test has."""
        there = {each.name for each in test.resources}
        there |= {name for node in test.nodes for name in (node.name, *node.arguments)}
        seen: set[str] = set()
        for position, name in enumerate(names):
            path: Path_ = ("finding", "needs_names", position)
            if name not in there:
                raise self.error(path, f"the test has no node or resource {name[:40]!r}")
            if name in seen:
                raise self.error(path, "stands twice")
            seen.add(name)
        return tuple(names)

    def schedule(self, test: LitmusTest, data: Any) -> Schedule:
        path: Path_ = ("finding", "schedule")
        raw: _Schedule = self.convert(data, _Schedule, path)
        if (raw.choices is None) == (raw.events is None):
            raise self.error(path, "has either choices or events")
        outcome = self.outcome(test, raw.outcome, (*path, "outcome"))
        if raw.events is not None:
            return Schedule(outcome, events=self.events(test, raw.events))
        choices = []
        for position, text in enumerate(raw.choices or ()):
            match = re.fullmatch(r"(0|[1-9]\d{0,8})/([1-9]\d{0,8}):([0-9a-f]{16})", text)
            if match is None or int(match[1]) >= int(match[2]):
                message = f"a choice is INDEX/COUNT:DIGEST, such as 0/2:{0:016x}; got {text[:40]!r}"
                raise self.error((*path, "choices", position), message)
            choices.append((int(match[1]), int(match[2]), int(match[3], 16)))
        return Schedule(outcome, tuple(choices))

    def events(self, test: LitmusTest, listed: list[dict[str, Any]]) -> tuple[Decision, ...]:
        """The events of a schedule by names, each of which the test has."""
        runs = {each.name for each in test.runs} if len(test.runs) > 1 else {""}
        found: dict[Decision, None] = {}
        for position, data in enumerate(listed):
            path: Path_ = ("finding", "schedule", "events", position)
            raw: _Event = self.convert(data, _Event, path)
            made = Decision(raw.run, raw.node, raw.instance, raw.point, raw.again)
            if raw.run not in runs:
                text = f"the test has no run {raw.run[:40]!r}" if raw.run else "names no run"
                raise self.error((*path, "run"), text)
            if not node_of(test, made):
                raise self.error((*path, "node"), f"the test has no node {raw.node[:40]!r}")
            if re.fullmatch(r"(\d{1,20}\.\d{1,20})?", raw.instance, re.ASCII) is None:
                text = f"an instance is FRAME.ITERATION, such as 0.1; got {raw.instance[:40]!r}"
                raise self.error((*path, "instance"), text)
            if not raw.point or CONTROL.search(raw.point) or len(raw.point) > MAX_POINT:
                raise self.error((*path, "point"), "must be the name of a point, in a line")
            if not 0 <= raw.again < 1 << 31:
                raise self.error((*path, "again"), f"must be a small number, got {raw.again}")
            if made in found:
                raise self.error(path, "stands twice")
            found[made] = None
        if not found:
            raise self.error(("finding", "schedule", "events"), "must not be empty")
        return tuple(found)


def _row(op: str, fields: Mapping[str, Any]) -> OpDef:
    """Row of the op table for a node's fields: rows of a variable are an attribute, or operands."""
    found = OPS[op]
    given = fields.get("inputs")
    if op not in COMPUTED or fields.keys() & {"indices", "begin", "end", "strides"}:
        return found
    more = isinstance(given, (list, tuple)) and len(given) > len(found.operands)
    return COMPUTED[op] if more else found


def is_cause_name(text: str) -> bool:
    """True for a cause's name: lower-case words joined by hyphens."""
    return len(text) <= 80 and re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", text) is not None


def _never_allowed(test: LitmusTest, name: str, value: Value) -> str:
    """Why no total order gives that value; "" if one may."""
    kind = test.type_of(name)
    if value is TORN:
        return "torn is in no allowed set"
    queue = next((q for q in test.queues if q.name == name), None)
    if queue is not None and len(value) > queue.capacity:
        return f"{len(value)} elements, capacity {queue.capacity}"
    ints = [v for part in value for v in (part if isinstance(part, tuple) else (part,))]
    if kind.dtype == BOOL and not set(ints) <= {0, 1}:
        return f"a bool is 0 or 1, got {plain_value(value)}"
    if not all(-MAX_MAGNITUDE < each < MAX_MAGNITUDE for each in ints):
        return f"magnitude must be below 2**24, got {plain_value(value)}"
    return ""


def _freeze(value: Any) -> Nested:
    return tuple(_freeze(part) for part in value) if isinstance(value, list) else int(value)


def outcome_from_plain(test: LitmusTest, plain: Mapping[str, Plain]) -> Outcome:
    """An outcome of `test` from what a file or the command line gives.

    Raises
    ------
    MalformedTest
        If a name is missing or unknown, or a value has the wrong size. A
        blocked outcome may lack observed nodes, a failed one lacks all.
    """
    status = Status.COMPLETED
    given = dict(plain)
    if STATUS_KEY in given:
        named = given.pop(STATUS_KEY)
        if named not in (Status.BLOCKED, Status.FAILED):
            raise MalformedTest(f"must be blocked or failed, got {named!r:.80}", (STATUS_KEY,))
        status = Status(str(named))
    for name in given:
        if name not in test.shown:
            raise MalformedTest(f"{name[:80]!r} is not one of {', '.join(test.names)}", (name,))
        if status is Status.FAILED:
            raise MalformedTest("a failed outcome has no values", (name,))
    # An outcome that did not complete may be far shorter than the list of its test's names.
    needed: Iterable[str] = ()
    if status is Status.COMPLETED and len(given) < len(test.shown):
        needed = test.shown
    elif status is Status.BLOCKED:
        needed = (*(v.name for v in (*test.variables, *test.cells)), *(q.name for q in test.queues))
    for name in needed:
        if name not in given:
            raise MalformedTest(f"no value for {name!r}")
    values = {name: value_from_plain(test, name, plain) for name, plain in given.items()}
    return Outcome.of(test, values, status)


def value_from_plain(test: LitmusTest, name: str, plain: Plain) -> Value:
    """One value of an outcome; see `outcome_from_plain`."""
    if isinstance(plain, str):
        if plain != "torn":
            raise MalformedTest(f"a value is an int, a list or torn; got {plain[:80]!r}", (name,))
        return TORN
    size = test.size_of(test.type_of(name).shape)
    if any(each.name == name and each.init is None for each in test.variables) and plain == []:
        return ()  # it has no value
    if all(queue.name != name for queue in test.queues):
        return _flat_value(plain, size, (name,))
    if isinstance(plain, int):
        raise MalformedTest("a queue's contents are a list", (name,))
    return tuple(_flat_value(part, size, (name, i)) for i, part in enumerate(plain))


def _flat_value(plain: Plain, size: int, path: Path_) -> tuple[int, ...]:
    value: tuple[Any, ...] = (plain,) if isinstance(plain, int) else tuple(plain)
    if len(value) != size or not all(isinstance(part, int) for part in value):
        raise MalformedTest(f"must have {size} ints, got {len(value)}", path)
    return value


def _condition(test: LitmusTest, written: str) -> Condition:
    """The condition in a text, over the keys of the test's outcomes."""
    text = Text(written)
    try:
        quantifier = read_quantifier(text)
        if not quantifier:
            raise text.unexpected("exists, ~exists or forall")
        prop = read_proposition(text, lambda name: name if name in test.shown else None)
        if text.peek():
            raise text.unexpected("the end")
    except NotationError as error:
        raise MalformedTest(str(error), ("condition",)) from None
    return Condition(quantifier, prop)


class _PlainReader(_Reader):
    """Plain data while a test is made of it."""

    def __init__(self, plain: dict[str, Any]) -> None:
        self.source = "<message>"
        self.data = plain

    def line(self, path: Path_) -> int:
        """No line."""
        return 0


# --- saving ----------------------------------------------------------------------------


def plain_test(test: LitmusTest) -> dict[str, Any]:
    """A test as plain data: the fields of its file, in the file's order."""
    plain: dict[str, Any] = {"litmusfuzz": FORMAT_VERSION, "name": test.name}
    if test.description:
        plain["description"] = test.description
    parts = {
        "variables": {each.name: _variable_fields(each) for each in test.variables},
        "mutexes": {each.name: _on(each) for each in test.mutexes},
        "queues": {each.name: _queue_fields(each) for each in test.queues},
        "accumulators": {each.name: _accumulator_fields(each) for each in test.accumulators},
        "graphs": {graph.name: _plain_nodes(graph.nodes) for graph in test.graphs},
        "client": {run.name: _run_fields(run) for run in test.client},
        "clusters": {each.name: each.members for each in test.clusters},
        "observe": test.observe,
    }
    plain |= {name: part for name, part in parts.items() if part or name == "graphs"}
    return plain if test.condition is None else plain | {"condition": str(test.condition)}


def dumps(entry: Entry) -> str:
    """The file's text: fixed order of fields, one line for each part."""
    top = [(name, _layout(name, part)) for name, part in plain_test(entry.test).items()]
    if entry.allowed:
        sets = [(model, _allowed(outcomes)) for model, outcomes in entry.allowed.items()]
        top.append(("allowed", _block(sorted(sets, key=lambda each: each[0], reverse=True))))
    if entry.finding:
        top.append(("finding", _block(_finding_fields(entry.finding))))
    return "".join(f"{_key(name)}:{part}\n" for name, part in top)


def plain_of(test: LitmusTest) -> dict[str, Any]:
    """`plain_test`, which is kept for a while: nobody may change it.

    A campaign sends the same test to several workers, and stores its digest.
    """
    for other, plain in _PLAIN:
        if other is test:
            return plain
    plain = plain_test(test)
    _PLAIN.appendleft((test, plain))
    return plain


def read_plain(plain: dict[str, Any]) -> LitmusTest:
    """The test of `plain_test`: what a worker receives, as reading YAML would take it longer.

    Raises
    ------
    FileError
        If the data is not that of a test; it has no line.
    """
    reader = _PlainReader(plain)
    return reader.test(reader.top())


def save(entry: Entry, path: str | os.PathLike[str]) -> None:
    """Write the file in one step."""
    write_text(dumps(entry), path)


def write_text(text: str, path: str | os.PathLike[str]) -> None:
    """Write any file in one step: a reader sees the old file or the new one, never a part."""
    target = Path(path)
    write_into(target.parent, target.name, text)


def write_into(folder: Path | int, name: str, text: str) -> None:
    """Write a file of a folder, as `write_text` does.

    Parameters
    ----------
    folder : Path or int
        A path, which is made if it is missing; or a descriptor of a folder, which gets the file
        wherever it has been moved to.
    name : str
    text : str

    Raises
    ------
    OSError
    """
    directory = None
    if isinstance(folder, int):
        directory, folder = folder, Path()
    else:
        folder.mkdir(parents=True, exist_ok=True)
    target = folder / name
    temporary = folder / f".{name}.{os.getpid()}.tmp"

    def opener(path: str, flags: int) -> int:
        return os.open(path, flags, 0o666, dir_fd=directory)

    def remove() -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)

    try:
        remove()  # of a killed process with our id, or somebody's link
        with open(temporary, "x", encoding="utf-8", opener=opener) as file:
            file.write(text)
        os.replace(temporary, target, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:  # a full disk
        remove()
        raise


def _variable_fields(variable: Variable) -> dict[str, Any]:
    fields: dict[str, Any] = {"dtype": variable.dtype, "shape": list(variable.shape)}
    if variable.init is None:
        fields["initialized"] = False
    else:
        fields["init"] = variable.init
    if variable.gradient:
        fields["gradient"] = True
    return fields | _on(variable)


def _on(placed: Resource | Node) -> dict[str, Any]:
    return {"device": placed.device} if placed.device else {}


def _queue_fields(queue: Queue) -> dict[str, Any]:
    return {
        "dtype": queue.dtype,
        "shape": list(queue.shape),
        "capacity": queue.capacity,
        "init": queue.init,
    } | _on(queue)


def _accumulator_fields(accumulator: Accumulator) -> dict[str, Any]:
    fields = {"dtype": accumulator.dtype, "shape": list(accumulator.shape)}
    return fields | _on(accumulator)


def _run_fields(run: Run) -> dict[str, Any]:
    fields: dict[str, Any] = {"graph": run.graph}
    for name in ("after", "fetches", "targets"):
        if getattr(run, name):
            fields[name] = getattr(run, name)
    return fields | ({"feeds": dict(run.feeds)} if run.feeds else {})


def _plain_nodes(nodes: Iterable[Node]) -> dict[str, dict[str, Any]]:
    return {node.name: _node_fields(node) for node in nodes}


def _node_fields(node: Node) -> dict[str, Any]:
    attrs = node.attrs
    fields: dict[str, Any] = {"op": node.op}
    if node.resources:
        fields["resources"] = node.resources
    if node.handle:
        fields["handle"] = node.handle
    if node.inputs:
        fields["inputs"] = node.inputs
    if node.after:
        fields["after"] = node.after
    if node.device:
        fields["device"] = node.device
    if isinstance(attrs, NestAttrs):
        if isinstance(attrs, LoopAttrs):
            fields["carried"] = attrs.carried
        if attrs.captures:
            fields["captures"] = dict(attrs.captures)
        if isinstance(attrs, LoopAttrs):
            fields["parallel_iterations"] = attrs.parallel_iterations
        elif attrs.results:
            fields["results"] = attrs.results
        for name, body in bodies(node):
            inside = {"nodes": _plain_nodes(body.nodes)} if body.nodes else {}
            fields[name] = inside | {"results": body.results}
    elif isinstance(attrs, PureAttrs):
        fields |= dict(attrs.values)
    elif attrs is not None:
        for name in attrs.__struct_fields__:
            fields[name] = getattr(attrs, name)
    return fields


def _layout(name: str, part: Any) -> str:
    """A field of a test's file, with one line for each part."""
    if name == "description":
        return _literal(part)
    if name == "graphs":
        return _block((graph, _nodes(nodes)) for graph, nodes in part.items())
    if isinstance(part, dict):
        return _block((each, _on_a_line(value)) for each, value in part.items())
    return _on_a_line(part)


def _nodes(nodes: dict[str, dict[str, Any]]) -> str:
    return _block((name, _node(fields)) for name, fields in nodes.items())


def _node(fields: dict[str, Any]) -> str:
    """A node on one line; one with bodies on several."""
    if OPS[fields["op"]].kind not in (Kind.BRANCH, Kind.LOOP, Kind.CALL):
        return _on_a_line(fields)
    return _block((name, _part(name, part)) for name, part in fields.items())


def _part(name: str, part: Any) -> str:
    """A field of a node with bodies: a body on several lines, and anything else on one."""
    if name not in ("then", "else", "condition", "body"):
        return _on_a_line(part)
    inside = [("nodes", _nodes(part["nodes"]))] if "nodes" in part else []
    return _block([*inside, ("results", _on_a_line(part["results"]))])


def outcome_order(outcome: Outcome) -> tuple[Any, ...]:
    """Sort key: completed first, then by value, torn last."""
    values = tuple((value is TORN, () if value is TORN else value) for _, value in outcome.values)
    names = tuple(name for name, _ in outcome.values)
    return (outcome.status is not Status.COMPLETED, str(outcome.status), names, values)


def _allowed(outcomes: frozenset[Outcome] | Digest) -> str:
    if isinstance(outcomes, Digest):
        return _on_a_line({"count": outcomes.count, "sha256": outcomes.sha256})
    if len(outcomes) > MAX_LISTED:
        return _on_a_line({"count": len(outcomes), "sha256": digest(outcomes)})
    return _rows(each.plain for each in sorted(outcomes, key=outcome_order))


def _finding_fields(finding: Finding) -> list[tuple[str, str]]:
    forbidden = [{"count": count, "outcome": outcome.plain} for outcome, count in finding.forbidden]
    fields = [
        ("executor", _on_a_line(finding.executor)),
        ("configuration", _on_a_line(finding.configuration)),
        ("model", _on_a_line(finding.model)),
        *([("cause", _on_a_line(finding.cause))] if finding.cause is not None else []),
        ("executions", _on_a_line(finding.executions)),
        ("forbidden", _rows(forbidden)),
        ("noise", _on_a_line(dict(finding.noise))),
        ("settings", _on_a_line(dict(finding.settings))),
        ("versions", _on_a_line(dict(finding.versions))),
        ("seed", _on_a_line(finding.seed)),
        ("index", _on_a_line(finding.index)),
        ("family", _on_a_line(finding.family)),
        ("minimized", _on_a_line(finding.minimized)),
        ("confirmed", _on_a_line(finding.confirmed)),
    ]
    if finding.first_seen_in is not None:
        fields.append(("first_seen_in", _on_a_line(finding.first_seen_in)))
    if finding.run_seed is not None:
        fields.append(("run_seed", _on_a_line(finding.run_seed)))
    if finding.script is not None:
        fields.append(("script", _on_a_line(str(finding.script))))
    if finding.needs_names:
        fields.append(("needs_names", _on_a_line(list(finding.needs_names))))
    if finding.needs_order:
        fields.append(("needs_order", _on_a_line(finding.needs_order)))
    if finding.schedule is not None:
        fields.append(("schedule", _schedule(finding.schedule)))
    for name, test in (("executed", finding.executed), ("unreduced", finding.unreduced)):
        if test is not None:
            fields.append((name, _literal(dumps(Entry(test)))))
    return fields


def _schedule(schedule: Schedule) -> str:
    outcome = ("outcome", _on_a_line(schedule.outcome.plain))
    if schedule.events:
        default = _plain_event(Decision("", ""))
        given = (_plain_event(each) for each in schedule.events)
        rows = ({k: v for k, v in each.items() if v != default[k]} for each in given)
        return _block([outcome, ("events", _rows(rows))])
    made = [f"{index}/{count}:{seen:016x}" for index, count, seen in schedule.choices]
    return _block([outcome, ("choices", _on_a_line(made))])


def _plain_event(event: Decision) -> dict[str, str | int]:
    return {name: getattr(event, name) for name in _Event.__struct_fields__}


# The text of a part is what stands after its key and the colon. PyYAML writes each scalar, once, as
# they are few: names of ops and fields. To let it write whole files took five times as long.

_LINE: Final = re.compile(r"\n(?!\n|\Z)")
"""The break before a line that is not empty."""


def _block(pairs: Iterable[tuple[str, str]]) -> str:
    """A mapping with one line, or more, for each of its parts."""
    lines = "".join(f"\n{_key(name)}:{part}" for name, part in pairs)
    return _LINE.sub(r"\g<0>  ", lines) or " {}"


def _rows(rows: Iterable[Any]) -> str:
    """A sequence with one line for each of its parts."""
    return "".join(f"\n- {_flow(row)}" for row in rows) or " []"


def _on_a_line(value: Any) -> str:
    return _text(value) if isinstance(value, str) else f" {_flow(value)}"


def _flow(value: Any) -> str:
    """A part that stands on one line."""
    kind = type(value)
    if kind is int:
        return str(value)
    if kind is list or kind is tuple:
        return f"[{', '.join(map(_flow, value))}]"
    if kind is dict:
        return f"{{{', '.join(_flow_key(name) + _flow(each) for name, each in value.items())}}}"
    if kind is bool:
        return "true" if value else "false"
    return _flow_text(value)


def _literal(text: str) -> str:
    """Text that keeps its lines."""
    # What follows it decides how its end is written.
    written = _written([("x", _text_node(text, "|")), ("y", _text_node("z"))], flow=False)
    return written.removeprefix("x:").removesuffix("...\n").removesuffix("\ny: z\n")


@lru_cache(1 << 12)
def _text(text: str) -> str:
    """A string that stands alone after its key."""
    return _written([("x", _text_node(text))], flow=False).removeprefix("x:").removesuffix("\n")


@lru_cache(1 << 12)
def _flow_text(text: str) -> str:
    """A string among others on one line."""
    return _written([("x", _text_node(text))], flow=True).removeprefix("{x: ").removesuffix("}\n")


@lru_cache(1 << 12)
def _key(name: str) -> str:
    """A key that begins a line, without the colon."""
    return _written([(name, _text_node("x"))], flow=False).removesuffix(": x\n")


@lru_cache(1 << 12)
def _flow_key(name: str) -> str:
    """A key among others on one line, with what separates it from its value."""
    return _written([(name, _text_node("x"))], flow=True).removeprefix("{").removesuffix("x}\n")


def _text_node(text: str, style: str | None = None) -> yaml.Node:
    if style is None and CONTROL.search(text):
        style = '"'  # on one line
    # Without quotes the reader would load another type.
    elif style is None and re.fullmatch(r"-?[0-9]+|true|false|null|~|", text):
        style = "'"
    return yaml.ScalarNode("tag:yaml.org,2002:str", str(text), style=style)


def _written(pairs: list[tuple[str, yaml.Node]], *, flow: bool) -> str:
    """A mapping as PyYAML writes it."""
    keyed = [(_text_node(name), node) for name, node in pairs]
    node = yaml.MappingNode("tag:yaml.org,2002:map", keyed, flow_style=flow)
    return str(
        yaml.serialize(node, Dumper=yaml.CSafeDumper, width=1 << 30, allow_unicode=True, indent=2)
    )


__all__ = [
    "FORMAT_VERSION",
    "MAX_LISTED",
    "Digest",
    "Entry",
    "FileError",
    "Finding",
    "Schedule",
    "Script",
    "Setting",
    "dumps",
    "is_cause_name",
    "load",
    "loads",
    "outcome_from_plain",
    "outcome_order",
    "plain_value",
    "read_text",
    "save",
    "value_from_plain",
]
