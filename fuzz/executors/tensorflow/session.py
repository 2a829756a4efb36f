"""One TensorFlow session over one built graph: a step is a few runs.

1. `INIT` gives all resources of all copies their initial contents.
2. The race: for each run of the test one `Session.run` of its graph, in all copies,
   from a thread of its own where there are several; one that comes after others
   starts when these have ended. What is observed is fetched.
3. The final runs read all variables, then count and take what is in the queues.
   `Session.run` returns when every op of a run has finished, fetched or not, so that
   nothing runs beside this one.

Blocked
-------
A race that may not end is watched. When nothing happens in the process any more
(`quiescence`: no clock decides), the state is read while its runs wait: variables,
flags that say which copies are done, what these showed, then queues; the session
is then closed, which cancels them.

To look into a queue is to take what it holds, and that lets an op go on that waits to
put something, and those after it, which may take from another queue before we do. At a
queue that is not full nothing waits to put: those are looked into first. If one is
left in each copy, all of it is taken at once. If several are, they are closed before
(`HOLD`), which ends their puts, and with them their runs; what they hold stays. Locks
that such a run holds then go to other runs: a copy in which another has not ended
either is dropped.

Copies stand in a row, so that one that blocks keeps those after it from beginning:
they are dropped, as is every copy in which a run could begin and has not (a flag in the
graph tells). An op that fails ends its copy in the same way.

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
  run between the race and the comparison only reads, and `HistogramBuilder.add` keeps no
  view of them.
- *Constants may share memory with a variable*: assigning one takes over its
  buffer. The reference that the constant keeps makes updates copy it first. A
  violation would show as a wrong initial value in a later step; tests of the
  executor look for one.
"""

from __future__ import annotations

import re
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import pywrap_tf_session

from litmusfuzz.corpus.outcome import Status
from litmusfuzz.fuzz.executors.tensorflow.histogram import DROPPED, STATUSES, Batch
from litmusfuzz.fuzz.executors.tensorflow.lowering import (
    HOLD,
    INIT,
    begun_key,
    done_key,
    observed_key,
)
from litmusfuzz.fuzz.executors.tensorflow.quiescence import is_quiescent
from litmusfuzz.fuzz.executors.tensorflow.session_options import run_options, session_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import numpy.typing as npt
    from tensorflow.core.framework import graph_pb2

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
    from litmusfuzz.fuzz.executors.tensorflow.lowering import Built, Shown, Template

_PATIENCE_S: Final = 0.002
"""How long a race that may block goes on before it is looked at."""


def callable_of(
    session: Any,
    fetches: Iterable[str],
    *targets: str,
    options: config_pb2.RunOptions | None = None,
) -> Callable[..., Any]:
    """A run of a session.

    The public `Session.make_callable` wants Python objects for what it
    fetches; the names do. Each has an executor of its own. One that outlives
    its session cannot be released.
    """
    wanted = config_pb2.CallableOptions(fetch=fetches, target=targets, run_options=options)
    return session._make_callable_from_options(wanted)  # type: ignore[no-any-return]


class LiveSession:
    """A session, with threads of its own until it is closed.

    Parameters
    ----------
    template : Template
    built : Built
    settings : Settings
    copies : int
        Copies in `built`.
    target : str
        What runs it; "" for this process.
    """

    def __init__(
        self,
        template: Template,
        built: Built,
        settings: Settings,
        copies: int,
        target: str = "",
    ) -> None:
        self._test, self._built, self._copies = template.test, built, copies
        self._may_block = template.may_block
        nodes = list(self._test.nodes)
        self._closes = any(node.op == "QueueCloseV2" for node in nodes)
        self._put = {n.resources[0] for n in nodes if n.op.startswith("QueueEnqueue")}
        self.usable = True
        """Whether it can do another step: no run is blocked or has failed, no queue is closed."""
        self._in_background = settings.in_background
        config, options = session_config(settings, template.devices), run_options(settings)
        self._session = tf.compat.v1.Session(target, load(built.graph_def), config)
        self._run_init = callable_of(self._session, (), INIT)
        self._runs: dict[str, Callable[[], list[npt.NDArray[Any]]]] = {}
        for unit in built.units:
            fetches = [shown.tensor for shown in unit.observed]
            run = callable_of(self._session, fetches, unit.target, options=options)
            self._runs.update(dict.fromkeys(unit.runs, run))
        self._run_final = callable_of(self._session, [shown.tensor for shown in built.final])
        if built.contents:
            fetches = [name for each in built.contents for name in (each.sizes, each.elements)]
            self._run_contents = callable_of(self._session, fetches)
        self._threads: ThreadPoolExecutor | None = None
        if len(self._runs) > 1 or self._may_block:
            self._threads = ThreadPoolExecutor(len(self._runs))

    def step(self, stuck: Callable[[], bool] | None = None) -> Batch:
        """Execute each copy once; as many as came to an end, or to where they block.

        Parameters
        ----------
        stuck : callable, optional
            Called again and again meanwhile, if the test may block: whether nothing
            happens any more. It may first do something about it. Else `is_quiescent`.

        Returns
        -------
        Batch
            Its arrays may lie in TensorFlow's memory: look at them before the next step.

        Raises
        ------
        tensorflow.errors.OpError
            If an op fails in a test that cannot block.
        """
        self._run_init()
        race = _Race(self._test, self._runs, self._threads)
        race.go(watched=self._may_block, stuck=stuck)
        values: dict[str, npt.NDArray[Any]] = {}
        if not self._may_block:
            for unit in self._built.units:
                for run in unit.runs:
                    self._unstack(unit.observed, race.shown[run], values, run)
        self._unstack(self._built.final, self._run_final(), values)
        contents = {}
        held = race.blocked and self._crowded()
        if held:
            callable_of(self._session, (), HOLD)()
        if self._built.contents:
            fetched = self._run_contents()
            for position, each in enumerate(self._built.contents):
                contents[each.queue.name] = tuple(fetched[2 * position : 2 * position + 2])
        if not self._may_block:
            return Batch(values)
        status, absent = self._endings(race, values)
        if held and self._test.mutexes:
            undone = sum(~values[done_key(run.name)] for run in self._test.runs)
            status[undone > 1] = DROPPED
        if race.blocked or race.failure:
            self._cancel(race)
        self.usable = not (race.blocked or race.failure or self._closes)
        return Batch(values, contents, status, absent)

    def _crowded(self) -> bool:
        """Whether ops of a copy may wait to put something into several queues."""
        sizes = [each.sizes for each in self._built.contents if each.queue.name in self._put]
        if len(sizes) < 2:
            return False
        held = callable_of(self._session, sizes)()
        room = [q.capacity for q in self._test.queues if q.name in self._put]
        full = sum(each == most for each, most in zip(held, room, strict=True))
        return bool((full > 1).any())

    def _endings(
        self, race: _Race, values: Mapping[str, npt.NDArray[Any]]
    ) -> tuple[npt.NDArray[np.int64], dict[str, npt.NDArray[np.bool_]]]:
        """How each copy ended, and which values it does not have."""
        done = {run.name: values[done_key(run.name)] for run in self._test.runs}
        complete = np.all(list(done.values()), axis=0)
        told = np.ones(self._copies, bool)
        for run in self._test.runs:
            begun = values[begun_key(run.name)].copy()
            for name in run.after:
                begun |= ~done[name]  # it may not begin
            told &= done[run.name] | begun
        status = np.where(complete, 0, STATUSES.index(Status.BLOCKED))
        status[~told & ~complete] = DROPPED
        if race.failure:
            # The others that are not done were ended by it.
            status[~complete] = DROPPED
            status[_copy_of(race.failure)] = STATUSES.index(Status.FAILED)
        absent = {}
        for run in self._test.runs:
            for node in self._test.nodes_by_key().values():
                key = observed_key(self._test, run.name, node)
                if key in self._test.observe:
                    absent[key] = ~done[run.name]
        return status, absent

    def _unstack(
        self,
        shown: Iterable[Shown],
        arrays: Iterable[npt.NDArray[Any]],
        values: dict[str, npt.NDArray[Any]],
        run: str = "",
    ) -> None:
        for each, array in zip(shown, arrays, strict=True):
            for position, name in enumerate(each.names):
                key = observed_key(self._test, run, name) if run else name
                values[key] = array[position * self._copies : (position + 1) * self._copies]

    def _cancel(self, race: _Race) -> None:
        """End what still runs."""
        self._compiled()
        self._session.close()
        race.wait()

    def _compiled(self) -> None:
        """Wait until XLA compiles nothing beside the runs: to close before ends the process.

        As docs/tensorflow-findings.md has it.
        """
        while self._in_background and not is_quiescent():
            time.sleep(_PATIENCE_S)

    def close(self) -> None:
        """Release graph and threads."""
        self._compiled()
        if self._threads is not None:
            self._threads.shutdown()
        del self._run_init, self._runs, self._run_final
        if self._built.contents:
            del self._run_contents
        self._session.close()


class _Race:
    """The runs of one step, each after those that it waits for.

    Attributes
    ----------
    shown : dict of str to list of array
        What each run that has ended fetched.
    blocked : bool
        Whether nothing happens any more, and not all have ended.
    failure : OpError or None
    """

    def __init__(
        self,
        test: LitmusTest,
        runs: Mapping[str, Callable[[], list[npt.NDArray[Any]]]],
        threads: ThreadPoolExecutor | None,
    ) -> None:
        self._test, self._calls, self._threads = test, runs, threads
        self._futures: dict[str, Future[list[npt.NDArray[Any]]]] = {}
        self.shown: dict[str, list[npt.NDArray[Any]]] = {}
        self.blocked = False
        self.failure: tf.errors.OpError | None = None

    def go(self, *, watched: bool, stuck: Callable[[], bool] | None = None) -> None:
        """Run all, until they have ended; where `watched`, or nothing happens any more."""
        if self._threads is None:
            ((name, call),) = self._calls.items()
            self.shown[name] = call()
            return
        while len(self.shown) < len(self._calls) and not (self.blocked or self.failure):
            for run in self._test.runs:
                if run.name not in self._futures and self.shown.keys() >= set(run.after):
                    self._futures[run.name] = self._threads.submit(self._calls[run.name])
            pending = {f for name, f in self._futures.items() if name not in self.shown}
            patience_s = (0.0 if stuck else _PATIENCE_S) if watched else None
            ended, _ = wait(pending, patience_s, FIRST_COMPLETED)
            for name, future in self._futures.items():
                if future in ended:
                    self._take(name, future, watched=watched)
            if watched and not ended:
                # All runs that can begin have begun, so that only they could go on.
                idle = (stuck or is_quiescent)()
                self.blocked = idle and not any(future.done() for future in pending)
        if self.failure:
            self._settle()

    def _take(self, name: str, future: Future[list[npt.NDArray[Any]]], *, watched: bool) -> None:
        try:
            self.shown[name] = future.result()
        except tf.errors.OpError as error:
            if not watched:
                raise
            self.failure = error

    def _settle(self) -> None:
        """Wait until the runs beside one that failed have ended, or block."""
        while not (all(future.done() for future in self._futures.values()) or is_quiescent()):
            wait(self._futures.values(), _PATIENCE_S)

    def wait(self) -> None:
        """Until all have ended, however."""
        wait(self._futures.values())


def _copy_of(error: tf.errors.OpError) -> int:
    """The copy that failed: TensorFlow names the node."""
    found = re.search(r"node c(\d+)/", error.message)
    if found is None:
        raise error
    return int(found[1])


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
