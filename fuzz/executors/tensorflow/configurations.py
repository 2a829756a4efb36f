"""The configurations of TensorFlow, as data: what each is made of, and what it promises.

A *profile* is a `Config` with a name. Its settings are those of `Settings`, whole;
its environment holds what TensorFlow reads once, when it is imported or first used.
What a setting makes of a session is in `options`. docs/tensorflow.md has
them as a table.

The promise is `executor` without XLA and `rfc` with it; `acd` where automatic
control dependencies add to the order of `executor`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.model import FEATURES
from litmusfuzz.fuzz.executors.protocol import Config

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Settings:
    """What a configuration of TensorFlow is made of.

    Parameters
    ----------
    inter_op_threads : int
        Of the pool that runs ops. Four: with two, the second is mostly asleep when a
        racing op is ready, and two scatters of 16 lanes tear in 1 session of 10
        instead of in each; with eight nothing is gained.
    pool : str
        Whose it is. ``own``: the session's, and goes with it. ``per_session``: the
        same by ``use_per_session_threads``. ``second``: the second of two that the
        session has, chosen by ``RunOptions``. ``global``: the process's.
        ``run_handler``: the process's, shared out by run handlers. ``caller``: none,
        the thread that calls runs all ops.
    intra_op_threads : int
        Of the pool that shares out the work of one op; it is the process's.
    executor_type : str
        "" for the default.
    rewrites : str
        What grappler may do: "" nothing, ``all`` what it does by default, else
        fields of ``RewriterConfig`` with their values, ``remapping=ON``, and all
        others off.
    compiled : str
        What XLA compiles: "" nothing, ``clusters`` that TensorFlow chooses, ``region``
        a function with ``jit_compile`` around a part of the test.
    in_background : bool
        Whether XLA compiles beside the runs, which take ops one by one until it is done.
    front_end : str
        Who makes the graph: ``graph`` we, edge by edge; ``function`` a ``tf.function``,
        which adds edges. ``functional``: loops and conditionals are While and If, which
        TensorFlow lowers; ``functional_kernels``, which their kernels run.
        ``critical_section``: a section is a `tf.CriticalSection`, which adds edges.
    model_code : bool
        Whether ordinary model code stands around the races.
    workers : int
        Processes of their own that the graph runs in, over gRPC; 0 for none.
    """

    inter_op_threads: int = 4
    pool: str = "own"
    intra_op_threads: int = 1
    executor_type: str = ""
    rewrites: str = ""
    compiled: str = ""
    in_background: bool = False
    front_end: str = "graph"
    model_code: bool = False
    workers: int = 0

    @classmethod
    def of(cls, config: Config) -> Settings:
        """Those of one of our configurations."""
        return cls(**dict[str, Any](config.settings))

    @property
    def shared_handles(self) -> bool:
        """Whether the ops of a copy on one variable share its handle.

        XLA takes no variable twice, and a `tf.function` knows it by its handle.
        """
        return bool(self.compiled) or self.front_end == "function"

    @property
    def refuses(self) -> frozenset[str]:
        """Features of a test that it cannot run.

        The single-threaded executor has neither v1 control flow nor Recv, and an op
        that waits holds its only thread, so that nothing else goes on.
        """
        if self.front_end == "function" or self.executor_type:
            return FEATURES - {"several runs"}
        if self.pool == "run_handler" or self.workers:
            # Threads that wake up again and again, and other processes: `quiescence`
            # cannot tell what is blocked.
            return frozenset({"queues", "critical sections"})
        return frozenset()

    @property
    def one_device(self) -> bool:
        """Whether all of a test must be on one device."""
        return bool(self.executor_type) or self.front_end == "functional_kernels"

    @property
    def may_wait(self) -> bool:
        """Whether an op can be held at a gate: others need a thread, and each to be an op."""
        plain = self.front_end == "graph" and not self.compiled and not self.executor_type
        return plain and not self.workers and self.pool in ("own", "global")

    @property
    def of_the_process(self) -> str:
        """What the first session fixes for its whole process; "" if nothing."""
        shared = [f"intra_op={self.intra_op_threads}"] if self.intra_op_threads != 1 else []
        if self.workers:
            shared.append(f"workers={self.workers}")
        if self.front_end == "critical_section":
            shared.append("eager")  # it makes the process's eager context
        if self.pool in ("global", "run_handler"):
            shared.append(f"{self.pool}={self.inter_op_threads}")
        return ",".join(shared)


PROCESS: Final = "LITMUSFUZZ_TENSORFLOW_PROCESS"
"""Read by nobody: profiles that differ in it get worker processes of their own."""


QUIET: Final = (("TF_CPP_MIN_LOG_LEVEL", "2"),)
"""A queue that is cancelled writes a line for each op that waits at it."""


def configuration(
    name: str,
    guarantees: str = "executor",
    environment: tuple[tuple[str, str], ...] = QUIET,
    **changed: int | str | bool,
) -> Config:
    """A configuration by what it changes of the plain `Settings`."""
    settings = Settings(**changed)  # type: ignore[arg-type]
    if settings.of_the_process:
        environment += ((PROCESS, settings.of_the_process),)
    return Config(name, guarantees, tuple(asdict(settings).items()), environment)


def clustering_configuration(name: str, *flags: str, **changed: int | str | bool) -> Config:
    """A configuration in which XLA compiles clusters, with further flags for it.

    A flag that stands twice has its last value.
    """
    environment = (
        ("TF_XLA_FLAGS", " ".join((*_XLA_FLAGS, *flags))),
        ("TF_CPP_VMODULE", "xla_compiler=2"),  # for `clusters.read`
    )
    return configuration(name, "rfc", environment, compiled="clusters", **changed)


_XLA_FLAGS: Final = (
    "--tf_xla_cpu_global_jit",
    "--tf_xla_min_cluster_size=1",
    # Else the first executions may run a cluster's ops one by one.
    "--tf_xla_enable_lazy_compilation=false",
    "--tf_xla_clustering_debug",  # for `clusters.read`
)

OPTIMIZERS: Final = {
    "pruning": "disable_model_pruning=false",
    "constant_folding": "constant_folding=ON",
    "arithmetic": "arithmetic_optimization=ON",
    # Grappler has it only beside the arithmetic optimizer.
    "elimination": "common_subgraph_elimination=ON,arithmetic_optimization=ON",
    "remapping": "remapping=ON",
    "loop": "loop_optimization=ON",
    "dependency": "dependency_optimization=ON",
    "memory": "memory_optimization=HEURISTICS",
}
"""Grappler's optimizers, and what switches each on alone.

Left out are those that do nothing to what we run on a CPU: `layout_optimizer`,
`pin_to_host_optimization`, `auto_parallel` and swapping to the host (GPUs only),
`scoped_allocator_optimization` (collectives only), `debug_stripper`,
`shape_optimization`, `implementation_selector`, `function_optimization` and
`experimental_conditional_code_motion` (ops that we do not have), plug-ins (there
are none); and mixed precision, whose values are not exact. `tfg_optimizer`, which
sorts nodes, runs beside others only: in `grappler` and `grappler_aggressive`.
"""

_AGGRESSIVE: Final = ",".join(
    (
        *("disable_model_pruning=false", "disable_tfg_optimizer=false"),
        *("memory_optimization=HEURISTICS", "function_optimization=AGGRESSIVE"),
        *("constant_folding=AGGRESSIVE", "arithmetic_optimization=AGGRESSIVE"),
        *("common_subgraph_elimination=AGGRESSIVE", "remapping=AGGRESSIVE"),
        *("loop_optimization=AGGRESSIVE", "dependency_optimization=AGGRESSIVE"),
    )
)


def _configurations() -> Iterator[Config]:
    yield configuration("plain")
    yield configuration("grappler", rewrites="all")
    yield configuration("single_threaded", executor_type="SINGLE_THREADED_EXECUTOR")
    yield clustering_configuration("autocluster")
    yield configuration("grappler_aggressive", rewrites=_AGGRESSIVE)
    for name, rewrites in OPTIMIZERS.items():
        yield configuration(f"grappler_{name}", rewrites=rewrites)
    for least in (2, 4):
        yield clustering_configuration(
            f"autocluster_min_{least}", f"--tf_xla_min_cluster_size={least}"
        )
    yield clustering_configuration("autocluster_max_2", "--tf_xla_max_cluster_size=2")
    yield clustering_configuration("autocluster_grappler", rewrites="all")
    yield clustering_configuration("autocluster_lazy", "--tf_xla_enable_lazy_compilation=true")
    yield clustering_configuration(
        "autocluster_async",
        "--tf_xla_enable_lazy_compilation=true",
        "--tf_xla_async_compilation=true",
        in_background=True,
    )
    yield configuration("model_code", model_code=True)
    yield configuration("model_code_grappler", model_code=True, rewrites="all")
    yield configuration("model_code_aggressive", model_code=True, rewrites=_AGGRESSIVE)
    yield configuration("jit_compile", "rfc", compiled="region")
    yield configuration("jit_compile_grappler", "rfc", compiled="region", rewrites="all")
    yield configuration("function", "acd", front_end="function")
    yield configuration("function_grappler", "acd", front_end="function", rewrites="all")
    yield configuration("functional", front_end="functional")
    yield configuration("functional_grappler", front_end="functional", rewrites="all")
    yield configuration("functional_kernels", front_end="functional_kernels")
    yield configuration("critical_section", front_end="critical_section")
    no_proxy = (*QUIET, ("no_grpc_proxy", "127.0.0.1"))
    yield configuration("two_workers", environment=no_proxy, pool="global", workers=2)
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


CONFIGURATIONS: Final = tuple(_configurations())
"""All of them; the first is the default."""
