"""Decides which shard of a nightly run is next.

Every executor gets the same time. The configurations of an executor fall into *groups*: one
environment, because another one needs another process, and one class, because findings are
distinguished by class. A group gets time in proportion to the square root of its size: thirty
configurations need more than one, but differ less than thirty executors. The group that has had
the least time is next, and its shard minimizes the group's unreduced findings. Towards the end,
shards do little else. The self-test comes first.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.document import FileError, read_text
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.campaign.canonical import executor_class
from litmusfuzz.fuzz.campaign.nightly.shard import SELFTEST, Shard, ShardFinding
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.oracles.model import GUARANTEES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from litmusfuzz.fuzz.campaign.nightly.store import Store

MAX_SHARD_S: Final = 60.0
MIN_SHARD_S: Final = 5.0
"""In a nightly run too short for all groups."""
MAX_PENDING: Final = 24
"""Unreduced findings of a shard: each takes some seconds to minimize."""
LATE: Final = 0.85
"""Share of the nightly run after which unreduced findings come first."""
MAX_FAILURES: Final = 3
"""Shards of a group that fail to start before the group is given up."""


@dataclass(frozen=True, slots=True)
class Group:
    """Configurations of an executor that share shards."""

    executor: str
    executor_class: str
    configs: tuple[str, ...]


def groups(executors: Sequence[Sequence[str]]) -> list[Group]:
    """The groups of executors, each given as its name and the names of its configurations."""
    found = []
    for executor, *names in executors:
        parts: dict[tuple[object, str], list[str]] = defaultdict(list)
        for name in names:
            config = configuration(executor, name)
            model = GUARANTEES[config.guarantees].name
            made = executor_class(executor, dict(config.settings), model)
            parts[config.environment, made].append(name)
        found += [Group(executor, part[1], tuple(each)) for part, each in parts.items()]
    return found


class ShardPlanner:
    """Makes the shards of a nightly run.

    Parameters
    ----------
    store : Store
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        meta = store.meta
        self.seed: int = meta["seed"]
        self.families: Mapping[str, float] = meta["families"]
        self.selftest_s: float = meta["selftest_s"]
        self.count: int | None = meta["count"]
        self.python: str | None = meta["python"]
        self.asked_s: float = meta["asked_s"]
        self.groups = groups(meta["executors"])
        self.shard_s: float = meta["shard_s"] or min(
            MAX_SHARD_S, max(MIN_SHARD_S, self.asked_s * meta["workers"] / (2 * len(self.groups)))
        )
        self.of = {
            (group.executor, config): group for group in self.groups for config in group.configs
        }

    def next(
        self, left_s: float, deadline: float, *, write_log: bool
    ) -> tuple[Shard, list[int]] | None:
        """The next shard, and its unreduced findings by number; None if nothing can run."""
        number = 1 + self.store.rows("SELECT coalesce(max(number), 0) FROM shards")[0][0]
        log_folder = str(self.store.log_folder(number).resolve()) if write_log else None
        if 0 < self.selftest_s <= left_s and self._selftest_due():
            shard = Shard(
                number, self.seed, SELFTEST, (), self.selftest_s, deadline, log_folder=log_folder
            )
            return shard, []
        spent = self._spent()
        running = {group: configs for group in self.groups if (configs := self._running(group))}
        if not running:
            return None
        by_executor: dict[str, float] = defaultdict(float)
        for group in running:
            by_executor[group.executor] += spent[group]
        chosen = min(
            running,
            key=lambda group: (
                by_executor[group.executor],
                spent[group] / math.sqrt(len(group.configs)),
            ),
        )
        configs = running[chosen]
        is_late = left_s < (1 - LATE) * self.asked_s
        pending = self.store.pending(chosen.executor, configs, MAX_PENDING)
        texts = [text for row in pending if (text := self._readable_text(row["file"])) is not None]
        shard = Shard(
            number=number,
            seed=self.seed,
            executor=chosen.executor,
            configs=configs,
            time_s=min(self.shard_s, left_s),
            deadline=deadline,
            families=self.families,
            minimizing_share=1.0 if is_late and texts else 0.5,
            count=self.count,
            python=self.python,
            known=tuple(self._known(chosen)),
            pending=tuple(texts),
            fast_config=self._fast_config(chosen, running),
            seconds_per_test=self._seconds_per_test(chosen.executor),
            log_folder=log_folder,
        )
        # Unreadable files included, so that the others come first next time.
        return shard, [row["number"] for row in pending]

    @staticmethod
    def _fast_config(chosen: Group, running: Mapping[Group, tuple[str, ...]]) -> str | None:
        """The executor's first configuration, if it belongs to another environment."""
        first = next(names[0] for of, names in running.items() if of.executor == chosen.executor)
        there, here = (configuration(chosen.executor, n) for n in (first, running[chosen][0]))
        return None if there.environment == here.environment else first

    def _seconds_per_test(self, executor: str) -> dict[str, float]:
        """Average seconds of a test in each configuration of an executor."""
        query = """SELECT tests.config, avg(tests.seconds) AS mean FROM tests
        JOIN shards ON shards.number = tests.shard WHERE shards.executor = ? GROUP BY 1"""
        return {row["config"]: row["mean"] for row in self.store.rows(query, executor)}

    def _selftest_due(self) -> bool:
        """True if the self-test has not succeeded yet and is worth another attempt."""
        shards = self.store.rows("SELECT state FROM shards WHERE executor = ?", SELFTEST)
        if len(shards) >= MAX_FAILURES or any(state == "running" for (state,) in shards):
            return False
        return not self.store.rows("SELECT 1 FROM kills LIMIT 1")

    def _readable_text(self, file: str) -> str | None:
        """Text of a test's file; None if it cannot be read, which `ReportBuilder` reports."""
        try:
            text = read_text(self.store.folder / file)
            loads(text)
        except FileError:
            return None
        return text

    def _known(self, group: Group) -> Iterator[ShardFinding]:
        """Findings of this group's class so far."""
        for key, file in self.store.rows(
            """SELECT key, file FROM findings
            WHERE executor = ? AND class = ? AND kind = 'forbidden'""",
            group.executor,
            group.executor_class,
        ):
            configs = self.store.rows("SELECT DISTINCT config FROM sightings WHERE key = ?", key)
            if (text := self._readable_text(file)) is not None:
                yield ShardFinding(key, text, tuple(config for (config,) in configs))

    def _spent(self) -> dict[Group, float]:
        """Seconds that each group has had, or is about to have."""
        spent = dict.fromkeys(self.groups, 0.0)
        for executor, configs, state, seconds in self.store.rows(
            "SELECT executor, configs, state, seconds FROM shards WHERE executor != ?", SELFTEST
        ):
            group = self.of[executor, json.loads(configs)[0]]
            spent[group] += max(seconds, self.shard_s) if state == "running" else seconds
        return spent

    def _running(self, group: Group) -> tuple[str, ...]:
        """Configurations of a group that can run here, as far as known."""
        missing = {
            config
            for config, why in self.store.rows(
                "SELECT config, why FROM unavailable WHERE executor = ?", group.executor
            )
            if not why.startswith("does not start")
        }
        configs = tuple(each for each in group.configs if each not in missing)
        if not configs:
            return ()
        # An executor that does not start now may start later, but not for ever.
        failures = self.store.rows(
            """SELECT count(*) FROM shards WHERE executor = ? AND configs = ? AND state = 'done'
            AND graphs = 0 AND problem != ''""",
            group.executor,
            json.dumps(configs),
        )
        return configs if failures[0][0] < MAX_FAILURES else ()
