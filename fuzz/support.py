"""Support: the ops, dtypes, shapes and features that an executor takes.

An executor declares its support; generators make tests within it, and
`Support.lacking` names what a test has beyond it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import FEATURES
from litmusfuzz.corpus.ops import ABSTRACT_OPS, BOOL, DTYPES, OPS, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from litmusfuzz.corpus.model import LitmusTest

_FEATURE_OF: Final = {
    Kind.SECTION: "critical sections",
    Kind.QUEUE: "queues",
    Kind.ACCUMULATOR: "accumulators",
    Kind.BRANCH: "conditionals",
    Kind.LOOP: "loops",
    Kind.CALL: "calls",
    Kind.HANDLE: "handles",
    Kind.TRANSFER: "transfers",
    Kind.STATE: "uninitialized variables",
}


@dataclass(frozen=True, slots=True)
class Support:
    """The litmus tests that an executor takes; by default all.

    Any collection of names will do; each is kept as a frozenset.

    Parameters
    ----------
    ops : frozenset of str
        Of `litmusfuzz.corpus.ops.OPS`.
    dtypes : frozenset of str
        Of `litmusfuzz.corpus.ops.DTYPES`. Conditions, which are bool, come with their ops.
    rank_max : int
        Dimensions of any tensor, at most. Every executor takes scalars, of rank 0.
    elements_max : int
        Elements of any tensor, at most.
    features : frozenset of str
        Of `litmusfuzz.corpus.model.FEATURES`: what a test may have beside one graph over
        variables.

    Raises
    ------
    ValueError
        Naming an op, dtype or feature that there is not, or a bound that is too low.
    """

    ops: frozenset[str] = frozenset(OPS) - ABSTRACT_OPS
    dtypes: frozenset[str] = frozenset(DTYPES)
    rank_max: int = 1 << 30
    elements_max: int = 1 << 30
    features: frozenset[str] = FEATURES

    def __post_init__(self) -> None:
        for name, known in (("ops", OPS), ("dtypes", DTYPES), ("features", FEATURES)):
            given = frozenset(getattr(self, name))
            for unknown in sorted(given - frozenset(known)):
                raise ValueError(f"Support.{name}: there is no {unknown!r}")
            object.__setattr__(self, name, given)
        if not self.dtypes:
            raise ValueError("Support.dtypes: names no dtype")
        for name, least in (("rank_max", 0), ("elements_max", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"Support.{name} must be {least} at least")

    @classmethod
    def scalars(
        cls, ops: Iterable[str] = frozenset(OPS), dtypes: Iterable[str] = frozenset(DTYPES)
    ) -> Support:
        """One graph over scalar variables, with these ops and dtypes: no feature."""
        return cls(frozenset(ops), frozenset(dtypes), rank_max=0, features=frozenset())

    def takes_op(self, name: str) -> bool:
        """Return True if the support includes an op and its feature."""
        needed = _FEATURE_OF.get(OPS[name].kind)
        return name in self.ops and (needed is None or needed in self.features)

    def takes_shape(self, shape: tuple[int, ...]) -> bool:
        """Return True if the support includes a tensor shape."""
        elements = 1
        for size in shape:
            elements *= size
        return len(shape) <= self.rank_max and elements <= self.elements_max

    def nearest(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape, less as many of its last dimensions as the executor does not take."""
        while not self.takes_shape(shape):
            shape = shape[:-1]
        return shape

    def lacking(self, test: LitmusTest) -> tuple[str, ...]:
        """Names of what a test has beyond this support, sorted; none if it lies within.

        Features, where one is lacking; else ops; else dtypes; else the rank and the size
        of its largest tensors.
        """
        if self == EVERYTHING:
            return ()
        # Few are different.
        types = {each for each in {*test.types.values()} if each is not None and each.is_tensor}
        types.update(each.type for each in test.variables)
        types.update(each.type for each in test.queues)
        rank = max(len(each.shape) for each in types)
        elements = max(each.size for each in types)
        shapes = [f"rank {rank}"] if rank > self.rank_max else []
        shapes += [f"{elements} elements"] if elements > self.elements_max else []
        return (
            tuple(sorted(test.features - self.features))
            or tuple(sorted({node.op for node in test.nodes} - self.ops))
            or tuple(sorted({each.dtype for each in types} - self.dtypes - {BOOL}))
            or tuple(shapes)
        )


EVERYTHING: Final = Support()
"""Every litmus test."""
