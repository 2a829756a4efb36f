"""Runs a test in TensorFlow one op at a time, in the order of a scheduler of ours.

The session's executors are those of `control_library`: each op on a resource of the test is an
event, which begins when the controller chooses it; so is, with ``control=locks``, each lock that
the op takes. Everything else happens at once, as the events
allow. So an execution is a function of its choices, and the events are named, so that it can be
repeated.

One step of `LiveSession` is one execution. It sets the resources, and reads them afterwards,
without control.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from litmusfuzz.fuzz.executors.protocol import Diverged, Noise, Refused
from litmusfuzz.fuzz.executors.tensorflow import lowering
from litmusfuzz.fuzz.executors.tensorflow._control import (
    Exhaustive,
    Forced,
    Loop,
    Recorder,
    Replay,
    Scheduler,
    scheduler,
)
from litmusfuzz.fuzz.executors.tensorflow.control_library import Steering
from litmusfuzz.fuzz.executors.tensorflow.histogram import ALL_DROPPED, HistogramBuilder
from litmusfuzz.fuzz.executors.tensorflow.session import LiveSession

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.executors.protocol import Choice, EventKey, Histogram
    from litmusfuzz.fuzz.executors.tensorflow._control import Controller
    from litmusfuzz.fuzz.executors.tensorflow.clock import Clock
    from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
    from litmusfuzz.fuzz.executors.tensorflow.control_library import Program
    from litmusfuzz.fuzz.executors.tensorflow.histogram import Batch
    from litmusfuzz.fuzz.executors.tensorflow.lowering import Template

STILL: Final = Noise(copies=1, shuffle=False, padding=0)
PORTFOLIO: Final = (("pos", 0), ("pct", 3), ("random", 0), ("urw", 0), ("surw", 0))
"""Schedulers and depths that `run` takes in turn: none is the best for all tests."""
_RECORDED: Final = ("pos", "random")
"""Schedulers for one execution: all others execute some to count events."""
_STRETCH: Final = 64
"""Executions by one scheduler before the next one's turn."""
_EXPLORED: Final = 512
"""Executions of a search between two looks at what they have shown, and at Ctrl-C."""
_COPY: Final = "c0/"


@dataclass(frozen=True, slots=True)
class Decision:
    """One choice of a schedule: the event that comes next, by name.

    Parameters
    ----------
    run : str
        Name of the run; "" in a test of one run.
    node : str
        Name of the node.
    instance : str
        Frame and iteration of a loop that the instance is in; "" outside of loops.
    point : str
        ``begin``, or the lock inside the op: ``lock of X``, ``shared lock of X``.
    resources : tuple of str
        What the event touches.
    reads_only : bool
    """

    run: str
    node: str
    instance: str = ""
    point: str = "begin"
    resources: tuple[str, ...] = ()
    reads_only: bool = False

    def __str__(self) -> str:
        # A frame's number is a digest of its name.
        place = f"[{self.instance.rpartition('.')[2]}]" if self.instance else ""
        run = f"{self.run}." if self.run else ""
        point = "" if self.point == "begin" else f"/{self.point.replace(_COPY, '')}"
        return f"{run}{self.node}{place}{point}"


@dataclass(frozen=True, slots=True)
class Explored:
    """What an exhaustive search of schedules has found.

    Parameters
    ----------
    histogram : mapping of Outcome to int
        Number of schedules with each outcome. No two of them are equivalent.
    schedules : mapping of Outcome to tuple of Decision
        The first one with each outcome.
    executions : int
        Executions begun: the schedules, and those that were abandoned because they would have
        repeated one.
    complete : bool
        True if these are all schedules. False also where the outcome of one could not be read.
    """

    histogram: Histogram
    schedules: dict[Outcome, tuple[Decision, ...]]
    executions: int
    complete: bool


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
            raise self._program.failure()

    def explore(self, search: Exhaustive, executions: int) -> bool:
        """Execute what a search has, at most so often; true if that was all."""
        if not self._loop.explore(search, executions):
            raise self._program.failure()
        return self._loop.complete

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
    template : Template
    settings : Settings
    clock : Clock
    """

    def __init__(self, template: Template, settings: Settings, clock: Clock) -> None:
        self._test = template.test
        self._clock = clock
        self._template, self._settings = template, settings
        self._prefixes = {
            run: prefix for _, _, runs, prefix in lowering.units(template) for run in runs
        }
        names = [f"{_COPY}{each.name}" for each in self._test.resources]
        self._steering = Steering(names, self._execute, locks=settings.control == "locks")
        self._live: LiveSession | None = None
        self._loop: _Looped | None = None
        self._batch: Batch | None = None

    # --- running ------------------------------------------------------------------------------

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Execute `count` schedules, by each scheduler of `PORTFOLIO` in turn.

        Noise has no effect: nothing of an execution is left to chance.
        """
        del noise
        found: Counter[Outcome] = Counter()
        made = 0
        looped = self._looped()
        with self._steering:
            while made < count:
                turn = seed + made // _STRETCH
                name, depth = PORTFOLIO[turn % len(PORTFOLIO)]
                chooses = scheduler(name, depth, self._steering.controller, seed + turn)
                stretch = min(_STRETCH, count - made)
                if looped:
                    looped.run(chooses, stretch)
                    for outcome, times, _ in looped.seen():
                        found[outcome] += times
                    looped.begun()
                else:
                    found.update(self._executed(chooses, stretch))
                made += stretch
        if not found:
            raise Refused(ALL_DROPPED)
        return dict(found.most_common())

    def _executed(self, chooses: Scheduler, executions: int) -> Mapping[Outcome, int]:
        """What so many executions by one scheduler show."""
        builder = HistogramBuilder(self._test)
        for _ in range(executions):
            self._steering.controller.run(chooses)
            assert self._batch is not None
            builder.add(self._batch)
        return builder.histogram()

    def explore(self, limit: int) -> Explored:
        """Execute one schedule of each equivalence class, up to `limit` executions.

        Two schedules are equivalent if they differ only in the order of events that touch no
        resource in common, or only read it.

        Raises
        ------
        Diverged
            If other events are enabled than after the same choices before.
        """
        search = Exhaustive()
        found: Counter[Outcome] = Counter()
        schedules: dict[Outcome, tuple[Decision, ...]] = {}
        executions, dropped, complete = 0, 0, False
        looped = self._looped()
        with self._steering:
            while executions < limit and not complete:
                try:
                    if looped:
                        stretch = min(_EXPLORED, limit - executions)
                        complete = looped.explore(search, stretch)
                        seen, begun = looped.seen(), looped.begun()
                    else:
                        begun = 1
                        made = self._steering.controller.run(search)
                        outcomes = list(self._outcomes()) if made else []
                        dropped += made and not outcomes
                        numbers = self._steering.controller.chosen
                        seen = [(outcome, 1, numbers) for outcome in outcomes]
                        complete = not search.next()
                except RuntimeError as error:
                    executions += looped.begun() if looped else 1
                    raise Diverged(f"in execution {executions}: {error}") from None
                executions += begun
                for outcome, count, numbers in seen:
                    found[outcome] += count
                    if outcome not in schedules:
                        schedules[outcome] = self._schedule(numbers)
        in_order = dict(found.most_common())
        return Explored(in_order, schedules, executions, complete and not dropped)

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
        made = forced.made
        if not followed:
            there = ", ".join(str(self._decision(name)) for name in controller.left_at)
            if made == len(schedule):
                raise Diverged(f"after all {made} events of the schedule, there are more: {there}")
            raise Diverged(
                f"event {made + 1} of the schedule, {schedule[made]}, is not enabled; "
                f"these are: {there}"
            )
        if made < len(schedule):
            raise Diverged(f"the execution ends before event {made + 1}, {schedule[made]}")
        return outcome

    def record(self, seed: int) -> tuple[Outcome, Sequence[Choice]]:
        """Execute once, by a scheduler of `_RECORDED`; see `Schedulable.record`.

        Raises
        ------
        Diverged
            If the replay, which follows at once, differs.
        """
        name = _RECORDED[seed % len(_RECORDED)]
        recorder = Recorder(scheduler(name, 0, self._steering.controller, seed))
        _, outcome = self._once(recorder)
        choices = recorder.choices
        if self.replay(choices) != outcome:
            raise Diverged("the same choices led to another outcome")
        return outcome, choices

    def replay(self, choices: Sequence[Choice]) -> Outcome:
        """The outcome of recorded choices; see `Schedulable.replay`."""
        replay = Replay(list(choices))
        followed, outcome = self._once(replay)
        if not followed or replay.made < len(choices):
            raise Diverged(
                f"after {replay.made} of {len(choices)} choices other events may come next"
            )
        return outcome

    def force(self, order: Sequence[EventKey], timeout_s: float) -> Outcome:
        """Refused: orders are given in events of the model, some of which are no events here."""
        raise Refused("forced orders under control")

    def _once(self, chooses: Scheduler) -> tuple[bool, Outcome]:
        """Execute once; whether the scheduler made all choices, and the outcome."""
        with self._steering:
            followed = self._steering.controller.run(chooses)
            outcomes = list(self._outcomes())
        if not outcomes:
            raise Refused(ALL_DROPPED)
        return followed, outcomes[0]

    def schedule(self) -> tuple[Decision, ...]:
        """The events of the last execution, in their order."""
        return self._schedule(self._steering.controller.chosen)

    def _schedule(self, chosen: Sequence[int]) -> tuple[Decision, ...]:
        name = self._steering.controller.name
        return tuple(self._decision(name(number), number) for number in chosen)

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
                built = lowering.build(self._template, STILL, np.random.default_rng(0))
                self._live = LiveSession(
                    self._template, built, self._settings, 1, steering=self._steering
                )
                if self._settings.control == "locks":
                    self._live.warm_up()
        return self._live

    def _execute(self) -> None:
        live = self._session()
        with self._clock.part("running_s"):
            self._batch = live.step()

    def _looped(self) -> _Looped | None:
        """The loop over executions in C++, if the test can do with it."""
        live = self._session()
        if self._loop is None and (program := live.program()):
            self._loop = _Looped(self._test, live, program, self._steering.controller)
        return self._loop

    def _outcomes(self) -> Iterator[Outcome]:
        """The outcome of the last execution; nothing if it was dropped."""
        assert self._batch is not None
        builder = HistogramBuilder(self._test)
        builder.add(self._batch)
        yield from builder.histogram()

    # --- names --------------------------------------------------------------------------------

    def _decision(self, name: str, number: int | None = None) -> Decision:
        run, node, instance, point = name.split("|", 3)
        begun = self._test.runs[int(run)].name
        controller = self._steering.controller
        number = controller.number(name) if number is None else number
        return Decision(
            begun if len(self._test.runs) > 1 else "",
            node.removeprefix(f"{_COPY}{self._prefixes[begun]}"),
            instance,
            point,
            tuple(each.removeprefix(_COPY) for each in controller.touched(number)),
            controller.reads_only(number),
        )

    def _name(self, decision: Decision) -> str:
        names = [each.name for each in self._test.runs]
        run = names.index(decision.run) if decision.run else 0
        prefix = self._prefixes[names[run]]
        return f"{run}|{_COPY}{prefix}{decision.node}|{decision.instance}|{decision.point}"
