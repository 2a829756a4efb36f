"""Generates configurations in the configuration space of an executor, to cover pairs of values.

Each next configuration has, of some candidates, the most pairs of values that no configuration
before it had; presets that the campaign runs count as before. Once all possible pairs are covered,
another round begins. The sequence depends on the seed alone, never on speed or on outcomes.

References
----------
Cohen, Dalal, Fredman and Patton, "The AETG System", IEEE Trans. Softw. Eng. 1997, section 4: a
greedy algorithm that chooses among random candidates, each built setting by setting.
"""

from __future__ import annotations

import random
from itertools import islice
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.executors.configuration_space import HasConfigurationSpace
from litmusfuzz.fuzz.executors.protocol import Config
from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration, executor_class

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from litmusfuzz.corpus.textfile import Setting
    from litmusfuzz.fuzz.executors.configuration_space import ConfigurationSpace, Pair, Point

PRODUCT: Final = "product"
"""Stands for all generated configurations of an executor, as in ``tf:product``."""
CANDIDATES: Final = 8
"""Candidates for each configuration: more of them save few configurations."""
PLAIN_SHARE: Final = 0.5
"""Where values cover equally many pairs, how often the plain one is chosen: a configuration with
every setting at random refuses most tests, and one defect hides another."""
SELDOM_SHARE: Final = 0.1
"""Configurations that have another value than the plain one of a setting that few have."""


def points(space: ConfigurationSpace, seed: str, before: Iterable[Point] = ()) -> Iterator[Point]:
    """Endless configurations of a space.

    Parameters
    ----------
    space : ConfigurationSpace
    seed : str
        Decides all random choices.
    before : iterable of Point
        Configurations whose pairs count as covered in the first round.
    """
    rng = random.Random(seed)
    # Dictionaries, whose order does not depend on the hashes of strings.
    missing = dict.fromkeys(space.pairs)
    for point in before:
        _cover(missing, point, space)
    while True:
        if not missing:
            missing = dict.fromkeys(space.pairs)
        candidates = [_candidate(space, missing, rng) for _ in range(CANDIDATES)]
        best = max(candidates, key=lambda each: _covered(missing, each, space))
        _cover(missing, best, space)
        yield best


def _covered(missing: Mapping[Pair, None], point: Point, space: ConfigurationSpace) -> int:
    return sum(pair in missing for pair in space.pairs_of(point))


def _cover(missing: dict[Pair, None], point: Point, space: ConfigurationSpace) -> None:
    for pair in space.pairs_of(point):
        missing.pop(pair, None)


def _candidate(
    space: ConfigurationSpace, missing: Mapping[Pair, None], rng: random.Random
) -> Point:
    """A configuration with a random missing pair, and many others."""
    place = {setting: number for number, setting in enumerate(space.values)}

    def prefer(
        setting: str, values: Sequence[Setting], chosen: Mapping[str, Setting]
    ) -> Iterable[Setting]:
        def new_pairs(value: Setting) -> int:
            found = 0
            for other in chosen.items():
                here = setting, value
                ordered = (other, here) if place[other[0]] < place[setting] else (here, other)
                found += ordered in missing
            return found

        plain = space.plain[setting]
        first = rng.random() < PLAIN_SHARE
        shuffled = rng.sample(values, len(values))
        return sorted(
            shuffled, key=lambda value: (-new_pairs(value), not (first and value == plain))
        )

    one, other = rng.choice(tuple(missing))
    order = rng.sample(tuple(space.values), len(space.values))
    pair = dict((one, other))
    seldom = {
        setting: rng.choice(space.values[setting][1:])
        for setting in space.seldom
        if len(space.values[setting]) > 1 and rng.random() < SELDOM_SHARE
    }
    plain = {setting: space.plain[setting] for setting in space.seldom}
    found = space.completed({**pair, **plain, **seldom}, prefer, order)
    if found is None:
        found = space.completed({**pair, **plain}, prefer, order)
    assert found is not None, (one, other)  # the pair is possible
    return found


def is_generated(executor: str, name: str) -> bool:
    """True if an executor's space has a configuration of that name, or if there is no executor."""
    try:
        made = executor_class(executor)
    except UnknownExecutor:
        return True
    if not isinstance(made, HasConfigurationSpace):
        return False
    try:
        made.space.parsed(name)
    except ValueError:
        return False
    return True


def listed(executor: str, name: str, skipped: int = 0, presets: Iterable[str] = ()) -> Config:
    """A configuration by name; `PRODUCT` stands for all that are generated.

    Parameters
    ----------
    executor, name : str
    skipped : int
        Generated configurations that earlier parts of the campaign have had.
    presets : iterable of str
        Configurations that the campaign runs besides: their pairs count as covered.

    Raises
    ------
    UnknownExecutor
        If there is no such executor or configuration, or the executor has no space.
    """
    if name != PRODUCT:
        return configuration(executor, name)
    executor_class(executor)
    if not has_product(executor):
        raise UnknownExecutor(
            f"{executor} has no configuration space to generate configurations in"
        )
    return Config(PRODUCT, "", (("skipped", skipped), ("presets", " ".join(presets))))


class ConfigurationGenerator:
    """Generates the configurations of one executor in one campaign.

    Parameters
    ----------
    executor : str
        An executor that `has_product`.
    seed : int
    generated : Config
        `listed` by the name `PRODUCT`.
    """

    def __init__(self, executor: str, seed: int, generated: Config) -> None:
        made = executor_class(executor)
        assert isinstance(made, HasConfigurationSpace)
        self._make: Callable[[Point], Config] = made.configuration_at
        settings = dict(generated.settings)
        presets = [configuration(executor, each) for each in str(settings["presets"]).split()]
        before = [point for each in presets if (point := made.point_of(each)) is not None]
        every = points(made.space, f"{seed}/configurations/{executor}", before)
        self._points: Iterator[Point] = islice(every, int(settings["skipped"]), None)

    def next(self) -> Config:
        """The next configuration: a preset, if it happens to be one."""
        return self._make(next(self._points))


def has_product(executor: str) -> bool:
    """True if configurations of an executor can be generated.

    Its default is the plain point of its space. A mutant that sets what the space does not have
    has none.
    """
    try:
        made = executor_class(executor)
    except UnknownExecutor:
        return False
    if not isinstance(made, HasConfigurationSpace):
        return False
    return made.point_of(made.configurations()[0]) == made.space.plain
