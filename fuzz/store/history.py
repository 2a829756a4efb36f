"""The campaigns that came before one, from the reports in the folders beside it.

Each report lists all earlier campaigns, and not only those whose folders are still there: so trends
and sightings outlive the folders (`litmusfuzz.fuzz.store.pruning`). A campaign gets its number
when it starts, one more than the greatest beside it, and numbers are the order of campaigns: the
clock may have been set back between two of them.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from litmusfuzz.fuzz.executors.process_log import in_a_line
from litmusfuzz.fuzz.store.folder import DATABASE
from litmusfuzz.reports.outputs import JSON, MAX_JSON_BYTES
from litmusfuzz.reports.report import Earlier

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from litmusfuzz.reports.report import Report

MAX_NUMBER: Final = 1 << 40
MAX_RUNS: Final = 5_000
"""Earlier campaigns in a report, at most, the last ones: those of thirteen years."""
MAX_SEEN: Final = 50_000
"""Findings that all of them have seen, at most."""
MAX_NAME: Final = 255
"""Length of the name of a campaign's folder, at most."""
_Time = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799)]
"""Seconds since 1970, to the end of the year 9999."""
_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
_Number = Annotated[int, msgspec.Meta(ge=0, le=MAX_NUMBER)]
_Score = Annotated[float, msgspec.Meta(ge=0, le=1)] | None


class OtherVersion(Exception):
    """A report of another version of LitmusFuzz, or of a campaign that has not ended."""


class Seen(msgspec.Struct, frozen=True):
    """A finding of an earlier campaign: see `ReportedFinding`."""

    key: str
    in_this_run: _Count
    first_seen: _Time
    file: str = ""
    script: str = ""


class _Listed(msgspec.Struct, frozen=True):
    """An earlier campaign as a report lists it: see `Earlier`."""

    started: _Time
    graphs: _Count
    outcomes: _Count
    findings: _Count
    new: _Count
    mutation_score: _Score
    mutants: _Count
    campaign: Annotated[str, msgspec.Meta(max_length=2 * MAX_NAME)] = ""
    name: Annotated[str, msgspec.Meta(max_length=MAX_NAME)] = ""
    number: _Number = 0
    seen: dict[str, tuple[_Count, _Time]] = {}


class Ended(msgspec.Struct, frozen=True):
    """What later campaigns read of a campaign's `report.json`."""

    started: _Time
    ended: _Time
    graphs: _Count
    outcomes: _Count
    new: list[str]
    mutation_score: _Score
    kills: list[Any]
    findings: list[Seen]
    campaign: Annotated[str, msgspec.Meta(max_length=2 * MAX_NAME)] = ""
    number: _Number = 0
    unattended: bool = False
    earlier: Annotated[list[_Listed], msgspec.Meta(max_length=MAX_RUNS)] = []

    def line(self, name: str) -> Earlier:
        """The campaign as later reports list it."""
        seen: dict[str, tuple[int, int]] = {}
        for each in self.findings:
            count, first = seen.get(each.key, (0, each.first_seen))
            seen[each.key] = count + each.in_this_run, first
        return Earlier(
            started=self.started,
            graphs=self.graphs,
            outcomes=self.outcomes,
            findings=len(self.findings),
            new=len(self.new),
            mutation_score=self.mutation_score,
            mutants=len(self.kills),
            campaign=self.campaign or f"{name}-{self.started}",
            name=name,
            number=self.number,
            seen=seen,
        )


class History:
    """The campaigns that came before one. They are read once.

    Parameters
    ----------
    folder : Path
        Folder of the campaign.
    report : Report
        Of the campaign, so far.

    Attributes
    ----------
    campaign : str
        Identifies the campaign. Copies of a folder are one campaign.
    beside : dict of Path to (Ended, Earlier)
        The ended campaigns by their folders beside this one, in their order.
    earlier : tuple of Earlier
        The last `MAX_RUNS` campaigns before this one, in their order.
    damaged : tuple of str
        Errors of the reports that are damaged.
    """

    def __init__(self, folder: Path, report: Report) -> None:
        problems: list[str] = []
        read = []
        for path, found in _reports(folder.resolve(), problems):
            read.append((path, found, found.line(path.name)))
        read.sort(key=lambda each: order(each[2]))
        self.beside = {path: (found, line) for path, found, line in read}
        self.damaged = tuple(problems)
        self.campaign = report.campaign
        own = report.number, report.started, folder.resolve().name
        lines = {each.campaign: each for each in _carried(self.beside)}
        lines |= {line.campaign: line for _, _, line in read}
        lines.pop(self.campaign, None)
        before = (each for each in lines.values() if order(each) < own)
        self.earlier = _last(sorted(before, key=order))
        self._seen: dict[str, list[tuple[int, int, int]]] = {}
        """By key: place of a campaign, graphs that showed it there, and when it was first seen."""
        for place, each in enumerate(self.earlier):
            for key, (count, first) in each.seen.items():
                self._seen.setdefault(key, []).append((place, count, first))

    def sightings(self, *keys: str) -> tuple[int, int | None]:
        """Number of sightings in earlier campaigns, and the time of the first; None without one."""
        seen = [each for key in keys for each in self._seen.get(key, ())]
        first = min(seen, default=None)
        return sum(count for _, count, _ in seen), None if first is None else first[2]

    def saw_first(self, campaign: str, key: str) -> bool:
        """True if no campaign has seen a finding before this earlier one."""
        seen = self._seen.get(key)
        return not seen or self.earlier[seen[0][0]].campaign == campaign


def _last(runs: list[Earlier]) -> tuple[Earlier, ...]:
    """The last campaigns, as many as a report lists."""
    first, seen = len(runs), 0
    while first and len(runs) - first < MAX_RUNS and seen <= MAX_SEEN:
        first -= 1
        seen += len(runs[first].seen)
    return tuple(runs[first + (seen > MAX_SEEN) :])


def order(each: Earlier) -> tuple[int, int, str]:
    """Place of a campaign. Campaigns have the same number only if they ran at the same time."""
    return each.number, each.started, each.name


def next_number(folder: Path) -> int:
    """The number of a new campaign."""
    numbers = []
    for _, found in _reports(folder.resolve(), []):
        numbers += [found.number, *(each.number for each in found.earlier)]
    return min(MAX_NUMBER, 1 + max(numbers, default=0))


def _carried(beside: dict[Path, tuple[Ended, Earlier]]) -> Iterator[Earlier]:
    """The campaigns that reports list; those of a later report count."""
    for found, _ in beside.values():
        for each in found.earlier:
            if each.campaign:
                yield Earlier(**msgspec.structs.asdict(each))


def _reports(folder: Path, problems: list[str]) -> Iterator[tuple[Path, Ended]]:
    """The reports in the folders beside one, without those of another version.

    Other programs write a file of that name, too: one that cannot be read is only called damaged if
    a campaign's store is next to it.
    """
    for path in sorted(folder.parent.glob(f"*/{JSON}")):
        if path.parent == folder:
            continue
        try:
            yield path.parent, read(path)
            continue
        except OtherVersion:
            continue
        except OSError as error:
            problem = f"{path}: {error.strerror}"
        except msgspec.MsgspecError as error:
            problem = f"{path}: is damaged: {in_a_line(str(error))}"
        if (path.parent / DATABASE).exists():
            problems.append(problem)


def read(path: Path) -> Ended:
    """An ended campaign, from its report.

    Raises
    ------
    OSError, msgspec.MsgspecError
        If it is damaged.
    OtherVersion
    """
    if not path.is_file():  # a pipe would wait for ever
        raise OSError(errno.EINVAL, "is not a file")
    with path.open("rb") as file:
        data = file.read(MAX_JSON_BYTES + 1)
    if len(data) > MAX_JSON_BYTES:
        raise OSError(errno.EFBIG, f"is larger than {MAX_JSON_BYTES} bytes")
    try:
        return msgspec.json.decode(data, type=Ended)
    except msgspec.ValidationError as error:
        if "missing required field" in str(error):
            raise OtherVersion from None
        raise
    except RecursionError as error:
        raise msgspec.DecodeError(str(error)) from None
