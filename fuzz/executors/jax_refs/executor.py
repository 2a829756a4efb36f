"""The executor `jax_refs`: tests as programs over JAX's references."""

from __future__ import annotations

import platform
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from litmusfuzz.corpus.ops import DEFINED_OPS, OPS, Kind
from litmusfuzz.fuzz.executors.jax_refs import space
from litmusfuzz.fuzz.executors.jax_refs.pure_ops import TABLE, check_pure_ops
from litmusfuzz.fuzz.executors.jax_refs.refusals import REFUSALS
from litmusfuzz.fuzz.executors.jax_refs.space import Settings
from litmusfuzz.fuzz.executors.protocol import ForkAfter, Refused, Unavailable
from litmusfuzz.fuzz.executors.setting_types import Flag, Number, OneOf
from litmusfuzz.fuzz.executors.table import unsupported
from litmusfuzz.fuzz.executors.traced.failures import Refusal, sorted_failures
from litmusfuzz.fuzz.executors.traced.indices import check_indices
from litmusfuzz.fuzz.executors.traced.prepared import PreparedProgram
from litmusfuzz.fuzz.executors.traced.pure_uses import Lacking
from litmusfuzz.fuzz.executors.traced.walk import FEATURES
from litmusfuzz.fuzz.support import Support

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.textfile import Setting
    from litmusfuzz.fuzz.executors.configuration_space import ConfigurationSpace, Point
    from litmusfuzz.fuzz.executors.jax_refs.lowering import Lowering
    from litmusfuzz.fuzz.executors.jax_refs.program import Program
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.executors.setting_types import SettingType

_NO_PROGRAM: Final = frozenset(
    {Kind.QUEUE, Kind.ACCUMULATOR, Kind.SECTION, Kind.TRANSFER, Kind.STATE}
)


def _type_of(values: Sequence[Setting]) -> SettingType:
    """The type of a setting with these values."""
    if isinstance(values[0], bool):
        return Flag()
    if isinstance(values[0], int):
        numbers = [int(each) for each in values]
        return Number(min(numbers), max(numbers))
    return OneOf(tuple(map(str, values)))


class JaxRefsExecutor:
    """JAX's references, eager and transformed."""

    name: ClassVar[str] = "jax_refs"
    support: ClassVar[Support] = Support(
        ops=frozenset(
            name
            for name, op in OPS.items()
            if (name in TABLE or name not in DEFINED_OPS) and op.kind not in _NO_PROGRAM
        ),
        features=FEATURES,
    )
    fork_after: ClassVar[ForkAfter] = ForkAfter(
        (
            *("jax", "jax.numpy", "jax.export"),
            *(
                f"litmusfuzz.fuzz.executors.jax_refs.{name}"
                for name in ("executor", "lowering", "program")
            ),
        ),
        # JAX reads its options when it is imported; XLA_FLAGS is read with the first array.
        ("JAX_*", "TF_CPP_*"),
    )
    setting_types: ClassVar[Mapping[str, SettingType]] = MappingProxyType(
        {setting: _type_of(values) for setting, values in space.SPACE.values.items()}
    )
    space: ClassVar[ConfigurationSpace] = space.SPACE

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """The presets; the first, `eager`, is the default. All guarantee `sequential`."""
        return space.CONFIGURATIONS

    @classmethod
    def configured(cls, name: str) -> Config:
        """The configuration whose settings `name` lists: ``compiled=jit;loops=scan``.

        Raises
        ------
        NotAConfiguration
            Naming the setting, the value, or the values that exclude each other.
        """
        return cls.configuration_at(cls.space.parsed(name))

    @classmethod
    def configuration_at(cls, point: Mapping[str, Setting]) -> Config:
        """The configuration with these settings: a preset, or else named by them."""
        return space.configuration_at(point)

    @classmethod
    def point_of(cls, config: Config) -> Point | None:
        """The point of a configuration; None if the space does not have it."""
        return space.point_of(config)

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        """Versions of JAX, its compiler, NumPy and Python."""
        names = ("jax", "jaxlib", "numpy")
        return {name: version(name) for name in names} | {"python": platform.python_version()}

    def check(self, config: Config) -> None:
        """Check for the configuration's platform.

        Raises
        ------
        Unavailable
            If JAX sees no GPU.
        """
        if (platform := Settings.of(config).platform) != "cpu":
            from litmusfuzz.fuzz.executors.jax_refs.configured import jax_devices

            try:
                jax_devices([f"{platform}:0"])
            except Refused as error:
                raise Unavailable(str(error)) from None

    def prepare(self, test: LitmusTest, config: Config) -> PreparedProgram:
        """Make the program; JAX traces it with the first execution.

        Raises
        ------
        Refused
            If the test is no program of one thread, JAX refuses it, or there is no GPU for it.
        """
        if lacking := self.support.lacking(test):
            raise Refused(", ".join(lacking))
        try:
            check_pure_ops(test)
        except Lacking as lack:
            raise Refused(unsupported(self.name, test, [str(lack)])) from None
        check_indices(test)
        settings = Settings.of(config)
        if not settings.x64:
            wide = {v.dtype for v in test.variables} | {k.dtype for k in test.types.values() if k}
            for dtype in sorted(wide & {"int64", "float64"}):
                raise Refused(f"{dtype} without x64")
        for placed in (*test.resources, *test.nodes):
            if placed.device not in ("", "cpu:0"):
                raise Refused(f"device {placed.device} in configuration {config.name}")
        return self.program(test, settings)

    def program(self, test: LitmusTest, settings: Settings) -> PreparedProgram:
        """The program of a test that the executor takes."""
        import jax

        from litmusfuzz.fuzz.executors.jax_refs.configured import jax_devices

        (device,) = jax_devices([f"{settings.platform}:0"])
        refusals: Sequence[Refusal] = REFUSALS
        if settings.forbidden:
            # However JAX refuses what is forbidden, it is no failure.
            rule = f"forbidden: {space.FORBIDDEN[settings.forbidden]}"
            refusals = (*REFUSALS, Refusal("", rule))

        @contextmanager
        def guarded() -> Iterator[None]:
            with ExitStack() as stack:
                stack.enter_context(sorted_failures("jax", refusals))
                stack.enter_context(jax.enable_x64(settings.x64))
                stack.enter_context(jax.default_device(device))
                yield

        program = self.made(self.as_traced(test), settings, self.lowering(settings))
        return PreparedProgram(test, program, guarded)

    # What mutants change.

    def as_traced(self, test: LitmusTest) -> LitmusTest:
        """The test in the order in which it is traced: that of the file."""
        return test

    def lowering(self, settings: Settings) -> Lowering:
        """JAX as a traced system."""
        from litmusfuzz.fuzz.executors.jax_refs.lowering import Lowering

        return Lowering(settings)

    def made(self, test: LitmusTest, settings: Settings, lowering: Lowering) -> Program:
        """The program of a test."""
        from litmusfuzz.fuzz.executors.jax_refs.program import Program

        return Program(test, settings, lowering)
