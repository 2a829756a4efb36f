"""Translation of a configuration's settings to TensorFlow's session and run options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2

from litmusfuzz.fuzz.executors.tensorflow.configurations import DEFAULT_ITERATIONS
from litmusfuzz.fuzz.executors.tensorflow.control_library import EXECUTOR_TYPE

if TYPE_CHECKING:
    from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings


def session_config(
    settings: Settings, cpus: int = 1, executor_type: str = ""
) -> config_pb2.ConfigProto:
    """Options of a session (`ConfigProto`).

    Parameters
    ----------
    settings : Settings
    cpus : int
        Virtual CPU devices.
    executor_type : str
        That of the engine which runs the session's closures (`engines.DrivenEngine`), if there is
        one.

    Notes
    -----
    Options that are not set are those of a user's session: all of grappler's with
    ``rewrites=all``, but for `min_graph_nodes`. Those that differ in `plain`, and why:

    - Threads inside an op: one, where TensorFlow has as many as there are cores. Those would take
      the cores from ops that race. The setting `intra_op_threads` has more.
    - The pool, and how many threads it has: TensorFlow's default pool belongs to the process, keeps
      the size that the first session asked for, and is never released. An unnamed pool of a
      session is released with the session (`pool`, `inter_op_threads`).
    - Idle threads sleep (`spinning`).
    - Nothing rewrites the graph, neither grappler nor the optimizer of partitions: a test's ops run
      as the test has them (`rewrites`).
    - GPUs are left out: there is no configuration for them.

    On the CPU, clusters also need ``--tf_xla_cpu_global_jit`` in ``TF_XLA_FLAGS``.
    """
    # An engine has its own threads inside an op, and so has the controller.
    inside = 1 if settings.engine or settings.control else settings.intra_op_threads
    config = config_pb2.ConfigProto(intra_op_parallelism_threads=inside)
    config.device_count["CPU"] = 1 if settings.workers else cpus
    # Otherwise a gRPC worker keeps a session's variables, and the next session sees them.
    config.isolate_session_state = bool(settings.workers)
    config.device_count["GPU"] = 0
    config.experimental.executor_type = settings.executor_type
    if settings.control:
        config.experimental.executor_type = EXECUTOR_TYPE
    if executor_type:
        config.experimental.executor_type = executor_type
    config.experimental.disable_thread_spinning = not settings.spinning
    if settings.pool in ("own", "second"):
        if settings.pool == "second":
            config.session_inter_op_thread_pool.add(num_threads=1)
        # TensorFlow makes a pool in any case; where an engine runs the ops, it stays idle.
        threads = 1 if settings.engine else settings.inter_op_threads
        config.session_inter_op_thread_pool.add(num_threads=threads)
    else:
        config.inter_op_parallelism_threads = settings.inter_op_threads
        config.use_per_session_threads = settings.pool == "per_session"
    options = config.graph_options
    if settings.rewrites:
        # By default grappler leaves graphs and functions of fewer than four nodes alone. What is
        # minimized stands for something larger, and its bodies may have one op.
        options.rewrite_options.min_graph_nodes = -1
        if settings.rewrite_iterations != DEFAULT_ITERATIONS:
            options.rewrite_options.meta_optimizer_iterations = settings.rewrite_iterations
        if settings.rewrites != "all":
            _only(options.rewrite_options, settings.rewrites)
    else:
        options.rewrite_options.disable_meta_optimizer = True
    if settings.rewrites != "all":
        # The optimizer of partitions folds constants and merges nodes once more: without it, an
        # effect is that of the optimizers that `rewrites` names.
        options.optimizer_options.opt_level = config_pb2.OptimizerOptions.L0
    if settings.compiled == "clusters":
        options.optimizer_options.global_jit_level = config_pb2.OptimizerOptions.ON_2
    return config


def run_options(settings: Settings) -> config_pb2.RunOptions:
    """Options of a run of the race: the thread pool that it uses."""
    options = config_pb2.RunOptions()
    options.inter_op_thread_pool = {"second": 1, "caller": -1}.get(settings.pool, 0)
    options.experimental.use_run_handler_pool = settings.pool == "run_handler"
    return options


def _only(config: rewriter_config_pb2.RewriterConfig, rewrites: str) -> None:
    """Enable these optimizers of grappler, and disable all others."""
    for field in config.DESCRIPTOR.fields:
        if field.enum_type is not None and field.enum_type.name == "Toggle":
            setattr(config, field.name, rewriter_config_pb2.RewriterConfig.OFF)
    config.disable_model_pruning = config.disable_tfg_optimizer = True
    config.memory_optimization = rewriter_config_pb2.RewriterConfig.NO_MEM_OPT
    for each in rewrites.split(","):
        name, _, value = each.partition("=")
        kind = config.DESCRIPTOR.fields_by_name[name].enum_type
        setattr(config, name, kind.values_by_name[value].number if kind else value == "true")
