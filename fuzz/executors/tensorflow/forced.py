"""A total order forced on TensorFlow as it is, by gates that the client opens.

The test gets gates (`litmusfuzz.fuzz.passes.gates`): queues that nothing but the client fills, and
out of which each instance of an op takes an element before it begins. The client opens
one, waits until the instance has put its number into the queue of what is done, and
opens the next. A dequeue that waits holds no thread, so that there are as many gates as
instances, and none can starve another. What was done, and in which order, stands in that
queue in the end, and is compared with the order that was asked for.

Two things that TensorFlow does as one cannot be forced apart: the halves of an update,
and elements that a many-op could put or take at once. Beside a many-op that waits for its
next element, queues must hold what they hold in the order, after each event.

Where an order ends all gates that are left are opened: nothing may happen any more.

References
----------
semantics.md, section 3.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from litmusfuzz.corpus.model import MalformedTest
from litmusfuzz.corpus.ops import CountAttrs, Kind
from litmusfuzz.corpus.outcome import Outcome, Status, Value
from litmusfuzz.fuzz.executors.protocol import Diverged, Noise, Refused
from litmusfuzz.fuzz.executors.tensorflow import lowering
from litmusfuzz.fuzz.executors.tensorflow.histogram import HELD_UP, HistogramBuilder
from litmusfuzz.fuzz.executors.tensorflow.node_defs import Emitter, const, typed
from litmusfuzz.fuzz.executors.tensorflow.quiescence import is_quiescent
from litmusfuzz.fuzz.executors.tensorflow.session import LiveSession, callable_of
from litmusfuzz.fuzz.passes.gates import gated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.fuzz.executors.protocol import EventKey
    from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
    from litmusfuzz.fuzz.passes.gates import Gate, Gated, Instance

_STILL: Final = Noise(copies=1, shuffle=False, padding=0)
_COPY: Final = "c0"
_LOOKS: Final = 50
"""How often to ask for the number before a look at the threads: an event takes
microseconds, a look at all threads a millisecond."""
_GROWTH: Final = {"put": 1, "take": -1}


@dataclass(frozen=True, slots=True)
class _Step:
    """What comes of one gate.

    Parameters
    ----------
    name : str
        Of the instance behind the gate.
    gate : Gate
    ended : tuple of Gate
        Those of the instances that are done then: it, and many-ops that waited.
    at_once : bool
        Whether no many-op has a part in it.
    sizes : tuple of int
        How many elements each queue of the test holds then.
    """

    name: str
    gate: Gate
    ended: tuple[Gate, ...]
    at_once: bool
    sizes: tuple[int, ...]


class Forcing:
    """A test with gates, and a session over it for as long as that can be used.

    Parameters
    ----------
    test : LitmusTest
    settings : Settings

    Raises
    ------
    Refused
        If the test has too many instances.
    """

    def __init__(self, test: LitmusTest, settings: Settings) -> None:
        self._test = test
        try:
            self._gated = gated(test)
        except MalformedTest as error:
            raise Refused(f"a gate for each op instance ({error})") from None
        self._settings = settings
        self._template = lowering.lower(self._gated.test)
        self._built = lowering.build(self._template, _STILL, np.random.default_rng(0))
        emit = Emitter(self._built.graph_def)
        token = emit.helper("open/token", const(np.array(0, np.int32)))
        for gate in self._gated.gates.values():
            put = typed("QueueEnqueueV2", "int32")
            emit.helper(f"open/{gate.queue}", put, [f"{_COPY}/{gate.queue}/handle", token])
        self._live: _GatedSession | None = None

    def force(self, order: Sequence[EventKey], timeout_s: float) -> Outcome:
        """The outcome of exactly that total order; see `Forceable.force`."""
        steps = _steps(self._test, self._gated, order)
        live = self._live
        if live is None:
            live = _GatedSession(self._template, self._built, self._settings, copies=1)
            live.watch(self._test, self._gated)
        self._live = None
        sizes = tuple(len(queue.init) for queue in self._test.queues)
        drive = _Drive(live, steps, sizes, time.monotonic() + timeout_s)
        try:
            builder = HistogramBuilder(self._gated.test)
            builder.add(live.step(drive))
        except BaseException:
            live.abandon()
            raise
        if live.usable:
            self._live = live
        else:
            live.abandon()
        if drive.late:
            raise TimeoutError(f"after {drive.at} of {len(steps)} ops {timeout_s:g} s were over")
        if not builder.count:
            raise Refused(HELD_UP)
        (outcome,) = builder.histogram()
        if outcome.status is not Status.FAILED:
            _check(self._test, self._gated, steps, drive, dict(outcome.values))
        return _original(self._test, self._gated.test, outcome)

    def close(self) -> None:
        """End the session, if there is one."""
        if self._live is not None:
            self._live.abandon()
            self._live = None


class _GatedSession(LiveSession):
    """A session over one copy of a test with gates."""

    def watch(self, test: LitmusTest, gated: Gated) -> None:
        """Prepare what the client runs meanwhile."""
        self._open: dict[str, Callable[[], Any]] = {}
        done = dict.fromkeys(gate.done for gate in gated.gates.values())
        self._done = callable_of(self._session, [f"{_COPY}/{name}/size:0" for name in done])
        held = [f"{_COPY}/{queue.name}/size:0" for queue in test.queues]
        self._held = callable_of(self._session, held) if held else tuple
        self.gates = [gate.queue for gate in gated.gates.values()]

    def open(self, gate: str) -> None:
        """Let one instance begin."""
        if gate not in self._open:
            self._open[gate] = callable_of(self._session, (), f"open/{gate}")
        self._open[gate]()

    def done(self) -> int:
        """How many instances are done."""
        return sum(map(int, self._done()))

    def held(self) -> tuple[int, ...]:
        """How many elements each queue of the test holds."""
        return tuple(map(int, self._held()))

    def abandon(self) -> None:
        """Cancel what still runs, and release it."""
        self._session.close()
        del self._open, self._done, self._held
        self.close()


@dataclass(slots=True)
class _Drive:
    """Opens gates in order; called again and again while the runs are under way.

    Attributes
    ----------
    at : int
        How many steps are over.
    astray : bool
        Whether TensorFlow has done more at once than the next step.
    late : bool
        Whether its time is up.
    """

    live: _GatedSession
    steps: Sequence[_Step]
    sizes: tuple[int, ...]
    deadline: float
    at: int = 0
    ended: int = 0
    astray: bool = False
    late: bool = False
    opened: set[str] = field(default_factory=set)

    def __call__(self) -> bool:
        """Go as far as possible; whether nothing happens any more."""
        while self.at < len(self.steps):
            self.late = time.monotonic() >= self.deadline
            if self.late or self.astray:
                return True
            step = self.steps[self.at]
            self.open(step.gate.queue)
            over = self.over(step)
            if not over:
                # Perhaps it waits for the end of a run, with which another begins.
                return over is None
            self.ended += len(step.ended)
            self.sizes = step.sizes
            self.at += 1
        for gate in self.live.gates:
            self.open(gate)
        return is_quiescent()

    def open(self, gate: str) -> None:
        """Open a gate, once."""
        if gate not in self.opened:
            self.opened.add(gate)
            self.live.open(gate)

    def over(self, step: _Step) -> bool | None:
        """Whether all that comes of a step has come; None if nothing happens any more."""
        wanted = self.ended + len(step.ended)
        if step.at_once and any(self.live.done() >= wanted for _ in range(_LOOKS)):
            return True
        if not is_quiescent():
            return False
        done, held = self.live.done(), self.live.held()
        if done == wanted and (step.at_once or held == step.sizes):
            return True
        self.astray = (done, held) != (self.ended, self.sizes)
        return None


def _steps(test: LitmusTest, gated: Gated, order: Sequence[EventKey]) -> list[_Step]:
    """The order, gate by gate.

    Raises
    ------
    Diverged
        If the halves of an update are apart.
    """
    nodes = {node.name: node for node in test.nodes}
    sizes = {queue.name: len(queue.init) for queue in test.queues}
    waiting: set[Instance] = set()
    steps: list[_Step] = []
    for instance, grouped in groupby(order, _instance):
        keys = list(grouped)
        node = nodes[instance[2]]
        for key in keys:
            if key.resource in sizes:
                sizes[key.resource] += _GROWTH.get(key.access, 0)
        halves = [key for key in keys if key.access in ("R", "W")]
        if node.definition.kind is Kind.UPDATE and 0 < len(halves) < 2 * len(node.resources):
            name = "".join(instance[1:3])
            raise Diverged(f"the halves of update {name} are apart: there is no gate between")
        goes_on = instance in waiting
        ends = keys[-1].part == _parts(test, node) - 1
        (waiting.discard if ends else waiting.add)(instance)
        gate = gated.gates[instance]
        ended = (gate,) if ends else ()
        step = _Step("".join(instance[1:3]), gate, ended, not waiting, tuple(sizes.values()))
        if goes_on:  # by itself, as soon as it can
            last = steps.pop()
            ended = (*last.ended, *ended)
            step = replace(last, ended=ended, at_once=False, sizes=step.sizes)
        steps.append(step)
    return steps


def _parts(test: LitmusTest, node: Node) -> int:
    """How many elements an op puts or takes, one event each."""
    if isinstance(node.attrs, CountAttrs):
        return node.attrs.count
    return test.type_of(node.inputs[0]).shape[0] if "Many" in node.op else 1


def _instance(key: EventKey) -> Instance:
    half = key.access if key.access in ("lock", "unlock") else ""
    return key.run, key.frame, key.node, half


def _check(
    test: LitmusTest, gated: Gated, steps: Sequence[_Step], drive: _Drive, seen: Mapping[str, Value]
) -> None:
    """Whether what happened is the order: by the numbers put, and by what queues hold.

    Raises
    ------
    Diverged
        Saying how far it is.
    """
    if drive.astray:
        raise Diverged(
            f"after {drive.at} of {len(steps)} ops: {steps[drive.at].name} puts or takes at "
            "once what the order has apart"
        )
    for queue in dict.fromkeys(gate.done for gate in gated.gates.values()):
        put = [number[0] for number in _elements(seen[queue])]
        for at, step in enumerate(steps):
            wanted = sorted(gate.number for gate in step.ended if gate.done == queue)
            if sorted(put[: len(wanted)]) != wanted:
                how = "cannot come now" if len(put) < len(wanted) else "was not the next"
                raise Diverged(f"after {at} of {len(steps)} ops: {step.name} {how}")
            del put[: len(wanted)]
        if put:
            raise Diverged(f"after all {len(steps)} ops: more can come")
    held = tuple(len(_elements(seen[queue.name])) for queue in test.queues)
    if steps and held != steps[-1].sizes:
        raise Diverged(f"after all {len(steps)} ops: more can come")


def _elements(contents: Value) -> Sequence[tuple[int, ...]]:
    """What a queue holds; it is not torn, since one op at a time works on it."""
    assert isinstance(contents, tuple)
    return cast("Sequence[tuple[int, ...]]", contents)


def _original(test: LitmusTest, gated: LitmusTest, outcome: Outcome) -> Outcome:
    """An outcome of the test with gates, as one of the test."""
    values = dict(outcome.values)
    names = zip(test.names, (*gated.observe, *test.names[len(test.observe) :]), strict=True)
    return Outcome.of(
        test, {old: values[new] for old, new in names if new in values}, outcome.status
    )
