"""Runs a built graph in one TensorFlow session; a step takes a few `Session.run` calls.

1. `INIT` gives all resources of all copies their initial contents; queues that may be closed are
   replaced by new ones.
2. The race: for each run of the test one `Session.run` of its graph, in all copies. If
   there are several, each has a thread of its own. A run that comes after other runs
   starts when those have ended. The observed values are fetched.
3. The final runs read all variables, then count and take the elements of the queues.
   `Session.run` returns when every op of a run has finished, fetched or not, so that no
   op runs at the same time as a final run.

An accumulator's sum can only be taken, and a take waits in line behind those that are blocked. So
the sum is taken where no op of the test can be in the line: in a copy of which all runs are done,
of an accumulator from which the test takes nothing, and else after the blocked runs have been
cancelled. The accumulator itself stays from step to step: `INIT` adds a gradient of the last step
that there is, takes all of them, and sets the step to 0.

Blocked executions
------------------
A race that may block is watched. When no thread of the process can go on
(`quiescence`), the state is read while the blocked runs still wait: variables, flags
that say which copies are done, their observed values, then queues. Then an op of each blocked
run is made to fail (`ABORT`), which cancels the others. The next step sets all resources anew.

Reading a queue means taking its elements. That lets a blocked enqueue go on, and the ops
after it, which may take from another queue before it is read. No enqueue can be blocked
on a queue that is not full, or that the test puts nothing into, so such queues are read first. If
one full queue is left in each copy, all its elements are taken at once. If several are left, they
are closed first
(`HOLD`): this cancels their blocked enqueues, and hence the runs, and keeps the elements.
If such a run held a lock, another run may then acquire it. A copy in which another run
has not ended either is therefore dropped.

Copies usually run one after another, so that no copy begins after one that blocks. Copies
that never began are dropped, as is every copy in which a run could begin and has not (a
flag in the graph shows it). An op that fails ends its copy, and the later copies are dropped too.
If an op fails whose run waits for a lock, the run may never end: where a run with locks ends
with an error of its own once it is cancelled, copies that are not done are dropped
(`_Race.doubtful`).

Cancelled takes
---------------
A cancelled take leaves the gradients where they are, and TensorFlow then looks whether there are
enough for the take behind it. If there are, and both belong to one run, TensorFlow waits for itself
and the run never ends (docs/tensorflow-findings.md). This needs two takes that require different
numbers of gradients: such a test has one copy, and before its runs are cancelled zeros are added
until no take can be in the line, or the accumulator is empty (`_feed`). If one take has ended so,
what it returned is the sum (`lowering`, `keep_sums`). A copy whose sum is not known so, or in which
another op goes on when one is cancelled, is dropped.

Why an observed value is the value that the node returned
---------------------------------------------------------
- *No node is pruned.* A run executes all nodes that its targets need; `RACE` needs
  every node without successors, hence every node.
- *Stacking neither orders nodes nor tears values.* ``Pack`` waits for the nodes whose results
  it stacks, and no node of the test waits for it. It reads those results, never a variable.
  TensorFlow must not change a tensor that a node has returned; if it did, every other
  consumer could see that as well. A torn stacked value is thus a torn value.
- *Results may share memory with a variable.* A read returns the variable's buffer and
  adds a reference; an update works in place only if it holds the last reference. A
  sparse update first makes the buffer its own, and from then on reads copy
  (``copy_on_read_mode``). Whether TensorFlow obeys these rules is what the tests check.
  A stacked result is a copy made inside the run, so that nothing later can change it.
- *Fetched arrays may share memory with TensorFlow*, even a stack of one, which ``Pack``
  does not copy. No run is under way while they are counted, the final runs only read,
  and `HistogramBuilder.add` keeps no view of them.
- *Constants may share memory with a variable*: the variable adopts the buffer of the
  constant assigned to it. The constant keeps a reference, so that updates must copy the
  buffer first. If TensorFlow did not, a later step would start with a wrong initial value;
  the executor's tests check that this does not happen.
"""

from __future__ import annotations

import re
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import pywrap_tf_session

from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.takes import steady
from litmusfuzz.fuzz.executors.protocol import Refused
from litmusfuzz.fuzz.executors.tensorflow.control_library import Program
from litmusfuzz.fuzz.executors.tensorflow.histogram import DROPPED, STATUSES, Batch
from litmusfuzz.fuzz.executors.tensorflow.lowering import (
    ABORT,
    HOLD,
    INIT,
    begun_key,
    done_key,
    fed_name,
    observed_key,
    state_key,
)
from litmusfuzz.fuzz.executors.tensorflow.quiescence import other_threads_s, stays_quiescent
from litmusfuzz.fuzz.executors.tensorflow.regions import refuse_compiler
from litmusfuzz.fuzz.executors.tensorflow.session_options import run_options, session_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy.typing as npt
    from tensorflow.core.framework import graph_pb2

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.tensorflow._control import Controller
    from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
    from litmusfuzz.fuzz.executors.tensorflow.control_library import Steering
    from litmusfuzz.fuzz.executors.tensorflow.engines import DrivenEngine
    from litmusfuzz.fuzz.executors.tensorflow.lowering import Built, Shown, Template

_PATIENCE_S: Final = 0.001
"""Seconds between two checks of a race that may block."""
_INVALID_NODE: Final = "is not in the list of allowed values"
"""In the message about a node that no graph may have. No op of a test has failed then: an optimizer
made the node, when a run began or a function was called."""
_SENT_AGAIN: Final = "request was received twice"
_BUSY_S: Final = 0.0001
"""Processor time of other threads between two checks that shows that some can go on."""
_HELD_S: Final = 10.0
"""Seconds for which an op of the last step may hold a queue before the next step fails."""
_ABORT_S: Final = 1.0
"""Seconds that blocked runs have to end after one of their ops has failed."""


class NoValue(RuntimeError):
    """A run has succeeded and returned nothing for a node, which has not been executed.

    `Session.run` reports that as an error, a callable returns an empty array.
    """


def callable_of(
    session: Any,
    fetches: Iterable[str],
    *targets: str,
    feeds: Iterable[str] = (),
    options: config_pb2.RunOptions | None = None,
) -> Callable[..., Any]:
    """A callable that runs a session with fixed feeds, fetches and targets, given by name.

    The public `Session.make_callable` takes Python objects instead of names. Each
    callable has an executor of its own. A callable that outlives its session cannot be
    released.
    """
    wanted = config_pb2.CallableOptions(
        feed=feeds, fetch=fetches, target=targets, run_options=options
    )
    run = session._make_callable_from_options(wanted)
    return _over_grpc(run) if session.sess_str.startswith(b"grpc:") else run


def _over_grpc(run: Callable[..., Any]) -> Callable[..., Any]:
    """A callable of a session on a server, which refuses a step that gRPC has sent again.

    On a busy machine that happens once in some hours. The server ends the step with an error, which
    says nothing about the ops of the test.
    """

    def asked(*feeds: Any, **named: Any) -> Any:
        try:
            return run(*feeds, **named)
        except tf.errors.AbortedError as error:
            if _SENT_AGAIN in error.message:
                raise Refused("a step that gRPC has sent twice") from None
            raise

    return asked


class LiveSession:
    """A session over one built graph; it owns threads until it is closed.

    Parameters
    ----------
    template : Template
    built : Built
    settings : Settings
    copies : int
        Number of copies in `built`.
    target : str
        Address of the gRPC server to connect to; "" for this process.
    steering : Steering, optional
        Has control of the race, in which nothing is left to threads then.
    engine : DrivenEngine, optional
        Runs the closures of all runs, in place of TensorFlow's threads.

    Attributes
    ----------
    session : tf.compat.v1.Session
    initialize : callable
        Gives all resources of all copies their initial contents.
    usable : bool
        False if a run could only be ended with the session.
    hindered : bool
        True if some copy was blocked, or failed, in the last step.
    """

    def __init__(
        self,
        template: Template,
        built: Built,
        settings: Settings,
        copies: int,
        target: str = "",
        steering: Steering | None = None,
        engine: DrivenEngine | None = None,
    ) -> None:
        self._steering = steering
        self._engine = engine
        self._test, self._built, self._copies = template.test, built, copies
        self._may_block = template.may_block
        self._uneven = template.uneven
        nodes = list(self._test.nodes)
        self._put = {n.resources[0] for n in nodes if n.definition.puts}
        self._steady = steady(self._test)
        self.usable = True
        self.hindered = False
        self._began = False
        self._in_background = settings.in_background
        self._front_end = settings.front_end
        executor_type = engine.executor_type if engine else ""
        config = session_config(settings, template.devices, executor_type)
        options = run_options(settings)
        self._run_options = options
        target = steering.target() if steering else target
        self.session = tf.compat.v1.Session(target, load(built.graph_def), config)
        self.initialize = callable_of(self.session, (), INIT)
        self._runs: dict[str, Callable[[], list[npt.NDArray[Any]]]] = {}
        self._executors: dict[str, int] = {}  # by run
        for unit in built.units:
            fetches = [*unit.fetched, *(shown.tensor for shown in unit.observed)]
            before = steering.executors_made() if steering else 0
            run = callable_of(self.session, fetches, *unit.targets, feeds=unit.fed, options=options)
            made = steering.executors_made() if steering else 0
            self._executors.update(dict.fromkeys(unit.runs, made - before))
            self._runs.update({name: partial(run, *unit.feeds[name]) for name in unit.runs})
        self._final = [shown.tensor for shown in built.final]
        contents = [name for each in built.contents for name in (each.sizes, each.elements)]
        self._read = callable_of(self.session, (*self._final, *contents))
        self._abort: Callable[[], list[Any]] | None = None
        self._threads: ThreadPoolExecutor | None = None
        if len(self._runs) > 1 or self._may_block:
            self._threads = ThreadPoolExecutor(len(self._runs))

    def warm_up(self) -> None:
        """Execute without control, so that nothing is done for the first time under control.

        Some ops take other locks when they first run. If XLA compiles in the background, it is done
        when this returns.
        """
        steering, self._steering = self._steering, None
        self._warm_up(self.step)
        self._steering = steering

    def _warm_up(self, execute: Callable[[], object]) -> None:
        execute()
        if self._in_background:
            self._wait_for_compiler()
            execute()

    def step(self, stuck: Callable[[], bool] | None = None) -> Batch:
        """Execute each copy once.

        Parameters
        ----------
        stuck : callable, optional
            Called repeatedly during the race if the test may block; true if no op can go
            on. It may do something that lets ops go on. Default: `stays_quiescent`.

        Returns
        -------
        Batch
            The values and the status of each copy: completed, blocked, failed or dropped. The
            arrays may share memory with TensorFlow: use them before the next step.

        Raises
        ------
        Refused
            If XLA cannot compile a cluster or function, or gRPC has sent the step twice.
        NoValue
            If a run has returned nothing for an observed node.
        tensorflow.errors.OpError
            If an op fails in a test that cannot block, and has no op that may fail; or if an
            optimizer has made a node that no graph may have.
        BrokenEngine
            If the engine has broken what it guarantees.
        """
        batch = self._step(stuck)
        if self._engine is not None:
            self._engine.check()
        return batch

    def _step(self, stuck: Callable[[], bool] | None) -> Batch:
        self._initialize()
        race = _Race(self._test, self._runs, self._threads)
        try:
            if self._steering:
                self._steer(race, self._steering)
            else:
                race.go(watched=self._may_block, stuck=stuck)
        except tf.errors.OpError as error:
            refuse_compiler(error)
            raise
        if race.failure is not None:
            refuse_compiler(race.failure)
            if _INVALID_NODE in race.failure.message:
                raise race.failure
            if not self._may_block:
                return self._failed(race.failure)
        if self._steering and self._steering.controller.failed:
            # Its run may wait for a lock for ever; but that an op has failed is known.
            self.hindered = True
            if race.blocked:
                self._feed()
                self._cancel(race)
            return self._failed(race.failure)
        if not self._may_block:
            return self._completed(race.shown, self._read()[: len(self._final)])
        values: dict[str, npt.NDArray[Any]] = {}
        held = race.blocked and self._crowded()
        if held:
            kept = callable_of(self.session, self._final)()
            callable_of(self.session, (), HOLD)()
        final = self._read()
        fetched = final[len(self._final) :]
        self._unstack(self._built.final, kept if held else final[: len(self._final)], values)
        contents = {
            each.queue.name: (fetched[2 * position], fetched[2 * position + 1])
            for position, each in enumerate(self._built.contents)
        }
        self.hindered = race.blocked or race.failure is not None
        fed = False
        if self.hindered:
            fed = self._feed()
            self._cancel(race)
        status, absent = self._endings(race, values)
        if held and self._test.mutexes:
            undone = sum(~values[done_key(run.name)] for run in self._test.runs)
            status[undone > 1] = DROPPED
        if race.blocked:
            self._take_left(values, status, fed=fed)
        empty = {
            each.name: ~values[state_key(each.name)]
            for each in self._test.variables
            if each.init is None
        }
        return Batch(values, contents, status, absent, empty)

    def _steer(self, race: _Race, steering: Steering) -> None:
        """Race under control; after an error of the scheduler's no run is left.

        They have been let go then, and the next step must not meet them.
        """
        try:
            race.steer(steering, self._executors)
        except RuntimeError:
            if not race.wait(_ABORT_S):
                self._cancel(race)
            raise

    def program(self, *, warm: bool) -> Program | None:
        """The three runs of a step under control, for C++; None if a step needs more than these.

        If it is to be `warm`, it has been executed once, as by `warm_up`: clusters are compiled for
        each callable.
        """
        unit, *others = self._built.units
        runs = len(self._runs) > 1 or self._may_block or bool(self._test.failing)
        if others or runs or unit.fed or self._steering is None:
            return None
        # Nothing may be waited for in these two: the thread that asks can do it all.
        alone = config_pb2.RunOptions(inter_op_thread_pool=-1)
        fetches = [*unit.fetched, *(shown.tensor for shown in unit.observed)]
        callables = (
            config_pb2.CallableOptions(target=[INIT], run_options=alone),
            config_pb2.CallableOptions(
                fetch=fetches, target=unit.targets, run_options=self._run_options
            ),
            config_pb2.CallableOptions(fetch=self._final, run_options=alone),
        )
        program = Program(self._steering.library, callables)
        if warm:
            self._warm_up(program.warm_up)
        return program

    def batch(self, fetched: Sequence[npt.NDArray[Any]]) -> Batch:
        """The batch of one execution of `program`, from all that it has fetched."""
        (unit,) = self._built.units
        (run,) = unit.runs
        raced = len(fetched) - len(self._final)
        return self._completed({run: fetched[:raced]}, fetched[raced:])

    def _completed(
        self,
        shown: Mapping[str, Sequence[npt.NDArray[Any]]],
        final: Sequence[npt.NDArray[Any]],
    ) -> Batch:
        """A step that cannot be blocked: what each run and the final run have fetched."""
        values: dict[str, npt.NDArray[Any]] = {}
        for unit in self._built.units:
            for run in unit.runs:
                fetched = len(unit.fetched)
                self._unstack(unit.observed, shown[run][fetched:], values, run)
                self._collect(run, shown[run][:fetched], values)
        self._unstack(self._built.final, final, values)
        return Batch(values)

    def _take_left(
        self, values: dict[str, npt.NDArray[Any]], status: npt.NDArray[np.int64], *, fed: bool
    ) -> None:
        """Take the sums in the copies whose blocked runs have been cancelled, where known."""
        if not self._built.left:
            return
        blocked = status == STATUSES.index(Status.BLOCKED)
        cells = [name for shown in self._built.left for name in shown.names]
        known: dict[str, npt.NDArray[Any]] = {}
        if self.usable and self._steady:
            sums = callable_of(self.session, [each.tensor for each in self._built.left])()
            self._unstack(self._built.left, sums, known)
        if fed and known:
            took = self._fed_takes(values)
            known = {} if took is None else took or known
        for each in self._test.accumulators:
            if (cell := each.sum.name) not in cells:
                continue
            if cell in known:
                values[cell] = values[cell].copy()
                values[cell][blocked] = known[cell][blocked]
            else:
                status[blocked & (values[each.count.name] > 0)] = DROPPED

    def _fed_takes(
        self, values: Mapping[str, npt.NDArray[Any]]
    ) -> dict[str, npt.NDArray[Any]] | None:
        """The sum that a fed take has taken, by its cell; nothing if none has; None if unknown."""
        after: dict[str, npt.NDArray[Any]] = {}
        self._unstack(self._built.final, callable_of(self.session, self._final)(), after)
        flags = [key for key in values if key.endswith("/kept")]
        takes = [n.resources[0] for n in self._test.nodes if n.definition.takes_sum]
        if len(flags) < sum(name in self._uneven for name in takes):
            return None  # one in a body, of which nothing is kept
        new = [key.removesuffix("/kept") for key in flags if (after[key] & ~values[key]).any()]
        if len(new) > 1:
            return None
        return {f"{key.rpartition('/')[2]}.sum": after[key] for key in new}

    def _failed(self, error: tf.errors.OpError | None) -> Batch:
        """A step in which an op failed in one copy, which cancelled its run in all others."""
        status = np.full(self._copies, DROPPED)
        copy = _copy_of(error) if error else None
        status[copy or 0] = STATUSES.index(Status.FAILED)
        kinds = {name: self._test.type_of(name) for name in self._test.names}
        values = {
            name: np.zeros((self._copies, *kind.shape), kind.dtype) for name, kind in kinds.items()
        }
        none = np.zeros(self._copies, np.int32)
        contents = {
            each.name: (none, np.zeros((0, *each.shape), each.dtype)) for each in self._test.queues
        }
        return Batch(values, contents, status)

    def _initialize(self) -> None:
        """Set all resources.

        A queue's op makes another queue only once the one that it made before is released, and a
        cancelled op of the last step may hold that for a moment longer. Then `INIT`, which is alone
        in the session, finds no queue under the name, and is run again.
        """
        end, pause = time.monotonic() + _HELD_S, 0.0001
        while True:
            try:
                self.initialize()
            except tf.errors.NotFoundError:
                if not self._began or time.monotonic() > end:
                    raise
                time.sleep(pause)  # for the thread that holds it, not for the outcome
                pause = min(2 * pause, 0.05)
            else:
                break
        self._began = True

    def _crowded(self) -> bool:
        """True if enqueues of one copy may be blocked on several full queues."""
        sizes = [each.sizes for each in self._built.contents if each.queue.name in self._put]
        if len(sizes) < 2:
            return False
        found = callable_of(self.session, sizes)()
        capacities = [q.capacity for q in self._test.queues if q.name in self._put]
        full = sum(each == most for each, most in zip(found, capacities, strict=True))
        return bool((full > 1).any())

    def _endings(
        self, race: _Race, values: Mapping[str, npt.NDArray[Any]]
    ) -> tuple[npt.NDArray[np.int64], dict[str, npt.NDArray[np.bool_]]]:
        """Status of each copy, and for each value the copies in which it is absent."""
        done = {run.name: values[done_key(run.name)] for run in self._test.runs}
        complete = np.all(list(done.values()), axis=0)
        known = np.ones(self._copies, bool)  # every run that could begin has begun
        for run in self._test.runs:
            begun = values[begun_key(run.name)].copy()
            for name in run.after:
                begun |= ~done[name]  # `run` could not begin yet
            known &= done[run.name] | begun
        status = np.where(complete, 0, STATUSES.index(Status.BLOCKED))
        status[~known & ~complete] = DROPPED
        if race.failure:
            # The failure cancelled all other copies that were not done.
            status[~complete] = DROPPED
            copy = _copy_of(race.failure)
            status[np.argmin(complete) if copy is None else copy] = STATUSES.index(Status.FAILED)
        if race.doubtful:
            status[~complete] = DROPPED
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
            if not array.size:
                raise NoValue(
                    f"a run of {self._front_end} that did not fail has no value for {each.names[0]}"
                )
            for position, name in enumerate(each.names):
                key = observed_key(self._test, run, name) if run else name
                values[key] = array[position * self._copies : (position + 1) * self._copies]

    def _collect(
        self,
        run: str,
        arrays: Sequence[npt.NDArray[Any]],
        values: dict[str, npt.NDArray[Any]],
    ) -> None:
        """Add what a run fetched by itself: in each copy the values of its fetches."""
        (names,) = (each.fetches for each in self._test.runs if each.name == run)
        for position, name in enumerate(names):
            key = observed_key(self._test, run, name)
            if key in self._test.shown:
                values[key] = np.stack(arrays[position :: len(names)])

    def _cancel(self, race: _Race) -> None:
        """Cancel the runs that have not ended; by closing the session, if nothing else does.

        A run in which an op has failed may have waited for a lock all the same
        (docs/tensorflow-findings.md, "A step that fails may never end"). It ends with that op's
        error; but so does a run in which an op fails because another one was cancelled.
        """
        if self._abort is None:
            self._abort = callable_of(self.session, (), ABORT)
        self._abort()
        self.usable = race.wait(_ABORT_S)
        if not self.usable:
            self._wait_for_compiler()
            self.session.close()
            race.wait()
        race.doubtful = race.blocked and bool(self._test.mutexes) and race.has_own_error()

    def _feed(self) -> bool:
        """Add zeros where different takes may wait, until none takes because another is cancelled.

        A take that ends so lets other ops go on: the last look is at threads that all wait. True if
        zeros have been added.
        """
        fed = False
        if not self._uneven:
            return fed
        counts = [f"c0/{each}.count/get:0" for each in self._uneven]
        count = callable_of(self.session, counts)
        feeds = [callable_of(self.session, (), fed_name("c0", name)) for name in self._uneven]
        quiet = False
        while not quiet:
            quiet = stays_quiescent()
            numbers = self._uneven.values()
            for feed, (least, most), there in zip(feeds, numbers, count(), strict=True):
                if least <= there < most:
                    feed()
                    fed, quiet = True, False
        return fed

    def _wait_for_compiler(self) -> None:
        """Wait until XLA's background compilation is done.

        Closing the session earlier ends the process (docs/tensorflow-findings.md).
        """
        while self._in_background and not stays_quiescent():
            time.sleep(_PATIENCE_S)

    def close(self) -> None:
        """Release graph and threads."""
        self._wait_for_compiler()
        if self._threads is not None:
            self._threads.shutdown()
        del self.initialize, self._runs, self._read, self._abort
        self.session.close()


class _Returns:
    """Tells a controller which runs of one execution have returned.

    A future's callback may come late, after those who wait for its result: the controller would
    take it for a run of the next execution, and would not wait for that.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._lock = Lock()
        self._over = False

    def returned(self, run: int, _: Future[list[npt.NDArray[Any]]]) -> None:
        """Pass it on, unless the execution is over."""
        with self._lock:
            if not self._over:
                self._controller.returned(run)

    def close(self) -> None:
        """End the execution."""
        with self._lock:
            self._over = True


class _Race:
    """The runs of one step, in an order that the client of the test permits.

    Attributes
    ----------
    shown : dict of str to list of array
        Values that each ended run fetched.
    blocked : bool
        True if some runs have not ended and no thread can go on.
    failure : OpError or None
        The error that ended a run.
    doubtful : bool
        True if it is not known whether an op failed before, or only after the blocked runs were
        cancelled: these executions are dropped.
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
        self.doubtful = False
        self.failure: tf.errors.OpError | None = None

    def go(self, *, watched: bool, stuck: Callable[[], bool] | None = None) -> None:
        """Execute all runs until they have ended or, if `watched`, until they are blocked.

        Until one fails, in a test that may fail; the other runs have ended then.
        """
        may_fail = watched or bool(self._test.failing)
        if self._threads is None:
            ((name, call),) = self._calls.items()
            try:
                self.shown[name] = call()
            except tf.errors.OpError as error:
                if not may_fail:
                    raise
                self.failure = error
            return
        used_s = 0.0
        while len(self.shown) < len(self._calls) and not (self.blocked or self.failure):
            for run in self._test.runs:
                if run.name not in self._futures and self.shown.keys() >= set(run.after):
                    self._futures[run.name] = self._threads.submit(self._calls[run.name])
            pending = {f for name, f in self._futures.items() if name not in self.shown}
            patience_s = (0.0 if stuck else _PATIENCE_S) if watched else None
            ended, _ = wait(pending, patience_s, FIRST_COMPLETED)
            for name, future in self._futures.items():
                if future in ended:
                    self._take(name, future, may_fail=may_fail)
            if watched and not ended:
                # Every run that can begin has begun: no other thread could go on.
                # While XLA compiles, `stays_quiescent` would take a tenth of the processor's time.
                before, used_s = used_s, other_threads_s()
                quiet = used_s - before < _BUSY_S
                idle = stuck() if stuck else quiet and stays_quiescent()
                self.blocked = idle and not any(future.done() for future in pending)
        if self.failure and watched:
            self._wait_for_others()
        elif self.failure:
            wait(self._futures.values())

    def steer(self, steering: Steering, executors: Mapping[str, int]) -> None:
        """Execute all runs under control, until they have ended or nothing can go on.

        A run begins when the one before it, in their order, has begun. So each event has the same
        name in all executions.
        """
        # Elsewhere nothing of control is loaded: it may be compiled for another Python.
        from litmusfuzz.fuzz.executors.tensorflow._control import Standing

        controller = steering.controller
        controller.begin()
        if self._threads is None:
            ((name, call),) = self._calls.items()
            controller.expect(0)
            controller.proceed_when_begun(executors[name])
            try:
                self.shown[name] = call()
            except tf.errors.OpError as error:
                self.failure = error
            finally:
                controller.end()
            return
        begun, returns = 0, _Returns(controller)
        try:
            while True:
                for number, run in enumerate(self._test.runs):
                    if run.name in self._futures or not self.shown.keys() >= set(run.after):
                        continue
                    begun += executors[run.name]
                    controller.expect(number)
                    future = self._threads.submit(self._calls[run.name])
                    self._futures[run.name] = future
                    future.add_done_callback(partial(returns.returned, number))
                    controller.wait_for(begun)
                more = len(self._futures) < len(self._calls)
                self.blocked = controller.proceed(more) is Standing.BLOCKED
                if self.blocked or not more:
                    break
                self._take_ended(controller)
                if self.failure:
                    self.blocked = controller.proceed(stop=False) is Standing.BLOCKED
                    break
        finally:
            returns.close()
            controller.end()
        self._take_ended(controller)
        if not self.blocked:
            for name, future in self._futures.items():
                if name not in self.shown:  # one that no executor has begun
                    self._take(name, future, may_fail=True)

    def _take_ended(self, controller: Controller) -> None:
        """Wait for the threads of runs that have ended: each may still be on its way back."""
        for number in controller.ended:
            name = self._test.runs[number].name
            if name not in self.shown:
                self._take(name, self._futures[name], may_fail=True)

    def _take(self, name: str, future: Future[list[npt.NDArray[Any]]], *, may_fail: bool) -> None:
        try:
            self.shown[name] = future.result()
        except tf.errors.OpError as error:
            if not may_fail:
                raise
            self.failure = self.failure or error

    def _wait_for_others(self) -> None:
        """After a failure: wait until the other runs have ended or are blocked."""
        while not (all(future.done() for future in self._futures.values()) or stays_quiescent()):
            wait(self._futures.values(), _PATIENCE_S)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until all runs have ended, also by cancellation; true if they have."""
        return not wait(self._futures.values(), timeout_s).not_done

    def has_own_error(self) -> bool:
        """True if an op of the test has failed in a run that has been cancelled."""
        errors = (future.exception() for future in self._futures.values())
        return any(
            isinstance(error, tf.errors.OpError)
            and not isinstance(error, tf.errors.CancelledError)
            and f"{ABORT}/" not in error.message
            for error in errors
        )


def _copy_of(error: tf.errors.OpError) -> int | None:
    """The copy that failed; None if TensorFlow's message does not name the node.

    Any copy that has not ended does then: nothing else is known of an execution that failed.
    """
    found = re.search(r"node c(\d+)/", error.message)
    return None if found is None else int(found[1])


def load(graph_def: graph_pb2.GraphDef) -> tf.Graph:
    """Import a graph without the Python objects that `tf.import_graph_def` creates.

    Creating them takes five times as long as the rest of the import, and this package
    refers to nodes by name. This is the C part of `tf.import_graph_def`.

    Raises
    ------
    Refused
        If an operand is a constant with which an op always fails: TensorFlow computes shapes from
        some, and builds no graph then.
    """
    graph = tf.Graph()
    options = pywrap_tf_session.TF_NewImportGraphDefOptions()
    buffer = pywrap_tf_session.TF_NewBufferFromString(graph_def.SerializeToString())
    try:
        with graph._c_graph.get() as c_graph:
            results = pywrap_tf_session.TF_GraphImportGraphDefWithResults(c_graph, buffer, options)
        pywrap_tf_session.TF_DeleteImportGraphDefResults(results)
    except tf.errors.InvalidArgumentError as error:
        if "with computed input tensors" not in error.message:
            raise
        raise Refused(f"a constant that its op takes ({error.message})") from None
    finally:
        pywrap_tf_session.TF_DeleteBuffer(buffer)
        pywrap_tf_session.TF_DeleteImportGraphDefOptions(options)
    return graph
