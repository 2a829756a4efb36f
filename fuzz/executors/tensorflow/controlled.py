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
    Recorder,
    Replay,
    Scheduler,
    scheduler,
)
from litmusfuzz.fuzz.executors.tensorflow.control_library import Steering
from litmusfuzz.fuzz.executors.tensorflow.histogram import ALL_DROPPED, HistogramBuilder
from litmusfuzz.fuzz.executors.tensorflow.session import LiveSession

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.executors.protocol import Choice, EventKey, Histogram
    from litmusfuzz.fuzz.executors.tensorflow.clock import Clock
    from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
    from litmusfuzz.fuzz.executors.tensorflow.histogram import Batch
    from litmusfuzz.fuzz.executors.tensorflow.lowering import Template

STILL: Final = Noise(copies=1, shuffle=False, padding=0)
PORTFOLIO: Final = (("pos", 0), ("pct", 3), ("random", 0), ("urw", 0), ("surw", 0))
"""Schedulers and depths that `run` takes in turn: none is the best for all tests."""
_RECORDED: Final = ("pos", "random")
"""Schedulers for one execution: all others execute some to count events."""
_STRETCH: Final = 64
"""Executions by one scheduler before the next one's turn."""
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
        self._batch: Batch | None = None

    # --- running ------------------------------------------------------------------------------

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Execute `count` schedules, by each scheduler of `PORTFOLIO` in turn.

        Noise has no effect: nothing of an execution is left to chance.
        """
        del noise
        controller = self._steering.controller
        found: Counter[Outcome] = Counter()
        turn, made = seed, 0
        with self._steering:
            while made < count:
                name, depth = PORTFOLIO[turn % len(PORTFOLIO)]
                chooses = scheduler(name, depth, controller, seed + turn)
                builder = HistogramBuilder(self._test)
                for _ in range(min(_STRETCH, count - made)):
                    controller.run(chooses)
                    assert self._batch is not None
                    builder.add(self._batch)
                made += _STRETCH
                found.update(builder.histogram())
                turn += 1
        if not found:
            raise Refused(ALL_DROPPED)
        return dict(found.most_common())

    def explore(self, limit: int) -> Explored:
        """Execute one schedule of each equivalence class, up to `limit` executions.

        Two schedules are equivalent if they differ only in the order of events that touch no
        resource in common, or only read it.

        Raises
        ------
        Diverged
            If other events are enabled than after the same choices before.
        """
        controller = self._steering.controller
        search = Exhaustive()
        found: Counter[Outcome] = Counter()
        schedules: dict[Outcome, tuple[Decision, ...]] = {}
        executions, dropped, complete = 0, 0, False
        with self._steering:
            while executions < limit and not complete:
                executions += 1
                try:
                    made = controller.run(search)
                except RuntimeError as error:
                    raise Diverged(f"in execution {executions}: {error}") from None
                if made:
                    outcomes = list(self._outcomes())
                    dropped += not outcomes
                    for outcome in outcomes:
                        found[outcome] += 1
                        schedules.setdefault(outcome, self.schedule())
                complete = not search.next()
        seen = dict(found.most_common())
        return Explored(seen, schedules, executions, complete and not dropped)

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
        controller = self._steering.controller
        return tuple(
            self._decision(controller.name(number), number) for number, _ in controller.chosen
        )

    def close(self) -> None:
        """Release the session."""
        if self._live is not None:
            self._live.close()
            self._live = None

    # --- one execution ------------------------------------------------------------------------

    def _execute(self) -> None:
        if self._live is None or not self._live.usable:
            self.close()
            with self._clock.part("building_s"):
                built = lowering.build(self._template, STILL, np.random.default_rng(0))
                self._live = LiveSession(
                    self._template, built, self._settings, 1, steering=self._steering
                )
                if self._settings.control == "locks":
                    self._live.warm_up()
        with self._clock.part("running_s"):
            self._batch = self._live.step()

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
