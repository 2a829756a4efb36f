"""Reduces the configuration of a finding: puts one setting after another back to plain.

Like the reducer of tests, `simpler_configurations` yields candidates, and receives whether the
finding shows in each. What remains are settings that the finding needs: with any one of them put
back, it does not show.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

from litmusfuzz.fuzz.executors.configuration_space import HasConfigurationSpace
from litmusfuzz.fuzz.executors.table import UnknownExecutor, executor_class

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    from litmusfuzz.corpus.textfile import Setting
    from litmusfuzz.fuzz.executors.configuration_space import ConfigurationSpace, Point
    from litmusfuzz.fuzz.executors.protocol import Config, Executor


class PutBack:
    """How often findings still showed after a setting was put back: what to try first."""

    def __init__(self) -> None:
        self._tried = Counter[str]()
        self._showed = Counter[str]()

    def add(self, setting: str, *, shows: bool) -> None:
        """Note the result of a candidate."""
        self._tried[setting] += 1
        self._showed[setting] += shows

    def ordered(self, settings: Iterable[str]) -> list[str]:
        """The settings, first that which most often was not needed."""
        return sorted(settings, key=lambda s: -(self._showed[s] + 1) / (self._tried[s] + 2))


def simpler_configurations(
    executor: str, config: Config, put_back: PutBack
) -> Generator[Config, bool, None]:
    """Candidates for the simplest configuration in which a finding shows.

    The plain configuration comes first; a setting that the space keeps stays as it is. Each other
    setting is then put back alone, beside those that were put back with success, until none of the
    rest can be. An executor without a configuration space has one candidate: its first
    configuration.

    Parameters
    ----------
    executor : str
    config : Config
        A configuration in which the finding shows.
    put_back : PutBack
        Receives the results.

    Yields
    ------
    Config
        To be answered with True if the finding shows in it; the last such one is the result.
    """
    made = executor_class(executor)
    found = _space_and_point(made, config)
    if found is None:
        first = made.configurations()[0]
        if (first.settings, first.environment) != (config.settings, config.environment):
            yield first
        return
    space, point = found
    assert isinstance(made, HasConfigurationSpace)
    plainest = space.plainest(point)
    if point == plainest or (yield made.configuration_at(plainest)):
        return
    tried = {space.name(point), space.name(plainest)}
    again = True
    while again:
        again = False
        for setting in put_back.ordered(space.differing(point)):
            if point[setting] == plainest[setting]:
                continue  # kept, or put back together with another one
            for candidate in space.simpler(point, setting):
                name = space.name(candidate)
                if name in tried:
                    continue
                tried.add(name)
                shows = yield made.configuration_at(candidate)
                put_back.add(setting, shows=shows)
                if shows:
                    point, again = candidate, True
                    break


def has_space(executor: str, config: Config) -> bool:
    """True if the configuration is a point of the executor's configuration space."""
    return _space_and_point(executor_class(executor), config) is not None


def _space_and_point(
    made: type[Executor], config: Config
) -> tuple[ConfigurationSpace, Point] | None:
    if not isinstance(made, HasConfigurationSpace):
        return None
    point = made.point_of(config)
    return None if point is None else (made.space, point)


# --- what a finding needs --------------------------------------------------------------


def needed_settings(executor: str, settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Those settings of a finding that differ from the executor's first configuration.

    None without a configuration space: nobody has put such settings back. A file may lack settings
    that its executor did not have yet: they have their plain values. Settings that the space keeps
    are none that a finding needs: they say how it is shown.
    """
    try:
        made = executor_class(executor)
    except (UnknownExecutor, ImportError):
        return {}
    if not isinstance(made, HasConfigurationSpace):
        return {}
    plain = dict(made.configurations()[0].settings)
    return {
        name: value
        for name, value in sorted(settings.items())
        if plain.get(name) != value and name not in made.space.kept
    }


def beyond_plain(executor: str, config: Config) -> frozenset[tuple[str, Setting]]:
    """Settings of a configuration that differ from the executor's plain ones.

    Without a configuration space these are settings and environment variables that its first
    configuration does not have.
    """
    return _beyond_plain(executor_class(executor), config)


@lru_cache(1 << 10)  # each waiting finding is compared with the known causes again and again
def _beyond_plain(made: type[Executor], config: Config) -> frozenset[tuple[str, Setting]]:
    found = _space_and_point(made, config)
    if found is not None:
        space, point = found
        return frozenset(space.differing(point).items())
    plain, *_ = made.configurations()
    own = {*config.settings, *config.environment}
    return frozenset(own.difference(plain.settings, plain.environment))


def needs_in_words(executor: str, config: Config, *, reduced: bool = True) -> str:
    """What a finding needs: "only with the loop optimizer, in one thread".

    "" if the executor has no other configuration. If there was no time to put every setting back,
    it may need fewer: "seen with the loop optimizer, in one thread".
    """
    made = executor_class(executor)
    found = _space_and_point(made, config)
    if found is not None:
        space, point = found
        return space.in_words(point, "only" if reduced else "seen")
    several = len(made.configurations()) > 1 or "=" in config.name
    return f"in configuration {config.name}" if several else ""
