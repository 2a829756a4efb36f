"""Minimizes later what a campaign had no time for, and updates the campaign's record.

That is the unreduced findings that the record names, and findings that are minimized in part or
unconfirmed; the latter are replaced. The record is then as if the campaign had had the time.
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
from litmusfuzz.reports.records import RECORD_VERSION, ReportedFinding, finding_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.oracles.model import Model
    from litmusfuzz.reports.records import RunRecord


class NotARecord(ValueError):
    """A file is no record of a campaign, or of one that cannot be continued here."""


@dataclass(frozen=True, slots=True)
class DeferredResult:
    """The new findings, and how many of the attempted findings still are not minimized."""

    findings: tuple[ReportedFinding, ...] = ()
    attempted: int = 0
    remaining: int = 0
    unconfirmed: int = 0
    problem: str = ""


def minimize_deferred(
    path: Path, *, time_s: float, show: Callable[[RunRecord], None]
) -> DeferredResult:
    """Minimize what a campaign left, and update its record.

    Parameters
    ----------
    path : Path
        The record, in its folder, wherever that is now.
    time_s : float
        Limit.
    show : callable
        As of a `Campaign`.

    Raises
    ------
    NotARecord
    FileError
        If a file that the record names cannot be read.
    """
    data, findings, unreduced, settings = _read(path, time_s)
    complete = [each for each in findings if _is_complete(each)]
    incomplete = [each for each in findings if not _is_complete(each)]
    if not (incomplete or unreduced):
        return DeferredResult()
    campaign = Campaign(settings, show, known=complete)
    # Findings of slow configurations are minimized in faster ones.
    campaign.set_earlier_costs(
        {(each["name"], each["configuration"]): _seconds_each(each) for each in data["executors"]}
    )
    for entry in (*(each.entry for each in incomplete), *unreduced):
        campaign.add_unreduced(entry)
    record = campaign.run()
    unfinished = {each.generated.test.name for each in campaign.unreduced}
    kept = [each for each in findings if _is_complete(each) or each.entry.test.name in unfinished]
    found = [finding_json(each) for each in (*kept, *record.findings)]
    for each in found:  # relative to the folder in the record, if it was moved
        each["file"] = str(Path(data["out"]) / Path(each["file"]).name)
    by_family = Counter(
        each.entry.finding.family for each in (*kept, *record.findings) if each.entry.finding
    )
    for family, numbers in data["families"].items():
        numbers["findings"] = by_family[family]
    left = [each.test.name for each in unreduced if each.test.name in unfinished]
    data |= {
        "findings": found,
        "not_minimized": len(left),
        "unreduced": [f"{name}.yaml" for name in left],
        "unconfirmed": data["unconfirmed"] + record.unconfirmed,
        "finished_s": round(data.get("finished_s", 0.0) + record.elapsed_s, 3),
    }
    write_text(json.dumps(data, indent=1) + "\n", path)
    named = {Path(each["file"]).name for each in found}
    for old in (Path(each.path) for each in incomplete):
        if old.name not in named:
            old.unlink(missing_ok=True)
            old.with_suffix(".py").unlink(missing_ok=True)
    in_part = sum(not (each["minimized"] and each["confirmed"]) for each in found)
    attempted = len(incomplete) + len(unreduced)
    new = tuple(record.findings)
    return DeferredResult(new, attempted, len(left) + in_part, record.unconfirmed, record.problem)


def _seconds_each(state: Mapping[str, Any]) -> float:
    return float(state["fuzzing_s"] / state["tests"]) if state["tests"] else 0.0


def _is_complete(reported: ReportedFinding) -> bool:
    """True if a finding is minimized and confirmed."""
    finding = reported.entry.finding
    return finding is not None and finding.minimized and finding.confirmed


def _read(
    path: Path, time_s: float
) -> tuple[dict[str, Any], list[ReportedFinding], list[Entry], Settings]:
    """A record's data, its findings, its unreduced findings, and the settings to continue with."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        version = data.get("litmusfuzz_record", 1)  # the first version had no such field
        if version != RECORD_VERSION:
            raise NotARecord(
                f"{path}: litmusfuzz_record: is version {version!r:.40} of a record, this program"
                f" reads version {RECORD_VERSION}: run the campaign again"
            )
        findings = [_reported(each, path.parent) for each in data["findings"]]
        unreduced = [load(path.parent / "unreduced" / name) for name in data["unreduced"]]
        executors = _executors(data["executors"])
        entries = [*(each.entry for each in findings if not _is_complete(each)), *unreduced]
        _check(data)  # the part that is written back at the end
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
        raise NotARecord(f"{error.filename or path}: {error.strerror}") from None
    except UnknownExecutor as error:
        raise NotARecord(f"{path}: executors: {error}") from None
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        message = f"no {error}" if isinstance(error, KeyError) else error
        raise NotARecord(f"{path}: is no record of a campaign: {message}") from None
    there = {(name, each.name): dict(each.settings) for name, *of in executors for each in of}
    for entry in entries:
        found = entry.finding
        where = f"{path}: {entry.test.name}"
        if found is None or (found.executor, found.configuration) not in there:
            raise NotARecord(f"{where} was found by none of its executors")
        if there[found.executor, found.configuration] != dict(found.settings):
            message = f"{found.executor}/{found.configuration}"
            raise NotARecord(f"{where} was found with other settings than {message} has now")
    return data, findings, unreduced, settings


def _check(data: Mapping[str, Any]) -> None:
    """Raise if a part of the record that is written back has the wrong type."""
    Path(data["out"])
    for number in (data["unconfirmed"], data.get("finished_s", 0.0)):
        number + 0.0
    for numbers in data["families"].values():
        numbers["findings"] + 0
    for state in data["executors"]:
        _seconds_each(state)


def _reported(data: Mapping[str, Any], folder: Path) -> ReportedFinding:
    """A finding of the record; its file may have been moved together with the record."""
    path = folder / Path(data["file"]).name
    return ReportedFinding(
        load(path),
        str(path),
        data["cause"],
        data["reason"],
        data["more_graphs"],
        # `ReportedFinding` counts its own configuration itself.
        Counter(data["configurations"]) - Counter((data["configuration"],)),
        tuple(data["allowed_by"]),
        data["python"],
    )


def _executors(states: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, *tuple[Config, ...]], ...]:
    """The executors of a campaign, each with its configurations."""
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
    """The model that judged all; None if each configuration had the model that it guarantees."""
    if all(state["model"] == state["guarantees"] for state in states if state["name"] != CANARY):
        return None
    return GUARANTEES[states[0]["model"]]
