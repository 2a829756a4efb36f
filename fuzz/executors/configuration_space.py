"""The configuration space of an executor: the values of each setting, and what goes together.

A *point* of the space gives each setting a value. The first value of a setting is its *plain* one.
Not every point is a configuration: some values of two settings exclude each other. Each such
exclusion is listed once, with its reason.

A configuration that is no preset is named by the settings that are not plain, in the order of the
space: ``loop_optimizer=true;inter_op_threads=1``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from litmusfuzz.corpus.textfile import Setting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from litmusfuzz.fuzz.executors.protocol import Config

Value = tuple[str, Setting]
"""A setting and one of its values."""
Pair = tuple[Value, Value]
"""Values of two settings, in the order of the space."""
Point = dict[str, Setting]
"""A value for each setting, in the order of the space."""


class NotAConfiguration(ValueError):
    """A text that names no point of the space; the message is one line."""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Values of two settings that do not go together.

    Parameters
    ----------
    first, second : (str, tuple of Setting)
        A setting, and the values of it that are excluded with any of the other's.
    why : str
        The reason, as the end of a sentence.
    """

    first: tuple[str, tuple[Setting, ...]]
    second: tuple[str, tuple[Setting, ...]]
    why: str


@dataclass(frozen=True)
class ConfigurationSpace:
    """Values of each setting of an executor, and which of them exclude each other.

    Parameters
    ----------
    values : mapping of str to tuple of Setting
        By setting, the plain value first.
    exclusions : tuple of Exclusion
    words : mapping of Value to str
        Values in plain words that complete "only ...": "in one thread". Those without an entry are
        written as ``setting=value``.
    plain_words : str
        The plain point in words: "in plain TensorFlow".
    weaker : mapping of Value to tuple of Mapping
        Changes of other settings that may do, in place of a value, what it does: single optimizers
        in place of all. The value itself becomes plain.
    kept : tuple of str
        Settings that no simpler configuration changes.
    seldom : tuple of str
        Settings whose values are plain in most configurations, and in no pairs.
    """

    values: Mapping[str, tuple[Setting, ...]]
    exclusions: tuple[Exclusion, ...] = ()
    words: Mapping[Value, str] = field(default_factory=dict)
    plain_words: str = "in the plain configuration"
    weaker: Mapping[Value, tuple[Mapping[str, Setting], ...]] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    seldom: tuple[str, ...] = ()

    @cached_property
    def plain(self) -> Point:
        """The point with only plain values."""
        return {setting: values[0] for setting, values in self.values.items()}

    # --- what goes together --------------------------------------------------------------

    @cached_property
    def _why_not(self) -> dict[Pair, str]:
        """Excluded pairs in both orders, with the reason."""
        found: dict[Pair, str] = {}
        for each in self.exclusions:
            (first, these), (second, those) = each.first, each.second
            for one, other in product(these, those):
                found[(first, one), (second, other)] = each.why
                found[(second, other), (first, one)] = each.why
        return found

    def problem(self, point: Mapping[str, Setting]) -> str:
        """Why a point is no configuration; "" if it is one."""
        for one, other in combinations(point.items(), 2):
            if why := self._why_not.get((one, other)):
                return f"{_text(one)} excludes {_text(other)}: {why}"
        return ""

    def completed(
        self,
        part: Mapping[str, Setting],
        prefer: Callable[[str, Sequence[Setting], Mapping[str, Setting]], Iterable[Setting]],
        order: Iterable[str] = (),
    ) -> Point | None:
        """A configuration that has these values; None if there is none.

        Parameters
        ----------
        part : mapping of str to Setting
        prefer : callable
            Orders the values that a setting can have beside the values chosen so far.
        order : iterable of str
            The order in which the other settings are chosen; that of the space if not given.
        """
        left = [each for each in order or self.values if each not in part]
        chosen: dict[str, Setting] = {}
        domains: dict[str, tuple[Setting, ...]] = {each: self.values[each] for each in left}
        for value in part.items():
            if any((value, other) in self._why_not for other in chosen.items()):
                return None
            chosen[value[0]] = value[1]
            reduced = self._beside(value, domains)
            if reduced is None:
                return None
            domains = reduced
        found = self._search(chosen, left, domains, prefer)
        return None if found is None else {setting: found[setting] for setting in self.values}

    def _search(
        self,
        chosen: dict[str, Setting],
        left: Sequence[str],
        domains: Mapping[str, tuple[Setting, ...]],
        prefer: Callable[[str, Sequence[Setting], Mapping[str, Setting]], Iterable[Setting]],
    ) -> dict[str, Setting] | None:
        if not left:
            return chosen
        setting, *others = left
        for value in prefer(setting, domains[setting], chosen):
            reduced = self._beside((setting, value), {each: domains[each] for each in others})
            if reduced is not None:
                found = self._search({**chosen, setting: value}, others, reduced, prefer)
                if found is not None:
                    return found
        return None

    def _beside(
        self, value: Value, domains: Mapping[str, tuple[Setting, ...]]
    ) -> dict[str, tuple[Setting, ...]] | None:
        """The values that remain beside one; None if a setting has none left."""
        found = {}
        for setting, values in domains.items():
            kept = tuple(each for each in values if (value, (setting, each)) not in self._why_not)
            if not kept:
                return None
            found[setting] = kept
        return found

    @cached_property
    def _pairs(self) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
        """The pairs that a configuration has, and those that none has."""
        reached: set[Pair] = set()
        possible: list[Pair] = []
        impossible: list[Pair] = []
        paired = [each for each in self.values.items() if each[0] not in self.seldom]
        for (first, these), (second, those) in combinations(paired, 2):
            for pair in product(((first, v) for v in these), ((second, v) for v in those)):
                if pair not in reached:
                    found = self.completed(dict(pair), lambda _, values, __: values)
                    reached.update(() if found is None else self.pairs_of(found))
                (possible if pair in reached else impossible).append(pair)
        return tuple(possible), tuple(impossible)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All pairs of values that some configuration has."""
        return self._pairs[0]

    @property
    def impossible(self) -> tuple[Pair, ...]:
        """All pairs that no configuration has: excluded, or excluded by what they need."""
        return self._pairs[1]

    @staticmethod
    def pairs_of(point: Mapping[str, Setting]) -> Iterator[Pair]:
        """The pairs of values of a point."""
        return combinations(point.items(), 2)

    # --- simpler points --------------------------------------------------------------------

    def plainest(self, point: Mapping[str, Setting]) -> Point:
        """The plain point, except for the settings that are kept."""
        return self.plain | {setting: point[setting] for setting in self.kept}

    def differing(self, point: Mapping[str, Setting]) -> Point:
        """The values of a point that are not plain."""
        return {s: point[s] for s in self.values if point[s] != self.plain[s]}

    def without(self, point: Mapping[str, Setting], setting: str) -> Point:
        """The point with that setting plain, and with it those settings that then must be."""
        found = {**point, setting: self.plain[setting]}
        fixed = [setting]
        for each in fixed:
            for other in self.differing(found):
                if ((each, found[each]), (other, found[other])) in self._why_not:
                    found[other] = self.plain[other]
                    fixed.append(other)
        return found

    def simpler(self, point: Mapping[str, Setting], setting: str) -> Iterator[Point]:
        """Configurations in which a setting that is not plain is plain, the simplest first."""
        plainer = self.without(point, setting)
        changes: tuple[Mapping[str, Setting], ...] = self.weaker.get((setting, point[setting]), ())
        for candidate in (plainer, *({**plainer, **change} for change in changes)):
            if not self.problem(candidate):
                yield candidate

    # --- names -----------------------------------------------------------------------------

    def name(self, point: Mapping[str, Setting]) -> str:
        """The settings that are not plain, in the order of the space; "" if all are."""
        return ";".join(_text(value) for value in self.differing(point).items())

    def parsed(self, name: str) -> Point:
        """The point with that name.

        Raises
        ------
        NotAConfiguration
            Naming the setting or the value that is unknown, or the values that exclude each other.
        """
        point, given = dict(self.plain), set[str]()
        for part in name.split(";"):
            setting, equals, text = (each.strip() for each in part.partition("="))
            if not equals or setting not in self.values:
                known = ", ".join(self.values)
                raise NotAConfiguration(f"no setting {_short(setting)}; there are {known}")
            if setting in given:
                raise NotAConfiguration(f"{setting} is named twice")
            given.add(setting)
            of_text = {value_text(each): each for each in self.values[setting]}
            if text not in of_text:
                known = ", ".join(each or "''" for each in of_text)
                raise NotAConfiguration(f"{setting} is one of {known}, not {_short(text)}")
            point[setting] = of_text[text]
        if problem := self.problem(point):
            raise NotAConfiguration(problem)
        return point

    def in_words(self, point: Mapping[str, Setting], how: str = "only") -> str:
        """What a point needs, in plain words: "only with the loop optimizer, in one thread".

        Settings that are kept say how it is shown: "in plain TensorFlow, shown under control".
        """
        needs: list[str] = []
        shown: list[str] = []
        for each in self.differing(point).items():
            (shown if each[0] in self.kept else needs).append(self.words.get(each) or _text(each))
        text = f"{how} {', '.join(needs)}" if needs else self.plain_words
        return ", ".join((text, *(f"shown {each}" for each in shown)))


@runtime_checkable
class HasConfigurationSpace(Protocol):
    """Optional: an executor with a configuration space.

    Campaigns generate configurations in it (``EXECUTOR:product``), and reduce the configuration of
    a finding in it. The executor is `Configurable` as well: it makes the configuration of a name.
    """

    space: ClassVar[ConfigurationSpace]

    @classmethod
    def configuration_at(cls, point: Mapping[str, Setting]) -> Config:
        """The configuration with these settings: a preset if there is one, else named by them."""

    @classmethod
    def point_of(cls, config: Config) -> Point | None:
        """The point of a configuration; None if the space does not have it."""


def value_text(value: Setting) -> str:
    """A value as names have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _text(value: Value) -> str:
    return f"{value[0]}={value_text(value[1])}"


def _short(text: str) -> str:
    return repr(text) if len(text) <= 40 else f"{text[:40]!r}..."
