"""Effects of TensorFlow's ops on the resources that they are given.

`litmusfuzz.corpus.ops` defines the ops that a litmus test may have. A program has many more:
here each op has an effect, by its name or by the family that it belongs to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.ops import OPS, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.fuzz.programs.program import ResourceKind


class Access(Enum):
    """Effect on one resource."""

    READ = "read"
    WRITE = "write"
    UPDATE = "update"
    LOCK = "lock"
    UNLOCK = "unlock"

    @property
    def writes(self) -> bool:
        """True if it changes the resource."""
        return self in (Access.WRITE, Access.UPDATE)


@dataclass(frozen=True, slots=True)
class Effect:
    """Effect of an op on each resource that it is given.

    Parameters
    ----------
    access : Access or None
        None for an op that touches no contents.
    group : str
        Updates of one group commute: "add", "mul", "min", "max". "" commutes with nothing.
    split : bool
        True if other accesses may fall between its read and its write (semantics.md, section 3).
    shows : bool
        True if its result tells the contents.
    replaces : bool
        True for an update that writes what it is given, to a part of the contents.
    known : bool
        False for an op of which nothing is known.
    """

    access: Access | None = None
    group: str = ""
    split: bool = False
    shows: bool = False
    known: bool = True
    replaces: bool = False

    @property
    def writes(self) -> bool:
        """True if it changes the contents."""
        return self.access is not None and self.access.writes

    @property
    def puts(self) -> bool:
        """True if it writes what it is given: a value that was read before may be written back."""
        return self.access is Access.WRITE or self.replaces


NONE: Final = Effect()
UNKNOWN: Final = Effect(known=False)
HANDLES: Final[Mapping[str, ResourceKind]] = {
    "VarHandleOp": "variable",
    "VarHandlesOp": "variable",
    "VariableV2": "variable",
    "Variable": "variable",
    "HashTableV2": "table",
    "MutableHashTableV2": "table",
    "MutableHashTableOfTensorsV2": "table",
    "MutableDenseHashTableV2": "table",
    "AnonymousHashTable": "table",
    "AnonymousMutableHashTable": "table",
    "AnonymousMutableHashTableOfTensors": "table",
    "AnonymousMutableDenseHashTable": "table",
    "IteratorV2": "iterator",
    "Iterator": "iterator",
    "OneShotIterator": "iterator",
    "AnonymousIterator": "iterator",
    "AnonymousIteratorV2": "iterator",
    "AnonymousIteratorV3": "iterator",
    "MutexV2": "mutex",
    "FIFOQueueV2": "queue",
    "PaddingFIFOQueueV2": "queue",
    "PriorityQueueV2": "queue",
    "RandomShuffleQueueV2": "queue",
    "FIFOQueue": "queue",
    "ConditionalAccumulator": "queue",
    "ResourceConditionalAccumulator": "queue",
    "Barrier": "queue",
    "StackV2": "other",
    "TensorArrayV3": "other",
    "SummaryWriter": "other",
}
"""Ops that provide a handle, with the kind of the resource."""
REFERENCES: Final = frozenset({"VariableV2", "Variable", "TemporaryVariable"})
"""Ops whose result is a reference: each use of it reads the variable, when it runs."""
PASSING: Final = frozenset(
    {"Identity", "IdentityN", "Enter", "RefEnter", "Exit", "RefExit", "NextIteration"}
    | {"RefNextIteration", "Switch", "RefSwitch", "Merge", "RefMerge", "RefIdentity"}
    | {"StopGradient", "PreventGradient", "RefSelect", "_Arg", "_Retval"}
)
"""Ops whose result is the handle, or the reference, that they are given."""
CALLS: Final = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
CONDITIONALS: Final = frozenset({"If", "StatelessIf", "Case", "StatelessCase"})
LOOPS: Final = frozenset({"While", "StatelessWhile"})

_READ: Final = Effect(Access.READ, shows=True)
_WRITE: Final = Effect(Access.WRITE)
_UPDATE: Final = Effect(Access.UPDATE)
_TAKE: Final = Effect(Access.UPDATE, shows=True)
_BY_NAME: Final = {
    "VariableShape": NONE,
    "ReadVariableXlaSplitND": _READ,
    "AssignVariableXlaConcatND": _WRITE,
    "DestroyResourceOp": _WRITE,
    "ResourceCountUpTo": _TAKE,
    "LookupTableFindV2": _READ,
    "LookupTableFind": _READ,
    "LookupTableSizeV2": _READ,
    "LookupTableExportV2": _READ,
    "LookupTableInsertV2": Effect(Access.UPDATE, replaces=True),
    "LookupTableRemoveV2": _UPDATE,
    "LookupTableImportV2": _WRITE,
    "InitializeTableV2": _WRITE,
    "InitializeTableFromTextFileV2": _WRITE,
    "IteratorGetNext": _TAKE,
    "IteratorGetNextSync": _TAKE,
    "IteratorGetNextAsOptional": _TAKE,
    "MakeIterator": _WRITE,
    "IteratorToStringHandle": NONE,
    "MutexLock": Effect(Access.LOCK),
    "ConsumeMutexLock": NONE,
    # References, of TensorFlow 1.
    "Assign": _WRITE,
    "IsVariableInitialized": _READ,
    "CountUpTo": _TAKE,
    # They touch no variable. `frames` makes a Loop of a loop without accesses.
    "NoOp": NONE,
    "Loop": NONE,
}
_REFERENCE_UPDATES: Final = {
    "AssignAdd": Effect(Access.UPDATE, "add"),
    "AssignSub": Effect(Access.UPDATE, "add"),
}
_FAMILIES: Final = (
    (r"ResourceApplyGradientDescent|ApplyGradientDescent", Effect(Access.UPDATE, "add")),
    (r"ResourceApply\w+|Apply\w+", _UPDATE),
    (r"ResourceSparseApply\w+|SparseApply\w+", Effect(Access.UPDATE, split=True)),
    (r"(Resource)?Scatter(Nd)?(Add|Sub)", Effect(Access.UPDATE, "add", split=True)),
    (r"(Resource)?Scatter(Mul|Div)", Effect(Access.UPDATE, "mul", split=True)),
    (r"(Resource)?Scatter(Nd)?(Min|Max)", Effect(Access.UPDATE, "", split=True)),
    (r"(Resource)?Scatter(Nd)?Update", Effect(Access.UPDATE, split=True)),
    (r"(Resource)?StridedSliceAssign", Effect(Access.UPDATE, split=True)),
    (r"Rng(ReadAnd)?Skip(V2)?|Stateful(Uniform|StandardNormal|Truncated|Random)\w*", _TAKE),
    (r"Queue\w+|Barrier\w+|(Resource)?Accumulator\w+|Stack(Push|Pop|Close)V2|TensorArray\w+", NONE),
)
_HARMLESS: Final = re.compile(
    r"(Random|Multinomial|ParameterizedTruncated|TruncatedNormal|Stateless|RecordInput|Timestamp)\w*"
    r"|Print(V2)?|Assert|Timestamp|\w*Summar\w*|StringFormat|Save(V2|Slices)?|Restore(V2|Slice)?"
    r"|MergeV2Checkpoints|WriteFile|ReadFile|\w*Dataset(V[0-9])?|Collective\w+|_?Send|_?Recv"
    r"|Placeholder\w*|_Arg|_Retval|\w+Generator|Stage|Unstage|Map(Un)?[Ss]tage|Skipgram|Where"
    r"|DebugIdentity\w*|CheckNumerics\w*|Optional\w+|Nccl\w+|GlobalShuffle\w*|\w+Sampler"
    r"|FakeParam|XlaSharding|ConfigureAndInitializeGlobalTPU|DeleteIterator|AnonymousMemoryCache"
    r"|DeleteMemoryCache|AnonymousSeedGenerator|DeleteSeedGenerator|DummySeedGenerator|Empty\w*"
)
"""Stateful by TensorFlow's registry, and yet they touch no resource that is given to others."""
OUTSIDE: Final = re.compile(
    r"Print(V2)?|Assert|\w*Summar\w*|Save(V2|Slices)?|WriteFile|\w*Dataset(V[0-9])?|Queue\w+"
    r"|PyFunc|EagerPyFunc|_?Send|Collective\w+|(Map)?Stage|Barrier\w+|(Resource)?Accumulator\w+"
)
"""Ops that show the values that they are given to somebody outside of the graph."""


def _of_table(name: str) -> Effect | None:
    """Effect of an op that litmus tests have."""
    row = OPS.get(name)
    if row is None or row.kind is Kind.QUEUE:
        return None
    if row.kind.only_reads:
        return _READ
    if row.kind is Kind.WRITE:
        return _WRITE
    if row.kind is Kind.UPDATE:
        group = ""
        if name.endswith(("Add", "Sub", "AddVariableOp", "SubVariableOp", "GradientDescent")):
            group = "add"
        elif name.endswith("Mul"):
            group = "mul"
        elif name.endswith(("Min", "Max")):
            group = name[-3:].lower()
        return Effect(Access.UPDATE, group, split=not row.dense)
    return NONE


@lru_cache(1 << 12)
def effect_of(name: str, *, stateful: bool | None, given: bool) -> Effect:
    """Effect of an op on the resources that it is given.

    Parameters
    ----------
    name : str
        TensorFlow's name of the op.
    stateful : bool or None
        As TensorFlow's registry says; None if the op is not in it.
    given : bool
        True if some resource is given to it.
    """
    found = _BY_NAME.get(name) or _REFERENCE_UPDATES.get(name) or _of_table(name)
    if found is not None:
        return found
    if name in HANDLES or name in PASSING:
        return NONE
    for pattern, effect in _FAMILIES:
        if re.fullmatch(pattern, name):
            return effect
    # A dataset's functions use what they are given whenever somebody takes an element.
    harmless = stateful and _HARMLESS.fullmatch(name) and not (given and "Dataset" in name)
    if harmless or (stateful is False and not given):
        return NONE
    return UNKNOWN
