"""Names: the rule that they obey, references to values, and new names.

A *reference* names a node of the same graph or body, a value that comes into the body, or
one result of a loop or conditional, ``loop.last``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.ops import MalformedTest

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Mapping

CONTROL: Final = re.compile(
    "[^\t\n -~\xa0-\u061b\u061d-\u200d\u2010-\u2027\u202f-\u2065\u206a-\ud7ff"
    "\ue000-\ufefe\uff00-\ufffd\U00010000-\U000dffff\U000e0080-\U0010ffff]"
)
"""Characters that no text may hold: control characters, those that reverse the direction of text
or tag or mark it invisibly, and code points without a character."""
# `fullmatch`, and ASCII only: these become TensorFlow node names.
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_MAX_LENGTH: Final = 64


def check_name(name: str, path: tuple[str | int, ...]) -> None:
    """Refuse a name that TensorFlow, a shell or a reader could misread.

    Raises
    ------
    MalformedTest
        With `path`.
    """
    if len(name) > _MAX_LENGTH or not _is_legal(name):
        raise MalformedTest(
            f"a name is a letter, then letters, digits or _, at most {_MAX_LENGTH}; "
            f"got {name[:80]!r}",
            path,
        )


@lru_cache(maxsize=8192)  # those that generators give are few
def _is_legal(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def head(reference: str) -> str:
    """The first part of a reference: ``loop`` of ``loop.last``."""
    return reference.partition(".")[0]


def after_dot(reference: str) -> str:
    """The rest of a reference or key: ``loop.last`` of ``run.loop.last``."""
    return reference.partition(".")[2]


@dataclass(frozen=True, slots=True)
class Naming:
    """New names of a test's parts (`LitmusTest.renamed`); a name that is not in it stays.

    Parameters
    ----------
    nodes : mapping of str to str
        Of nodes, and of values that come into bodies.
    results : mapping of str to str
        Of results of conditionals and calls: ``branch.y`` to a name without a dot. Those of a loop
        have the names of its carried values.
    resources, graphs, runs, clusters : mapping of str to str
    """

    nodes: Mapping[str, str] = field(default_factory=dict)
    results: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, str] = field(default_factory=dict)
    graphs: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[str, str] = field(default_factory=dict)
    clusters: Mapping[str, str] = field(default_factory=dict)

    def of_values(
        self, values: Collection[str], loops: Container[str], resources: Iterable[str]
    ) -> dict[str, str]:
        """The name of each value and resource.

        Parameters
        ----------
        values : collection of str
            Names of nodes, of values that come into bodies, and of results as ``node.result``: each
            result after its node, or after its carried value.
        loops : container of str
            Which of the nodes are loops.
        resources : iterable of str

        Raises
        ------
        MalformedTest
            If a name is not legal, or two have one name.
        """
        names: dict[str, str] = {}
        nodes = self.nodes
        for old in values:
            if "." not in old:
                new = nodes.get(old, old)
                # Most are names of others: such a name is legal, unless it is that of a result.
                if new not in values or "." in new:
                    check_name(new, (old,))
                names[old] = new
                continue
            node, _, result = old.partition(".")
            if node in loops:
                names[old] = f"{names[node]}.{names[result]}"
            else:
                new = self.results.get(old, result)
                check_name(new, (old,))
                names[old] = f"{names[node]}.{new}"
        for old in resources:
            names[old] = _legal(self.resources, old)
        return _distinct(names)

    def of_graphs(self, graphs: Iterable[str]) -> dict[str, str]:
        """The name of each graph; raises as `of_values` does."""
        return _distinct({old: _legal(self.graphs, old) for old in graphs})

    def of_runs(self, runs: Iterable[str]) -> dict[str, str]:
        """The name of each run; raises as `of_values` does."""
        return _distinct({old: _legal(self.runs, old) for old in runs})

    def of_clusters(self, clusters: Iterable[str], values: Mapping[str, str]) -> dict[str, str]:
        """The name of each cluster, which no value has; raises as `of_values` does."""
        names = {old: _legal(self.clusters, old) for old in clusters}
        if names:
            _distinct({**values, **{f"cluster {old}": new for old, new in names.items()}})
        return names


def _legal(names: Mapping[str, str], old: str) -> str:
    new = names.get(old, old)
    if new != old:
        check_name(new, (old,))
    return new


def _distinct(names: dict[str, str]) -> dict[str, str]:
    if len(set(names.values())) < len(names):
        old = {new: old for old, new in names.items()}
        one, name = next((one, new) for one, new in names.items() if old[new] != one)
        raise MalformedTest(f"{one!r} and {old[name]!r} would both be {name!r}")
    return names


class FreshNames:
    """A source of names that nothing else has.

    Parameters
    ----------
    taken : iterable of str
        Names that it does not give. It gives no name twice either.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}  # by prefix
        self._last: dict[str, int] = {}  # by the stem of a wanted name
        self._count = 0

    def take(self, *names: str) -> None:
        """Never give these names."""
        self._taken.update(names)

    def like(self, wanted: str) -> str:
        """The wanted name, or else that name with _2, _3, ..."""
        name, stem = wanted[:64], wanted[:56]
        number = self._last.get(stem, 1)  # names are never freed: all lower numbers are taken
        while name in self._taken:
            number += 1
            name = f"{stem}_{number}"
        self._last[stem] = number
        self._taken.add(name)
        return name

    def numbered(self, prefix: str) -> str:
        """The prefix with the least free number, from 0."""
        number = self._next.get(prefix, 0)  # names are never freed: all lower numbers are taken
        while f"{prefix}{number}" in self._taken:
            number += 1
        self._next[prefix] = number + 1
        self._taken.add(f"{prefix}{number}")
        return f"{prefix}{number}"

    def counted(self, prefix: str) -> str:
        """The prefix with the next number of one count for all prefixes, from 1."""
        taken, count = self._taken, self._count + 1
        while (name := f"{prefix}{count}") in taken:
            count += 1
        self._count = count
        taken.add(name)
        return name
