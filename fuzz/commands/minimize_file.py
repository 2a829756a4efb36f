"""Minimizes one test file that shows a forbidden outcome, for `litmusfuzz minimize`.

It does what a campaign does with a finding: the test is run until it shows a forbidden outcome,
reduced, and confirmed in a fresh process. No test is generated.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Finding
from litmusfuzz.fuzz.campaign.earlier import Earlier
from litmusfuzz.fuzz.campaign.engine import Engine
from litmusfuzz.fuzz.campaign.settings import Settings
from litmusfuzz.fuzz.commands.replay import ReplayOptions, replay_entry
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.fuzz.finding.judge import NO_JUDGE, explorer_or_none
from litmusfuzz.oracles.explorer import DEFAULT_BUDGET
from litmusfuzz.reports.events import FindingAdded, Options, ScriptRun, ShardEnded
from litmusfuzz.reports.tables import each_once

if TYPE_CHECKING:
    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.finding.judge import Judgement
    from litmusfuzz.oracles.model import Model
    from litmusfuzz.reports.events import Event

_SEARCH_SHARE: float = 0.4
"""Share of the time limit for seeing a forbidden outcome the first time."""


@dataclass(frozen=True, slots=True)
class MinimizedFile:
    """A finding and its file, or the reason (one line) why there is none."""

    found: FindingAdded | None = None
    script: ScriptRun | None = None
    problem: str = ""
    died: bool = False
    """True if the process ended, and showed nothing forbidden."""
    interrupted: bool = False
    showed: bool = False
    """True if something forbidden showed of which there is no finding yet."""


def minimize(
    entry: Entry,
    executor: str,
    config: Config,
    model: Model,
    out: Path,
    *,
    time_s: float,
) -> MinimizedFile:
    """Minimize a test on an executor; the finding and its script are files in `out`.

    Parameters
    ----------
    entry : Entry
        The test. If it has a finding, that finding's settings are used to run it.
    executor : str
    config : Config
    model : Model
        The memory model that judges the outcomes.
    out : Path
    time_s : float
        Time limit, of which `_SEARCH_SHARE` is for seeing the outcome the first time.
    """
    oracle = explorer_or_none(entry.test, model, DEFAULT_BUDGET)
    if oracle is None:
        return MinimizedFile(problem=NO_JUDGE)
    with closing(Worker(executor)) as worker:
        options = ReplayOptions(_SEARCH_SHARE * time_s, schedule=False, keeps_partial=True)
        seen = replay_entry(entry, oracle, worker, config, options)
    if seen.problem:
        return MinimizedFile(problem=seen.problem)
    assert seen.judgement is not None
    if not seen.judgement.forbidden:
        died = f"; {'; '.join(each_once(seen.died))}" if seen.died else ""
        runs = f"in {seen.judgement.executions} executions on {executor}/{config.name}"
        if unknown := seen.judgement.verdicts.get(Verdict.UNKNOWN):
            runs += f", of which the oracle cannot judge {unknown}"
        problem = f"shows nothing that {model.name} forbids {runs}{died}"
        if seen.interrupted:
            return MinimizedFile(problem=problem, interrupted=True)
        return MinimizedFile(problem=problem, died=bool(died))
    events: list[Event] = []
    seed = entry.finding.seed if entry.finding else 0
    with tempfile.TemporaryDirectory(dir=out) as folder:
        campaign = Engine(
            Settings(
                Options(seed=seed, asked_s=time_s, tests=0, judge_by=model.name),
                out=Path(folder),
                executors=((executor, config),),
                time_s=(1 - _SEARCH_SHARE) * time_s,
                keeps_partial=True,
                budget=DEFAULT_BUDGET,
                reduction_s=time_s,
            ),
            events.extend,
            Earlier(pending=[_unreduced_entry(entry, executor, config, model, seen.judgement)]),
        )
        interrupted = False
        try:
            asyncio.run(campaign.run())
        except KeyboardInterrupt:  # what it was minimized to until then is stored
            interrupted = True
        found = next((each for each in events if isinstance(each, FindingAdded)), None)
        script = next((each for each in events if isinstance(each, ScriptRun)), None)
        if found is not None:
            moved = _moved(found, Path(folder), out)
            return MinimizedFile(moved, script, interrupted=interrupted)
        if interrupted:
            shown = f"shows {seen.judgement.forbidden[0][0]}, which {model.name} forbids"
            problem = f"{shown}; no fresh process has been asked"
            return MinimizedFile(problem=problem, interrupted=True, showed=True)
        problems = [each.problem for each in events if isinstance(each, ShardEnded)]
        why = next(filter(None, problems), "a fresh process does not show it again")
        return MinimizedFile(problem=why)


def _unreduced_entry(
    entry: Entry, executor: str, config: Config, model: Model, judgement: Judgement
) -> Entry:
    """The test as an unreduced finding of a campaign."""
    found = entry.finding
    unreduced = Finding(
        executor=executor,
        configuration=config.name,
        model=model.name,
        forbidden=judgement.forbidden,
        executions=judgement.executions,
        noise=found.noise if found else asdict(Noise()),
        settings=dict(config.settings),
        versions={},
        seed=found.seed if found else 0,
        index=found.index if found else 0,
        family=found.family if found else "file",
        minimized=False,
        confirmed=False,
        run_seed=found.run_seed if found else None,
    )
    return replace(entry, finding=unreduced)


def _moved(found: FindingAdded, folder: Path, out: Path) -> FindingAdded:
    """The finding, with its file and its script moved to the requested folder."""
    path = folder / found.file
    name, number = path.stem, 1
    while any(os.path.lexists(out / f"{name}{suffix}") for suffix in (".py", ".yaml")):
        number += 1  # somebody may have worked on the one that is there
        name = f"{path.stem}-{number}"
    for suffix in (".py", ".yaml"):
        file = path.with_suffix(suffix)
        if file.exists():
            file.replace(out / f"{name}{suffix}")
    return msgspec.structs.replace(found, file=f"{name}.yaml")
