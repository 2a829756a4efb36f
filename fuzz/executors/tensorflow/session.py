"""One TensorFlow session over one built graph: a step is three runs.

1. `INIT` assigns the initial contents to all variables of all copies.
2. `RACE` executes all copies, and fetches the observed values.
3. The final run reads all variables. `Session.run` returns when every op of a
   run has finished, fetched or not, so that nothing runs beside this one.

Why what we see is what a node returned
---------------------------------------
- *Nothing is cut off.* A run executes what its targets need; `RACE` needs
  every node without successor, hence every node.
- *Stacking adds no order and no tear.* ``Pack`` comes after the nodes that it
  stacks and before nothing else of the test. It reads their results, which are
  values: TensorFlow must not change a tensor that a node has returned, and if
  it did, every other reader could see that as well. A torn stacked value is
  thus a torn value. In particular it never looks at a variable.
- *Results may share memory with a variable.* A read returns the variable's
  buffer itself, and counts a reference; an update works in place only if it
  holds the last one. A sparse update first makes the buffer its own, and from
  then on reads copy (``copy_on_read_mode``). Whether TensorFlow keeps to that
  is what we test; a stacked result is a copy made inside the run, so that
  nothing later can touch it.
- *Fetched arrays may share memory with TensorFlow*, also a stack of one, which
  ``Pack`` does not copy. No run is under way while they are compared, the one
  run between the race and the comparison only reads, and `Tally.add` keeps no
  view of them.
- *Constants may share memory with a variable*: assigning one takes over its
  buffer. The reference that the constant keeps makes updates copy it first. A
  violation would show as a wrong initial value in a later step; tests of the
  executor look for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2
from tensorflow.python.client import pywrap_tf_session

from fuzz.executors.tensorflow.lowering import INIT, RACE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt
    from tensorflow.core.framework import graph_pb2

    from fuzz.executors.tensorflow.lowering import Built, Shown


def session_config(
    *, inter_op_threads: int, executor_type: str, grappler: bool, clusters: bool = False
) -> config_pb2.ConfigProto:
    """What a session is made of.

    Parameters
    ----------
    inter_op_threads : int
        Threads of the session's own pool. TensorFlow's default pool belongs to
        the process, has the size that its first session asked for, and lives
        for ever; one without a name goes with its session.
    executor_type : str
        "" for the default.
    grappler : bool
        Whether TensorFlow may rewrite the graph.
    clusters : bool
        Whether XLA compiles clusters of it, which TensorFlow chooses. On the CPU
        that needs ``--tf_xla_cpu_global_jit`` in ``TF_XLA_FLAGS`` as well.
    """
    config = config_pb2.ConfigProto(
        intra_op_parallelism_threads=1,
        session_inter_op_thread_pool=[
            config_pb2.ThreadPoolOptionProto(num_threads=inter_op_threads)
        ],
    )
    config.device_count["CPU"] = 1
    config.device_count["GPU"] = 0
    config.experimental.executor_type = executor_type
    options = config.graph_options
    if grappler:
        # Small graphs are left alone otherwise.
        options.rewrite_options.min_graph_nodes = -1
        options.rewrite_options.meta_optimizer_iterations = rewriter_config_pb2.RewriterConfig.ONE
    else:
        options.rewrite_options.disable_meta_optimizer = True
        options.optimizer_options.opt_level = config_pb2.OptimizerOptions.L0
    if clusters:
        options.optimizer_options.global_jit_level = config_pb2.OptimizerOptions.ON_2
    return config


def callable_of(session: Any, fetches: Iterable[str], *targets: str) -> Callable[..., Any]:
    """A run of a session.

    The public `Session.make_callable` wants Python objects for what it
    fetches; the names do. Each has an executor of its own. One that outlives
    its session cannot be released.
    """
    options = config_pb2.CallableOptions(fetch=fetches, target=targets)
    return session._make_callable_from_options(options)  # type: ignore[no-any-return]


class LiveSession:
    """A session, with threads of its own until it is closed.

    Parameters
    ----------
    built : Built
    config : ConfigProto
        Of `session_config`.
    copies : int
        Copies in `built`.
    """

    def __init__(self, built: Built, config: config_pb2.ConfigProto, copies: int) -> None:
        self._copies = copies
        self._observed, self._final = built.observed, built.final
        self._session = tf.compat.v1.Session(graph=load(built.graph_def), config=config)
        self._run_init = callable_of(self._session, (), INIT)
        observed = (shown.tensor for shown in built.observed)
        self._run_race = callable_of(self._session, observed, RACE)
        self._run_final = callable_of(self._session, (shown.tensor for shown in built.final))

    def step(self) -> dict[str, npt.NDArray[Any]]:
        """Execute each copy once.

        Returns
        -------
        dict of str to (copies, *shape) array
            Each observed node, and each variable's final value. They may lie
            in TensorFlow's memory: look at them before the next step.
        """
        self._run_init()
        observed = self._run_race()
        final = self._run_final()
        values: dict[str, npt.NDArray[Any]] = {}
        self._unstack(self._observed, observed, values)
        self._unstack(self._final, final, values)
        return values

    def _unstack(
        self,
        shown: Iterable[Shown],
        arrays: Iterable[npt.NDArray[Any]],
        values: dict[str, npt.NDArray[Any]],
    ) -> None:
        for each, array in zip(shown, arrays, strict=True):
            for position, name in enumerate(each.names):
                values[name] = array[position * self._copies : (position + 1) * self._copies]

    def close(self) -> None:
        """Release graph and threads."""
        del self._run_init, self._run_race, self._run_final
        self._session.close()


def load(graph_def: graph_pb2.GraphDef) -> tf.Graph:
    """A graph without the Python objects that `tf.import_graph_def` makes.

    They would take five times as long as all the rest of this, and we name
    nodes by strings. This is its C half.
    """
    graph = tf.Graph()
    options = pywrap_tf_session.TF_NewImportGraphDefOptions()
    buffer = pywrap_tf_session.TF_NewBufferFromString(graph_def.SerializeToString())
    try:
        with graph._c_graph.get() as c_graph:
            results = pywrap_tf_session.TF_GraphImportGraphDefWithResults(c_graph, buffer, options)
        pywrap_tf_session.TF_DeleteImportGraphDefResults(results)
    finally:
        pywrap_tf_session.TF_DeleteBuffer(buffer)
        pywrap_tf_session.TF_DeleteImportGraphDefOptions(options)
    return graph
