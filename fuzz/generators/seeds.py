"""Seeds: tests from outside the corpus, which the family `mutations` takes as parents as well.

They may be skeletons of real programs (`litmusfuzz.fuzz.programs.skeleton`). Most of these are too
large to be decided, so a mutation begins with a *window* of its parent: accesses of few variables,
with the order between them. It keeps the op Opaque until its edits are done: what Opaque becomes
in an executor is arithmetic, in which most edits would be lost.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import MalformedTest, Node, map_nodes
from litmusfuzz.corpus.ops import ABSTRACT_OPS, ConstAttrs, PureAttrs
from litmusfuzz.corpus.pure.opaque import term
from litmusfuzz.corpus.rewriter import Rewriter
from litmusfuzz.corpus.shapes import with_dtype
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.passes.opaque import without_opaque

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.support import Support

SIZES: Final = (4, 5, 6, 6, 7, 8, 9, 10, 12, 14)
"""Numbers of accesses in a window, at first; one is made smaller until it can be decided."""
_VARIABLES: Final = (1, 2, 2, 3, 3, 4, 6)


class Seeds:
    """Tests by name. Another process gets them as texts.

    Parameters
    ----------
    texts : tuple of (str, str)
        Names, and texts of litmus files. A test with Opaque inside a body is in no support.

    Raises
    ------
    FileError
        If a text is no litmus test.
    """

    def __init__(self, texts: tuple[tuple[str, str], ...]) -> None:
        self.texts = texts
        self.tests = {
            name: replace(loads(text, name).test, name="mutations") for name, text in texts
        }
        self._supported: dict[Support, dict[str, LitmusTest]] = {}

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> Seeds | None:
        """Those with these names and texts; None for none."""
        return _seeds(tuple(texts.items())) if texts else None

    def __reduce__(self) -> tuple[Callable[..., Seeds], tuple[tuple[tuple[str, str], ...]]]:
        return _seeds, (self.texts,)

    def supported(self, support: Support) -> dict[str, LitmusTest]:
        """Those within a support once Opaque is replaced; unsupported dtypes are replaced."""
        if support not in self._supported:
            found = {}
            for name, test in self.tests.items():
                fitting = fitted(test, support)
                if fitting is not None and not support.lacking(without_opaque(fitting)):
                    found[name] = fitting
            self._supported[support] = found
        return self._supported[support]


@lru_cache(maxsize=2)
def _seeds(texts: tuple[tuple[str, str], ...]) -> Seeds:
    """They are read once in a process: a file takes some milliseconds."""
    return Seeds(texts)


def fitted(test: LitmusTest, support: Support) -> LitmusTest | None:
    """The test with supported dtypes in place of others; None if there is none."""
    dtypes = {each.dtype for each in test.variables} | {each.dtype for each in test.queues}
    for dtype in sorted(dtypes - support.dtypes):
        try:
            test = with_dtype(test, dtype, max(support.dtypes)).build()
        except MalformedTest:
            return None
    return test


def window(rng: random.Random, test: LitmusTest, size: int) -> LitmusTest:
    """The test, or `size` accesses of it to few variables, if it has more."""
    accesses = [node for node in test.effects if node.resources]
    if len(accesses) <= size:
        return test
    by_variable: dict[str, list[Node]] = {}
    for node in accesses:
        by_variable.setdefault(node.resources[0], []).append(node)
    # Variables that are accessed once race with nothing.
    several = [name for name, nodes in by_variable.items() if len(nodes) > 1] or [*by_variable]
    kept: list[str] = []
    for name in rng.sample(several, min(len(several), rng.choice(_VARIABLES))):
        nodes = by_variable[name]
        most = max(2, size // len(kept) if kept else size // 2)
        kept += [node.name for node in rng.sample(nodes, min(len(nodes), most))]
        if len(kept) >= size:
            break
    gone = frozenset(node.name for node in accesses) - frozenset(kept[:size])
    try:
        return Rewriter.of(_with_fewer_inputs(test, gone)).without(gone, test.types).tidy().build()
    except MalformedTest:  # of a test with sections, say
        return test


def _with_fewer_inputs(test: LitmusTest, gone: frozenset[str]) -> LitmusTest:
    """The test whose Opaques have no inputs of nodes that go; one without inputs is a constant."""
    lost = set(gone)

    def edit(node: Node) -> Node:
        if node.op not in ABSTRACT_OPS:
            return node
        inputs = tuple(name for name in node.inputs if name not in lost)
        if inputs:
            return replace(node, inputs=inputs)
        assert isinstance(node.attrs, PureAttrs)
        value = term(node.attrs["label"], node.attrs["salt"], ())
        kind = test.type_of(node.name)
        attrs = ConstAttrs(kind.dtype, kind.shape, value)
        return Node(node.name, "Const", after=node.after, attrs=attrs)

    return replace(test, graphs=map_nodes(test.graphs, edit))
