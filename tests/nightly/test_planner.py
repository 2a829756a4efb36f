"""The planner: which shard of a nightly run is next."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import pytest
from campaign.shards import STALE, STARTED
from helpers import LITMUS

from litmusfuzz.fuzz.campaign.campaign_executor import MOST_FAMILIES
from litmusfuzz.fuzz.executors.configuration_generator import PRODUCT
from litmusfuzz.fuzz.executors.table import SELFTEST, configuration, executor_class
from litmusfuzz.fuzz.finding.canonical import executor_class as class_of
from litmusfuzz.fuzz.nightly.planner import MAX_FAILURES, MAX_FIRST, ShardPlanner
from litmusfuzz.fuzz.nightly.shard_settings import TESTS_PER_FAMILY
from litmusfuzz.fuzz.store.database import MAX_SHARD
from litmusfuzz.fuzz.store.folder import StoreError
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports.events import (
    CampaignStarted,
    ConfigurationUnavailable,
    Configured,
    Confirmed,
    Event,
    Executed,
    FindingAdded,
    FindingKind,
    Kill,
    MutantRun,
    ShardEnded,
    ShardPlanned,
    WorkerDied,
)

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.fuzz.campaign.shard import Shard

LEFT_S = 30_000.0
FINDING = (LITMUS[0].parents[1] / "findings" / "scatter-beside-read.yaml").read_text()


def started(*executors: tuple[str, *tuple[str, ...]], selftest_s: float = 0.0) -> CampaignStarted:
    """A long campaign of executors, each with its configurations."""
    configurations = []
    for executor, *names in executors:
        for name in names:
            config = configuration(executor, name)
            of = class_of(executor, dict(config.settings), config.guarantees)
            configurations.append(
                Configured(executor, name, config.guarantees, config.guarantees, of)
            )
    return msgspec.structs.replace(
        STARTED,
        asked_s=36_000.0,
        shard_s=10.0,
        workers=2,
        selftest_s=selftest_s,
        configurations=tuple(configurations),
    )


def plan(store: Store, *events: Event) -> Shard:
    """The next shard, which then logs events and ends after 10 s."""
    made = ShardPlanner(store).next_shard(LEFT_S, write_log=False)
    assert made is not None
    shard, files = made
    planned = ShardPlanned(configurations=shard.configurations, minimizes=files)
    store.append(shard.number, planned)
    store.append(shard.number, *events, ShardEnded(seconds=10.0))
    return shard


def of(shard: Shard) -> tuple[str, tuple[str, ...]]:
    """The one executor of a shard, and its configurations."""
    ((executor, configs),) = shard.configurations.items()
    return executor, configs


OF_STALE = re.sub(
    r"settings: \{.*\}", "settings: {}", FINDING.replace("executor: tf\n", f"executor: {STALE}\n")
)


def write(store: Store, file: str, text: str = FINDING) -> None:
    """A file of a shard."""
    path = store.folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def executed(executor: str, config: str, index: int, **changes: object) -> Executed:
    event = Executed(
        index=index,
        family="dag",
        executor=executor,
        configuration=config,
        model="rfc",
        run_seed=0,
        count=64,
        sha256="",
        verdicts={"forbidden": 64} if "unreduced" in changes else {"allowed": 64},
    )
    return msgspec.structs.replace(event, **changes)


def test_executors_get_the_same_time_and_groups_by_the_root_of_their_size(tmp_path: Path) -> None:
    names = [config.name for config in executor_class("tf").configurations()]
    had: Counter[tuple[str, int]] = Counter()
    with Store(tmp_path / "n", write=True) as store:
        store.append(0, started(("tf", *names), ("native", "plain")))
        for _ in range(600):
            executor, configs = of(plan(store))
            had[executor, len(configs)] += 1
        groups = Counter(
            len(group.configs) for group in ShardPlanner(store).groups if group.executor == "tf"
        )
    assert had["native", 1] == 300
    assert max(groups) >= 20
    assert groups[1] >= 5
    each = {size: had["tf", size] / count for size, count in groups.items()}
    for size, shards in each.items():
        # One shard more or less.
        assert abs(shards / size**0.5 - each[1]) <= 1


def test_configurations_that_were_not_reached_come_first(tmp_path: Path) -> None:
    """In turn, and not for ever: `two_workers` refuses all that it is given here."""
    names = [config.name for config in executor_class("tf").configurations()]
    with Store(tmp_path / "n", write=True) as store:
        store.append(0, started(("tf", *names), ("native", "plain")))
        number = len(ShardPlanner(store).groups)
        had: Counter[tuple[str, tuple[str, ...]]] = Counter()
        for index in range(number + 10):
            made = ShardPlanner(store).next_shard(LEFT_S, write_log=False)
            assert made is not None
            shard = made[0]
            executor, configs = of(shard)
            had[executor, configs] += 1
            store.append(shard.number, ShardPlanned(configurations=shard.configurations))
            ran = [executed(executor, each, index) for each in configs if each != "two_workers"]
            store.append(shard.number, *ran, ShardEnded(seconds=10.0))
            if index == number - 1:
                assert set(had.values()) == {1}
    assert had["tf", ("two_workers",)] == MAX_FIRST
    # The others have gone to the executor that had had the least time.
    assert had["native", ("plain",)] == 10 - (MAX_FIRST - 1) + 1


def test_an_executor_that_cannot_run_here_gets_no_shard(tmp_path: Path) -> None:
    """One that does not start gets some, as it may start later, but not for ever."""
    with Store(tmp_path / "n", write=True) as store:
        store.append(0, started(("tf", "plain"), ("native", "plain"), ("jax", "plain")))
        for number, why in enumerate(("not installed", "does not start: signal 9"), 1):
            executor = ("tf", "jax")[number - 1]
            store.append(number, ShardPlanned(configurations={executor: ("plain",)}))
            lacking = ConfigurationUnavailable(executor=executor, configuration="plain", why=why)
            problem = f"{executor}: {why}"
            store.append(number, lacking, ShardEnded(seconds=0.1, problem=problem))
        shards = []
        for _ in range(8):
            made = ShardPlanner(store).next_shard(LEFT_S, write_log=False)
            assert made is not None
            shard, _ = made
            executor, _ = of(shard)
            shards.append(executor)
            store.append(shard.number, ShardPlanned(configurations=shard.configurations))
            problem = "does not start" if executor == "jax" else ""
            store.append(shard.number, ShardEnded(seconds=1.0, problem=problem))
    assert Counter(shards) == {"jax": MAX_FAILURES - 1, "native": 8 - (MAX_FAILURES - 1)}


def test_the_selftest_comes_first_until_it_has_a_result(tmp_path: Path) -> None:
    with Store(tmp_path / "n", write=True) as store:
        store.append(0, started(("native", "plain"), selftest_s=60.0))
        assert of(plan(store)) == (SELFTEST, ())
        again = ShardPlanner(store).next_shard(LEFT_S, write_log=False)
        assert again is not None
        assert again[0].is_selftest
        assert again[0].settings.time_s == 60.0
        kill = MutantRun(kill=Kill(STALE, "native", 1.0, 3))
        assert plan(store, kill).is_selftest
        assert of(plan(store)) == ("native", ("plain",))


def test_a_campaign_without_configurations_has_no_shard(tmp_path: Path) -> None:
    """A stranger's, which is resumed; the time of its shards was not chosen."""
    nothing = msgspec.structs.replace(started(), shard_s=None)
    with Store(tmp_path / "n", write=True) as store:
        store.append(0, nothing)
        assert ShardPlanner(store).next_shard(LEFT_S, write_log=False) is None


def test_an_unreadable_file_ends_no_shard(tmp_path: Path) -> None:
    """The others are minimized, and come first the next time too."""
    with Store(tmp_path / "n", write=True) as store:
        store.append(0, started((STALE, "plain")))
        store.append(1, ShardPlanned(configurations={STALE: ("plain",)}))
        for index in range(3):
            file = f"unreduced/unreduced-1-{index}.yaml"
            write(store, file, OF_STALE)
            store.append(1, executed(STALE, "plain", index, unreduced=file))
        store.append(1, ShardEnded(seconds=1.0))
        (tmp_path / "n" / "unreduced" / "unreduced-1-1.yaml").unlink()
        (tmp_path / "n" / "unreduced" / "unreduced-1-2.yaml").write_text("no: test\n")
        made = ShardPlanner(store).next_shard(600.0, write_log=False)
    assert made is not None
    shard, given = made
    assert shard.pending == ((OF_STALE, False),)
    assert given == tuple(f"unreduced/unreduced-1-{index}.yaml" for index in range(3))


def test_generated_configurations_get_no_findings_of_another_executor(tmp_path: Path) -> None:
    """Any name may be that of a generated configuration, but only of its own executor."""
    product = Configured("jax_refs", PRODUCT, "sequential", "sequential", "jax_refs/xla")
    both = started(("tf", "autocluster"))
    both = msgspec.structs.replace(both, configurations=(*both.configurations, product))
    with Store(tmp_path / "n", write=True) as store:
        store.append(0, both)
        store.append(1, ShardPlanned(configurations={"tf": ("autocluster",)}))
        write(store, "unreduced/unreduced-1-1.yaml")
        store.append(
            1,
            executed("tf", "autocluster", 1, unreduced="unreduced/unreduced-1-1.yaml"),
            ShardEnded(seconds=1.0),
        )
        planner = ShardPlanner(store)
        report = store.fold.report(str(store.folder))
        pending = [
            (group.executor, [each.index for each in planner.pending(report, group)])
            for group in planner.groups
        ]
    assert pending == [("tf", [1]), ("jax_refs", [])]


def test_a_shard_knows_which_findings_are_suspects(tmp_path: Path) -> None:
    """Of two in one process that crashed, one was confirmed."""
    with Store(tmp_path / "n", write=True) as store:
        store.append(0, started((STALE, "plain")))
        store.append(1, ShardPlanned(configurations={STALE: ("plain",)}))
        texts = [OF_STALE, OF_STALE.replace("seed: ", "seed: 1")]
        for index, text in enumerate(texts):
            file = f"unreduced/unreduced-1-{index}.yaml"
            write(store, file, text)
            store.append(1, executed(STALE, "plain", index, unreduced=file))
        write(store, "crashed/crashed-1-1.yaml")
        died = WorkerDied(
            kind=FindingKind.CRASHED,
            executor=STALE,
            configuration="plain",
            executor_class=STALE,
            message="signal 6",
            file="crashed/crashed-1-1.yaml",
            entry=FINDING,
            ops=(),
            suspects=((0, "plain"), (1, "plain")),
        )
        store.append(1, died)
        store.append(1, Confirmed(index=0, executor=STALE, configuration="plain"))
        store.append(1, ShardEnded(seconds=1.0))
        made = ShardPlanner(store).next_shard(600.0, write_log=False)
    assert made is not None
    assert made[0].pending == ((texts[0], False), (texts[1], True))


def test_findings_of_a_class_are_known_to_its_shards(tmp_path: Path) -> None:
    with Store(tmp_path / "n", write=True) as store:
        store.append(0, started(("native", "plain", "split")))
        store.append(1, ShardPlanned(configurations={"native": ("plain",)}))
        for number, name in enumerate(("plain", "split")):
            config = configuration("native", name)
            of_config = class_of("native", dict(config.settings), config.guarantees)
            files = (f"unreduced/{name}.yaml", f"findings/{name}.yaml")
            for file in files:
                write(store, file)
            store.append(
                1,
                executed("native", name, number, unreduced=files[0]),
                FindingAdded(
                    index=number,
                    key=f"v3-{number}",
                    file=files[1],
                    entry=FINDING,
                    executor="native",
                    configuration=name,
                    executor_class=of_config,
                    cause="stale read",
                ),
            )
        store.append(1, ShardEnded(seconds=1.0))
        shards = [plan(store) for _ in range(2)]
    known = {of(shard): [each.key for each in shard.known] for shard in shards}
    both = ["v3-0", "v3-1"]
    assert known == {("native", ("plain",)): both, ("native", ("split",)): both}


def test_shards_of_a_campaign_number_their_tests_and_files_apart(tmp_path: Path) -> None:
    with Store(tmp_path / "n", write=True) as store:
        store.append(0, started((STALE, "plain")))
        settings = [plan(store).settings for _ in range(3)]
    assert [each.suffix for each in settings] == ["", "-shard2", "-shard3"]
    assert [each.first_index for each in settings] == [n * TESTS_PER_FAMILY for n in range(3)]
    assert {each.out for each in settings} == {tmp_path / "n"}
    assert MAX_SHARD * TESTS_PER_FAMILY * MOST_FAMILIES <= 1 << 63  # what a file can hold


@pytest.mark.parametrize("shard", [{"native": ("none",)}, {"native": ()}, {"x": ("plain",)}])
def test_a_shard_that_nobody_asked_for_is_named(
    tmp_path: Path, shard: dict[str, tuple[str, ...]]
) -> None:
    """In a campaign of a stranger's, which is resumed."""
    with Store(tmp_path, write=True) as store:
        store.append(0, started(("native", "plain")))
        store.append(1, ShardPlanned(configurations=shard), ShardEnded(seconds=1.0))
        with pytest.raises(StoreError, match=r"shard 1 ran .*, which nobody asked for"):
            ShardPlanner(store).next_shard(LEFT_S, write_log=False)
