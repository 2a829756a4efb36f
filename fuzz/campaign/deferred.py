"""What a campaign left for lack of time, minimized later.

That is the graphs that its record names, in ``unreduced/``, and findings that it minimized in part
or did not see again; these are replaced. The record is then as if it had had the time.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litmusfuzz.corpus.textfile import load, write_text
from litmusfuzz.fuzz.campaign.loop import Campaign
from litmusfuzz.fuzz.campaign.settings import EXTRA_MINIMIZING_SHARE, Settings
from litmusfuzz.fuzz.executors.table import CANARY, UnknownExecutor, configuration
from litmusfuzz.oracles.model import GUARANTEES
from litmusfuzz.reports.records import ReportedFinding, finding_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.oracles.model import Model
    from litmusfuzz.reports.records import RunRecord


class NoRecord(ValueError):
    """A file is no record of a campaign, or of none that can go on here."""


@dataclass(frozen=True, slots=True)
class Finished:
    """What came of it: `taken` graphs and findings in part, of which `left` still are."""

    findings: tuple[ReportedFinding, ...] = ()
    taken: int = 0
    left: int = 0
    unconfirmed: int = 0
    problem: str = ""


def finish(path: Path, *, time_s: float, show: Callable[[RunRecord], None]) -> Finished:
    """Go on with what a campaign left, and bring its record up to date.

    Parameters
    ----------
    path : Path
        Its record, in its folder, wherever that is now.
    time_s : float
        When to stop at the latest.
    show : callable
        As of a `Campaign`.

    Raises
    ------
    NoRecord
    FileError
        If a file that the record names cannot be read.
    """
    data, findings, unreduced, settings = _read(path, time_s)
    whole = [each for each in findings if _whole(each)]
    parts = [each for each in findings if not _whole(each)]
    if not (parts or unreduced):
        return Finished()
    campaign = Campaign(settings, show, known=whole)
    # Where graphs took long, they are reduced elsewhere.
    campaign.set_earlier_costs(
        {(each["name"], each["configuration"]): _seconds_each(each) for each in data["executors"]}
    )
    for entry in (*(each.entry for each in parts), *unreduced):
        campaign.add_unreduced(entry)
    record = campaign.run()
    undone = {each.generated.test.name for each in campaign.unreduced}
    kept = [each for each in findings if _whole(each) or each.entry.test.name in undone]
    found = [finding_json(each) for each in (*kept, *record.findings)]
    for each in found:  # as the others' paths in it, if the folder was moved
        each["file"] = str(Path(data["out"]) / Path(each["file"]).name)
    by_family = Counter(
        each.entry.finding.family for each in (*kept, *record.findings) if each.entry.finding
    )
    for family, numbers in data["families"].items():
        numbers["findings"] = by_family[family]
    left = [each.test.name for each in unreduced if each.test.name in undone]
    data |= {
        "findings": found,
        "not_minimized": len(left),
        "left": [f"{name}.yaml" for name in left],
        "unconfirmed": data["unconfirmed"] + record.unconfirmed,
        "finished_s": round(data.get("finished_s", 0.0) + record.elapsed_s, 3),
    }
    write_text(json.dumps(data, indent=1) + "\n", path)
    named = {Path(each["file"]).name for each in found}
    for old in (Path(each.path) for each in parts):
        if old.name not in named:
            old.unlink(missing_ok=True)
            old.with_suffix(".py").unlink(missing_ok=True)
    in_part = sum(not (each["minimized"] and each["confirmed"]) for each in found)
    taken = len(parts) + len(unreduced)
    new = tuple(record.findings)
    return Finished(new, taken, len(left) + in_part, record.unconfirmed, record.problem)


def _seconds_each(state: Mapping[str, Any]) -> float:
    return float(state["fuzzing_s"] / state["tests"]) if state["tests"] else 0.0


def _whole(reported: ReportedFinding) -> bool:
    """Whether nothing is left to do for a finding."""
    finding = reported.entry.finding
    return finding is not None and finding.minimized and finding.confirmed


def _read(
    path: Path, time_s: float
) -> tuple[dict[str, Any], list[ReportedFinding], list[Entry], Settings]:
    """A record: as it is, its findings, what was not minimized, and how to go on."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        findings = [_reported(each, path.parent) for each in data["findings"]]
        unreduced = [load(path.parent / "unreduced" / name) for name in data["left"]]
        executors = _executors(data["executors"])
        entries = [*(each.entry for each in findings if not _whole(each)), *unreduced]
        _check(data)  # what is written back at the end
        settings = Settings(
            seed=data["seed"],
            out=path.parent,
            executors=executors,
            time_s=time_s / (1 + EXTRA_MINIMIZING_SHARE),
            tests=0,
            model=_model(data["executors"]),
            python=data["python"],
            writes_record=False,
        )
    except OSError as error:
        raise NoRecord(f"{error.filename or path}: {error.strerror}") from None
    except UnknownExecutor as error:
        raise NoRecord(f"{path}: executors: {error}") from None
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        told = f"no {error}" if isinstance(error, KeyError) else error
        raise NoRecord(f"{path}: is no record of a campaign: {told}") from None
    there = {(name, each.name): dict(each.settings) for name, *of in executors for each in of}
    for entry in entries:
        found = entry.finding
        where = f"{path}: {entry.test.name}"
        if found is None or (found.executor, found.configuration) not in there:
            raise NoRecord(f"{where} was found by none of its executors")
        if there[found.executor, found.configuration] != dict(found.settings):
            told = f"{found.executor}/{found.configuration}"
            raise NoRecord(f"{where} was found with other settings than {told} has now")
    return data, findings, unreduced, settings


def _check(data: Mapping[str, Any]) -> None:
    """Whether the rest of a record has the numbers and names that it should."""
    Path(data["out"])
    for number in (data["unconfirmed"], data.get("finished_s", 0.0)):
        number + 0.0
    for numbers in data["families"].values():
        numbers["findings"] + 0
    for state in data["executors"]:
        _seconds_each(state)


def _reported(data: Mapping[str, Any], folder: Path) -> ReportedFinding:
    """A finding of the record, with its file, which may have been moved together with that."""
    path = folder / Path(data["file"]).name
    return ReportedFinding(
        load(path),
        str(path),
        data["cause"],
        data["reason"],
        data["more_graphs"],
        # Its own configuration is counted as soon as it is there.
        Counter(data["configurations"]) - Counter((data["configuration"],)),
        tuple(data["allowed_by"]),
        data["python"],
    )


def _executors(states: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, *tuple[Config, ...]], ...]:
    """The executors of a campaign: of one spread over configurations, all of them."""
    executors: list[tuple[str, list[Config]]] = []
    for state in states:
        name = state["name"]
        if name == CANARY:
            continue
        config = configuration(name, state["configuration"])
        if state["spread"] and executors and executors[-1][0] == name:
            executors[-1][1].append(config)
        else:
            executors.append((name, [config]))
    return tuple((name, *configs) for name, configs in executors)


def _model(states: Sequence[Mapping[str, Any]]) -> Model | None:
    """By which all are judged; None if each by what it promises."""
    if all(state["model"] == state["guarantees"] for state in states if state["name"] != CANARY):
        return None
    return GUARANTEES[states[0]["model"]]
