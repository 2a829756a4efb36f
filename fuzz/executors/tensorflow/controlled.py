"""Runs a test in TensorFlow one op at a time, in the order of a scheduler of ours.

The session's executors are those of `control_library`: each op on a resource of the test is an
event, which begins when the controller chooses it; so is, with ``control=locks``, each lock that
the op takes, and with ``control=pages``, moreover, its first touch of a page of a variable's
tensor; with ``control=touches``, each touch of a small one. An op that may wait (a queue's, an
accumulator's, a mutex's) is one event at all levels. With several threads inside ops, the parts of
an op are tasks of their own. Everything else happens at once, as the events allow. So an execution
is a function of its choices, and the events are named, so that it can be repeated.

One step of `LiveSession` is one execution. It sets the resources, and reads them afterwards,
without control.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from litmusfuzz.corpus.ops import SectionAttrs
from litmusfuzz.corpus.schedule import AFTER_PARTS, BEGIN, KERNELS, Decision, is_added, is_part
from litmusfuzz.fuzz.executors.protocol import Diverged, Explored, Noise, Refused
from litmusfuzz.fuzz.executors.tensorflow import clusters, lowering
from litmusfuzz.fuzz.executors.tensorflow._control import (
    Exhaustive,
    Forced,
    Loop,
    Scheduler,
    scheduler,
)
from litmusfuzz.fuzz.executors.tensorflow.configurations import DEPTHS
from litmusfuzz.fuzz.executors.tensorflow.control_library import (
    OF_OTHER,
    Steering,
    must_have_followed,
)
from litmusfuzz.fuzz.executors.tensorflow.histogram import ALL_DROPPED, HistogramBuilder
from litmusfuzz.fuzz.executors.tensorflow.regions import refuse_compiler

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import tensorflow as tf

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.executors.protocol import ChosenClusters, Histogram
    from litmusfuzz.fuzz.executors.tensorflow._control import Controller
    from litmusfuzz.fuzz.executors.tensorflow.clock import Clock
    from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
    from litmusfuzz.fuzz.executors.tensorflow.control_library import Program
    from litmusfuzz.fuzz.executors.tensorflow.histogram import Batch
    from litmusfuzz.fuzz.executors.tensorflow.lowering import Built, Template
    from litmusfuzz.fuzz.executors.tensorflow.session import LiveSession

STILL: Final = Noise(copies=1, shuffle=False, padding=0)
_STRETCH: Final = 64
"""Executions by one scheduler before the next one's turn."""
_EXPLORED: Final = 512
"""Executions of a search between two looks at what they have shown, and at Ctrl-C."""
_COPY: Final = "c0/"


class Uncontrolled(Protocol):
    """The same test without control (`executor.PreparedTest`)."""

    def build(self, noise: Noise, rng: np.random.Generator, *, sequential: bool) -> Built:
        """A graph of copies."""

    def live(self, built: Built, copies: int, steering: Steering | None = None) -> LiveSession:
        """A session over it."""

    def clusters(self) -> Sequence[ChosenClusters]:
        """Clusters that TensorFlow makes of it."""

    def clusters_run(self) -> Sequence[ChosenClusters]:
        """Clusters in the sessions over it."""


class _Seen:
    """The outcomes of some executions, with the first schedule of each."""

    def __init__(self) -> None:
        self.found: Counter[Outcome] = Counter()
        self.schedules: dict[Outcome, tuple[Decision, ...]] = {}
        self.executions = 0

    def explored(self, *, complete: bool = False, whole: bool = False) -> Explored:
        """The same as a result."""
        in_order = dict(self.found.most_common())
        return Explored(in_order, dict(self.schedules), self.executions, complete, whole)


class _Search(_Seen):
    """An exhaustive search that goes on where it has stopped; see `protocol.Search`."""

    def __init__(self, of: PreparedControlled, rule: Exhaustive) -> None:
        super().__init__()
        self._of = of
        self.rule = rule
        self.dropped = 0
        self.complete = False

    def go_on(self, executions: int) -> Explored:
        """Begin so many more executions, at most."""
        self._of.go_on(self, executions)
        complete = self.complete and not self.dropped
        return self.explored(complete=complete, whole=complete and not self.rule.cut)


class _Looped:
    """Executions by C++ alone, of a test that needs no more than three runs for each."""

    def __init__(
        self, test: LitmusTest, live: LiveSession, program: Program, controller: Controller
    ) -> None:
        self._test, self._live, self._program = test, live, program
        _, racing, _ = program.executors
        self._loop = Loop(controller, program.calls, racing)
        self._outcomes: dict[int, Outcome] = {}

    def run(self, chooses: Scheduler, executions: int) -> None:
        """Execute so often."""
        if not self._loop.run(chooses, executions):
            raise self._failure()

    def explore(self, search: Exhaustive, executions: int) -> bool:
        """Execute what a search has, at most so often; true if that was all."""
        if not self._loop.explore(search, executions):
            raise self._failure()
        return self._loop.complete

    def _failure(self) -> tf.errors.OpError:
        failure = self._program.failure()
        refuse_compiler(failure)
        return failure

    def begun(self) -> int:
        """Executions since the last time that this was asked."""
        begun = self._loop.begun
        self._loop.forget()
        return begun

    def seen(self) -> list[tuple[Outcome, int, list[int]]]:
        """What was seen since `begun` was asked: outcome, executions, events of the first."""
        return [
            (self._outcome(number), count, self._loop.first(number))
            for number, count in enumerate(self._loop.seen)
            if count
        ]

    def _outcome(self, number: int) -> Outcome:
        if number not in self._outcomes:
            builder = HistogramBuilder(self._test)
            builder.add(self._live.batch(self._program.fetched(number)))
            (self._outcomes[number],) = builder.histogram()
        return self._outcomes[number]

    def close(self) -> None:
        """Release what TensorFlow has returned."""
        self._program.close()


class PreparedControlled:
    """A lowered test that runs under control; it keeps one session.

    Parameters
    ----------
    made : Uncontrolled
        Builds the graph, and its session.
    template : Template
    settings : Settings
    clock : Clock
    """

    def __init__(
        self, made: Uncontrolled, template: Template, settings: Settings, clock: Clock
    ) -> None:
        self._test = template.test
        self._clock = clock
        self._made, self._template, self._settings = made, template, settings
        # What stands before the names of the nodes of a run.
        self._prefixes = {
            run: f"{prefix}{_function(unit, settings)}"
            for unit, _, runs, prefix in lowering.units(template)
            for run in runs
        }
        nodes = self._test.nodes
        self._sections = {each.name for each in nodes if isinstance(each.attrs, SectionAttrs)}
        names = [f"{_COPY}{each.name}" for each in self._test.resources]
        level = settings.control
        self._inside = level != "ops"
        self._warm = self._inside or settings.in_background
        self._steering = Steering(
            names,
            self._execute,
            level=level,
            compilation=settings.in_background,
            intra_op_threads=settings.intra_op_threads,
        )
        self._live: LiveSession | None = None
        self._loop: _Looped | None = None
        self._batch: Batch | None = None

    # --- running ------------------------------------------------------------------------------

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Execute `count` schedules, by each scheduler of `DEPTHS` in turn.

        Noise has no effect: nothing of an execution is left to chance.
        """
        del noise
        seen, names = _Seen(), tuple(DEPTHS)
        while seen.executions < count:
            turn = seed + seen.executions // _STRETCH
            stretch = min(_STRETCH, count - seen.executions)
            self._sample(seen, names[turn % len(names)], stretch, seed + turn)
        if not seen.found:
            raise Refused(ALL_DROPPED)
        return dict(seen.found.most_common())

    def sample(self, scheduler: str, executions: int, seed: int) -> Explored:
        """Execute so many schedules that a scheduler chooses."""
        seen = _Seen()
        self._sample(seen, scheduler, executions, seed)
        if not seen.found:
            raise Refused(ALL_DROPPED)
        return seen.explored()

    def _sample(self, seen: _Seen, name: str, executions: int, seed: int) -> None:
        """Execute so many more schedules that a scheduler chooses."""
        with self._steering:  # a session is made for the level that is on
            looped = self._looped()
            chooses = scheduler(name, DEPTHS[name], self._steering.controller, seed)
            if looped:
                looped.run(chooses, executions)
                self._add(seen, looped.seen())
                looped.begun()
            else:
                for _ in range(executions):
                    self._steering.controller.run(chooses)
                    numbers = self._steering.controller.chosen
                    self._add(seen, [(outcome, 1, numbers) for outcome in self._outcomes()])
        seen.executions += executions

    def _add(self, seen: _Seen, shown: Iterable[tuple[Outcome, int, Sequence[int]]]) -> None:
        """Add outcomes, each with its executions and the events of the first one."""
        for outcome, count, numbers in shown:
            seen.found[outcome] += count
            if outcome not in seen.schedules:
                seen.schedules[outcome] = self._schedule(numbers)

    def explore(self, limit: int, preemptions: int | None = None) -> Explored:
        """Execute one schedule of each equivalence class, up to `limit` executions.

        Two schedules are equivalent if they differ only in the order of events that touch no
        resource in common, or only read it.

        Raises
        ------
        Diverged
            If other events are enabled than after the same choices before.
        """
        return self.search(preemptions).go_on(limit)

    def search(self, preemptions: int | None = None) -> _Search:
        """The search of `explore`, which has not begun."""
        return _Search(self, Exhaustive(preemptions))

    def go_on(self, search: _Search, executions: int) -> None:
        """Begin so many more executions of a search, at most."""
        limit = search.executions + executions
        with self._steering:  # a session is made for the level that is on
            looped = self._looped()
            while search.executions < limit and not search.complete:
                try:
                    if looped:
                        stretch = min(_EXPLORED, limit - search.executions)
                        search.complete = looped.explore(search.rule, stretch)
                        seen, begun = looped.seen(), looped.begun()
                    else:
                        begun = 1
                        made = self._steering.controller.run(search.rule)
                        outcomes = list(self._outcomes()) if made else []
                        search.dropped += made and not outcomes
                        numbers = self._steering.controller.chosen
                        seen = [(outcome, 1, numbers) for outcome in outcomes]
                        search.complete = not search.rule.next()
                except RuntimeError as error:
                    search.executions += looped.begun() if looped else 1
                    raise Diverged(f"in execution {search.executions}: {error}") from None
                search.executions += begun
                self._add(search, seen)

    def follow(self, schedule: Sequence[Decision]) -> Outcome:
        """The outcome of a schedule.

        Raises
        ------
        Diverged
            Where an execution leaves it: the event that is not enabled, and those that are.
        """
        controller = self._steering.controller
        numbers = [controller.number(self._name(each)) for each in schedule]
        forced = Forced(numbers)
        followed, outcome = self._once(forced)
        left_at = None if followed else [*map(self._decision, controller.left_at)]
        must_have_followed(schedule, forced.made, left_at)
        return outcome

    def _once(self, chooses: Scheduler) -> tuple[bool, Outcome]:
        """Execute once; whether the scheduler made all choices, and the outcome."""
        with self._steering:
            followed = self._steering.controller.run(chooses)
            outcomes = list(self._outcomes())
        if not outcomes:
            raise Refused(ALL_DROPPED)
        return followed, outcomes[0]

    def clusters(self) -> Sequence[ChosenClusters]:
        """Clusters that TensorFlow makes of one copy without noise, which is not executed."""
        return self._made.clusters()

    def clusters_run(self) -> Sequence[ChosenClusters]:
        """Those of the sessions; an execution changes none."""
        return self._made.clusters_run()

    def schedule(self) -> tuple[Decision, ...]:
        """The events of the last execution, in their order."""
        return self._schedule(self._steering.controller.chosen)

    def _schedule(self, chosen: Sequence[int]) -> tuple[Decision, ...]:
        name = self._steering.controller.name
        return tuple(self._decision(name(number)) for number in chosen)

    def close(self) -> None:
        """Release the session."""
        if self._loop is not None:
            self._loop.close()
            self._loop = None
        if self._live is not None:
            self._live.close()
            self._live = None

    # --- one execution ------------------------------------------------------------------------

    def _session(self) -> LiveSession:
        if self._live is None or not self._live.usable:
            self.close()
            with self._clock.part("building_s"):
                built = self._made.build(STILL, np.random.default_rng(0), sequential=True)
                self._live = self._made.live(built, 1, self._steering)
                if self._warm:
                    self._live.warm_up()
        return self._live

    def _execute(self) -> None:
        live = self._session()
        with self._clock.part("running_s"):
            self._batch = live.step()

    def _looped(self) -> _Looped | None:
        """The loop over executions in C++, if the test can do with it."""
        live = self._session()
        if self._loop is None and (program := live.program(warm=self._warm)):
            self._loop = _Looped(self._test, live, program, self._steering.controller)
        return self._loop

    def _outcomes(self) -> Iterator[Outcome]:
        """The outcome of the last execution; nothing if it was dropped."""
        assert self._batch is not None
        builder = HistogramBuilder(self._test)
        builder.add(self._batch)
        yield from builder.histogram()

    # --- names --------------------------------------------------------------------------------

    def _decision(self, name: str) -> Decision:
        run, node, instance, point = name.split("|", 3)
        begun = self._test.runs[int(run)].name
        point, _, again = point.partition("|")
        kernel, path = _parts(node)
        path = path.removeprefix(f"{_COPY}{self._prefixes[begun]}")
        plain = path.replace(f"/{_COPY}", "/")
        return Decision(
            begun if len(self._test.runs) > 1 else "",
            kernel + (plain if self._path(plain) == path else path),
            instance,
            point.replace(f" of {_COPY}", " of ").removesuffix(OF_OTHER),
            int(again or 0),
        )

    def _name(self, decision: Decision) -> str:
        names = [each.name for each in self._test.runs]
        run = names.index(decision.run) if decision.run else 0
        kernel, path = _parts(decision.node)
        node = f"{kernel}{_COPY}{self._prefixes[names[run]]}{self._path(path)}"
        kind, of, resource = decision.point.rpartition(" of ")
        point = resource if resource in (BEGIN, AFTER_PARTS) else f"{resource}{OF_OTHER}"
        if of:
            point = f"{kind}{of}{_COPY}{resource}"
        again = f"|{decision.again}" if decision.again else ""
        return f"{run}|{node}|{decision.instance}|{point}{again}"

    def _path(self, plain: str) -> str:
        """The path of a node: what a function has inside is of a copy.

        A section's lock is not, nor is a part of an op, nor what an optimizer calls an op.
        Functions that Python code writes know of no copies, nor do those of `tf.CriticalSection`.
        """
        if clusters.is_built(self._settings) or self._settings.front_end == "critical_section":
            return plain
        if is_added(plain):
            return plain
        names = plain.split("/")
        inner = (e if a in self._sections or is_part(e) else _COPY + e for a, e in pairwise(names))
        return "/".join([names[0], *inner])


def _function(unit: str, settings: Settings) -> str:
    """What Python code, or a `tf.function`, puts before the names of a unit's nodes."""
    if settings.compiled == "whole":
        return ""  # one event, named beside the call
    if settings.traced:
        return f".{unit}.call/"
    return f".{unit}.built/" if clusters.is_built(settings) else ""


def _parts(node: str) -> tuple[str, str]:
    """A kernel of a cluster, such as ``.run/``, and the member by which that is named."""
    kernel, slash, member = node.partition("/")
    return (kernel + slash, member) if kernel in KERNELS else ("", node)
