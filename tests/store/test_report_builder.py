"""The report of a store: known findings, pending tests, worker deaths, earlier campaigns."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from helpers_events import (
    CONFIGURED,
    PLAIN,
    STARTED,
    RandomCampaign,
    added,
    died,
    executed,
    finding_text,
    litmus_text,
    shown,
    started,
)

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import dumps, loads
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.finding.known_findings import Cause, KnownFinding, KnownFindings, Pattern
from litmusfuzz.fuzz.finding.trials import Case
from litmusfuzz.fuzz.finding.versions import Versions
from litmusfuzz.fuzz.finding.worker_deaths import group_deaths, key_of_death
from litmusfuzz.fuzz.store.folder import DATABASE
from litmusfuzz.fuzz.store.report_builder import ReportBuilder
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports.events import (
    CampaignEnded,
    CanaryRun,
    CauseChecked,
    CauseCompared,
    FindingAdded,
    FindingKind,
    Kill,
    MutantRun,
    ReductionEnded,
    ReductionStarted,
    SeenAgain,
    ShardEnded,
    ShardPlanned,
    ShardStarted,
    WorkerDied,
)
from litmusfuzz.reports.html import page
from litmusfuzz.reports.junit import junit
from litmusfuzz.reports.outputs import JSON, write_all
from litmusfuzz.reports.sections import sections
from litmusfuzz.reports.summary import summary

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from litmusfuzz.reports.events import AnyEvent
    from litmusfuzz.reports.report import Report

KEY = "v3-0000000000000001"


def append(store: Store, shard: int, event: AnyEvent, text: str = "") -> None:
    """Store an event of a shard, whose process has written its file."""
    file = getattr(event, "unreduced", None) or getattr(event, "file", None)
    if file:
        path = store.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text or getattr(event, "entry", litmus_text()))
        path.with_suffix(".py").write_text("print()")
    store.append(shard, event)


def begun(folder: Path, **settings: Any) -> Store:
    store = Store(folder, write=True)
    store.append(0, started(PLAIN, **settings))
    store.append(1, ShardPlanned(at=STARTED, configurations={"native": ("plain",)}))
    return store


def found(store: Store, *, more: int = 1, at: float = 0.0) -> None:
    """A finding, and more tests that show it."""
    first = shown(1, at + 1)
    append(store, 1, first)
    event = added(first, KEY, "findings/a.yaml", at=STARTED + at + 2, executor_class="native/rfc")
    append(store, 1, event)
    for index in range(2, 2 + more):
        append(store, 1, shown(index, at + index + 1, key=KEY))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A campaign with a finding that two tests show."""
    with begun(tmp_path / "n") as store:
        found(store)
        yield store


def built(store: Store, *entries: KnownFinding) -> Report:
    return ReportBuilder(store, KnownFindings(entries)).build()


# --- known findings --------------------------------------------------------------------


def test_a_finding_is_known_by_its_key(store: Store) -> None:
    other = KnownFinding("gone", "v3-0000000000000000")
    report = built(store, KnownFinding("because", KEY), other)
    assert [each.known for each in report.findings] == ["because"]
    assert [each.seen for each in report.known] == [True, False]
    assert report.exit_code() == 0
    report = built(store, other)
    assert ([each.key for each in report.new], report.exit_code()) == ([KEY], 1)


def known_cause(shape: str, symptom: str = "", **changes: Any) -> KnownFinding:
    """An entry with a shape as its cause."""
    entry = loads(finding_text(shape, "native", "plain", "dag", 5, "cause.yaml"))
    assert entry.finding is not None
    case = replace(Case.of(entry.test, entry.finding), **changes)
    case = replace(case, symptoms=(symptom,)) if symptom else case
    cause = Cause("cause.yaml", entry, case)
    return KnownFinding("because", cause=cause, name="tears")


def test_a_pending_test_is_new_unless_a_known_finding_may_explain_it(tmp_path: Path) -> None:
    text = finding_text("MP", "native", "plain", "dag", 5, "unreduced/5.yaml")
    with begun(tmp_path / "n") as store:
        first = shown(5, 1.0)
        append(store, 1, first, text)
        assert (built(store).undecided, built(store).exit_code()) == (1, 1)
        known = built(store, known_cause("MP"))
        assert (known.undecided, known.exit_code()) == (0, 3)
        assert known.may_be_known == {first.unreduced: ("tears",)}
        assert [each.may_explain for each in known.known] == [1]
        other = configuration("native", "engine=fifo;threads=2")
        for wrong in (
            known_cause("SB"),
            known_cause("MP", "blocked"),
            known_cause("MP", executor="tf", config=configuration("tf", "plain")),
            known_cause("MP", config=other),
        ):
            assert built(store, wrong).undecided == 1
        # Experiments have shown that something else hides behind the cause.
        compared = CauseCompared(
            index=first.index,
            executor=first.executor,
            configuration=first.configuration,
            cause=known_cause("MP").key,
            verdict="new",
            seconds=0.5,
        )
        append(store, 1, compared)
        assert built(store, known_cause("MP")).undecided == 1


def test_a_cause_has_its_graphs_its_time_and_whether_it_still_shows(tmp_path: Path) -> None:
    entry = known_cause("MP")
    of = {"executor": "native", "configuration": "plain"}
    with Store(tmp_path / "n", write=True) as store:
        store.append(0, started(PLAIN))
        two = {"native": ("plain",)}
        store.append(1, ShardPlanned(at=STARTED, configurations=two, workers=2))
        for index in (1, 2):
            append(store, 1, shown(index, float(index)))
        append(store, 1, SeenAgain(index=1, **of, key=entry.key))
        append(store, 1, ReductionStarted(index=2, **of))
        append(store, 1, SeenAgain(index=2, **of, key=entry.key))
        append(store, 1, ReductionEnded(index=2, **of, key=entry.key, known=True, seconds=2.0))
        verdict = {"cause": entry.key, "verdict": "undecided", "seconds": 0.5}
        append(store, 1, CauseCompared(index=1, **of, **verdict))
        gone = {"executions": 900, "seen": 0, "shows": False, "seconds": 1.5}
        append(store, 1, CauseChecked(cause=entry.key, **of, **gone))
        append(store, 1, ShardEnded(seconds=50.0))
        report = built(store, entry)
        (known,) = report.known
        assert (known.name, known.graphs, known.checked, known.undecided) == ("tears", 2, 1, 1)
        assert known.configurations == {"plain": 2}
        assert known.seconds == report.known_s == 4.0
        assert report.known_share == pytest.approx(4.0 / 100.0)
        # Two graphs look like it: nobody says that it no longer shows.
        state = "its own test did not show it in 900 executions; 2 graphs here may have"
        assert known.state == state
        assert "no longer shown" not in report.verdict
        # Of the first, no experiment has decided whether something else shows as well.
        (left,) = report.open_tests
        assert (left.index, left.state, left.known) == (1, "undecided", ("tears",))
        (causes,) = (each for each in sections(report) if each.name == "causes")
        notes = dict(causes.notes)
        assert notes["time on what is known"] == "4.0 s, 4.0%"
        assert notes["tears"] == "1 graph may show something else as well"
        (row,) = causes.rows
        assert row[:3] == ("tears", "in configuration plain", "2")
        assert row[-1] == known.state


def test_what_is_undecided_is_kept_and_names_the_cause(store: Store) -> None:
    entry = known_cause("MP")
    of = {"executor": "native", "configuration": "plain"}
    compared = CauseCompared(
        index=1, **of, finding=KEY, cause=entry.key, verdict="undecided", why="whether it shows"
    )
    append(store, 1, compared)
    report = built(store, entry)
    (found,) = report.new
    assert found.undecided == ("tears",)
    (causes,) = (each for each in sections(report) if each.name == "causes")
    assert "may be explained by tears; both are kept" in dict(causes.notes).values()


@pytest.mark.parametrize(("shape", "undecided"), [("MP", 0), ("SB", 1)])
def test_a_finding_known_by_its_key_explains_tests_that_contain_it(
    tmp_path: Path, shape: str, undecided: int
) -> None:
    """It is compared again after each new known finding."""
    text = finding_text("MP", "native", "plain", "dag", 5, "unreduced/5.yaml")
    with begun(tmp_path / "n") as store:
        append(store, 1, shown(5, 1.0), text)
        builder = ReportBuilder(store, KnownFindings((KnownFinding("w", KEY),)))
        assert builder.build().undecided == 1
        first = shown(1, 1.0)
        append(store, 1, first)
        entry = finding_text(shape, "native", "plain", "dag", 1, "findings/a.yaml")
        append(
            store,
            1,
            added(
                *(first, KEY, "findings/a.yaml"),
                at=STARTED + 2,
                executor_class="native/rfc",
                entry=entry,
                histogram=(),
            ),
        )
        assert builder.build().undecided == undecided


# --- files -----------------------------------------------------------------------------


def test_a_missing_file_of_a_finding_is_a_problem_and_nothing_is_lost(
    store: Store, tmp_path: Path
) -> None:
    (tmp_path / "n/findings/a.yaml").unlink()
    report = built(store, KnownFinding("because", KEY))
    assert [each.count for each in report.findings] == [2]
    assert report.exit_code() == 2
    assert str(tmp_path / "n/findings/a.yaml") in report.problem
    write_all(report, tmp_path / "n")
    assert (tmp_path / "n/report.html").is_file()


@pytest.mark.parametrize("gone", [False, True])
def test_an_unreadable_pending_test_is_a_problem_until_it_is_back(
    store: Store, tmp_path: Path, *, gone: bool
) -> None:
    append(store, 1, shown(5, 9.0), finding_text("MP", "native", "plain", "dag", 5, "u.yaml"))
    path = tmp_path / "n/unreduced/5.yaml"
    text = path.read_text()
    builder = ReportBuilder(store, KnownFindings((KnownFinding("because", KEY),)))
    if gone:
        path.unlink()
    else:
        path.write_text(text.replace("finding:", "findings:"))
    report = builder.build()
    assert (report.undecided, report.exit_code()) == (1, 2)
    assert str(path) in report.problem
    path.write_text(text)
    assert not builder.build().problem


# --- worker deaths ---------------------------------------------------------------------


def test_deaths_that_look_alike_are_one_finding() -> None:
    def death(message: str, *ops: str) -> WorkerDied:
        return died(1.0, message=message, ops=ops)

    deaths = [
        death("signal 6: free(): invalid pointer 0x7f10", "read", "A", "S"),
        death("signal 6: free(): invalid pointer 0x7f99", "B", "S"),
        death("signal 6: free(): invalid pointer 0x7f11", "A", "S"),
        death("signal 6: free(): invalid pointer 1", "B"),
        death("signal 11", "S"),
        death("signal 11", "read"),
    ]
    groups = group_deaths(deaths, lambda _: "")
    assert [(each.pattern[:9], each.op, len(each.deaths)) for each in groups] == [
        ("signal 6:", "S", 3),
        ("signal 6:", "B", 1),
        ("signal 11", "S", 1),
        ("signal 11", "read", 1),
    ]
    assert len({key for each in groups for key in each.ops}) == 5
    # Who else is there does not matter; the numbers in the words do not either.
    alone = {key_of_death(death) for death in deaths}
    assert alone == {key for each in groups for key in each.ops}


def test_of_crashes_that_look_alike_some_may_be_known(store: Store, tmp_path: Path) -> None:
    for number, ops in enumerate((("A", "S"), ("B", "S")), 1):
        append(store, 1, died(20.0 + number, file=f"crashed/{number}.yaml", ops=ops))

    def crashes(*keys: str) -> list[tuple[int, str, tuple[str, ...]]]:
        report = built(store, *(KnownFinding("w", key) for key in keys))
        found = [each for each in report.findings if each.kind == "crashed"]
        return [
            (each.in_this_run, each.known, (each.key, *map(key, each.also_on))) for each in found
        ]

    def key(ops: tuple[str, ...]) -> str:
        return key_of_death(died(1.0, ops=ops))

    ((both, why, (first, second)),) = crashes()
    assert (both, why) == (2, "")
    assert crashes(first) == [(1, "w", (first,)), (1, "", (second,))]
    assert crashes(first, second) == [(2, "w", (first, second))]
    files = {"crashed/1.yaml", "crashed/2.yaml"}
    assert ReportBuilder(store, KnownFindings()).kept == files
    # What was deleted since the disk was too small is no damage.
    (tmp_path / "n/crashed/2.yaml").unlink()
    report = built(store)
    assert not report.problem
    assert [each.in_this_run for each in report.findings if each.kind == "crashed"] == [2]


def test_a_crash_known_by_its_kernels_stays_known_in_each_report(store: Store) -> None:
    """Also where its file is asked for first, as after a campaign that has ended."""
    append(store, 1, died(20.0, ops=("read", "assign")))
    effects = loads(litmus_text()).test.effects
    kernels = tuple(sorted({node.definition.kernel_class for node in effects}))
    crash = Pattern(("crashed",), kernels, ("native/rfc",))
    builder = ReportBuilder(store, KnownFindings((KnownFinding("the heap", pattern=crash),)))
    assert builder.kept == {"crashed/1.yaml"}
    for _ in range(2):
        report = builder.build()
        assert [each.seen for each in report.known] == [True]
        assert [each.known for each in report.findings if each.kind == "crashed"] == ["the heap"]


def test_what_is_known_of_other_versions_is_new(store: Store) -> None:
    """The worker's version counts; each entry of another one is left out of the report."""
    versions = {"native": {"framework": "2.21.0", "python": "3.12.1"}}
    here, there = (Versions((("framework", each, each),)) for each in ("2.21", "2.22"))
    started = ShardStarted(at=STARTED, host="h", pid=1, versions=versions)
    not_yet = built(store, KnownFinding("because", KEY, versions=here))
    assert ([each.known for each in not_yet.findings], not_yet.known) == ([""], ())
    append(store, 1, started)
    known = built(store, KnownFinding("because", KEY, versions=here))
    assert [each.known for each in known.findings] == ["because"]
    assert [(each.seen, each.graphs, each.file) for each in known.known] == [
        (True, 2, "findings/a.yaml")
    ]
    assert known.verdict.endswith("; 1 known cause showed")
    new = built(store, KnownFinding("because", KEY, versions=there))
    assert ([each.known for each in new.findings], new.known) == ([""], ())
    assert (new.exit_code(), new.verdict) == (1, "1 new finding so far")
    crash = died(20.0, ops=("read",), file="crashed/1.yaml")
    append(store, 1, crash)
    kernels = ("read", "AssignVariableOp", "AssignAddVariableOp")
    pattern = Pattern(("crashed",), kernels, ("native/rfc",))
    for range_, why in ((here, "heap"), (there, "")):
        entry = KnownFinding("heap", pattern=pattern, name="heap", versions=range_)
        report = built(store, entry)
        assert [each.known for each in report.findings if each.kind == "crashed"] == [why]


def started_with(store: Store, shard: int, framework: str) -> None:
    """A shard whose workers have that version; the first is planned."""
    if shard > 1:
        append(store, shard, ShardPlanned(at=STARTED, configurations={"native": ("plain",)}))
    versions = {"native": {"framework": framework}}
    append(store, shard, ShardStarted(at=STARTED, host="h", pid=shard, versions=versions))


@pytest.mark.parametrize("again", ["executed", "seen again", "unsound"])
def test_a_finding_is_known_if_it_is_in_each_version_that_showed_it(
    tmp_path: Path, again: str
) -> None:
    """The campaign was resumed with another framework; whichever comes last hides nothing."""
    here, both = (Versions((("framework", "2.21", each),)) for each in ("2.21", "2.22"))
    because = KnownFinding("because", KEY, versions=here)
    with begun(tmp_path / "n") as store:
        started_with(store, 1, "2.21.0")
        found(store, more=0)
        started_with(store, 2, "2.22.0")
        builder = ReportBuilder(store, KnownFindings((because,)))
        report = builder.build()  # nothing has shown it in 2.22
        assert ([each.known for each in report.findings], report.exit_code()) == (["because"], 0)
        assert report.versions == {"native": {"framework": "2.21.0, 2.22.0"}}
        if again == "executed":
            append(store, 2, shown(9, 9.0, key=KEY))
        else:
            of = {"executor": "native", "configuration": "plain", "key": KEY}
            if again == "seen again":
                append(store, 1, shown(9, 9.0))
            index = 9 if again == "seen again" else None
            append(store, 2, SeenAgain(at=STARTED + 10, index=index, **of))
        started_with(store, 3, "2.21.0")
        for each in (builder, ReportBuilder(store, KnownFindings((because,)))):
            report = each.build()
            assert ([each.known for each in report.findings], report.exit_code()) == ([""], 1)
            assert [each.seen for each in report.known] == [False]
        report = built(store, KnownFinding("because", KEY, versions=both))
        assert ([each.known for each in report.findings], report.exit_code()) == (["because"], 0)


@pytest.mark.parametrize("last", ["2.21.0", "2.22.0"])
def test_a_crash_is_known_if_it_is_in_each_version_that_had_it(tmp_path: Path, last: str) -> None:
    heap = KnownFinding(
        "heap", key_of_death(died(1.0)), versions=Versions((("framework", "2.21", "2.21"),))
    )
    with begun(tmp_path / "n") as store:
        started_with(store, 1, "2.21.0")
        append(store, 1, died(1.0))
        builder = ReportBuilder(store, KnownFindings((heap,)))
        started_with(store, 2, "2.22.0")
        assert [each.known for each in builder.build().findings] == ["heap"]
        append(store, 2, died(2.0, file="crashed/2.yaml"))
        started_with(store, 3, last)
        report = builder.build()
        assert [(each.known, each.in_this_run) for each in report.findings] == [("", 2)]


@pytest.mark.parametrize("last", ["2.21.0", "2.22.0"])
def test_an_open_test_may_be_known_in_the_version_that_it_ran_in(tmp_path: Path, last: str) -> None:
    text = finding_text("MP", "native", "plain", "dag", 5, "unreduced/5.yaml")
    entry = loads(text)
    assert entry.finding is not None
    with begun(tmp_path / "n") as store:
        for version, undecided in (("2.21.0", 0), ("2.22.0", 1)):
            ran = replace(entry.finding, versions={"framework": version})
            shard = 2 if undecided else 1
            started_with(store, shard, version)
            index = 4 + shard
            text = dumps(replace(entry, finding=replace(ran, index=index)))
            append(store, shard, shown(index, 1.0), text)
        started_with(store, 3, last)
        tears = replace(known_cause("MP"), versions=Versions((("framework", "2.21", "2.21"),)))
        report = built(store, tears)
        assert report.may_be_known == {"unreduced/5.yaml": ("tears",)}
        assert (report.undecided, report.exit_code()) == (1, 1)


def test_a_crash_is_reported_with_its_test_and_how_to_repeat_it(store: Store) -> None:
    """Each shard calls its first ``crashed-7-1``; JUnit knows cases by their names."""
    for shard, suffix in ((1, ""), (2, "-shard2")):
        file = f"crashed/crashed-7-1{suffix}.yaml"
        append(store, shard, died(20.0 + shard, message=f"signal {shard}: ", file=file))
    crashes = [each for each in built(store).findings if each.kind == "crashed"]
    assert [each.entry.test.name for each in crashes] == ["crashed-7-1", "crashed-7-1-shard2"]
    assert crashes[0].replay == (
        f"litmusfuzz replay {store.folder}/crashed/crashed-7-1.yaml --executors native:plain"
    )
    assert crashes[0].reason == ("signal 1: ", "in 1 test with read")
    assert (crashes[0].first_seen, crashes[0].configs) == (STARTED + 21, {"plain": 1})


# --- earlier campaigns -----------------------------------------------------------------


def test_sightings_of_earlier_campaigns_are_counted(store: Store, tmp_path: Path) -> None:
    with begun(tmp_path / "later", number=1, seed=2) as later:
        found(later, more=2, at=100.0)
        assert built(later).earlier == ()  # the first goes on
        first = replace(built(store), ended=int(STARTED) + 60)
        write_all(built(store), store.folder)
        assert built(later).earlier == ()  # and is not believed before its end
        write_all(first, store.folder)
        report = built(later)
        assert built(store).earlier == ()  # its own report is none of an earlier campaign
    (line,) = report.earlier
    assert (line.started, line.findings, line.new) == (STARTED, 1, 1)
    assert (line.graphs, line.outcomes) == (first.graphs, first.outcomes) == (2, 128)
    (finding,) = report.findings
    assert (finding.in_this_run, finding.count) == (3, 5)
    assert (finding.first_seen, finding.last_seen) == (STARTED + 2, STARTED + 104)


def test_copies_of_a_campaign_count_once(store: Store, tmp_path: Path) -> None:
    ended = replace(built(store), ended=int(STARTED) + 60)
    write_all(ended, store.folder)
    for copy in ("copy", "another"):
        (tmp_path / copy).mkdir()
        write_all(ended, tmp_path / copy)
    assert built(store).earlier == ()  # they are this one
    with begun(tmp_path / "later", number=1, seed=2) as later:
        assert len(built(later).earlier) == 1


def test_a_later_campaign_is_none_of_the_earlier_ones(store: Store, tmp_path: Path) -> None:
    """Nor is it where the clock was set back a day before it."""
    later = replace(built(store), campaign="later", number=1, started=int(STARTED) - 86_400)
    later = replace(later, ended=int(STARTED) - 86_340)
    (tmp_path / "later").mkdir()
    write_all(later, tmp_path / "later")
    assert built(store).earlier == ()


ENDED: dict[str, Any] = {"started": 1, "ended": 2, "seed": 1, "command": ""}
ENDED |= {"graphs": 1, "outcomes": 1, "new": [], "kills": []}
ENDED |= {"mutation_score": None, "findings": []}


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"{",
        b"[]",
        b"5",
        b"\xff",
        json.dumps(ENDED | {"new": 0}).encode(),
        json.dumps(ENDED | {"started": 1 << 60}).encode(),
        json.dumps(ENDED | {"graphs": -1}).encode(),
        json.dumps(ENDED | {"mutation_score": 1e300}).encode(),
        json.dumps(ENDED | {"findings": [{"key": 1}]}).encode(),
        json.dumps(ENDED | {"number": 1 << 50}).encode(),
        json.dumps(ENDED | {"earlier": [{"seen": {"k": [1, -1]}}]}).encode(),
    ],
)
def test_a_damaged_report_beside_a_campaign_is_named_and_left_out(
    store: Store, tmp_path: Path, damaged: bytes
) -> None:
    for name in ("damaged", "whole", "old", "folder", "other"):
        (tmp_path / name).mkdir()
        if name != "other":  # whose report is another program's
            (tmp_path / name / DATABASE).touch()
    whole = replace(built(store), campaign="whole", started=int(STARTED) - 1)
    write_all(replace(whole, ended=int(STARTED) + 60), tmp_path / "whole")
    (tmp_path / "old" / JSON).write_text('{"started": 1}')  # another version, and no damage
    (tmp_path / "damaged" / JSON).write_bytes(damaged)
    (tmp_path / "folder" / JSON).mkdir()
    (tmp_path / "other" / JSON).write_bytes(b"[]")
    report = built(store, KnownFinding("because", KEY))
    assert [each.graphs for each in report.earlier] == [2]
    first, second = report.damaged
    assert first.startswith(f"{tmp_path}/damaged/{JSON}: is damaged: ")
    assert second == f"{tmp_path}/folder/{JSON}: is not a file"
    verdict = "nothing new so far, but a report beside this one is damaged"
    assert (report.exit_code(), report.verdict) == (2, verdict)
    assert built(store).exit_code() == 1  # a new finding is not hidden
    for output in (summary(report), html.unescape(page(report)), junit(report)):
        assert "is not a file" in " ".join(output.split())


# --- checks of LitmusFuzz itself -------------------------------------------------------


def test_a_mutant_that_is_not_reported_breaks_the_campaign(tmp_path: Path) -> None:
    killed = MutantRun(kill=Kill("mutant/stale-reads", "native", 1.5, 7))
    alive = MutantRun(kill=Kill("mutant/early-sink", "native", None, 900))
    with begun(tmp_path / "n", unattended=True) as store:
        append(store, 1, executed(1, 1.0))
        store.append(1, killed, CanaryRun(reported=True))
        store.append(0, CampaignEnded(at=STARTED + 5, spent_s=5.0))
        assert built(store).exit_code() == 0
        store.append(1, alive)
        report = built(store)
        assert (report.exit_code(), report.mutation_score) == (2, 0.5)
        assert [each.mutant for each in report.kills] == [alive.kill.mutant, killed.kill.mutant]


# --- whole campaigns -------------------------------------------------------------------


def test_the_report_of_a_long_campaign_is_the_same_from_a_store_that_is_opened_again(
    tmp_path: Path,
) -> None:
    """Every output can be written of it."""
    with Store(tmp_path / "n", write=True) as store:
        for shard, event in RandomCampaign(5).run(1200):
            text = ""
            if getattr(event, "unreduced", None):
                of = (event.executor, event.configuration, event.family, event.index)
                text = finding_text("MP", *of, "u.yaml")
            append(store, shard, renamed(event), text)
        report = built(store)
    with Store(tmp_path / "n", write=False) as store:
        assert built(store) == report
    assert {each.kind for each in report.findings} >= {FindingKind.FORBIDDEN, FindingKind.UNSOUND}
    assert len([each for each in report.findings if each.kind in ("crashed", "timed out")]) > 2
    assert report.undecided == sum(not each.suspect for each in report.pending) > 0
    left = (*report.pending, *report.unconfirmed, *report.unchecked)
    assert sorted(each.file for each in report.open_tests) == sorted(each.file for each in left)
    assert [each.name for each in report.by_config] == [each.title for each in CONFIGURED]
    assert not report.problem
    write_all(report, tmp_path / "n")


def renamed(event: AnyEvent) -> AnyEvent:
    """A finding's class as the known findings name it."""
    if isinstance(event, FindingAdded) and event.kind is FindingKind.FORBIDDEN:
        return msgspec.structs.replace(event, executor_class=f"{event.executor}/rfc")
    return event
