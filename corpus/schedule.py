"""A schedule by names: the events of an execution under control, in their order.

An *event* is a point that an op instance passes: it begins, takes a lock, or touches a variable's
tensor. What one op instance does between two of its events is a *step*. Between two of them another
op may go on: a *switch* inside the op. Without switches a schedule is an order of whole ops.

An op with threads inside may give away *parts* of its work. They have events of their own, and the
op waits for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest

BEGIN: Final = "begin"
"""The first point of each op instance, and of each part of one."""
AFTER_PARTS: Final = "after parts"
"""Where an op goes on after all parts that it has given away, for which it has waited."""
_PART: Final = "part "
KERNELS: Final[Mapping[str, str]] = MappingProxyType(
    {
        ".compile": "_XlaCompile",
        ".run": "_XlaRun",
        ".compiled": "the compiler",
        ".ops": "",
        ".launch": "XlaLaunch",
    }
)
"""Kernels of a cluster in TensorFlow, by what the node of such an event begins with.

`_XlaCompile` takes a snapshot of the cluster's variables, `_XlaRun` computes with that and writes
them. Where XLA compiles in the background, it is an event that it is done; until then the ops of
the cluster run one by one. `XlaLaunch` computes a function with `jit_compile` at once."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One choice of a schedule: the event that comes next, by name.

    Parameters
    ----------
    run : str
        Name of the run; "" in a test of one run.
    node : str
        Name of the node. Inside a function or section, what is around it comes first: ``f/r0``.
        A cluster is named by a member: ``.compile/r0`` and ``.run/r0`` are two of its `KERNELS`.
        A part of an op comes behind it: ``r0/part 1``, and ``r0/part 1/part 2`` is the second that
        this part has given away.
    instance : str
        Frame and iteration of a loop that the instance is in; "" outside of loops.
    point : str
        `BEGIN`, or what the op does inside: ``lock of X``, ``shared lock of X``; ``lock`` alone is
        one that belongs to no resource of the test; ``read of page 0 of X``, ``write of page 0 of
        X``; ``read at element 0 of X``, of an instruction that may read more than this one;
        ``after unlock of X``, where it goes on without the lock; `AFTER_PARTS`.
    again : int
        How often the instance has passed the point before.
    """

    run: str
    node: str
    instance: str = ""
    point: str = BEGIN
    again: int = 0

    @property
    def op(self) -> tuple[str, str, str]:
        """What identifies its op instance, or the part of one."""
        return self.run, self.node, self.instance

    def __str__(self) -> str:
        # A frame's number is a digest of its name.
        place = f"[{self.instance.rpartition('.')[2]}]" if self.instance else ""
        run = f"{self.run}." if self.run else ""
        point = "" if self.point == BEGIN else f"/{self.point}"
        return f"{run}{self.node}{place}{point}{f' ({self.again + 1})' if self.again else ''}"


def switches(events: Sequence[Decision]) -> tuple[int, ...]:
    """Positions of the events after which another op goes on, though their op is not over.

    The first one of a schedule is a preemption: until then no op holds a lock that another one
    waits for. An op that waits for its parts cannot go on.
    """
    found = []
    back: dict[tuple[str, str, str], Decision] = {}
    for position in reversed(range(len(events))):
        event = events[position]
        if event.op in back and back[event.op].point != AFTER_PARTS:
            found.append(position)
        back[event.op] = event
    return tuple(each for each in reversed(found) if events[each + 1].op != events[each].op)


def node_of(test: LitmusTest, event: Decision) -> str:
    """The node of the test that an event belongs to, the innermost one; "" if there is none.

    An op that an optimizer has added has the name of the node for which it did at its end.
    """
    names = {node.name for node in test.nodes}
    parts = event.node.split("/")
    if is_added(event.node):
        ends = [name for name in names if parts[-1].endswith(f"_{name}")]
        return max(ends, key=len, default="")
    return next((part for part in reversed(parts) if part in names), "")


def is_added(path: str) -> bool:
    """True for the name of an op that one of Grappler's optimizers has added."""
    return path.partition("/")[0].endswith("Optimizer")


def part_of(event: Decision) -> str:
    """The part of an op that an event belongs to, such as ``part 1`` or ``part 1.2``; or ""."""
    parts = [each for each in event.node.split("/") if is_part(each)]
    return _PART + ".".join(each.removeprefix(_PART) for each in parts) if parts else ""


def is_part(name: str) -> bool:
    """True if a name in the path of a node is that of a part of the op before it."""
    return name.startswith(_PART)


def kernel_of(event: Decision) -> str:
    """The kernel of a cluster that an event belongs to; "" if it belongs to an op's."""
    return KERNELS.get(event.node.partition("/")[0], "")


def need(test: LitmusTest, events: Sequence[Decision]) -> str:
    """What an outcome with this schedule needs, in a line; the schedule has the fewest switches."""
    if not (found := switches(events)):
        return "needs no switch: ops in this order"
    position = found[0]
    event = events[position]
    back = next(each for each in events[position + 1 :] if each.op == event.op)
    op = next((n.op for n in test.nodes if n.name == node_of(test, event)), event.node)
    op = kernel_of(event) or op
    if part := part_of(event):
        op = f"{part} of {op}"
    return f"needs {_number(len(found))} inside {op}, {_between(event.point, back.point)}"


def _number(count: int) -> str:
    return "a switch" if count == 1 else f"{count} switches, the first"


def _between(first: str, second: str) -> str:
    kinds = [_kind(point) for point in (first, second)]
    if kinds[0] == kinds[1]:
        return f"between two {kinds[0]}{'es' if kinds[0].endswith('h') else 's'}"
    articles = {_BEGINNING: "its", _PARTS: "the", "unlock": "an"}
    articled = [f"{articles.get(each, 'a')} {each}" for each in kinds]
    return f"between {' and '.join(articled)}"


_BEGINNING: Final = "beginning"
_PARTS: Final = "end of its parts"


def _kind(point: str) -> str:
    """``lock``, ``unlock``, ``page`` or ``touch``, whatever it is of and however it is taken."""
    if point in (BEGIN, AFTER_PARTS):
        return _BEGINNING if point == BEGIN else _PARTS
    kind = point.rpartition(" of ")[0] or point
    words = {"unlock": "unlock", "lock": "lock", "page": "page", "element": "touch"}
    return next((word for part, word in words.items() if part in kind), "point")
