"""The configuration space of the executor `tf`: every setting, and what excludes what.

The settings of the space are the fields of `Settings`, except that each optimizer of grappler is a
setting of its own: ``rewrites`` says only whether all of them run. Every preset is a point of it.
"""

from __future__ import annotations

from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.fuzz.engines.settings import EngineSettings, Sort, UnknownEngine
from litmusfuzz.fuzz.executors.configuration_space import (
    ConfigurationSpace,
    Exclusion,
    NotAConfiguration,
)
from litmusfuzz.fuzz.executors.protocol import LEVELS
from litmusfuzz.fuzz.executors.tensorflow.configurations import (
    AGGRESSIVE,
    CONFIGURATIONS,
    CONTROLS,
    DEFAULT_ITERATIONS,
    ENGINES,
    FRONT_ENDS,
    OPTIMIZERS,
    Settings,
    configuration,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from litmusfuzz.corpus.textfile import Setting
    from litmusfuzz.fuzz.executors.configuration_space import Point, Value
    from litmusfuzz.fuzz.executors.protocol import Config

_SINGLE: Final = "SINGLE_THREADED_EXECUTOR"
_OPTIMIZER: Final = MappingProxyType({f"{name}_optimizer": OPTIMIZERS[name] for name in OPTIMIZERS})
"""By setting, the fields of ``RewriterConfig`` that enable an optimizer."""
_FLAG: Final = (False, True)
TRACED: Final = ("function", "function_kernels")
PYTHON: Final = ("python_v1", "python_v2")

_VALUES: Final[Mapping[str, tuple[Setting, ...]]] = MappingProxyType(
    {
        "rewrites": ("", "all", "aggressive"),
        **dict.fromkeys(_OPTIMIZER, _FLAG),
        "rewrite_iterations": (DEFAULT_ITERATIONS, 1, 3),
        "compiled": ("", "clusters", "region", "whole"),
        "min_cluster_size": (1, 2, 4),
        "max_cluster_size": (0, 2),
        "lazy": _FLAG,
        "in_background": _FLAG,
        "front_end": FRONT_ENDS,
        "model_code": _FLAG,
        "inter_op_threads": (4, 1, 2, 8, 16),
        "pool": ("own", "per_session", "second", "global", "run_handler", "caller"),
        "spinning": _FLAG,
        "intra_op_threads": (1, 2, 4, 8, 16),
        "executor_type": ("", _SINGLE),
        "workers": (0, 2),
        "devices": (1, 2),
        "control": CONTROLS,
        "engine": ("", *ENGINES),
        "threads": (4, 1, 2, 8, 16),
    }
)


def _other(setting: str, *values: Setting) -> tuple[str, tuple[Setting, ...]]:
    """The values of a setting except for these."""
    return setting, tuple(each for each in _VALUES[setting] if each not in values)


def _exclusions() -> Iterator[Exclusion]:
    yield from _of_optimizers()
    yield from _of_compilation()
    yield from _of_threads()
    yield from _of_devices()
    yield from _of_control()
    yield from _of_engines()
    for setting in _VALUES:
        if setting == "front_end":
            continue
        for front_end in ("eager", "eager_functions", "keras"):
            plain = [_VALUES[setting][0]]
            if setting == "compiled" and front_end != "eager":
                plain.append("whole")
            yield Exclusion(
                ("front_end", (front_end,)), _other(setting, *plain), "it is a setting of graphs"
            )


def _of_optimizers() -> Iterator[Exclusion]:
    for setting in _OPTIMIZER:
        why = "all optimizers contain it"
        yield Exclusion(("rewrites", ("all", "aggressive")), (setting, (True,)), why)
    yield Exclusion(
        ("elimination_optimizer", (True,)),
        ("arithmetic_optimizer", (False,)),
        "grappler runs common subgraph elimination only together with the arithmetic optimizer",
    )
    yield Exclusion(
        ("rewrites", ("",)),
        _other("rewrite_iterations", DEFAULT_ITERATIONS),
        "it is varied only where all optimizers run, since most act on what others leave",
    )


def _of_compilation() -> Iterator[Exclusion]:
    for setting in ("min_cluster_size", "max_cluster_size", "lazy", "in_background"):
        yield Exclusion(
            _other("compiled", "clusters"),
            _other(setting, _VALUES[setting][0]),
            "only auto-clustering has it",
        )
    yield Exclusion(
        ("min_cluster_size", (4,)), ("max_cluster_size", (2,)), "no cluster is of such a size"
    )
    yield Exclusion(
        ("in_background", (True,)), ("lazy", (False,)), "XLA compiles in the background when lazy"
    )
    yield Exclusion(
        ("compiled", ("region",)),
        ("front_end", (*TRACED, *PYTHON, "critical_section")),
        "LitmusFuzz builds one or the other",
    )
    yield Exclusion(
        ("compiled", ("whole",)),
        _other("front_end", "function", "eager", "eager_functions", "keras"),
        "it compiles a tf.function",
    )
    yield Exclusion(
        ("compiled", ("clusters",)),
        ("front_end", ("function_kernels",)),
        "it clusters no functions",
    )
    yield Exclusion(
        ("front_end", (*TRACED, *PYTHON)), ("model_code", (True,)), "it goes around single ops"
    )
    yield Exclusion(
        ("compiled", ("region",)),
        ("devices", (2,)),
        "LitmusFuzz chooses the functions before it places their nodes",
    )


def _of_threads() -> Iterator[Exclusion]:
    yield Exclusion(
        ("in_background", (True,)),
        ("pool", ("run_handler",)),
        "its threads never sleep for long, so that nothing tells when a compilation is done",
    )
    yield Exclusion(("pool", ("caller",)), _other("inter_op_threads", 4), "no pool runs the ops")
    yield Exclusion(("pool", ("caller",)), ("spinning", (True,)), "no pool runs the ops")
    yield Exclusion(
        ("pool", ("run_handler",)), ("spinning", (True,)), "run handlers have threads of their own"
    )
    yield Exclusion(
        ("front_end", ("critical_section",)),
        _other("intra_op_threads", 1),
        "the eager context of tf.CriticalSection has sized the process's pool before",
    )
    yield Exclusion(
        ("executor_type", (_SINGLE,)),
        ("front_end", (*PYTHON, "functional", "functional_kernels", "critical_section")),
        "it runs no loops, conditionals and sections",
    )
    yield Exclusion(
        ("executor_type", (_SINGLE,)),
        ("lazy", (True,)),
        "it has no Switch, which chooses between a compiled cluster and its ops",
    )


def _of_devices() -> Iterator[Exclusion]:
    for setting, value in (("workers", 2), ("devices", 2)):
        several = setting, (value,)
        yield Exclusion(several, ("executor_type", (_SINGLE,)), "it supports no Recv")
        yield Exclusion(several, ("front_end", TRACED), "its control edges do not order transfers")
        yield Exclusion(
            several, ("front_end", PYTHON), "LitmusFuzz builds it before it places nodes"
        )
        yield Exclusion(
            several,
            ("front_end", ("functional_kernels",)),
            "a body runs on the device of its kernel",
        )
    yield Exclusion(
        ("devices", (2,)),
        ("front_end", ("critical_section",)),
        "LitmusFuzz writes the sections before it places their nodes",
    )
    workers = "workers", (2,)
    yield Exclusion(workers, ("devices", (2,)), "the workers are the devices")
    yield Exclusion(workers, _other("pool", "global"), "the pools of the servers run the ops")
    for setting in ("intra_op_threads", "spinning"):
        yield Exclusion(
            workers,
            _other(setting, _VALUES[setting][0]),
            "servers make their devices before the session",
        )
    yield Exclusion(
        workers,
        ("front_end", ("critical_section",)),
        "tests with sections are refused: nothing sees from outside whether they are blocked",
    )
    yield Exclusion(
        workers,
        ("compiled", ("clusters", "region", "whole")),
        "LitmusFuzz reads clusters only from graphs of its own process",
    )


_OF_THREADS: Final = ("inter_op_threads", "pool", "spinning", "executor_type")
"""Settings that only say which threads run ops: none of these takes part under control."""


def _of_control() -> Iterator[Exclusion]:
    control = _other("control", "")
    for setting in _OF_THREADS:
        yield Exclusion(
            control, _other(setting, _VALUES[setting][0]), "no threads of TensorFlow's take part"
        )
    yield Exclusion(
        ("control", ("ops",)),
        _other("intra_op_threads", 1),
        "an op is one event, with all its parts",
    )
    yield Exclusion(control, ("model_code", (True,)), "its ops are not those of the test")
    yield Exclusion(control, ("workers", (2,)), "other processes are not under control")


def _of_engines() -> Iterator[Exclusion]:
    yield Exclusion(("engine", ("",)), _other("threads", 4), "only an engine has it")
    one = "engine", ("inline",)
    for setting in ("threads", "intra_op_threads"):
        yield Exclusion(one, _other(setting, _VALUES[setting][0]), "it has one thread")
    yield Exclusion(
        ("engine", ("openmp",)),
        _other("intra_op_threads", 1),
        "its teams keep their threads while an op waits for its parts",
    )
    engine = _other("engine", "")
    for setting in ("inter_op_threads", "pool", "spinning"):
        why = "no threads of TensorFlow's run the ops"
        yield Exclusion(engine, _other(setting, _VALUES[setting][0]), why)
    yield Exclusion(engine, ("executor_type", (_SINGLE,)), "it has no closures to give away")
    yield Exclusion(engine, ("workers", (2,)), "the pools of the servers run the ops")
    yield Exclusion(engine, _other("control", ""), "one or the other says when an op begins")


def _words() -> Iterator[tuple[Value, str]]:
    yield ("rewrites", "all"), "with all optimizers"
    yield ("rewrites", "aggressive"), "with all optimizers at their most aggressive"
    for name in OPTIMIZERS:
        said = "common subgraph elimination" if name == "elimination" else name.replace("_", " ")
        yield (f"{name}_optimizer", True), f"with the {said} optimizer"
    yield ("rewrite_iterations", 1), "with one iteration of Grappler"
    yield ("rewrite_iterations", 3), "with three iterations of Grappler"
    yield ("compiled", "clusters"), "with auto-clustering"
    yield ("compiled", "region"), "with functions that XLA compiles (jit_compile)"
    for size in (2, 4):
        yield ("min_cluster_size", size), f"with clusters of at least {size} ops"
    yield ("max_cluster_size", 2), "with clusters of at most 2 ops"
    yield ("lazy", True), "with lazy compilation"
    yield ("in_background", True), "with compilation in the background"
    yield ("compiled", "whole"), "with whole functions that XLA compiles (jit_compile)"
    yield ("front_end", "function"), "in a tf.function"
    yield ("front_end", "function_kernels"), "in a tf.function, not inlined"
    yield ("front_end", "python_v1"), "with tf.while_loop and tf.cond of TensorFlow 1"
    yield ("front_end", "python_v2"), "with tf.while_loop and tf.cond of TensorFlow 2"
    yield ("front_end", "functional"), "with functional control flow, lowered"
    yield ("front_end", "functional_kernels"), "with functional control flow, not lowered"
    yield ("front_end", "critical_section"), "with tf.CriticalSection"
    yield ("front_end", "eager"), "in eager Python threads"
    yield ("front_end", "eager_functions"), "in Python threads that call tf.functions"
    yield ("front_end", "keras"), "in Python threads with steps of Keras's optimizers"
    yield ("model_code", True), "with model code around"
    yield ("inter_op_threads", 1), "in one thread"
    yield ("intra_op_threads", 1), "with one thread inside an op"
    for threads in (2, 8, 16):
        yield ("inter_op_threads", threads), f"in {threads} threads"
    for threads in (2, 4, 8, 16):
        yield ("intra_op_threads", threads), f"with {threads} threads inside an op"
    yield ("spinning", True), "with threads that spin"
    yield ("pool", "per_session"), "in a pool of the session (use_per_session_threads)"
    yield ("pool", "second"), "in the second of two pools"
    yield ("pool", "global"), "in the pool of the process"
    yield ("pool", "run_handler"), "in the pool of run handlers"
    yield ("pool", "caller"), "in the calling thread"
    yield ("executor_type", _SINGLE), "on the single-threaded executor"
    yield ("workers", 2), "on two gRPC workers"
    yield ("devices", 2), "on two devices"
    yield ("control", "ops"), "under control, op by op"
    yield ("control", "locks"), "under control, lock by lock"
    yield ("control", "pages"), "under control, page by page"
    yield ("control", "touches"), "under control, touch by touch"
    for engine in ENGINES:
        yield ("engine", engine), f"on the engine {engine}"
    for threads in (1, 2, 8, 16):
        yield ("threads", threads), f"with at most {threads} threads"


def _weaker() -> Iterator[tuple[Value, tuple[Mapping[str, Setting], ...]]]:
    alone: list[Mapping[str, Setting]] = [{setting: True} for setting in _OPTIMIZER]
    alone[list(_OPTIMIZER).index("elimination_optimizer")] = {
        "elimination_optimizer": True,
        "arithmetic_optimizer": True,
    }
    yield ("rewrites", "all"), tuple(alone)
    yield ("rewrites", "aggressive"), ({"rewrites": "all"}, *alone)


SPACE: Final = ConfigurationSpace(
    values=_VALUES,
    exclusions=tuple(_exclusions()),
    words=MappingProxyType(dict(_words())),
    plain_words="in plain TensorFlow",
    weaker=MappingProxyType(dict(_weaker())),
    # A schedule, which shows it every time, is worth more than a simpler configuration.
    kept=("control",),
    # They say more about the engine than about TensorFlow.
    seldom=("engine", "threads"),
)


def threads_at(level: str) -> Point:
    """The settings that say which threads run ops, with their plain values, at a level."""
    settings = [*_OF_THREADS, "engine", "threads"]
    if level == LEVELS[0]:
        settings.append("intra_op_threads")  # an op is one event, with all its parts
    return {each: _VALUES[each][0] for each in settings}


def parsed(name: str) -> Point:
    """The point with that name, or one beside the space: its engine is somebody's.

    A library's path becomes absolute, so that records identify it.

    Raises
    ------
    NotAConfiguration
    """
    parts = name.split(";")
    for place, part in enumerate(parts):
        setting, _, engine = (each.strip() for each in part.partition("="))
        try:
            ours = setting != "engine" or not engine
            if ours or EngineSettings.sort_of(engine) is Sort.BUILT_IN:
                continue
            parts[place] = f"engine={ENGINES[0]}"  # what excludes one of ours, excludes this
            point = SPACE.parsed(";".join(parts))
            point["engine"] = EngineSettings.chosen(
                engine, int(point["threads"]), split=False
            ).engine
        except UnknownEngine as error:
            raise NotAConfiguration(str(error)) from None
        if point["intra_op_threads"] != 1:
            why = "it is not known whether a thread is free for a part of an op"
            raise NotAConfiguration(f"engine={engine} excludes intra_op_threads: {why}")
        return point
    return SPACE.parsed(name)


def configuration_at(point: Mapping[str, Setting]) -> Config:
    """The configuration with these settings: a preset if there is one, else named by them."""
    found = {setting: point[setting] for setting in SPACE.values}
    name = SPACE.name(found)
    preset = _PRESETS.get(name)
    if preset is not None:
        return preset
    fields: dict[str, Any] = {s: v for s, v in found.items() if s not in _OPTIMIZER}
    enabled = [_OPTIMIZER[setting].split(",") for setting in _OPTIMIZER if found[setting]]
    if enabled:
        fields["rewrites"] = ",".join(dict.fromkeys(each for part in enabled for each in part))
    elif fields["rewrites"] == "aggressive":
        fields["rewrites"] = AGGRESSIVE
    return configuration(name, **fields)


def point_of(config: Config) -> Point | None:
    """The point with the settings of a configuration; None if the space does not have it."""
    fields = asdict(Settings.of(config))
    rewrites = str(fields.pop("rewrites"))
    point = dict(SPACE.plain) | fields
    parts = set(rewrites.split(",")) - {""}
    if rewrites in ("", "all"):
        point["rewrites"] = rewrites
    elif rewrites == AGGRESSIVE:
        point["rewrites"] = "aggressive"
    else:
        for setting, enabling in _OPTIMIZER.items():
            point[setting] = set(enabling.split(",")) <= parts
    found = {setting: point[setting] for setting in SPACE.values}
    known = all(found[setting] in values for setting, values in SPACE.values.items())
    if not known or SPACE.problem(found):
        return None
    made = configuration_at(found)
    same = made.environment == config.environment
    return found if same and _is_same(made, config) else None


def _is_same(made: Config, config: Config) -> bool:
    """True if the settings are equal, in whatever order they name the optimizers."""
    ours, theirs = Settings.of(made), Settings.of(config)
    parts = (frozenset(each.rewrites.split(",")) for each in (ours, theirs))
    return len(set(parts)) == 1 and {**asdict(ours), "rewrites": ""} == {
        **asdict(theirs),
        "rewrites": "",
    }


_PRESETS: dict[str, Config] = {}
for _preset in CONFIGURATIONS:
    _point = point_of(_preset)
    assert _point is not None, _preset.name
    _PRESETS[SPACE.name(_point)] = _preset
