"""Control on other releases of TensorFlow, each in an environment of its own.

``python -m tests.executors.other_releases --python PATH...`` runs the same checks on the
TensorFlow of each interpreter: every schedule of known tests by ops, by locks and by pages, in a
forked worker and in a spawned one; and every schedule of ops of the corpus (of each ``--each``-th
test), whose outcomes must be those allowed without a split update. It prints a line for each check
and one for each release, and exits with 1 if one fails.

What a test shows may differ between releases, since kernels take other locks: `known` has it.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.library import FOLDERS
from litmusfuzz.corpus.textfile import load
from litmusfuzz.fuzz.commands.exploration import explore
from litmusfuzz.fuzz.executors import interpreter, messages
from litmusfuzz.fuzz.executors.protocol import Unavailable
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR
from tests.executors.control_tests import GATHER_IN_PARTS, TWO_UPDATES, two_pages
from tests.executors.every_schedule import UNSPLIT, reason_for_less

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.commands.exploration import Exploration

NAME: Final = "TensorFlow "
LITMUS, FINDINGS = FOLDERS
LEVELS: Final = ("controlled", "controlled_locks", "controlled_pages", "controlled_touches")
LIMIT: Final = 20_000
_START_S: Final = 300.0
"""For a reply of a new worker: it imports TensorFlow, and may compile our library."""


class Shown(NamedTuple):
    """What all schedules of a test show at one level: how many outcomes and how many schedules.

    Parameters
    ----------
    outcomes : int
    forbidden : int
        How many of the outcomes the model forbids.
    schedules : int
    wrong : int
        How many of the schedules have a forbidden outcome.
    """

    outcomes: int
    forbidden: int
    schedules: int
    wrong: int

    def __str__(self) -> str:
        shown = f"{self.outcomes} outcomes in {self.schedules} schedules"
        if not self.forbidden:
            return f"{shown}, all allowed"
        return f"{shown}, {self.forbidden} forbidden in {self.wrong} of them"


@dataclass(frozen=True, slots=True)
class Known:
    """A test at one level of control, and what it shows.

    Parameters
    ----------
    shows : Shown
        On every release that is not among the `others`.
    others : mapping of str to Shown
        By release.
    """

    test: LitmusTest
    config: str
    shows: Shown
    others: Mapping[str, Shown] = field(default_factory=dict)


def known() -> Iterator[Known]:
    """The tests that are known at each level, measured on releases 2.16 to 2.21.

    A sparse update excludes a read until release 2.16. Until 2.18, a read takes one lock less.
    """
    sb = litmus("X=1; r0=Y || Y=1; r1=X").titled("SB")
    twice = load(FINDINGS / "first-assignment-writes-twice.yaml").test
    scatter = two_pages("scatter-beside-read")
    sliced = two_pages("slice-assign-beside-read")
    yield Known(load(LITMUS / "IRIW.yaml").test, "controlled", Shown(15, 0, 15, 0))
    yield Known(sb, "controlled", Shown(3, 0, 3, 0))
    for config in ("controlled_locks", "controlled_pages"):
        yield Known(sb, config, Shown(3, 0, 58, 0))
    yield Known(twice, "controlled", Shown(2, 0, 2, 0))
    yield Known(twice, "controlled_locks", Shown(3, 1, 19, 4))
    older = {"2.16": Shown(2, 0, 25, 0), "2.18": Shown(2, 0, 20, 0)}
    yield Known(scatter, "controlled_locks", Shown(2, 0, 35, 0), older)
    older = {"2.16": Shown(2, 0, 66, 0), "2.18": Shown(3, 1, 792, 266)}
    yield Known(scatter, "controlled_pages", Shown(3, 1, 1716, 518), older)
    older = dict.fromkeys(("2.16", "2.18"), Shown(3, 1, 147, 35))
    yield Known(sliced, "controlled_pages", Shown(3, 1, 209, 60), older)
    older = {"2.16": Shown(2, 0, 281, 0), "2.18": Shown(3, 1, 924, 210)}
    yield Known(TWO_UPDATES, "controlled_touches", Shown(3, 1, 3003, 1134), older)
    added = load(FINDINGS / "slice-assign-beside-add.yaml").test
    yield Known(added, "controlled_touches", Shown(3, 1, 272, 70))
    older = {"2.16": Shown(2, 0, 153, 0)}
    parts = "control=locks;intra_op_threads=4"
    yield Known(GATHER_IN_PARTS, parts, Shown(7, 5, 360, 138), older)
    regions = load(LITMUS / "cl-2-2w.yaml").test
    yield Known(regions, "compiled=region;control=ops", Shown(2, 0, 2, 0))


class Release:
    """The checks of one interpreter."""

    def __init__(self, python: str) -> None:
        self.python = python
        self.failed = 0
        self.version = ""

    def say(self, what: str, *, good: bool) -> None:
        """Print the result of a check, and count it if it has failed."""
        self.failed += not good
        print(f"{'ok' if good else 'FAILED'}: {self.version}: {what}", flush=True)

    def check(self, each: int) -> None:
        """Run all checks."""
        with closing(Worker("tf", python=self.python)) as worker:
            reply = worker.ask(messages.Request(), _START_S)
            if isinstance(reply, Died) or reply.unavailable:
                said = reply.message if isinstance(reply, Died) else reply.unavailable
                self.say(f"{self.python}: {said}", good=False)
                return
            self.version = f"{NAME}{reply.versions['tensorflow']}"
            self.say(", ".join(f"{k} {v}" for k, v in reply.versions.items()), good=True)
            self.levels(worker)
            if each:
                self.corpus(worker, each)
            self.say(f"workers are {worker.start_method}", good=worker.start_method == "forked")
        with closing(Worker("tf", python=self.python, spawn=True)) as worker:
            self.levels(worker)
            self.say(f"workers are {worker.start_method}", good=True)

    def levels(self, worker: Worker) -> None:
        """Ask for each level, and execute every schedule of the known tests."""
        for level in LEVELS:
            reply = worker.ask(messages.Request(config=level), _START_S)
            why = reply.message if isinstance(reply, Died) else reply.unavailable
            self.say(f"{level}: {why or 'available'}", good=not why)
        for case in known():
            self.known(worker, case)

    def known(self, worker: Worker, case: Known) -> None:
        """Execute every schedule of a test, and compare with what is known of it."""
        found = explore(case.test, worker, configuration("tf", case.config), LIMIT)
        where = f"{case.test.name}, {case.config}"
        if found.problem or found.stopped or found.last is None:
            self.say(f"{where}: {found.problem or found.stopped}", good=False)
            return
        allowed = set(Explorer(case.test, EXECUTOR).allowed_outcomes().witnesses)
        wrong = found.found.keys() - allowed
        counts = found.last.histogram
        of_wrong = sum(counts.get(each, 0) for each in wrong)
        shown = Shown(len(found.found), len(wrong), sum(counts.values()), of_wrong)
        expected = case.others.get(self.version.removeprefix(NAME).rpartition(".")[0], case.shows)
        note = "" if shown == expected else f"; known is {expected}"
        self.say(f"{where}: {shown}{note}", good=shown == expected)

    def corpus(self, worker: Worker, each: int) -> None:
        """Execute every schedule of ops of a share of the corpus."""
        equal = less = refused = executions = 0
        began = time.monotonic()
        for path in sorted(LITMUS.glob("*.yaml"))[::each]:
            test = load(path).test
            found = explore(test, worker, configuration("tf", "controlled"), LIMIT)
            if found.problem and test.clusters:
                refused += 1
                continue
            executions += found.last.executions if found.last else 0
            if problem := _problem(test, found):
                self.say(f"{path.stem}: {problem}", good=False)
            elif reason_for_less(test):
                less += 1
            else:
                equal += 1
        says = f"{equal} tests of the corpus show what is allowed, {less} a part of it"
        seconds = time.monotonic() - began
        says += f", {refused} refused; {executions:,} executions, {seconds:.0f} s"
        self.say(says, good=equal > 0)


def _problem(test: LitmusTest, found: Exploration) -> str:
    """How the outcomes of all schedules of ops differ from those allowed; "" if they do not."""
    if found.problem or found.stopped:
        return found.problem or found.stopped
    allowed = set(Explorer(test, UNSPLIT, loosest=True).allowed_outcomes().witnesses)
    if more := found.found.keys() - allowed:
        return f"forbidden: {'; '.join(sorted(map(str, more)))}"
    if (lacking := allowed - found.found.keys()) and not reason_for_less(test):
        return f"not shown: {'; '.join(sorted(map(str, lacking)))}"
    return ""


def main() -> int:
    """Check each interpreter."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--python", nargs="+", required=True, help="interpreters")
    parser.add_argument("--each", type=int, default=1, help="each N-th test; 0: none")
    args = parser.parse_args()
    failed = 0
    for path in args.python:
        try:
            release = Release(interpreter.interpreter(path))
        except Unavailable as error:
            print(f"FAILED: {error}")
            failed += 1
            continue
        release.check(args.each)
        failed += release.failed
        print(f"{release.version or path}: {release.failed} checks failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
