"""Mutants of the executor `jax_refs`, each with one defect of a compiler of references.

Each is what JAX would show with that defect: the defect is made in the code that is traced, or in
what is done with its results. The tests in ``tests/kills/test_jax_refs_mutants.py`` name, for each
mutant, a shape that kills it and a shape that it survives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from litmusfuzz.corpus.model import BranchAttrs, LoopAttrs, all_nodes
from litmusfuzz.corpus.ops import Kind
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.jax_refs.executor import JaxRefsExecutor
from litmusfuzz.fuzz.executors.jax_refs.space import Settings
from litmusfuzz.fuzz.mutants.changed_test import ChangesTest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from litmusfuzz.corpus.model import Body, Graph, LitmusTest, Node
    from litmusfuzz.fuzz.executors.jax_refs.lowering import Lowering
    from litmusfuzz.fuzz.executors.jax_refs.program import Program
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.executors.traced.walk import BodyCode, LoopCode

Array = Any
Ref = Any


class WrongReferences(JaxRefsExecutor):
    """The executor with one defect."""

    @classmethod
    def control(cls) -> type[JaxRefsExecutor]:
        """The executor without it."""
        return JaxRefsExecutor

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False only if no execution of the test in this configuration has the defect."""
        raise NotImplementedError


def _branches(test: LitmusTest) -> Iterator[BranchAttrs]:
    return (node.attrs for node in test.nodes if isinstance(node.attrs, BranchAttrs))


def _loops(test: LitmusTest) -> Iterator[LoopAttrs]:
    return (node.attrs for node in test.nodes if isinstance(node.attrs, LoopAttrs))


def _effects(within: Body | LitmusTest) -> list[Node]:
    """Ops on variables, those of bodies included."""
    return [node for node in all_nodes(within.nodes) if node.definition.on_variables]


def _writes(within: Body | LitmusTest) -> list[Node]:
    return [node for node in _effects(within) if node.definition.kind.writes]


def _inside(test: LitmusTest, config: Config) -> bool:
    """True if the program creates its references."""
    return Settings.of(config).references == "inside" or "gradients" in test.features


def _shareable(settings: Settings) -> bool:
    """True where JAX does not see that two references are one."""
    return not (settings.compiled or settings.parts or settings.batch)


# --- what is traced ----------------------------------------------------------------------


class DroppedBranchWrite(WrongReferences):
    """A write in the branch that is taken when the predicate is true is dropped."""

    name: ClassVar[str] = "mutant/refs-dropped-branch-write"

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if no first branch writes."""
        del config
        return any(_writes(each.then) for each in _branches(test))

    def lowering(self, settings: Settings) -> Lowering:
        """The system, with the defect."""
        from litmusfuzz.fuzz.executors.jax_refs.lowering import Lowering

        class Wrong(Lowering):
            muted = False

            def write(self, node: Node, reference: Ref, value: Array) -> None:
                if not self.muted:
                    super().write(node, reference, value)

            def branch(
                self, predicate: Array, then: BodyCode, orelse: BodyCode, captured: Sequence[Array]
            ) -> tuple[Array, ...]:
                def run(values: Sequence[Array], own: Mapping[str, Ref]) -> tuple[Array, ...]:
                    self.muted = True
                    try:
                        return then.run(values, own)
                    finally:
                        self.muted = False

                return super().branch(predicate, replace(then, run=run), orelse, captured)

        return Wrong(settings)


class BothBranches(WrongReferences):
    """The effects of the branch that is not taken happen as well, first."""

    name: ClassVar[str] = "mutant/refs-both-branches"

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if no branch has an effect."""
        del config
        return any(_effects(e.then) or _effects(e.orelse) for e in _branches(test))

    def lowering(self, settings: Settings) -> Lowering:
        """The system, with the defect."""
        from litmusfuzz.fuzz.executors.jax_refs.lowering import Lowering

        class Wrong(Lowering):
            def branch(
                self, predicate: Array, then: BodyCode, orelse: BodyCode, captured: Sequence[Array]
            ) -> tuple[Array, ...]:
                super().branch(predicate, orelse, then, captured)
                return super().branch(predicate, then, orelse, captured)

        return Wrong(settings)


class HoistedRead(ChangesTest, WrongReferences):
    """A read moves over the write of its variable that comes just before it."""

    name: ClassVar[str] = "mutant/refs-hoisted-read"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with such reads before such writes."""
        return replace(test, graphs=tuple(map(_hoisted, test.graphs)))

    def as_traced(self, test: LitmusTest) -> LitmusTest:
        """The test in the order in which it is traced."""
        return self.executed(test)


def _hoisted(graph: Graph) -> Graph:
    nodes = list(graph.nodes)
    for place in range(1, len(nodes)):
        read = nodes[place]
        if read.definition.kind is not Kind.READ or read.handle:
            continue
        before = place - 1
        while before >= 0 and nodes[before].definition.pure:
            before -= 1
        written = nodes[before] if before >= 0 else None
        if (
            written is not None
            and written.definition.kind is Kind.WRITE
            and written.resources == read.resources
        ):
            nodes.insert(before, replace(nodes.pop(place), after=()))
    return replace(graph, nodes=tuple(nodes))


class LateIteration(WrongReferences):
    """Reads in a loop's body see what its references held one iteration earlier."""

    name: ClassVar[str] = "mutant/refs-late-iteration"

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if no loop's body has an effect."""
        del config
        return any(_effects(each.body) for each in _loops(test))

    def lowering(self, settings: Settings) -> Lowering:
        """The system, with the defect."""
        import jax

        from litmusfuzz.fuzz.executors.jax_refs.lowering import Lowering

        class Wrong(Lowering):
            late: ClassVar[dict[int, Array]] = {}

            def read(self, node: Node, reference: Ref, rows: Array | None) -> Array:
                value = self.late.get(id(reference))
                if value is None or rows is not None:
                    return super().read(node, reference, rows)
                return value

            def loop(
                self, code: LoopCode, carried: Sequence[Array], captured: Sequence[Array]
            ) -> tuple[Array, ...]:
                earlier = {n: jax.new_ref(ref[...]) for n, ref in code.body.references.items()}

                def run(values: Sequence[Array], own: Mapping[str, Ref]) -> tuple[Array, ...]:
                    was = {name: ref[...] for name, ref in own.items()}
                    self.late.update({id(own[name]): earlier[name][...] for name in own})
                    found = code.body.run(values, own)
                    self.late.clear()
                    for name, value in was.items():
                        earlier[name][...] = value
                    return found

                return super().loop(
                    replace(code, body=replace(code.body, run=run)), carried, captured
                )

        return Wrong(settings)


class LostIteration(WrongReferences):
    """A counted loop ends one iteration early."""

    name: ClassVar[str] = "mutant/refs-lost-iteration"

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if there is no loop."""
        del config
        return any(True for _ in _loops(test))

    def lowering(self, settings: Settings) -> Lowering:
        """The system, with the defect."""
        from litmusfuzz.fuzz.executors.jax_refs.lowering import Lowering

        class Wrong(Lowering):
            def loop(
                self, code: LoopCode, carried: Sequence[Array], captured: Sequence[Array]
            ) -> tuple[Array, ...]:
                return super().loop(replace(code, bound=max(0, code.bound - 1)), carried, captured)

        return Wrong(settings)


class SwapReturnsNew(WrongReferences):
    """`swap` returns what it has written."""

    name: ClassVar[str] = "mutant/refs-swap-returns-new"

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if nothing is updated by a swap."""
        return Settings.of(config).updates == "swap" and bool(_writes(test))

    def lowering(self, settings: Settings) -> Lowering:
        """The system, with the defect."""
        import jax

        from litmusfuzz.fuzz.executors.jax_refs.lowering import Lowering

        class Wrong(Lowering):
            def add(self, reference: Ref, index: Any, value: Array) -> None:
                if self.settings.updates != "swap":
                    super().add(reference, index, value)
                    return
                zeros = 0 * reference[index]
                jax.ref.swap(reference, index, zeros)
                reference[index] = zeros + value

        return Wrong(settings)


class AddUpdateOverwrites(WrongReferences):
    """`addupdate` writes what it is to add."""

    name: ClassVar[str] = "mutant/refs-addupdate-overwrites"

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if nothing is updated by `addupdate`."""
        return Settings.of(config).updates == "addupdate" and bool(_writes(test))

    def lowering(self, settings: Settings) -> Lowering:
        """The system, with the defect."""
        from litmusfuzz.fuzz.executors.jax_refs.lowering import Lowering

        class Wrong(Lowering):
            def add(self, reference: Ref, index: Any, value: Array) -> None:
                if self.settings.updates == "addupdate":
                    value = value - reference[index]
                super().add(reference, index, value)

        return Wrong(settings)


class NegativeTakesFirst(WrongReferences):
    """A negative index stands for the first row."""

    name: ClassVar[str] = "mutant/refs-negative-takes-first"

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if no index is negative."""
        del test
        return Settings.of(config).indices == "negative"

    def lowering(self, settings: Settings) -> Lowering:
        """The system, with the defect."""
        from litmusfuzz.fuzz.executors.jax_refs.lowering import Lowering

        class Wrong(Lowering):
            def index(
                self, numbers: Sequence[int] | None, rows: Array, size: int, *, read: bool
            ) -> Any:
                found = super().index(numbers, rows, size, read=read)
                return 0 * found if self.settings.indices == "negative" else found

        return Wrong(settings)


class OverwrittenGradient(WrongReferences):
    """The gradient flows through a value that is overwritten. Values are right."""

    name: ClassVar[str] = "mutant/refs-overwritten-gradient"

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if there is no gradient."""
        del config
        return "gradients" in test.features

    def lowering(self, settings: Settings) -> Lowering:
        """The system, with the defect."""
        from jax import lax

        from litmusfuzz.fuzz.executors.jax_refs.lowering import Lowering

        class Wrong(Lowering):
            def write(self, node: Node, reference: Ref, value: Array) -> None:
                was = reference[...]
                super().write(node, reference, value + (was - lax.stop_gradient(was)))

        return Wrong(settings)


class LostGradient(WrongReferences):
    """What an update adds has no gradient. Values are right."""

    name: ClassVar[str] = "mutant/refs-lost-gradient"

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if there is no gradient."""
        del config
        return "gradients" in test.features

    def lowering(self, settings: Settings) -> Lowering:
        """The system, with the defect."""
        from jax import lax

        from litmusfuzz.fuzz.executors.jax_refs.lowering import Lowering

        class Wrong(Lowering):
            def add(self, reference: Ref, index: Any, value: Array) -> None:
                super().add(reference, index, lax.stop_gradient(value))

        return Wrong(settings)


# --- what is done with it ------------------------------------------------------------------


class WrongLane(WrongReferences):
    """Under `vmap`, writes go to the next copy."""

    name: ClassVar[str] = "mutant/refs-wrong-lane"

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if there is one copy, or the function creates its references."""
        return bool(Settings.of(config).batch) and not _inside(test, config)

    def made(self, test: LitmusTest, settings: Settings, lowering: Lowering) -> Program:
        """The program, with the defect."""
        import jax.numpy as jnp

        from litmusfuzz.fuzz.executors.jax_refs.program import Program

        class Wrong(Program):
            def _batched(self, function: Callable[..., Any]) -> Callable[..., Any]:
                made = super()._batched(function)
                if not self.settings.batch or self._inside:
                    return made

                def moved(*arguments: Any) -> Any:
                    found = made(*arguments)
                    refs, _ = self._unpacked(arguments)
                    for ref in refs.values():
                        ref[...] = jnp.roll(ref[...], 1, self._axis)
                    return found

                return moved

        return Wrong(test, settings, lowering)


class StaleFreeze(WrongReferences):
    """The final contents of a reference that a function creates are those it was created with."""

    name: ClassVar[str] = "mutant/refs-stale-freeze"

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if the function is given its references."""
        return _inside(test, config)

    def made(self, test: LitmusTest, settings: Settings, lowering: Lowering) -> Program:
        """The program, with the defect."""
        from litmusfuzz.fuzz.executors.jax_refs.program import Program

        class Wrong(Program):
            def _function(self) -> Callable[..., Any]:
                function = super()._function()
                if not self._inside:
                    return function
                return lambda contents, given: function(contents, given) | contents

        return Wrong(test, settings, lowering)


class KeptContents(WrongReferences):
    """A second call begins with what the first has left."""

    name: ClassVar[str] = "mutant/refs-kept-contents"

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if the function creates its references."""
        return not _inside(test, config)

    def made(self, test: LitmusTest, settings: Settings, lowering: Lowering) -> Program:
        """The program, with the defect."""
        from litmusfuzz.fuzz.executors.jax_refs.program import Program

        class Wrong(Program):
            def _references(self, contents: dict[str, Array]) -> dict[str, Ref]:
                return self._refs or super()._references(contents)

        return Wrong(test, settings, lowering)


class SharedBuffer(WrongReferences):
    """Two references of one type that are created with equal contents share a buffer."""

    name: ClassVar[str] = "mutant/refs-shared-buffer"

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if JAX refuses it, or there is one reference."""
        return _shareable(Settings.of(config)) and len(test.variables) > 1

    def made(self, test: LitmusTest, settings: Settings, lowering: Lowering) -> Program:
        """The program, with the defect."""
        from litmusfuzz.fuzz.executors.jax_refs.program import Program

        class Wrong(Program):
            def _references(self, contents: dict[str, Array]) -> dict[str, Ref]:
                refs = super()._references(contents)
                if not _shareable(self.settings):
                    return refs
                first: dict[str, Ref] = {}
                for name, value in contents.items():
                    refs[name] = first.setdefault(f"{value.dtype} {value.tolist()}", refs[name])
                return refs

        return Wrong(test, settings, lowering)
