"""Named configurations of the TensorFlow executor: settings, environment and guarantee.

A configuration is a `Config`, chosen by its name: ``--executors tf:grappler``. Its
settings are all fields of `Settings`, and determine the rest. Its environment holds the
variables that TensorFlow reads once, when it is imported or first used. `session_options`
translates the settings to session options. docs/tensorflow.md lists all configurations;
`space` combines their settings.

The guarantee is the memory model `executor` without XLA, `rfc` with XLA, and `acd`
(automatic control dependencies) for `tf.function`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.model import FEATURES
from litmusfuzz.fuzz.engines.settings import MAX_THREADS as MAX_ENGINE_THREADS
from litmusfuzz.fuzz.engines.settings import ONE_THREAD, EngineSettings
from litmusfuzz.fuzz.executors import network
from litmusfuzz.fuzz.executors.protocol import LEVELS, Config
from litmusfuzz.fuzz.executors.setting_types import Flag, ListOf, Number, OneOf, Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from litmusfuzz.fuzz.executors.setting_types import SettingType


IN_PYTHON: Final = frozenset(
    {
        *("several runs", "conditionals", "loops", "calls", "handles", "placeholders"),
        *("uninitialized variables", "computed indices"),
    }
)
"""Features that the front ends of Python write (`program`)."""


DEFAULT_ITERATIONS: Final = 2
"""Iterations of grappler by TensorFlow's default: `kDefaultNumberOfIterations` in
``tensorflow/core/grappler/optimizers/meta_optimizer.cc``."""
MAX_ITERATIONS: Final = 16


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one configuration of TensorFlow.

    ==================  ====  =========================================================
    field               type  choices or range; default first
    ==================  ====  =========================================================
    inter_op_threads    int   4; 1 or more
    pool                str   own, per_session, second, global, run_handler, caller
    spinning            bool  false, true
    intra_op_threads    int   1; 1 or more
    executor_type       str   "", SINGLE_THREADED_EXECUTOR
    rewrites            str   "", all, or ``FIELD=VALUE,...`` of ``RewriterConfig``
    rewrite_iterations  int   2; 1 or more
    compiled            str   "", clusters, region, whole
    min_cluster_size    int   1; 1 or more
    max_cluster_size    int   0; 0 or more
    lazy                bool  false, true
    in_background       bool  false, true
    front_end           str   graph, function, function_kernels, python_v1, python_v2,
                              functional, functional_kernels, critical_section, eager,
                              eager_functions, keras
    model_code          bool  false, true
    workers             int   0; 0 or more
    devices             int   1; 1 or more
    control             str   "", ops, locks, pages, touches
    engine              str   "", or the name of an engine (`fuzz.engines`)
    threads             int   4; 1 or more
    ==================  ====  =========================================================

    Parameters
    ----------
    inter_op_threads : int
        Threads of the pool that runs ops. With two threads, the second is mostly asleep
        when a racing op is ready; more than four show no more outcomes.
    pool : str
        The thread pool that runs ops. ``own``: one of the session, released with it.
        ``per_session``: the same, by the option ``use_per_session_threads``. ``second``:
        the second of two pools of the session, selected by ``RunOptions``. ``global``:
        the pool of the process. ``run_handler``: the pool of the process, distributed by
        run handlers. ``caller``: no pool; the thread that calls `Session.run` runs all
        ops.
    spinning : bool
        True if an idle thread of a pool looks for work for some 0.1 ms before it sleeps, as it does
        by TensorFlow's default. That takes the processor from threads that race: without it, a test
        shows a twentieth more outcomes in less time.
    intra_op_threads : int
        Threads of the pool, one for the process, that share the work of a single op. Under control
        each part of that is a task of its own.
    executor_type : str
        "" for TensorFlow's default executor.
    rewrites : str
        Graph optimizations of grappler: "" for none, ``all`` for its defaults, else the
        fields of ``RewriterConfig`` to set, such as ``remapping=ON``; all other
        optimizers are off. The kernel of a call that is not inlined rewrites the function as
        TensorFlow does by default, whatever the session's options are.
    rewrite_iterations : int
        How often grappler runs its optimizers, each on the result of the one before. Two is
        TensorFlow's default (``RewriterConfig.DEFAULT_NUM_ITERS``).
    compiled : str
        Parts that XLA compiles: "" for none, ``clusters`` for auto-clustering,
        ``region`` for a function with ``jit_compile`` around a part of the test,
        ``whole`` for one around each run, loops and calls included.
    min_cluster_size, max_cluster_size : int
        Ops of a cluster, at least and at most; 0 for TensorFlow's limit.
    lazy : bool
        True if clusters run op by op at first, and are compiled later.
    in_background : bool
        True if XLA compiles in the background; runs execute op by op until it is done.
    front_end : str
        How the graph is built. ``graph``: edge by edge. ``function``: by a
        `tf.function`, which adds automatic control dependencies, with `tf.while_loop`,
        `tf.cond` and functions that it calls, all of which TensorFlow inlines and
        lowers; ``function_kernels``: the same, executed by their kernels.
        ``python_v1``: in a graph without a function, with `tf.while_loop` and `tf.cond`
        of TensorFlow 1 (Enter, Exit, Switch, Merge); ``python_v2``: with those of
        TensorFlow 2 (While, If). ``functional``: loops and conditionals are While and
        If nodes, which TensorFlow lowers; ``functional_kernels``: the same, executed by
        their kernels. ``critical_section``: a critical section is a
        `tf.CriticalSection`, which adds edges. ``eager``: each run is a Python thread
        that executes its ops one by one. ``eager_functions``: a thread whose program
        mixes ops and `tf.function`s. ``keras``: the same, and calls that are steps of
        optimizers apply Keras's own (`keras_steps`).
    model_code : bool
        True if layers, losses and metrics surround the test.
    workers : int
        gRPC worker processes that run the graph; 0 to run it in this process.
    devices : int
        Virtual CPU devices of this process over which nodes without a device are spread.
    control : str
        What LitmusFuzz decides in place of TensorFlow's threads: "" for nothing, ``ops`` for when
        each op on a resource begins, ``locks`` also for when it takes a lock, ``pages`` also for
        when it first touches a page of a variable's tensor, ``touches`` for each time that it
        touches a small one (`controlled`).
    engine : str
        The engine that runs the ops, in place of TensorFlow's pools; "" for these (`engines`).
    threads : int
        The engine's limit on threads, over all sessions and runs, and inside ops too.
    """

    inter_op_threads: int = 4
    pool: str = "own"
    spinning: bool = False
    intra_op_threads: int = 1
    executor_type: str = ""
    rewrites: str = ""
    rewrite_iterations: int = DEFAULT_ITERATIONS
    compiled: str = ""
    min_cluster_size: int = 1
    max_cluster_size: int = 0
    lazy: bool = False
    in_background: bool = False
    front_end: str = "graph"
    model_code: bool = False
    workers: int = 0
    devices: int = 1
    control: str = ""
    engine: str = ""
    threads: int = 4

    @staticmethod
    @lru_cache(1 << 8)  # a campaign asks some times for each test
    def of(config: Config) -> Settings:
        """Settings of a configuration of this executor."""
        return Settings(**dict[str, Any](config.settings))

    @property
    def shared_handles(self) -> bool:
        """True if all ops of a copy that use a variable share one VarHandleOp.

        XLA rejects two handles of one variable.
        """
        return bool(self.compiled)

    @property
    def guarantees(self) -> str:
        """Name of the memory model that TensorFlow guarantees with these settings."""
        if self.compiled:
            return "one_cluster" if self.compiled == "whole" else "rfc"
        if self.traced or self.front_end in ("eager_functions", "keras"):
            return "acd"
        return "program" if self.front_end == "eager" else "executor"

    @property
    def engine_settings(self) -> EngineSettings:
        """The engine and its limit.

        Raises
        ------
        UnknownEngine
            If there is no such engine.
        """
        return EngineSettings(self.engine, 1 if self.engine in ONE_THREAD else self.threads)

    @property
    def traced(self) -> bool:
        """True if each run is a call of a `tf.function` in a graph."""
        return self.front_end in ("function", "function_kernels")

    @property
    def eager(self) -> bool:
        """True if Python threads execute the runs, not a session."""
        return self.front_end in ("eager", "eager_functions", "keras")

    @property
    def refuses(self) -> frozenset[str]:
        """Features of a test that this configuration cannot run.

        The single-threaded executor supports neither v1 control flow nor Recv, and an op
        that blocks would hold its only thread.
        """
        if self.executor_type:
            return FEATURES - {"several runs", "computed indices"}
        refused: set[str] = set()
        if self.eager:
            refused |= FEATURES - IN_PYTHON - {"fetches"}
        elif self.traced or self.front_end.startswith("python"):
            refused |= FEATURES - IN_PYTHON  # a `tf.function` does not prune what nothing fetches
        if self.compiled in ("region", "whole"):
            # LitmusFuzz, or the user, says what is compiled as one, without a failure in it.
            refused |= {"fetches", "uninitialized variables"}
        if self.compiled == "region" or self.front_end == "critical_section":
            refused |= {"handles"}
        if self.control and self.in_background:
            # What may be blocked cannot run until XLA has compiled it.
            refused |= {"queues", "accumulators", "critical sections"}
        if self.model_code or self.front_end == "critical_section":
            # They rewrite a graph that is run as a whole, and whose ops do not fail.
            refused |= {"fetches", "placeholders", "uninitialized variables"}
        if self.front_end == "critical_section":
            refused |= {"calls"}
        if self.pool == "run_handler" or self.workers:
            # `quiescence` cannot detect a deadlock when threads wake up periodically
            # (run handlers) or when other processes take part.
            refused |= WAITING
        if self.engine not in ("", *ENGINES):
            # Nor do we know when somebody else's threads sleep.
            refused |= WAITING
        return frozenset(refused)

    @property
    def leaves_out_reads(self) -> bool:
        """True if an optimizer leaves out reads whose values nothing takes."""
        return self.rewrites == "all" or "dependency_optimization" in self.rewrites

    @property
    def packs(self) -> bool:
        """True if several tests may share a session (`packs`): nothing rewrites their graph."""
        rewritten = self.rewrites or self.compiled or self.model_code or self.front_end != "graph"
        elsewhere = self.workers or self.devices > 1 or self.control or self.engine
        return not rewritten and not elsewhere

    @property
    def one_device(self) -> bool:
        """True if the whole test must be on one device."""
        kernels = self.front_end == "functional_kernels"
        return bool(self.executor_type) or kernels or self.traced or "python" in self.front_end

    @property
    def loops_hold_thread(self) -> bool:
        """True if a loop with an op that waits holds the only thread of its run.

        Where all ops run in the calling thread, the While kernel waits in it for each call of its
        condition and body. Lowered loops, and the kernels of If and of calls, do not.
        """
        return self.pool == "caller" and self.front_end == "functional_kernels"

    @property
    def may_wait(self) -> bool:
        """True if a total order can be forced with gates (`forced`).

        While one op waits at its gate, other ops need a thread; and each op of the test
        must be executed as an op of its own. A graph with gates gets no model code.
        """
        plain = self.front_end == "graph" and not (self.compiled or self.model_code)
        plain = plain and not (self.executor_type or self.control or self.engine)
        return plain and not self.workers and self.pool in ("own", "global")

    @property
    def of_the_process(self) -> str:
        """Settings that the first session fixes for its whole process; "" if none."""
        inside = self.intra_op_threads != 1 and not (self.engine or self.control)
        shared = [f"intra_op={self.intra_op_threads}"] if inside else []
        if self.spinning and (shared or self.pool == "global"):
            shared.append("spinning")
        if self.control:
            shared.append("control")  # its library is in no other process
        if self.engine:
            shared.append("engine")  # so is this
        if self.workers:
            shared.append(f"workers={self.workers}")
        if self.front_end == "critical_section" or self.eager:
            shared.append("eager")  # tf.CriticalSection creates the process's eager context
        if self.pool in ("global", "run_handler"):
            shared.append(f"{self.pool}={self.inter_op_threads}")
        return ",".join(shared)


PROCESS: Final = "LITMUSFUZZ_TENSORFLOW_PROCESS"
"""A variable that no program reads: it keeps configurations in separate processes.

A worker process serves configurations of one environment, and some settings are fixed
for a process by its first session.
"""


QUIET: Final = (
    ("TF_CPP_MIN_LOG_LEVEL", "2"),
    # With it TensorFlow dumps graphs with clusters, where a folder is set: for `clusters.read`.
    ("TF_CPP_VMODULE", "encapsulate_subgraphs_pass=1"),
)
"""Variables of all configurations. TensorFlow reads them when it is imported: with the same values
everywhere, one fork server is enough. At a lower level, a cancelled queue would log a line for
each op that waits at it."""


_XLA_FLAGS: Final = (
    "--tf_xla_cpu_global_jit",
    "--tf_xla_min_cluster_size=1",
    # Otherwise the first executions may run a cluster's ops one by one.
    "--tf_xla_enable_lazy_compilation=false",
)


def configuration(name: str, *flags: str, **changed: int | str | bool) -> Config:
    """A configuration, from the settings that differ from their defaults.

    Parameters
    ----------
    name : str
    *flags : str
        Additional flags of XLA.
    **changed : int, str or bool
        Fields of `Settings`.
    """
    settings = Settings(**changed)  # type: ignore[arg-type]
    return Config(
        name, settings.guarantees, tuple(asdict(settings).items()), _environment(settings, flags)
    )


def _environment(settings: Settings, flags: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The variables that TensorFlow reads only once, and those that keep processes apart."""
    found: tuple[tuple[str, str], ...] = QUIET
    if settings.workers:
        found += (network.OWN, ("no_grpc_proxy", "127.0.0.1"))
    if settings.compiled == "clusters":
        found += (("TF_XLA_FLAGS", " ".join((*_xla_flags(settings), *flags))),)
    if settings.of_the_process:
        found += ((PROCESS, settings.of_the_process),)
    return found


def _xla_flags(settings: Settings) -> Iterator[str]:
    """Of a repeated flag the last value holds."""
    yield from _XLA_FLAGS
    if settings.min_cluster_size != 1:
        yield f"--tf_xla_min_cluster_size={settings.min_cluster_size}"
    if settings.max_cluster_size:
        yield f"--tf_xla_max_cluster_size={settings.max_cluster_size}"
    if settings.lazy:
        yield "--tf_xla_enable_lazy_compilation=true"
    if settings.in_background:
        yield "--tf_xla_async_compilation=true"


OPTIMIZERS: Final = {
    "pruning": "disable_model_pruning=false",
    "constant_folding": "constant_folding=ON",
    "arithmetic": "arithmetic_optimization=ON",
    # Grappler runs this optimizer only together with the arithmetic optimizer.
    "elimination": "common_subgraph_elimination=ON,arithmetic_optimization=ON",
    "remapping": "remapping=ON",
    "loop": "loop_optimization=ON",
    "dependency": "dependency_optimization=ON",
    "memory": "memory_optimization=HEURISTICS",
}
"""Grappler's optimizers, with the ``RewriterConfig`` fields that enable each one alone.

Optimizers without effect on litmus tests on a CPU have no entry: `layout_optimizer`,
`pin_to_host_optimization`, `auto_parallel` and swapping to the host (GPUs only),
`scoped_allocator_optimization` (collectives only), `debug_stripper`,
`shape_optimization`, `implementation_selector`, `function_optimization` and
`experimental_conditional_code_motion` (ops that tests do not have), and plug-ins
(none are installed). Automatic reduction to 16-bit floats has no entry because its
values are not exact. `tfg_optimizer`, which sorts nodes, runs only together with
others: in `grappler` and `grappler_aggressive`.
"""

AGGRESSIVE: Final = ",".join(
    (
        *("disable_model_pruning=false", "disable_tfg_optimizer=false"),
        *("memory_optimization=HEURISTICS", "function_optimization=AGGRESSIVE"),
        *("constant_folding=AGGRESSIVE", "arithmetic_optimization=AGGRESSIVE"),
        *("common_subgraph_elimination=AGGRESSIVE", "remapping=AGGRESSIVE"),
        *("loop_optimization=AGGRESSIVE", "dependency_optimization=AGGRESSIVE"),
    )
)
"""All optimizers, each as aggressive as it can be."""


FRONT_ENDS: Final = (
    *("graph", "function", "function_kernels", "python_v1", "python_v2"),
    *("functional", "functional_kernels", "critical_section", "eager", "eager_functions"),
    "keras",
)
DEPTHS: Final[Mapping[str, int]] = MappingProxyType(
    {"pos": 0, "pct": 3, "random": 0, "urw": 0, "surw": 0}
)
"""Schedulers of configurations under control, with their depths: none is the best for all tests."""
CONTROLS: Final = ("", *LEVELS)
"""Levels of control, the coarsest first; none at all before them."""
ENGINES: Final = ("pool", "fifo", "stealing", "gang", "inline", "tbb", "openmp")
"""Our engines that run TensorFlow's ops; a library's path or ``module:object`` names another."""
WAITING: Final = frozenset(
    {"queues", "accumulators", "critical sections", "uninitialized variables"}
)
"""Features with which a test may be blocked, or needs to be known not to be."""
MAX_THREADS: Final = 1024
SETTING_TYPES: Final[Mapping[str, SettingType]] = MappingProxyType(
    {
        "inter_op_threads": Number(1, MAX_THREADS),
        "pool": OneOf(("own", "per_session", "second", "global", "run_handler", "caller")),
        "spinning": Flag(),
        "intra_op_threads": Number(1, MAX_THREADS),
        "executor_type": OneOf(("", "SINGLE_THREADED_EXECUTOR")),
        "rewrites": ListOf(
            tuple(
                dict.fromkeys(
                    each
                    for rewrites in (*OPTIMIZERS.values(), AGGRESSIVE)
                    for each in rewrites.split(",")
                )
            ),
            separator=",",
            whole=("", "all"),
        ),
        "rewrite_iterations": Number(1, MAX_ITERATIONS),
        "compiled": OneOf(("", "clusters", "region", "whole")),
        "min_cluster_size": Number(1, 1 << 20),
        "max_cluster_size": Number(0, 1 << 20),
        "lazy": Flag(),
        "in_background": Flag(),
        "front_end": OneOf(FRONT_ENDS),
        "model_code": Flag(),
        "workers": Number(0, 64),
        "devices": Number(1, 64),
        "control": OneOf(CONTROLS),
        "engine": Text("[^;,]*", "the name of an engine, without ';' and ','"),
        "threads": Number(1, MAX_ENGINE_THREADS),
    }
)
"""The values that each field of `Settings` may have."""


def _configurations() -> Iterator[Config]:
    yield configuration("plain")
    yield configuration("grappler", rewrites="all")
    yield configuration("single_threaded", executor_type="SINGLE_THREADED_EXECUTOR")
    yield configuration("autocluster", compiled="clusters")
    yield configuration("grappler_aggressive", rewrites=AGGRESSIVE)
    for name, rewrites in OPTIMIZERS.items():
        yield configuration(f"grappler_{name}", rewrites=rewrites)
    for least in (2, 4):
        name = f"autocluster_min_{least}"
        yield configuration(name, compiled="clusters", min_cluster_size=least)
    yield configuration("autocluster_max_2", compiled="clusters", max_cluster_size=2)
    yield configuration("autocluster_grappler", compiled="clusters", rewrites="all")
    yield configuration("autocluster_lazy", compiled="clusters", lazy=True)
    yield configuration("autocluster_async", compiled="clusters", lazy=True, in_background=True)
    yield configuration("model_code", model_code=True)
    yield configuration("model_code_grappler", model_code=True, rewrites="all")
    yield configuration("model_code_aggressive", model_code=True, rewrites=AGGRESSIVE)
    yield configuration("jit_compile", compiled="region")
    yield configuration("jit_compile_grappler", compiled="region", rewrites="all")
    yield configuration("function", front_end="function")
    yield configuration("function_grappler", front_end="function", rewrites="all")
    yield configuration("function_kernels", front_end="function_kernels")
    yield configuration("function_autocluster", front_end="function", compiled="clusters")
    yield configuration("function_compiled", front_end="function", compiled="whole")
    yield configuration("python_v1", front_end="python_v1")
    yield configuration("python_v2", front_end="python_v2")
    yield configuration("functional", front_end="functional")
    yield configuration("functional_grappler", front_end="functional", rewrites="all")
    yield configuration("functional_kernels", front_end="functional_kernels")
    yield configuration("critical_section", front_end="critical_section")
    yield configuration("eager_threads", front_end="eager")
    yield configuration("eager_functions", front_end="eager_functions")
    yield configuration("eager_compiled", front_end="eager_functions", compiled="whole")
    yield configuration("keras", front_end="keras")
    yield configuration("keras_compiled", front_end="keras", compiled="whole")
    yield configuration("two_workers", pool="global", workers=2)
    for threads in (1, 2, 8, 16):
        yield configuration(f"inter_op_{threads}", inter_op_threads=threads)
    for threads in (2, 4, 8, 16):
        yield configuration(f"intra_op_{threads}", intra_op_threads=threads)
    yield configuration("per_session_threads", pool="per_session")
    yield configuration("second_pool", pool="second")
    for threads in (1, 4, 16):
        yield configuration(f"global_pool_{threads}", pool="global", inter_op_threads=threads)
    yield configuration("run_handler_pool", pool="run_handler")
    yield configuration("caller_thread", pool="caller")
    yield configuration("controlled", control="ops")
    yield configuration("controlled_locks", control="locks")
    yield configuration("controlled_pages", control="pages")
    yield configuration("controlled_touches", control="touches")


CONFIGURATIONS: Final = tuple(_configurations())
"""The presets of the executor `tf`: its named configurations; the first is the default."""
