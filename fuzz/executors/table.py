"""Table of executors by name: ours are listed here, others come by entry point.

A mutant has the prefix `MUTANT`. Its *control*, the same executor without the defect, has the
prefix `CONTROL` instead, and is made from the mutant: no table has it, nor does `names`.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import asdict
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

import msgspec

from litmusfuzz.corpus.near import did_you_mean
from litmusfuzz.fuzz.executors.configuration_space import ConfigurationSpace
from litmusfuzz.fuzz.executors.process_log import in_a_line
from litmusfuzz.fuzz.executors.protocol import Config, Configurable, ForkAfter, Mutant
from litmusfuzz.fuzz.support import Support

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from importlib.metadata import EntryPoint

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.protocol import Executor

GROUP: Final = "litmusfuzz.executors"
"""Group of the entry points that are executors."""
MUTANT: Final = "mutant/"
"""Prefix of the names of mutants."""
CANARY: Final = "mutant/canary"
"""The mutant that shows a forbidden outcome for every test, so that a campaign has to report it."""
MAX_NAME: Final = 256
"""Length of the name of an executor or of a configuration that it lists, at most."""
SELFTEST: Final = "selftest"
"""Stands in place of an executor: the shard runs the mutants."""
CONTROL: Final = "control/"
"""Prefix in place of ``mutant/``: the same executor without its defect."""

# Names, not classes: only a worker of that executor imports its framework.
EXECUTORS: Final = MappingProxyType(
    {
        "tf": "litmusfuzz.fuzz.executors.tensorflow.executor:TensorFlowExecutor",
        "native": "litmusfuzz.fuzz.executors.native.executor:NativeExecutor",
        "jax": "litmusfuzz.fuzz.executors.jax_clustered.executor:JaxClusteredExecutor",
        "jax_refs": "litmusfuzz.fuzz.executors.jax_refs.executor:JaxRefsExecutor",
        CANARY: "litmusfuzz.fuzz.mutants.canary:Canary",
        "mutant/stale-reads": "litmusfuzz.fuzz.mutants.stale_reads:StaleReads",
        "mutant/torn-scatter": "litmusfuzz.fuzz.mutants.scatter:TornScatter",
        "mutant/early-scatter": "litmusfuzz.fuzz.mutants.scatter:EarlyScatter",
        "mutant/forgotten-scatter": "litmusfuzz.fuzz.mutants.scatter:ForgottenScatter",
        "mutant/tf-unchecked-clusters": "litmusfuzz.fuzz.mutants.tensorflow:UncheckedClusters",
        "mutant/tf-dropped-control-edge": "litmusfuzz.fuzz.mutants.tensorflow:DroppedControlEdge",
        "mutant/tf-store-buffers": "litmusfuzz.fuzz.mutants.tensorflow:StoreBuffers",
        "mutant/tf-stale-cache": "litmusfuzz.fuzz.mutants.tensorflow:StaleCache",
        "mutant/tf-one-pair-of-settings": "litmusfuzz.fuzz.mutants.tensorflow:OnePairOfSettings",
        "mutant/tf-early-sink": "litmusfuzz.fuzz.mutants.tensorflow:EarlySink",
        "mutant/tf-one-run-waited-for": "litmusfuzz.fuzz.mutants.tensorflow:OneRunWaitedFor",
        "mutant/tf-early-transfer": "litmusfuzz.fuzz.mutants.tensorflow:EarlyTransfer",
        "mutant/tf-copied-variables": "litmusfuzz.fuzz.mutants.tensorflow:CopiedVariables",
        "mutant/tf-split-updates": "litmusfuzz.fuzz.mutants.tensorflow:SplitUpdates",
        "mutant/tf-torn-write": "litmusfuzz.fuzz.mutants.tensorflow:TornWrite",
        "mutant/tf-two-holders": "litmusfuzz.fuzz.mutants.tensorflow:TwoHolders",
        "mutant/tf-early-release": "litmusfuzz.fuzz.mutants.tensorflow:EarlyRelease",
        "mutant/tf-over-capacity": "litmusfuzz.fuzz.mutants.tensorflow:OverCapacity",
        "mutant/tf-out-of-order": "litmusfuzz.fuzz.mutants.tensorflow:OutOfOrder",
        "mutant/tf-stale-gradient": "litmusfuzz.fuzz.mutants.tensorflow:StaleGradient",
        "mutant/tf-too-few-gradients": "litmusfuzz.fuzz.mutants.tensorflow:TooFewGradients",
        "mutant/tf-mean-of-gradients": "litmusfuzz.fuzz.mutants.tensorflow:MeanOfGradients",
        "mutant/tf-step-not-reset": "litmusfuzz.fuzz.mutants.tensorflow:StepNotReset",
        "mutant/tf-no-window": "litmusfuzz.fuzz.mutants.tensorflow:NoWindow",
        "mutant/tf-unordered-iterations": "litmusfuzz.fuzz.mutants.tensorflow:UnorderedIterations",
        "mutant/tf-old-frame": "litmusfuzz.fuzz.mutants.tensorflow:OldFrame",
        "mutant/tf-early-body": "litmusfuzz.fuzz.mutants.tensorflow:EarlyBody",
        "mutant/tf-early-branch": "litmusfuzz.fuzz.mutants.tensorflow:EarlyBranch",
        "mutant/tf-early-return": "litmusfuzz.fuzz.mutants.tensorflow:EarlyReturn",
        "mutant/tf-pruned-call": "litmusfuzz.fuzz.mutants.tensorflow:PrunedCall",
        "mutant/tf-always-initialized": "litmusfuzz.fuzz.mutants.tensorflow:AlwaysInitialized",
        "mutant/tf-zero-for-no-value": "litmusfuzz.fuzz.mutants.tensorflow:ZeroForNoValue",
        "mutant/tf-unpruned": "litmusfuzz.fuzz.mutants.tensorflow:Unpruned",
        "mutant/tf-data-only-needs": "litmusfuzz.fuzz.mutants.tensorflow:DataOnlyNeeds",
        "mutant/tf-section-not-entered": "litmusfuzz.fuzz.mutants.tensorflow:SectionNotEntered",
        "mutant/tf-body-without-effects": "litmusfuzz.fuzz.mutants.tensorflow:BodyWithoutEffects",
        "mutant/tf-swapped-feeds": "litmusfuzz.fuzz.mutants.tensorflow:SwappedFeeds",
        "mutant/tf-missed-alias": "litmusfuzz.fuzz.mutants.tensorflow:MissedAlias",
        "mutant/tf-early-index": "litmusfuzz.fuzz.mutants.tensorflow:EarlyIndex",
        "mutant/tf-clipped-index": "litmusfuzz.fuzz.mutants.tensorflow:ClippedIndex",
        "mutant/tf-first-handle": "litmusfuzz.fuzz.mutants.tensorflow:FirstHandle",
        "mutant/tf-eager-own-variables": "litmusfuzz.fuzz.mutants.tensorflow:OwnVariables",
        "mutant/tf-eager-shared-frame": "litmusfuzz.fuzz.mutants.tensorflow:SharedFrame",
        "mutant/tf-eager-last-op-first": "litmusfuzz.fuzz.mutants.tensorflow:LastOpFirst",
        "mutant/tf-function-lost-edge": "litmusfuzz.fuzz.mutants.tensorflow:LostFunctionEdge",
        "mutant/tf-function-without-order": (
            "litmusfuzz.fuzz.mutants.tensorflow:FunctionWithoutOrder"
        ),
        "mutant/tf-cluster-in-parts": "litmusfuzz.fuzz.mutants.tensorflow:ClusterInParts",
        "mutant/tf-stale-trace": "litmusfuzz.fuzz.mutants.tensorflow:StaleTrace",
        "mutant/relaxed-atomics": "litmusfuzz.fuzz.mutants.native:RelaxedAtomics",
        "mutant/store-buffers": "litmusfuzz.fuzz.mutants.native:StoreBuffers",
        "mutant/stale-cache": "litmusfuzz.fuzz.mutants.native:StaleCache",
        "mutant/torn-write": "litmusfuzz.fuzz.mutants.native:TornWrite",
        "mutant/always-initialized": "litmusfuzz.fuzz.mutants.native:AlwaysInitialized",
        "mutant/zero-for-no-value": "litmusfuzz.fuzz.mutants.native:ZeroForNoValue",
        "mutant/in-place-update": "litmusfuzz.fuzz.mutants.native:InPlaceUpdate",
        "mutant/dropped-control-edge": "litmusfuzz.fuzz.mutants.native:DroppedControlEdge",
        "mutant/early-sink": "litmusfuzz.fuzz.mutants.native:EarlySink",
        "mutant/one-run-waited-for": "litmusfuzz.fuzz.mutants.native:OneRunWaitedFor",
        "mutant/early-transfer": "litmusfuzz.fuzz.mutants.native:EarlyTransfer",
        "mutant/copied-variables": "litmusfuzz.fuzz.mutants.native:CopiedVariables",
        "mutant/split-updates": "litmusfuzz.fuzz.mutants.native:SplitUpdates",
        "mutant/two-holders": "litmusfuzz.fuzz.mutants.native:TwoHolders",
        "mutant/early-release": "litmusfuzz.fuzz.mutants.native:EarlyRelease",
        "mutant/last-in-first-out": "litmusfuzz.fuzz.mutants.native:LastInFirstOut",
        "mutant/stale-gradient": "litmusfuzz.fuzz.mutants.native:StaleGradient",
        "mutant/gradient-twice": "litmusfuzz.fuzz.mutants.native:GradientTwice",
        "mutant/too-few-gradients": "litmusfuzz.fuzz.mutants.native:TooFewGradients",
        "mutant/kept-sum": "litmusfuzz.fuzz.mutants.native:KeptSum",
        "mutant/old-step": "litmusfuzz.fuzz.mutants.native:OldStep",
        "mutant/over-capacity": "litmusfuzz.fuzz.mutants.native:OverCapacity",
        "mutant/lost-wake-up": "litmusfuzz.fuzz.mutants.native:LostWakeUp",
        "mutant/old-frame": "litmusfuzz.fuzz.mutants.native:OldFrame",
        "mutant/early-body": "litmusfuzz.fuzz.mutants.native:EarlyBody",
        "mutant/no-window": "litmusfuzz.fuzz.mutants.native:NoWindow",
        "mutant/early-return": "litmusfuzz.fuzz.mutants.native:EarlyReturn",
        "mutant/pruned-call": "litmusfuzz.fuzz.mutants.native:PrunedCall",
        "mutant/missed-alias": "litmusfuzz.fuzz.mutants.native:MissedAlias",
        "mutant/named-node": "litmusfuzz.fuzz.mutants.native:NamedNode",
        "mutant/large-early-read": "litmusfuzz.fuzz.mutants.native:LargeEarlyRead",
        "mutant/unpruned": "litmusfuzz.fuzz.mutants.native:Unpruned",
        "mutant/data-only-needs": "litmusfuzz.fuzz.mutants.native:DataOnlyNeeds",
        "mutant/section-not-entered": "litmusfuzz.fuzz.mutants.native:SectionNotEntered",
        "mutant/body-without-effects": "litmusfuzz.fuzz.mutants.native:BodyWithoutEffects",
        "mutant/swapped-feeds": "litmusfuzz.fuzz.mutants.native:SwappedFeeds",
        "mutant/opencl-unawaited-operand": "litmusfuzz.fuzz.mutants.opencl:UnawaitedOperand",
        "mutant/opencl-event-of-wrong-queue": "litmusfuzz.fuzz.mutants.opencl:EventOfWrongQueue",
        "mutant/opencl-early-reuse": "litmusfuzz.fuzz.mutants.opencl:EarlyReuse",
        "mutant/opencl-unawaited-upload": "litmusfuzz.fuzz.mutants.opencl:UnawaitedUpload",
        "mutant/opencl-unawaited-download": "litmusfuzz.fuzz.mutants.opencl:UnawaitedDownload",
        "mutant/opencl-stale-map": "litmusfuzz.fuzz.mutants.opencl:StaleMap",
        "mutant/opencl-contraction": "litmusfuzz.fuzz.mutants.opencl:Contraction",
        "mutant/refs-dropped-branch-write": "litmusfuzz.fuzz.mutants.jax_refs:DroppedBranchWrite",
        "mutant/refs-both-branches": "litmusfuzz.fuzz.mutants.jax_refs:BothBranches",
        "mutant/refs-hoisted-read": "litmusfuzz.fuzz.mutants.jax_refs:HoistedRead",
        "mutant/refs-late-iteration": "litmusfuzz.fuzz.mutants.jax_refs:LateIteration",
        "mutant/refs-lost-iteration": "litmusfuzz.fuzz.mutants.jax_refs:LostIteration",
        "mutant/refs-swap-returns-new": "litmusfuzz.fuzz.mutants.jax_refs:SwapReturnsNew",
        "mutant/refs-addupdate-overwrites": "litmusfuzz.fuzz.mutants.jax_refs:AddUpdateOverwrites",
        "mutant/refs-negative-takes-first": "litmusfuzz.fuzz.mutants.jax_refs:NegativeTakesFirst",
        "mutant/refs-overwritten-gradient": "litmusfuzz.fuzz.mutants.jax_refs:OverwrittenGradient",
        "mutant/refs-lost-gradient": "litmusfuzz.fuzz.mutants.jax_refs:LostGradient",
        "mutant/refs-wrong-lane": "litmusfuzz.fuzz.mutants.jax_refs:WrongLane",
        "mutant/refs-stale-freeze": "litmusfuzz.fuzz.mutants.jax_refs:StaleFreeze",
        "mutant/refs-kept-contents": "litmusfuzz.fuzz.mutants.jax_refs:KeptContents",
        "mutant/refs-shared-buffer": "litmusfuzz.fuzz.mutants.jax_refs:SharedBuffer",
        "mutant/no-safety-analysis": "litmusfuzz.fuzz.mutants.jax:NoSafetyAnalysis",
        "mutant/direct-dependencies-only": "litmusfuzz.fuzz.mutants.jax:DirectDependenciesOnly",
        "mutant/data-edges-only": "litmusfuzz.fuzz.mutants.jax:DataEdgesOnly",
        "mutant/update-taken-for-a-write": "litmusfuzz.fuzz.mutants.jax:UpdateTakenForAWrite",
        "mutant/update-taken-for-a-read": "litmusfuzz.fuzz.mutants.jax:UpdateTakenForARead",
        "mutant/region-without-analysis": "litmusfuzz.fuzz.mutants.jax:RegionWithoutAnalysis",
        "mutant/no-cycle-check": "litmusfuzz.fuzz.mutants.jax:NoCycleCheck",
        "mutant/split-snapshot": "litmusfuzz.fuzz.mutants.jax:SplitSnapshot",
        "mutant/split-write-back": "litmusfuzz.fuzz.mutants.jax:SplitWriteBack",
        "mutant/aliased-snapshot": "litmusfuzz.fuzz.mutants.jax:AliasedSnapshot",
        "mutant/early-snapshot": "litmusfuzz.fuzz.mutants.jax:EarlySnapshot",
    }
)


_MEMBERS: Final = ("name", "support", "configurations", "versions", "prepare")
"""Members of `protocol.Executor`."""


class UnknownExecutor(ValueError):
    """No usable executor or configuration has that name."""


def names() -> tuple[str, ...]:
    """Names of all executors in this environment, mutants included; controls are not."""
    return (
        *EXECUTORS,
        *sorted({point.name for point in _points(tuple(sys.path))} - EXECUTORS.keys()),
    )


def unsupported(name: str, test: LitmusTest, lacking: Iterable[str]) -> str:
    """The message of an executor that does not support what a test has; it names those that do.

    Parameters
    ----------
    name : str
        The executor.
    test : LitmusTest
    lacking : iterable of str
        What the executor lacks.
    """
    others = [each for each in EXECUTORS if not each.startswith(MUTANT) and each != name]
    running = [each for each in others if not executor_class(each).support.lacking(test)]
    where = f"{', '.join(running)} can run it" if running else "none of our executors can run it"
    return f"unsupported: {', '.join(lacking)}; {where}"


def is_ours(name: str) -> bool:
    """True for an executor of LitmusFuzz itself, mutants and their controls included."""
    if name.startswith(CONTROL):
        return MUTANT + name.removeprefix(CONTROL) in EXECUTORS
    return name in EXECUTORS


def executor_class(name: str) -> type[Executor]:
    """The executor of that name, which may be that of a control.

    Raises
    ------
    UnknownExecutor
        Naming the executors that exist, or the problem with the entry point, in one line.
    """
    if name.startswith(CONTROL):
        mutant = executor_class(MUTANT + name.removeprefix(CONTROL))
        if isinstance(mutant, Mutant):
            return mutant.control()
        raise UnknownExecutor(f"{mutant.name} has no control")
    points = [point for point in _points(tuple(sys.path)) if point.name == name]
    named = [EXECUTORS[name]] if name in EXECUTORS else []
    named += [_where_from(point) for point in points]
    if len(named) > 1:
        raise UnknownExecutor(f"several executors are called {name!r}: {', '.join(named)}")
    if points:
        return _loaded(points[0])
    if not named:
        raise UnknownExecutor(f"no executor {name!r}; {_there_are(name)}")
    module, _, attribute = named[0].partition(":")
    return cast("type[Executor]", getattr(importlib.import_module(module), attribute))


def base_executor(name: str) -> str:
    """The executor whose framework a mutant, or its control, needs: "tf", "jax" or "jax_refs".

    It is the one that the mutant's class derives from. For all others it is "native": they need no
    framework, whether they derive from it or, as the canary does, from none.

    Raises
    ------
    UnknownExecutor
    """
    executor = executor_class(name)
    bases = (
        each for each in ("tf", "jax", "jax_refs") if issubclass(executor, executor_class(each))
    )
    return next(bases, "native")


def _there_are(name: str) -> str:
    """The names that are close to an unknown one, or where all are listed."""
    if name.startswith(MUTANT):
        return did_you_mean(name, names(), "mutants")
    hint = did_you_mean(name, names(), "executors")
    return f"{hint}; one of your own needs an entry point in the group {GROUP} (docs/executors.md)"


@cache
def _points(_path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    # Cached: it looks into every package on the path.
    return tuple(entry_points(group=GROUP))


def _where_from(point: EntryPoint) -> str:
    return f"{point.value} (of {point.dist.name if point.dist else 'nobody'})"


def _loaded(point: EntryPoint) -> type[Executor]:
    """The executor of an entry point; any problem with it becomes one line."""
    try:
        executor = point.load()
        why = next(_problems(point.name, executor), "")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - importing theirs runs their code
        why = in_a_line(f"{type(error).__name__}: {error}")
    if not why:
        return cast("type[Executor]", executor)
    raise UnknownExecutor(f"executor {point.name!r}, {_where_from(point)}, cannot be used: {why}")


def _problems(name: str, executor: type[Executor]) -> Iterator[str]:
    """What is wrong with an executor of somebody else's.

    Take the first problem only: each check presupposes that those before it found nothing, and may
    raise otherwise.
    """
    if name == SELFTEST or not _is_name(name):
        yield f"{name!r:.80} is no name for an executor"
    lacking = sorted(member for member in _MEMBERS if not hasattr(executor, member))
    if not lacking:
        lacking += [] if executor.configurations() else ["configurations"]
        lacking += [] if isinstance(executor.support, Support) else ["Support as its support"]
    if lacking:
        yield f"it has no {', '.join(lacking)}"
    configs = executor.configurations()
    for each in configs:
        if not isinstance(each, Config):
            yield f"its configurations have {each!r:.80}, which is no Config"
        msgspec.convert(asdict(each), Config)  # raises if a field has another type
        # A slash divides the executor from its configuration in reports.
        if not _is_name(each.name) or "/" in each.name:
            yield f"{each.name!r:.80} is no name for a configuration"
    if len({each.name for each in configs}) < len(configs):
        yield "two of its configurations have one name"
    if not isinstance(after := getattr(executor, "fork_after", ForkAfter(())), ForkAfter):
        yield "its fork_after is no ForkAfter"
    msgspec.convert(asdict(after), ForkAfter)
    damaging: object = getattr(executor, "damaging_ops", frozenset())
    if not isinstance(damaging, frozenset) or not all(isinstance(op, str) for op in damaging):
        yield "its damaging_ops are no frozenset of names"
    if not isinstance(getattr(executor, "space", None), ConfigurationSpace | None):
        yield "its space is no ConfigurationSpace"


def _is_name(text: str) -> bool:
    return 0 < len(text) <= MAX_NAME and text.isprintable() and not set(text) & set(",:*")


def configuration(executor: str, name: str | None = None, guarantees: str | None = None) -> Config:
    """A configuration of an executor: by name, by the model it guarantees, or the first.

    Parameters
    ----------
    executor : str
    name : str, optional
    guarantees : str, optional
        Without a name, the configuration is one that guarantees just this model, if there is one:
        the first with the controlled engine, or else the first. Otherwise it is the executor's
        first configuration, which may guarantee another model.

    Raises
    ------
    UnknownExecutor
        If there is no such executor or configuration.
    """
    made = executor_class(executor)
    configs = made.configurations()
    if name is None and guarantees is not None:
        keeping = [config for config in configs if config.guarantees == guarantees]
        controlled = [c for c in keeping if ("engine", "controlled") in c.settings]
        return (controlled or keeping or list(configs))[0]
    if name is None:
        return configs[0]
    for config in configs:
        if config.name == name:
            return config
    if isinstance(made, Configurable) and "=" in name:
        try:
            return made.configured(name)
        except ValueError as error:
            raise UnknownExecutor(f"{executor}: {error}") from None
    raise UnknownExecutor(no_configuration(executor, name, [config.name for config in configs]))


def no_configuration(executor: str, name: str, known: Iterable[str]) -> str:
    """The message that an executor has no such configuration, with those like it."""
    each = [f"{executor}:{config}" for config in known]
    hint = did_you_mean(f"{executor}:{name}", each, f"configurations --executors {executor}")
    return f"{executor} has no configuration {name!r}; {hint}"
