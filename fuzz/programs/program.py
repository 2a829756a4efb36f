"""A program as data: operations, functions, and the runs that a client may start.

`tensorflow.reading` and `tensorflow.modules` make it; `expansion` expands its runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Output = tuple[str, int]
"""The name of an operation or of an argument, and the number of one of its outputs."""
ResourceKind = Literal["variable", "table", "iterator", "mutex", "queue", "other", "anything"]
"""Kind of a resource; "anything" is that of `expansion.ANYTHING`, which stands for all of them."""


class ProgramError(ValueError):
    """A program that cannot be read or checked, or options that do not fit it.

    The message is one line.
    """


@dataclass(frozen=True, slots=True)
class Location:
    """A line of the user's source."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Operation:
    """A node of a graph or function.

    Parameters
    ----------
    name : str
    op : str
        TensorFlow's name of the op.
    inputs : tuple of Output
        Data inputs, in the order of the node's.
    after : tuple of str
        Operations with a control edge to this one.
    bodies : tuple of str
        Functions that it calls: a conditional's branches, or a loop's condition and body.
    shared_name : str
        Name under which runs share the resource that it makes; "" for the operation's own name.
    stateful : bool or None
        As TensorFlow's registry says; None if the op is not in it.
    value_digest : bytes
        Of a Const: digest of its type and value. Of others empty.
    frame : str
        Of an Enter: name of the frame, a loop of TensorFlow 1, that it leads into.
    parallel_iterations : int
        Of an Enter: iterations of the loop that may run at once, TensorFlow's default if the
        node does not say.
    compiled : bool
        True if XLA compiles the function that it calls.
    dtype : str
        Of an operation that makes a variable: TensorFlow's name; "" if it is not known.
    shape : tuple of int, optional
        Of such an operation; None if it is not known.
    """

    name: str
    op: str
    inputs: tuple[Output, ...] = ()
    after: tuple[str, ...] = ()
    bodies: tuple[str, ...] = ()
    shared_name: str = ""
    stateful: bool | None = False
    value_digest: bytes = b""
    frame: str = ""
    parallel_iterations: int = 10
    compiled: bool = False
    dtype: str = ""
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Function:
    """A graph with arguments and results; the main graph of a file has neither.

    Parameters
    ----------
    name : str
        "" for the main graph.
    operations : tuple of Operation
        In any order.
    arguments : tuple of str
    results : tuple of Output
        What the function returns.
    automatic : bool
        True if `tf.function` traced it, which adds automatic control dependencies.
    compiled : bool
        True if XLA compiles it.
    """

    name: str
    operations: tuple[Operation, ...]
    arguments: tuple[str, ...] = ()
    results: tuple[Output, ...] = ()
    automatic: bool = False
    compiled: bool = False


@dataclass(frozen=True, slots=True)
class Resource:
    """What ops access through a handle: a variable, or another object that keeps state.

    Parameters
    ----------
    name : str
    kind : ResourceKind
    local : bool
        True if every run makes its own; others outlive a run, and runs share them.
    dtype : str
        Of a variable: TensorFlow's name; "" if it is not known.
    shape : tuple of int, optional
        Of a variable; None if it is not known.
    """

    name: str
    kind: ResourceKind = "variable"
    local: bool = False
    dtype: str = ""
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A run that a client may start.

    Parameters
    ----------
    name : str
    function : str
        The function, or "" for the main graph.
    fetches : tuple of str
        Operations of the main graph that the client fetches. Empty for a function: all its
        results are computed.
    resources : mapping of str to Resource
        By argument of the function that is a handle: its resource.
    """

    name: str
    function: str = ""
    fetches: tuple[str, ...] = ()
    resources: Mapping[str, Resource] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Program:
    """Operations, functions, and the client's runs.

    Parameters
    ----------
    name : str
        What messages call it: its file or target.
    graph : Function
        The main graph; without operations if all runs are functions.
    functions : mapping of str to Function
        By name, those that operations and entries refer to.
    entries : tuple of Entry
    sources : mapping of (str, str) to Location
        Where the user wrote an operation, by (function, operation); "" is the main graph.
    concurrent : tuple of (str, str)
        Pairs of entries that may run at the same time, unless the user names pairs.
    notes : tuple of str
        For the user: that a module was imported, and the like.
    """

    name: str
    graph: Function
    functions: Mapping[str, Function]
    entries: tuple[Entry, ...]
    sources: Mapping[tuple[str, str], Location] = field(default_factory=dict)
    concurrent: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
