"""Runs the workarounds of known causes: the finding shows, and with its workaround it does not.

`python -m tests.corpus.workarounds [NAME...]` prints what each of them showed. `corpus/known.yaml`
says how a workaround was run:

- `configuration: NAME`: the finding's own test, in another configuration;
- `section: NAME`: each op on a resource in a critical section of one mutex, in that configuration;
- `initialized: NAME`: every variable has a value before the test begins;
- `script: NAME.py`: the script shows both (`tests/corpus/test_workarounds.py`).
"""

from __future__ import annotations

import asyncio
import random
import sys
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import yaml

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, dumps, loads
from litmusfuzz.fuzz.campaign.trial_runner import TrialBudget, on_worker, tally_of
from litmusfuzz.fuzz.executors.entries import load
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.fuzz.finding.experiments import control_trial, executions_needed, result_of
from litmusfuzz.fuzz.finding.known_file import shipped, shipped_file
from litmusfuzz.fuzz.finding.trials import Case, Experiment, Reason, Trial

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest

SYMPTOMS: Final = ("torn", "wrong", "blocked")
BUDGET: Final = TrialBudget(seconds=60.0)


@dataclass(frozen=True, slots=True)
class Ran:
    """How often a finding showed in its own settings, and with the workaround."""

    name: str
    without: Experiment
    using: Experiment

    @property
    def works(self) -> bool | None:
        """True if only the finding shows; None if too few executions say so."""
        if self.using.seen:
            return False
        return True if self.without.seen and self.using.shows is False else None

    def __str__(self) -> str:
        said = {True: "works", False: "DOES NOT WORK", None: "undecided"}[self.works]
        parts = [
            f"{each.seen} of {each.executions} {what}{f' ({each.problem})' if each.problem else ''}"
            for what, each in (("without", self.without), ("with it", self.using))
        ]
        needed = f" of {self.using.needed} needed" if self.using.needed else ""
        return f"{self.name}: {said}: {', '.join(parts)}{needed}"


def in_sections(test: LitmusTest) -> LitmusTest:
    """Each op on a variable in a critical section of its own, all of one mutex."""
    data = yaml.safe_load(dumps(Entry(test)))
    data["mutexes"] = {**data.get("mutexes", {}), "guard": {}}
    for nodes in data["graphs"].values():
        effects = [name for name, node in nodes.items() if node.get("resources")]
        for name in effects:
            nodes[f"in_{name}"] = {
                "op": "CriticalSection",
                "resources": ["guard"],
                "members": [name],
            }
    return loads(yaml.safe_dump(data, sort_keys=False)).test


def initialized(test: LitmusTest) -> LitmusTest:
    """Every variable has a value from the start."""
    data = yaml.safe_load(dumps(Entry(test)))
    for variable in data["variables"].values():
        variable.setdefault("init", 0)
        if variable["init"] is None:
            variable["init"] = 0
    return loads(yaml.safe_dump(data, sort_keys=False)).test


EDITS: Final = {
    "configuration": lambda test: test,
    "section": in_sections,
    "initialized": initialized,
}


def variant(case: Case, run: tuple[str, str]) -> Case:
    """The case with its workaround."""
    how, name = run
    return replace(case, test=EDITS[how](case.test), config=configuration(case.executor, name))


def ran(name: str, case: Case, run: tuple[str, str], budget: TrialBudget = BUDGET) -> Ran:
    """Run a finding without its workaround, and with it, both until the odds are good enough."""
    other = variant(case, run)

    async def both() -> Ran:
        with closing(Worker(case.executor)) as worker:
            on = on_worker(worker, random.Random(name))
            control = control_trial(case, case.symptoms)
            without = result_of(control, await tally_of(control, on, budget))
            needed = executions_needed(without.showing, without.executions)
            length = without.length
            trial = Trial(Reason.TRIGGER, other.test, other, SYMPTOMS, 1, needed, length)
            return Ran(name, without, result_of(trial, await tally_of(trial, on, budget)))

    return asyncio.run(both())


def causes() -> dict[str, tuple[Case, tuple[str, str]]]:
    """Findings with a workaround that runs as a test, by name."""
    found = {}
    for each in shipped().entries:
        run = each.defect.run if each.defect else None
        if run is None or run[0] == "script":
            continue
        assert each.defect is not None
        entry = load(shipped_file().parent / each.defect.test)
        assert entry.finding is not None
        found[each.name] = Case.of(entry.test, entry.finding), run
    return found


def main(names: list[str]) -> int:
    """Run the named workarounds, or all; 1 if one does not work."""
    failed = 0
    for name, (case, run) in causes().items():
        if not names or name in names:
            found = ran(name, case, run)
            print(found, flush=True)  # noqa: T201
            failed += found.works is False
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
