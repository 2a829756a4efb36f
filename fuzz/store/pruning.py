"""Removes old nightly runs beside one that has ended, by one rule.

Of the nightly runs in the folders beside each other the last N stay. Of an older one the file
`stats` stays, and the file of each finding that no run before it had, or of which none has left a
file, with its script: so of each finding one file is left, and trends are in the later reports
(`litmusfuzz.fuzz.store.history`).

Notes
-----
A folder is left as it is, with the reason, unless we know all that is in it, and that nobody needs
it: it holds an ended nightly campaign, which no process writes, and only files that a campaign has
written. Links are never followed. Nothing at all is removed if a report beside the run is damaged,
since its sightings are not known. A run of which a killed process has removed a part is removed by
the next: its report goes last.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

import msgspec

from litmusfuzz.fuzz.store.database import files_of
from litmusfuzz.fuzz.store.folder import (
    DATABASE,
    DELETABLE,
    StoreError,
    has_writer,
    is_campaign_file,
)
from litmusfuzz.fuzz.store.history import OtherVersion, order, read
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports.outputs import FILES, JSON, STATS
from litmusfuzz.reports.report import Pruned

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.fuzz.store.history import Ended, History
    from litmusfuzz.reports.report import Earlier

_FOLDERS: Final = ("findings", *DELETABLE)
_LAST: Final = (f"{DATABASE}-wal", f"{DATABASE}-shm", DATABASE, "lock", JSON)
"""Removed after all others, in this order."""


class _Left(Exception):
    """Why a folder is left as it is."""


def prune(history: History, keep: int) -> Pruned:
    """Remove nightly runs that are not among the last ones.

    Parameters
    ----------
    history : History
        Of a nightly run that has ended. Its report is on the disk, and lists the runs.
    keep : int
        Runs that stay, this one included; 0 for all.
    """
    if not keep or history.damaged:
        return Pruned((), 0, {})
    runs = {
        path: (found, line)
        for path, (found, line) in history.beside.items()
        if found.unattended and line.campaign != history.campaign
    }
    lines = {each.campaign: each for each in history.earlier}
    later = [path for path, (_, line) in runs.items() if line.campaign not in lines]
    before = [path for path in runs if path not in later]
    stay = max(0, keep - 1 - len(later))
    folders: list[str] = []
    left: dict[str, str] = {}
    freed = 0
    for path in before[: max(0, len(before) - stay)]:
        found, line = runs[path]
        try:
            freed += _empty(path, found, _firsts(path, found, line, history))
            folders.append(path.name)
        except _Left as why:
            left[path.name] = str(why)
        except StoreError as error:
            left[path.name] = str(error).removeprefix(f"{path}: ")
        except OSError as error:
            left[path.name] = error.strerror or str(error)
    return Pruned(tuple(folders), freed, left)


def _firsts(folder: Path, found: Ended, line: Earlier, history: History) -> set[str]:
    """The files of the findings of which no run before this one has left a file.

    A run that has seen a finding may have been deleted since, or its report may be made up. Files
    of minimized findings have equal names if their tests are equal; all others are the campaign's
    to make again.
    """
    before = {each.name for each in history.earlier if order(each) < order(line)}
    left = {
        _test(file.name)
        for name in before & set(os.listdir(folder.parent))
        for file in (folder.parent / name / "findings").glob("*.yaml")
        if file.is_file()
    }
    kept = [
        each
        for each in found.findings
        if history.saw_first(line.campaign, each.key)
        or (each.file.startswith("findings/") and _test(PurePath(each.file).name) not in left)
    ]
    return {file for each in kept for file in (each.file, each.script) if file}


def _test(name: str) -> str:
    """The name of a finding's file without the number of the shard that wrote it."""
    return re.sub(r"(-shard\d+)?\.yaml\Z", "", name)


def _empty(folder: Path, found: Ended, kept: set[str]) -> int:
    """Remove a run's files but those in `kept`; return their bytes on the disk.

    Raises
    ------
    _Left, StoreError, OSError
    """
    if folder.is_symlink():
        raise _Left("is a link")
    files = _files(folder)
    if DATABASE in files:
        # It holds the lock until all is gone, so that nobody resumes the run meanwhile.
        with Store(folder, write=True) as store:
            _check(store, folder, found, files)
            return _remove(folder, _files(folder), kept)
    if has_writer(folder) or not set(files) <= {*kept, STATS, "lock", JSON}:
        raise _Left(f"has no {DATABASE}")
    return _remove(folder, files, kept)


def _files(folder: Path) -> dict[str, int]:
    """The files in a folder of a campaign, with their bytes on the disk.

    Raises
    ------
    _Left
        If something else is in it.
    """
    found = {}
    pending = [""]
    while pending:
        at = pending.pop()
        with os.scandir(folder / at) as entries:
            for each in entries:
                name = f"{at}/{each.name}" if at else each.name
                status = each.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode) and name in (*_FOLDERS, "shards"):
                    pending.append(name)
                elif not stat.S_ISREG(status.st_mode) or not (
                    name in (*FILES, *_LAST) or (at in _FOLDERS and is_campaign_file(name))
                ):
                    raise _Left(f"holds {name!r:.80}, which no campaign has written")
                else:
                    found[name] = status.st_blocks * 512
    return found


def _check(store: Store, folder: Path, found: Ended, files: dict[str, int]) -> None:
    """Raise if this is not the run that its report describes, or somebody may need it."""
    report = store.fold.report(str(folder))
    try:
        same = read(folder / JSON) == found and (report.campaign, report.number) == (
            found.campaign,
            found.number,
        )
    except (OtherVersion, OSError, msgspec.MsgspecError):
        same = False
    if not same:
        raise _Left("its report is of another run, or was changed")
    if store.running or report.ended is None:
        raise _Left("has not ended; --resume ends it")
    if report.interrupted:
        raise _Left("was interrupted; --resume ends it")
    named = {file for _, event in store.events() for file in files_of(event)}
    for name in files:
        if "/" in name and name not in named:
            raise _Left(f"holds {name!r:.80}, which no campaign has written")


def _remove(folder: Path, files: dict[str, int], kept: set[str]) -> int:
    """Remove files, the report last, and the folders that are empty then."""
    gone = sorted(set(files) - kept - {STATS}, key=lambda each: (each in _LAST, _place(each)))
    for name in gone:
        (folder / name).unlink(missing_ok=True)
    for name in (*_FOLDERS, "shards"):
        if (folder / name).is_dir() and not any((folder / name).iterdir()):
            (folder / name).rmdir()
    return sum(files[name] for name in gone)


def _place(name: str) -> int:
    return _LAST.index(name) if name in _LAST else 0
