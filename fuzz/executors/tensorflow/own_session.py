"""Every schedule of a graph of one's own, in unmodified TensorFlow under control.

>>> found = explore(build)
>>> for seen in found.outcomes:
...     print(seen.value, seen.schedules, *seen.schedule)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np
import tensorflow as tf

from litmusfuzz.corpus.schedule import AFTER_PARTS, BEGIN, Decision
from litmusfuzz.fuzz.executors.protocol import Diverged, Refused
from litmusfuzz.fuzz.executors.tensorflow._control import Exhaustive, Forced
from litmusfuzz.fuzz.executors.tensorflow.control_library import (
    EXECUTOR_TYPE,
    OF_OTHER,
    Steering,
    must_have_followed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from types import TracebackType

    from litmusfuzz.fuzz.executors.tensorflow._control import Scheduler

Level = Literal["ops", "locks", "pages", "touches"]
LIMIT: Final = 10_000
_MAY_WAIT: Final = ("Dequeue", "Enqueue", "MutexLock", "Take", "Unstage")
"""In the type of an op: it may wait for another one, perhaps for ever."""
_NO_EFFECT: Final = ("VarHandleOp", "VarIsInitializedOp", "ReadVariableOp")


@dataclass(frozen=True, slots=True)
class Seen:
    """What some schedules show.

    Parameters
    ----------
    value : object
        What `build` has returned, with values in place of tensors and variables; None if an op
        has failed.
    error : str
        Type of the error of the op that has failed; "" if none has.
    schedules : int
        Number of schedules with this outcome.
    schedule : tuple of Decision
        The first of them.
    """

    value: Any
    error: str
    schedules: int
    schedule: tuple[Decision, ...]


@dataclass(frozen=True, slots=True)
class Exploration:
    """All that `explore` has seen; a context that closes the session.

    Parameters
    ----------
    outcomes : tuple of Seen
        The most frequent first.
    executions : int
        The schedules, and those that were abandoned because they would have repeated one.
    complete : bool
        True if these are all schedules, at that level and within the bound if there was one.
    """

    outcomes: tuple[Seen, ...]
    executions: int
    complete: bool
    _session: _OwnSession

    @property
    def schedules(self) -> int:
        """Number of schedules."""
        return sum(seen.schedules for seen in self.outcomes)

    def follow(self, schedule: Sequence[Decision]) -> Seen:
        """Execute one schedule again.

        Raises
        ------
        Diverged
            Where the execution leaves it: the event that is not enabled, and those that are.
        """
        return self._session.follow(tuple(schedule))

    def close(self) -> None:
        """Release the session."""
        self._session.close()

    def __enter__(self) -> Exploration:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        frames: TracebackType | None,
    ) -> None:
        self.close()


def explore(
    build: Callable[[], Any],
    *,
    level: Level = "ops",
    preemptions: int | None = None,
    limit: int = LIMIT,
    intra_op_threads: int = 1,
) -> Exploration:
    """Execute a TensorFlow graph in every schedule of its ops on resources.

    Parameters
    ----------
    build : callable
        Called once, in a new `tf.Graph`. It makes variables and ops, calls `tf.function`s, and
        returns what is to be observed, in any structure of tuples, lists and dicts: of a tensor the
        value that the run has computed, of a variable the value after the run. All ops with an
        effect run, as in a `tf.function`, and nothing orders them but the graph's edges. Before
        each execution all variables get their initial values.
    level : str
        ``ops``: an op on a resource is one event. ``locks``: also each lock that it takes.
        ``pages``: also the first touch of each page of a variable of 8 KiB or more.
        ``touches``: also each touch of a smaller one, and what follows each unlock of a variable.
    preemptions : int, optional
        Only schedules with so few switches away from an op that could go on; None for all.
    limit : int
        Executions, at most; `Exploration.complete` says whether they were enough.
    intra_op_threads : int
        Threads that share the work of ops. With more than 1, the parts that an op makes of its work
        are tasks, with events of their own; not of level ``ops``, where an op is one event.

    Raises
    ------
    Refused
        If an op may wait for another one: a queue's, a mutex's.
    Unavailable
        If this TensorFlow cannot be controlled here.
    Diverged
        If the graph is no function of its schedule.
    ValueError
        If a parameter is out of range, or `build` returns something that is not observed.
    """
    if level not in get_args(Level):
        raise ValueError(f"level must be one of {', '.join(get_args(Level))}, got {level!r}")
    if limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}")
    if preemptions is not None and preemptions < 0:
        raise ValueError(f"preemptions must be at least 0, got {preemptions}")
    if intra_op_threads < 1:
        raise ValueError(f"intra_op_threads must be at least 1, got {intra_op_threads}")
    if intra_op_threads > 1 and level == "ops":
        raise ValueError(f"level ops has no parts of ops, got intra_op_threads={intra_op_threads}")
    session = _OwnSession(build, level=level, intra_op_threads=intra_op_threads)
    try:
        return session.explore(preemptions, limit)
    except BaseException:
        session.close()
        raise


class _OwnSession:
    """A session of one graph, under control."""

    def __init__(
        self, build: Callable[[], Any], *, level: Level, intra_op_threads: int = 1
    ) -> None:
        graph = tf.Graph()
        with graph.as_default():
            self._structure = build()
            effects = _effects(graph)
            initial = tf.compat.v1.global_variables_initializer()
            self._observed = tf.nest.flatten(self._structure)
            for each in self._observed:
                if not isinstance(each, tf.Tensor | tf.Variable):
                    kind = type(each).__name__
                    raise ValueError(f"build returns tensors and variables, not {kind}")
            reads = {
                i: each.read_value()
                for i, each in enumerate(self._observed)
                if isinstance(each, tf.Variable)
            }
        if not self._observed:
            raise ValueError("build returns nothing to observe")
        self._after = list(reads)
        self._during = [i for i in range(len(self._observed)) if i not in reads]
        if not (self._during or effects):
            raise ValueError("build makes no op that runs")
        _refuse_waiting(graph)
        config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, device_count={"GPU": 0})
        config.experimental.executor_type = EXECUTOR_TYPE
        self._steering = Steering([], self._execute, level=level, intra_op_threads=intra_op_threads)
        self._value: tuple[Any, str] = (None, "")
        with self._steering:  # a session is made for the level that is on
            self._session = tf.compat.v1.Session(graph=graph, config=config)
            self._initialize = self._session.make_callable(initial)
            self._initialize()
            before = self._steering.executors_made()
            observed = [self._observed[i] for i in self._during]
            self._run = self._session.make_callable([observed, effects])
            self._read = (
                (lambda: ()) if not reads else self._session.make_callable([*reads.values()])
            )
            self._run()  # makes its executor; some ops take other locks when they first run
            self._executors = self._steering.executors_made() - before

    def _execute(self) -> None:
        self._initialize()
        controller = self._steering.controller
        values: list[Any] = [None] * len(self._observed)
        controller.begin()
        controller.expect(0)
        controller.proceed_when_begun(self._executors)
        error = ""
        try:
            for i, value in zip(self._during, self._run()[0], strict=True):
                values[i] = value
        except tf.errors.OpError as failure:
            error = type(failure).__name__
        finally:
            controller.end()
        if error:
            self._value = None, error
            return
        for i, value in zip(self._after, self._read(), strict=True):
            values[i] = value
        plain = [_plain(np.asarray(value)) for value in values]
        self._value = tf.nest.pack_sequence_as(self._structure, plain), ""

    def explore(self, preemptions: int | None, limit: int) -> Exploration:
        """See the function of that name."""
        search = Exhaustive(preemptions)
        found: dict[Hashable, Seen] = {}
        executions, complete = 0, False
        while executions < limit and not complete:
            executions += 1
            try:
                made, seen = self._once(search)
            except RuntimeError as error:
                raise Diverged(f"in execution {executions}: {error}") from None
            if made:
                key = repr((seen.value, seen.error))
                old = found.get(key, seen)
                count = old.schedules + (key in found)
                found[key] = Seen(old.value, old.error, count, old.schedule)
            complete = not search.next()
        ordered = sorted(found.values(), key=lambda each: -each.schedules)
        return Exploration(tuple(ordered), executions, complete, self)

    def follow(self, schedule: tuple[Decision, ...]) -> Seen:
        """See `Exploration.follow`."""
        controller = self._steering.controller
        forced = Forced([controller.number(_name(each)) for each in schedule])
        followed, seen = self._once(forced)
        left_at = None if followed else [*map(_decision, controller.left_at)]
        must_have_followed(schedule, forced.made, left_at)
        return seen

    def _once(self, chooses: Scheduler) -> tuple[bool, Seen]:
        controller = self._steering.controller
        with self._steering:
            made = controller.run(chooses)
        schedule = tuple(_decision(controller.name(number)) for number in controller.chosen)
        return made, Seen(*self._value, 1, schedule)

    def close(self) -> None:
        """Release the session."""
        self._session.close()


def _effects(graph: tf.Graph) -> list[tf.Operation]:
    """Ops that run whether or not they are observed, as in a `tf.function`: those with an effect.

    Not what only makes a variable, or reads it.
    """
    initial = [each.initializer for each in tf.compat.v1.global_variables()]
    above: set[str] = set()
    while initial:
        op = initial.pop()
        if op.name not in above:
            above.add(op.name)
            initial += [*op.control_inputs, *(tensor.op for tensor in op.inputs)]
    return [
        op
        for op in graph.get_operations()
        if op.op_def.is_stateful and op.type not in _NO_EFFECT and op.name not in above
    ]


def _refuse_waiting(graph: tf.Graph) -> None:
    functions = graph.as_graph_def().library.function
    types = {op.type for op in graph.get_operations()}
    types |= set(chain.from_iterable((n.op for n in f.node_def) for f in functions))
    for each in sorted(types):
        if any(word in each for word in _MAY_WAIT):
            raise Refused(f"{each} in a graph of one's own: it may wait for ever")


def _plain(value: np.ndarray[Any, Any]) -> Any:
    """A number, a string, or nested tuples of these."""
    return _tuples(value.tolist())


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _decision(name: str) -> Decision:
    _, node, instance, point = name.split("|", 3)
    point, _, again = point.partition("|")
    return Decision("", node, instance, point.removesuffix(OF_OTHER), int(again or 0))


def _name(decision: Decision) -> str:
    point = decision.point
    if point not in (BEGIN, AFTER_PARTS) and " of " not in point:
        point += OF_OTHER
    again = f"|{decision.again}" if decision.again else ""
    return f"0|{decision.node}|{decision.instance}|{point}{again}"
