"""Findings of `corpus/findings` as if a campaign had just seen them: through the whole pipeline.

``python -m tests.corpus.findings_again [NAME...]`` takes each finding as it is in its file, names
included. It is run until it shows, and handed to a campaign as an unreduced finding. The campaign
confirms it as it was run, reduces its test and its configuration, confirms the result in a fresh
process, reports it, and writes and runs its script. It must come back as a confirmed finding that
needs the right settings. A line for each finding says what was tried, how often, and how long it
took. ``make nightly`` takes all findings, ``make test`` those of a few seconds.

A race that does not show on this machine is *not shown*, which is no error as long as chance may
explain it. It is an error where the rate in the finding's file says that so many executions miss
it with odds below 1 in 1,000. Busy cores show races more rarely than the file says, so `RUN_S`
seconds must have passed, too: of about 100,000 executions that then run, most findings showed in at
least one of 4,096 beside four other processes on two cores.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

sys.path.insert(0, str(Path(__file__).parents[1]))
from campaign.campaigns import Run
from helpers_settings import settings_of

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import load
from litmusfuzz.fuzz.campaign.scripts import script_of
from litmusfuzz.fuzz.campaign.trial_runner import TrialBudget, on_worker, tally_of
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.fuzz.finding.canonical import key_of
from litmusfuzz.fuzz.finding.causes import explains, may_keep_cause, symptom
from litmusfuzz.fuzz.finding.configuration_reducer import needed_settings
from litmusfuzz.fuzz.finding.experiments import control_trial, executions_needed
from litmusfuzz.fuzz.finding.trials import Case
from litmusfuzz.reports.events import FindingAdded, ScriptRun, Unconfirmed
from litmusfuzz.reports.script import NoScript

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litmusfuzz.corpus.textfile import Entry, Setting

FOLDER: Final = Path(__file__).parents[2] / "corpus" / "findings"
RUN_S: Final = 120.0
"""Seconds for which a finding is run until it has shown a few times."""
PIPELINE_S: Final = 1200.0
"""Seconds for confirming, reducing and confirming it; the reducer of tests takes a quarter at most,
and that of configurations another one."""
EXECUTIONS: Final = 1 << 22
SHOWING_RUNS: Final = 3
"""Runs that show a finding after which it has shown often enough."""

CLUSTERS: Final[Mapping[str, Setting]] = MappingProxyType({"compiled": "clusters"})
MERGED: Final = MappingProxyType(
    {**CLUSTERS, "rewrites": "arithmetic_optimization=ON,common_subgraph_elimination=ON"}
)
"""TensorFlow merges constants of the two calls before it chooses clusters."""
OF_TWO: Final = MappingProxyType({**CLUSTERS, "min_cluster_size": 2})
"""The scatter is no cluster of its own: of 30,000 executions without that, none showed it."""
ASYNC: Final = MappingProxyType({**CLUSTERS, "lazy": True, "in_background": True})
"""Compiled in the background, which needs `lazy`. Of 20,000 executions without that, none showed
`cluster-update-beside-scatter`, and 99 with it."""


NEEDS: Final[Mapping[str, Mapping[str, Setting]]] = {
    "first-assignment-overwrites-another": {},
    "first-assignment-writes-twice": {},
    "call-overtakes-a-read-through-a-branch": MappingProxyType({"front_end": "eager_functions"}),
    "eager-call-overtakes-a-read-through-a-branch": MappingProxyType({"front_end": "eager"}),
    "call-overtakes-a-value-that-it-returns": MappingProxyType(
        {"front_end": "python_v1", "rewrites": "all"}
    ),
    "call-overtakes-an-unused-argument": MappingProxyType(
        {"front_end": "function", "rewrites": "all"}
    ),
    "call-overtakes-its-argument": MappingProxyType({"front_end": "function", "rewrites": "all"}),
    "call-overtakes-one-of-two-reads": MappingProxyType(
        {"front_end": "function", "rewrites": "all"}
    ),
    "cluster-around-a-message": CLUSTERS,
    "cluster-holds-up-a-failing-read": CLUSTERS,
    "cluster-optimizer-beside-scatter": OF_TWO,
    "cluster-optimizer-beside-scatter-nd": OF_TWO,
    "cluster-reads-beside-scatter": ASYNC,
    "cluster-reads-beside-scatter-nd": ASYNC,
    "cluster-of-two-reads-beside-scatter-nd": OF_TWO,
    "cluster-scatter-beside-scatter-nd": ASYNC,
    "cluster-spans-read-and-write": CLUSTERS,
    "cluster-in-a-call-spans-two-sections": CLUSTERS,
    "cluster-in-two-calls-spans-two-sections": MERGED,
    "cluster-computes-from-two-sections": CLUSTERS,
    "cluster-spans-two-reads": CLUSTERS,
    "cluster-spans-two-sections": CLUSTERS,
    "cluster-spans-two-writes": CLUSTERS,
    "cluster-spans-update-and-write": CLUSTERS,
    "cluster-update-beside-computed-scatter-nd": CLUSTERS,
    "cluster-update-beside-scatter": ASYNC,
    "cluster-update-beside-scatter-nd": ASYNC,
    "cluster-waits-for-a-blocked-enqueue": CLUSTERS,
    "cluster-waits-for-a-section": CLUSTERS,
    "cluster-waits-for-a-writing-section": CLUSTERS,
    "cluster-waits-for-an-earlier-iteration": CLUSTERS,
    "cluster-writes-late": CLUSTERS,
    "lookup-loses-its-edges": MappingProxyType({"rewrites": "arithmetic_optimization=ON"}),
    "max-pool-grad-grad-clears-a-constant": MappingProxyType({**CLUSTERS, "front_end": "function"}),
    "max-pool-grad-grad-clears-its-input": {},
    "scatter-beside-read": {},
    "scatter-beside-scatter": {},
    "scatter-rows-beside-read": {},
    "scatter-rows-beside-scatter": {},
    "slice-assign-beside-add": {},
    "slice-assign-beside-assign": {},
    "slice-assign-beside-optimizer": {},
    "slice-assign-beside-read": {},
    "slice-assign-beside-scatter": {},
    "slice-assign-beside-scatter-nd": {},
    "slice-assign-beside-sub": {},
}
"""The settings without which a finding does not show."""
RARE: Final = 1 / 100
"""Share of forbidden executions on this machine below which a finding may keep settings that it
does not need, may not be minimized, or its script may not show it.

An experiment has at most 32,768 executions, of which three must show it, and while the other core
is busy, racing ops seldom meet for seconds.
"""
WITHOUT_OUTCOME: Final = {
    "arithmetic-optimizer-loses-a-branch": "an error, which has no outcome to reduce",
    "async-compilation-close": "a crash, which the executor avoids: it waits for the compiler",
    "failed-step-never-ends": "what follows a failure is not specified: its script shows it",
    "gather-nd-without-value": "a crash, which has no outcome to reduce",
    "identity-conjugate-transpose": "an error, which has no outcome to reduce",
    "lowered-while-exchanges-handles": "the configuration refuses such loops: its script shows it",
    "memory-optimizer-and-nested-loop": "a crash, which has no outcome to reduce",
    "single-threaded-executor-waits": "the configuration refuses queues: its script shows it",
    "slice-assign-writes-freed-memory": "a crash, which has no outcome to reduce",
    "step-without-value": "a crash, which has no outcome to reduce",
}


@dataclass(frozen=True, slots=True)
class Again:
    """The result for one finding: `problem` is "" if it came back, or if chance may explain it."""

    name: str
    came_back: bool
    text: str
    problem: str
    seconds: float

    def __str__(self) -> str:
        end = "ERROR" if self.problem else "came back" if self.came_back else "not shown"
        line = f"{self.name}: {end}: {self.text}; {self.seconds:.0f} s"
        return f"{line}: {self.problem}" if self.problem else line


def again(name: str, folder: Path) -> Again:
    """Take a finding through the pipeline, in a folder of its own."""
    start = time.monotonic()
    entry = load(FOLDER / f"{name}.yaml")
    came_back, text, problem = _again(name, entry, folder)
    return Again(name, came_back, text, problem, time.monotonic() - start)


def _again(name: str, entry: Entry, folder: Path) -> tuple[bool, str, str]:
    found = entry.finding
    assert found is not None
    needed = executions_needed(found.count, found.executions)
    executions, seen, why = asyncio.run(_shown(entry))
    text = f"shown in {seen} of {executions} executions"
    if not executions:
        return False, text, why
    if not seen:
        return False, text, f"{needed:.0f} would have shown it" if executions >= needed else ""
    rare = seen < RARE * executions
    run = _campaign(entry, folder)
    tried = sum(each.executions for each in run.of(Unconfirmed))
    if not (tried or run.of(FindingAdded)):
        return False, text, f"the campaign did not end in {PIPELINE_S:.0f} s"
    if not (added := run.of(FindingAdded)):
        text += f", then in none of {tried} executions of fresh processes"
        return False, text, "many would have shown it" if tried >= needed else ""
    (event,) = added
    new = load(run.path(event.file))
    now = new.finding
    if now is None:  # it has no outcome, then
        return False, text, f"it came back as {event.kind}: {event.file}"
    rare = rare or now.count < RARE * now.executions  # the machine may be busier by now
    problems = _differences(entry, new, NEEDS[name], event, rare=rare)
    (reported,) = run.report.findings
    if reported.key != event.key:
        problems.append("the report has another finding")
    scripts = run.of(ScriptRun)
    if not scripts and (reason := _no_script(new)):
        text += f"; no script: {reason}"
    elif not scripts:
        problems.append("no script was written")
    elif not scripts[0].shows_it and not rare:
        problems.append("its script did not show it")
    text += f"; {len(new.test.effects)} ops, in {now.count} of {now.executions} executions"
    text += f", needs {_words(needed_settings(now.executor, now.settings))}"
    return True, text, "; ".join(problems)


async def _shown(entry: Entry) -> tuple[int, int, str]:
    """Run a finding as it is: executions, how many were forbidden, and why they ended early."""
    found = entry.finding
    assert found is not None
    case = Case.of(entry.test, found)
    budget = TrialBudget(seconds=RUN_S, executions=EXECUTIONS)
    trial = replace(control_trial(case), enough=SHOWING_RUNS)
    with closing(Worker(case.executor)) as worker:
        tally = await tally_of(trial, on_worker(worker, random.Random(1)), budget)
    return tally.executions, tally.seen, "" if tally.seen else tally.problem


def _campaign(entry: Entry, folder: Path) -> Run:
    """A campaign that generates nothing, and has the finding as another shard left it."""
    found = entry.finding
    assert found is not None
    unreduced = replace(found, minimized=False, confirmed=False, cause=None, script=None)
    settings = settings_of(
        seed=1,
        out=folder,
        executors=((found.executor, configuration(found.executor, found.configuration)),),
        time_s=PIPELINE_S,
        reduction_s=PIPELINE_S / 4,
        tests=0,
    )
    return Run(settings, pending=[replace(entry, finding=unreduced)]).run()


def _no_script(entry: Entry) -> str:
    """Why the script of a finding cannot be generated; "" if it can."""
    try:
        script_of(entry, "")
    except NoScript as error:
        return str(error)
    return ""


def _differences(
    old: Entry, new: Entry, needs: Mapping[str, Setting], event: FindingAdded, *, rare: bool
) -> list[str]:
    """What is wrong with the finding that came back."""
    before, now = old.finding, new.finding
    assert before is not None
    assert now is not None
    symptoms = {symptom(outcome) for outcome, _ in before.forbidden}
    shown = {symptom(outcome) for outcome, _ in now.forbidden}
    settings = needed_settings(now.executor, now.settings)
    left = needed_settings(before.executor, before.settings)
    right = settings == needs
    if rare and not right:
        right = needs.items() <= settings.items() <= left.items()
    wrong = {
        "it is not confirmed": not now.confirmed,
        "it is not minimized": not (now.minimized or rare),
        f"it is {shown}, and was {symptoms}": not any(
            may_keep_cause(was, outcome) for was in symptoms for outcome, _ in now.forbidden
        ),
        "it is another test, not this one or a part of it": not (
            explains(new.test, old.test, exact=False) and len(new.test.nodes) <= len(old.test.nodes)
        ),
        f"it needs {_words(settings)}, not {_words(needs)}": not right,
        "its key is not that of its file": event.key != key_of(new),
    }
    return [text for text, is_wrong in wrong.items() if is_wrong]


def _words(settings: Mapping[str, Setting]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(settings.items())) or "no setting"


def main(arguments: Sequence[str] | None = None) -> int:
    """Take findings through the pipeline, one after another; 1 if one does not come back."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="findings; by default all")
    names = parser.parse_args(arguments).names or list(NEEDS)
    if unknown := sorted(set(names) - NEEDS.keys()):
        parser.error(f"no finding with an outcome: {', '.join(unknown)}")
    results = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            results.append(again(name, Path(folder) / "out"))
        _print(str(results[-1]))
    for name, why in WITHOUT_OUTCOME.items():
        _print(f"{name}: left out: {why}")
    wrong = sum(bool(each.problem) for each in results)
    back = sum(each.came_back for each in results)
    _print(f"{back} of {len(results)} came back, {wrong} with an error")
    return 1 if wrong else 0


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
