"""Findings of `corpus/findings` under control: where each shows, and after how many schedules.

``python -m tests.corpus.findings_under_control [--json] [NAME...]`` takes each finding of
TensorFlow, in its settings and under control, op by op, then lock by lock, then page by page,
then touch by touch:

1. All schedules are searched, where ops stop inside those with at most two switches, up to
   `SEARCHED` executions. Where one shows the finding, that is its level.
2. Where the search is cut off, sampled schedules may show it, as below.
3. From each of ten seeds, as many schedules are sampled as show it, at most `SAMPLED`, by the
   schedulers of a campaign, which take turns.
4. A fresh process follows the schedule that was found, `FOLLOWED` times.

A finding that no configuration runs under control has the executor's reason. One that shows in
every execution without control does not depend on the schedule, and may need no search; if it can
be run, it is. Exits with 1 if a finding that depends on the schedule, and is run under control, is
not shown from every seed, or not followed every time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

sys.path.insert(0, str(Path(__file__).parent))
from findings_again import FOLDER, WITHOUT_OUTCOME

from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.textfile import load, plain_of
from litmusfuzz.fuzz.campaign.preemption_bounds import FEW, switches_inside
from litmusfuzz.fuzz.commands.exploration import explore
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.table import configuration, executor_class
from litmusfuzz.fuzz.executors.tensorflow import TensorFlowExecutor
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.fuzz.finding.causes import may_keep_cause, symptoms_of
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import GUARANTEES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.schedule import Decision
    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.fuzz.executors.protocol import Config

LEVELS: Final = ("ops", "locks", "pages", "touches")
SEARCHED: Final = 20_000
SAMPLED: Final = 2_000
FOLLOWED: Final = 1_000
SEEDS: Final = tuple(1_001 * number for number in range(1, 11))
"""So far apart that no two take the same schedules, and with each scheduler's turn first."""
STRETCH: Final = 50
"""Schedules that are sampled at once, by one scheduler."""
PATIENCE_S: Final = 600.0


class Broken(Exception):
    """A worker has no answer; the message says why."""


@dataclass(frozen=True, slots=True)
class Row:
    """The result for one finding.

    Parameters
    ----------
    name : str
    uncontrolled : str
        In how many executions it showed without control, as its file says.
    always : bool
        True if that is all of them.
    level : str
        The coarsest at which it shows; "" if it does at none.
    reason : str
        Why it is beyond control, or was not shown.
    beyond : bool
        True if no configuration under control runs it.
    search : str
        How many schedules of the last search show it, and what has ended that.
    schedules : tuple of int
        For each seed, the number of the first schedule that shows it; 0 if none does.
    followed : int
        How often its schedule led to it in a fresh process.
    seconds : float
    """

    name: str
    uncontrolled: str = ""
    always: bool = False
    level: str = ""
    reason: str = ""
    beyond: bool = False
    search: str = ""
    schedules: tuple[int, ...] = ()
    followed: int = 0
    seconds: float = 0.0

    @property
    def wrong(self) -> bool:
        """True if it depends on the schedule, and was not shown as it must be."""
        shown = bool(self.level) and all(self.schedules) and self.followed == FOLLOWED
        return not (self.beyond or self.always or shown)

    def __str__(self) -> str:
        uncontrolled = "every execution" if self.always else self.uncontrolled
        first = f"| `{self.name}` | {uncontrolled} |"
        if not self.level:
            return f"{first} | {self.reason} | | |"
        sampled = sorted(self.schedules)
        few = f"{median(sampled):.0f}, {sampled[-1]}" if all(sampled) else f"{sampled}"
        return f"{first} {self.level} | {self.search} | {few} | {self.followed:,} |"


HEAD: Final = """\
| finding | without control | level | schedules that show it | sampled: median, most | followed |
|---|---|---|---|--:|--:|"""


class _Finding:
    """A finding with an outcome, and what counts as it."""

    def __init__(self, entry: Entry) -> None:
        assert entry.finding is not None
        self.test, self.found = entry.test, entry.finding
        self._explorer = Explorer(self.test, GUARANTEES[self.found.model])
        self._symptoms = symptoms_of(self.found)
        self._known: dict[Outcome, bool] = {}

    def is_shown_by(self, outcome: Outcome) -> bool:
        """True of an outcome that is forbidden in the same way as those of the finding."""
        if outcome not in self._known:
            alike = any(may_keep_cause(each, outcome) for each in self._symptoms)
            forbidden = self._explorer.judge(outcome) is Verdict.FORBIDDEN
            self._known[outcome] = alike and forbidden
        return self._known[outcome]

    def configurations(self) -> Iterator[tuple[str, Config | str]]:
        """At each level the configuration with its settings, or why there is none."""
        executor = executor_class(self.found.executor)
        own = configuration(self.found.executor, self.found.configuration)
        point = executor.point_of(own)  # type: ignore[attr-defined]
        for level in LEVELS:
            controlled = {**point, "control": level}
            why = executor.space.problem(controlled)  # type: ignore[attr-defined]
            yield level, why or executor.configuration_at(controlled)  # type: ignore[attr-defined]

    def search(self, worker: Worker, config: Config) -> tuple[tuple[Decision, ...], str, bool]:
        """A schedule that shows it, if there is one; how many do; false if it was cut off.

        Raises
        ------
        Broken
            If the executor refuses the test, with its reason.
        """
        inside = switches_inside(worker.executor, config)
        result = explore(self.test, worker, config, SEARCHED, FEW[-1] if inside else None)
        if result.problem:
            raise Broken(result.problem.partition(": ")[2])
        histogram = result.last.histogram if result.last else {}
        shown = [each for each in result.found if self.is_shown_by(each)]
        count = sum(histogram.get(each, 0) for each in shown)
        said = f"{count:,} of {sum(histogram.values()):,}"
        if result.bound is not None:
            said += f" with {_switches(result.bound)}"
        if result.stopped:
            said += f", {result.stopped}"
        if shown and not count:
            said = f"some with {_switches(result.found[shown[0]].preemptions)}; {said}"
        return result.found[shown[0]].events if shown else (), said, not result.stopped

    def sample(self, worker: Worker, config: Config, seed: int) -> int:
        """The number of the first schedule of a seed that shows it; 0 if none does."""
        for before in range(0, SAMPLED, STRETCH):
            turn = seed + before // STRETCH
            if not self._shows(worker, config, STRETCH, turn):
                continue
            low, high = 1, STRETCH  # the first schedules of a stretch are those of a shorter one
            while low < high:
                middle = (low + high) // 2
                if self._shows(worker, config, middle, turn):
                    high = middle
                else:
                    low = middle + 1
            return before + high
        return 0

    def _shows(self, worker: Worker, config: Config, count: int, seed: int) -> bool:
        request = messages.Request(
            test=plain_of(self.test), config=config.name, count=count, seed=seed
        )
        histogram = messages.histogram(self.test, _asked(worker, request, self))
        return any(map(self.is_shown_by, histogram))

    def recorded(self, worker: Worker, config: Config) -> tuple[Decision, ...]:
        """A sampled schedule that shows it, where the search was cut off; () if there is none."""
        for scheduler in TensorFlowExecutor.schedulers:
            request = messages.Request(
                test=plain_of(self.test),
                task="sample",
                config=config.name,
                count=SAMPLED,
                scheduler=scheduler,
            )
            explored = messages.explored(self.test, _asked(worker, request, self))
            for outcome, schedule in explored.schedules.items():
                if self.is_shown_by(outcome):
                    return schedule
        return ()

    def follow(self, config: Config, schedule: Sequence[Decision]) -> int:
        """How often a fresh process follows a schedule to it."""
        request = messages.Request(
            test=plain_of(self.test), task="follow", config=config.name, schedule=list(schedule)
        )
        followed = 0
        with closing(Worker(self.found.executor)) as worker:
            for _ in range(FOLLOWED):
                reply = worker.ask(request, PATIENCE_S, self.test)
                if isinstance(reply, Died) or reply.diverged or reply.refused:
                    break
                followed += any(map(self.is_shown_by, messages.histogram(self.test, reply)))
        return followed


def _switches(number: int | None) -> str:
    return "1 switch" if number == 1 else f"{number} switches"


def _asked(worker: Worker, request: messages.Request, finding: _Finding) -> messages.Reply:
    reply = worker.ask(request, PATIENCE_S, finding.test)
    if isinstance(reply, Died):
        raise Broken(f"the worker died: {reply.message}")
    if why := reply.refused or reply.unavailable or reply.diverged:
        raise Broken(why)
    return reply


def row(name: str) -> Row:
    """The result for a finding."""
    start = time.monotonic()
    entry = load(FOLDER / f"{name}.yaml")
    if entry.finding is None:
        return Row(name, beyond=True, reason=WITHOUT_OUTCOME[name])
    finding = _Finding(entry)
    found = finding.found
    uncontrolled = f"{found.count:,} of {found.executions:,}"
    always = found.count == found.executions
    reasons: list[str] = []
    beyond = True
    for level, config in finding.configurations():
        if isinstance(config, str):
            reasons.append(config.partition(": ")[2])
            continue
        with closing(Worker(found.executor)) as worker:
            try:
                schedule, search, complete = finding.search(worker, config)
                beyond = False
                if not schedule and complete:
                    reasons.append(f"not shown by {level}")
                    continue
                schedules = tuple(finding.sample(worker, config, seed) for seed in SEEDS)
                if not (schedule or any(schedules)):
                    reasons.append(f"not shown by {level}")
                    continue
                schedule = schedule or finding.recorded(worker, config)
            except Broken as error:
                reasons.append(str(error))
                continue
        followed = finding.follow(config, schedule) if schedule else 0
        seconds = time.monotonic() - start
        return Row(
            name,
            uncontrolled,
            always,
            level,
            search=search,
            schedules=schedules,
            followed=followed,
            seconds=round(seconds, 1),
        )
    reason = "; ".join(dict.fromkeys(reasons))
    seconds = round(time.monotonic() - start, 1)
    return Row(name, uncontrolled, always, reason=reason, beyond=beyond, seconds=seconds)


def names() -> list[str]:
    """The findings of TensorFlow with a test."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each finding; 1 if one is not shown as it must be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="findings; by default all")
    parser.add_argument("--json", action="store_true", help="one line of JSON for each finding")
    args = parser.parse_args(arguments)
    if unknown := sorted(set(args.names) - set(names())):
        parser.error(f"no finding of TensorFlow: {', '.join(unknown)}")
    if not args.json:
        _print(HEAD)
    wrong = 0
    for name in args.names or names():
        made = row(name)
        _print(json.dumps(asdict(made)) if args.json else str(made))
        wrong += made.wrong
    return 1 if wrong else 0


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
