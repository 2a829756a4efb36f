"""Campaigns with a known cause: it is not reduced again, and nothing hides behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from campaign.campaigns import Run

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import TORN, Outcome
from litmusfuzz.corpus.textfile import Entry, Finding
from litmusfuzz.fuzz.campaign.canonical import key_of
from litmusfuzz.fuzz.campaign.findings import MinimizedFinding
from litmusfuzz.fuzz.campaign.settings import Settings
from litmusfuzz.fuzz.executors.table import executor_class
from litmusfuzz.reports.events import (
    CauseChecked,
    CauseCompared,
    Executed,
    FindingAdded,
    ReductionStarted,
    SeenAgain,
)

if TYPE_CHECKING:
    from pathlib import Path

TESTS = 80
COUNT = 64
BESIDE, TWICE = "X[0]=1 || r0=X", "X[0]=1 || X[0]=2"


def tear(executor: str, notation: str) -> MinimizedFinding:
    """A tear that the known-findings file names, minimized, in the plain configuration."""
    test = litmus(notation, shape=(1, 2))
    values = {name: TORN if name == "r0" else (1,) for name in test.names}
    values = values if "r0" in values else dict.fromkeys(test.names, TORN)
    found = Finding(
        executor=executor,
        configuration="plain",
        model="executor",
        forbidden=((Outcome.of(test, values), 200),),
        executions=1000,
        noise={},
        settings={"early": False},
        versions={},
        seed=0,
        index=0,
        family="sparse",
        minimized=True,
        confirmed=True,
    )
    entry = Entry(test, {}, found)
    return MinimizedFinding(entry, key_of(entry), {"plain"}, cause="tear", unchecked=True)


def campaign(folder: Path, executor: str, configs: tuple[str, ...] = ("plain",)) -> Run:
    made = {each.name: each for each in executor_class(executor).configurations()}
    return Run(
        Settings(
            seed=2,
            time_s=600,
            out=folder / "out",
            executors=((executor, *(made[name] for name in configs)),),
            tests=TESTS,
            families=("sparse",),
            count=COUNT,
            model=None,
        ),
        known=[tear(executor, BESIDE), tear(executor, TWICE)],
    )


@pytest.fixture(scope="module")
def torn(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return campaign(tmp_path_factory.mktemp("torn"), "mutant/torn-scatter").run()


def test_what_is_known_is_counted_and_few_are_reduced(torn: Run) -> None:
    """The look-alikes of a cause that are reduced are the 2nd, the 8th, the 32nd, ..."""
    shown = [each for each in torn.of(Executed) if "forbidden" in each.verdicts]
    assert len(shown) > 20
    keys = {each.key for each in torn.known}
    sightings = [each for each in torn.of(SeenAgain) if each.key in keys]
    assert len(sightings) >= 0.8 * len(shown)
    assert len(torn.of(ReductionStarted)) <= len(shown) / 2
    assert not torn.report.pending


def test_a_known_cause_earns_no_credit_and_its_state_is_news(torn: Run) -> None:
    assert all(
        event.cause not in ("torn + ResourceScatter + read",) for event in torn.of(FindingAdded)
    )
    checked = {each.cause: each.shows for each in torn.of(CauseChecked)}
    assert set(checked) <= {each.key for each in torn.known}
    assert all(checked.values())


def test_a_cause_that_no_longer_shows_is_reported(tmp_path: Path) -> None:
    sound = campaign(tmp_path, "control/torn-scatter").run()
    checked = sound.of(CauseChecked)
    assert [each.shows for each in checked] == [False, False]
    assert all(each.executions > 0 == each.seen for each in checked)


@pytest.mark.parametrize(
    ("executor", "configs", "symptom"),
    [
        ("mutant/early-scatter", ("plain", "early"), "torn"),
        ("mutant/forgotten-scatter", ("plain",), "wrong"),
    ],
)
def test_a_defect_behind_a_known_tear_is_a_cause_of_its_own(
    tmp_path: Path, executor: str, configs: tuple[str, ...], symptom: str
) -> None:
    """Seeds are fixed, and the mutants take no time: the campaign is the same each time."""
    ended = campaign(tmp_path, executor, configs).run()
    new = [each for each in ended.report.findings if each.entry.finding is not None]
    after = [
        each
        for each in new
        if {node.definition.kernel_class for node in each.entry.test.effects}
        == {"ResourceScatter", "read"}
    ]
    assert after
    for each in after:
        assert each.entry.finding is not None
        assert each.entry.finding.configuration == configs[-1]
        write, read = sorted(
            each.entry.test.effects, key=lambda node: node.definition.kind != "update"
        )
    apart = [each for each in ended.of(CauseCompared) if each.finding in {e.key for e in after}]
    assert {each.verdict for each in apart} == {"new"}
    assert all(each.experiments for each in apart)
