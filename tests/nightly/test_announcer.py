"""A forbidden outcome is said when it is judged: its file is there, and the store has it."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from campaign.shards import STALE
from helpers_events import finding_text

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import dumps, load, loads
from litmusfuzz.fuzz.finding.known_findings import KnownFindings
from litmusfuzz.fuzz.nightly.announcer import MOST_MORE, MOST_OPEN, Announcer
from litmusfuzz.fuzz.nightly.single import SingleShard
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports.events import (
    CampaignStarted,
    Configured,
    Confirmed,
    Executed,
    FindingAdded,
    ReductionStarted,
    SeenAgain,
    Unconfirmed,
    WorkerDied,
)
from litmusfuzz.reports.seen import Became, SeenTest
from litmusfuzz.reports.stats import read

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.reports.events import Event
    from litmusfuzz.reports.seen import Said

WHERE = {"executor": STALE, "configuration": "plain"}


def test_it_is_said_before_anything_is_confirmed_or_minimized(tmp_path: Path) -> None:
    """Whoever kills the process when it is said finds it in the file, the store and `stats`."""
    folder = tmp_path / "c"
    configured = Configured(STALE, "plain", "executor", "executor", f"{STALE}/executor")
    started = CampaignStarted(
        command="litmusfuzz run",
        seed=1,
        asked_s=600.0,
        tests=30,
        configurations=(configured,),
        families={"dag": 1.0},
        count=64,
    )
    heard: list[Said] = []
    first: list[bool] = []

    def say(said: Said) -> None:
        heard.append(said)
        if not isinstance(said, SeenTest):
            return
        event = said.event
        entry = load(said.file)
        assert entry.finding is not None
        assert entry.finding.index == event.index
        with Store(folder, write=False) as store:  # as another process sees it
            assert event in [each for _, each in store.events_of(Executed)]
            first.append(not any(store.events_of(ReductionStarted)))
        assert int(read((folder / "stats").read_text())["not_minimized"]) >= 1

    with Store(folder, write=True) as store:
        store.append(0, started)
        shard = SingleShard(store, KnownFindings(), lambda _: None, time_s=600.0, say=say)
        report = shard.run()
    assert first[0]
    seen = [each for each in heard if isinstance(each, SeenTest)]
    became = [each for each in heard if isinstance(each, Became)]
    assert 0 < len(seen) <= report.forbidden_graphs
    assert {each.run for each in became} == {each.event.run for each in seen}
    (found, *_) = report.findings
    minimized = [each for each in became if each.what == "minimized"]
    assert str(folder / found.file) in {each.file for each in minimized}


def executed(index: int, folder: Path, **changes: object) -> Executed:
    """A test that showed something forbidden; its file is missing."""
    usual = {"index": index, "family": "dag", "model": "rfc", "run_seed": 1, "count": 64}
    usual |= {"sha256": "", "verdicts": {"forbidden": 3, "allowed": 61}, **WHERE}
    usual |= {"unreduced": f"unreduced/unreduced-1-{index}.yaml", "symptoms": ("wrong",)}
    return Executed(**usual | changes)


def said(announcer: Announcer, *events: Event) -> list[str]:
    """The first line of all that is said."""
    return [each.text().splitlines()[0] for each in announcer.said_of(events)]


def test_few_of_a_kind_are_said_until_it_is_known_what_became_of_them(tmp_path: Path) -> None:
    announcer = Announcer(tmp_path, {"v3-1": "lost-write"}, None)
    tests = [executed(n, tmp_path) for n in range(10)]
    assert len(said(announcer, *tests)) == MOST_OPEN
    # Of another kind are those that are wrong in another way, on another executor, or look known.
    assert said(announcer, executed(10, tmp_path, symptoms=("torn",)))
    assert said(announcer, executed(11, tmp_path, executor="native"))
    (line,) = announcer.said_of([executed(12, tmp_path, looks_like="v3-1")])
    assert "looks like lost-write" in line.text()
    assert not said(announcer, executed(13, tmp_path, looks_like="v3-1"))
    known = SeenAgain(index=1, key="v3-1", **WHERE)
    on = f"graph 1 on {STALE}/plain"
    assert said(announcer, known) == [f"{on}: known cause lost-write"]
    # One more may be said, once, however often it ends.
    refuted = Unconfirmed(index=1, file="unconfirmed/1.yaml", executions=4096, **WHERE)
    list(announcer.said_of([refuted, refuted]))
    assert len(said(announcer, *(executed(n, tmp_path) for n in range(14, 20)))) == 1


def test_the_first_of_a_kind_is_said_however_many_of_others_were(tmp_path: Path) -> None:
    """Tests that look known come by the hundred; one that is wrong in another way is news."""
    announcer = Announcer(tmp_path, {"v3-1": "lost-write"}, None)
    for n in range(2 * MOST_MORE):
        list(announcer.said_of([executed(n, tmp_path, looks_like="v3-1")]))
        list(announcer.said_of([SeenAgain(index=n, key="v3-1", **WHERE)]))
    assert not said(announcer, executed(1000, tmp_path, looks_like="v3-1"))
    assert said(announcer, executed(1001, tmp_path))
    assert said(announcer, executed(1002, tmp_path, symptoms=("torn",)))
    assert said(announcer, executed(1003, tmp_path, executor="native"))
    assert not said(announcer, executed(1004, tmp_path))


def test_what_became_of_a_test_is_said_once_and_only_if_the_test_was(tmp_path: Path) -> None:
    announcer = Announcer(tmp_path, {}, None)
    list(announcer.said_of([executed(1, tmp_path)]))
    on = f"graph 1 on {STALE}/plain"
    died = WorkerDied(
        kind="crashed",
        executor_class="",
        message="",
        file="crashed/1.yaml",
        entry="",
        ops=(),
        suspects=((1, "plain"), (2, "plain")),
        **WHERE,
    )
    doubt = f"{on}: its process crashed later; it counts once a fresh process shows it"
    assert said(announcer, died) == [doubt]
    refuted = Unconfirmed(index=1, file="unconfirmed/1.yaml", executions=4096, **WHERE)
    file = tmp_path / "unconfirmed/1.yaml"
    line = f"{on}: not shown again by a fresh process in 4,096 executions: {file}"
    assert said(announcer, refuted, refuted) == [line]
    again = Confirmed(index=1, **WHERE)
    assert said(announcer, again, again) == [f"{on}: a fresh process shows it again"]
    entry = loads(finding_text("SB", STALE, "plain", "dag", 1, "x.yaml"))
    assert entry.finding is not None
    in_part = replace(entry, finding=replace(entry.finding, minimized=False))
    for made, how_far in (
        (in_part, "minimized in part: the time was up"),
        (entry, "minimized"),
    ):
        found = FindingAdded(
            index=1,
            key="k",
            file="findings/x.yaml",
            entry=dumps(made),
            executor_class="",
            cause="",
            **WHERE,
        )
        assert said(announcer, found) == [f"{on}: {how_far}: {tmp_path / 'findings/x.yaml'}"]
    list(announcer.said_of([executed(3, tmp_path)]))
    same = SeenAgain(index=3, key="k", **WHERE)
    (line,) = said(announcer, same)
    assert line.endswith(f": shows what another one does: {tmp_path / 'findings/x.yaml'}")
    assert not said(announcer, Confirmed(index=2, **WHERE))


def test_a_test_whose_file_is_gone_is_said_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "my c"
    (made,) = Announcer(folder, {}, "/other/python").said_of([executed(7, tmp_path)])
    assert isinstance(made, SeenTest)
    file = folder / "unreduced/unreduced-1-7.yaml"
    assert made.text().splitlines() == [
        f"FORBIDDEN: graph 7 on {STALE}/plain, family dag, judged by rfc",
        "  seen      in 3 of 64 executions",
        f"  file      {file}",
        f"  replay    litmusfuzz replay {shlex.quote(str(file))} --python /other/python",
    ]
    data = json.loads(json.dumps(made.as_json()))
    assert (data["event"], data["forbidden"], data["executions"]) == ("forbidden", 3, 64)
    assert (data["file"], data["replay"]) == (str(file), made.replay)
