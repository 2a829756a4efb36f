"""Litmus tests inside an OpenCL device: each chain of ops is a work-item.

The work-items of many instances of a test race on global memory, in one kernel or in two kernels
on two queues. Reads and writes are atomic loads and stores with a memory order; AssignAdd and
AssignSub are atomic additions. With the order ``seq_cst`` OpenCL guarantees what the model
`executor` says: one total order that keeps each chain. So it does with ``fences`` between relaxed
accesses, if there are two work-items. With weaker orders, and with fences between more
work-items, it guarantees less: outcomes are counted, and none is a violation.

References
----------
The OpenCL C specification 3.0, section 6.15.12, "Atomic Functions". Batty, Donaldson, Wickerson,
"Overhauling SC atomics in C11 and OpenCL", POPL 2016. Levine, Guo, Cho, Baker, Levien, Neto, Quinn,
Sorensen, "MC Mutants", ASPLOS 2023 (GPUHarbor): many instances in one launch, shuffled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.ops import ConstAttrs, TensorType
from litmusfuzz.corpus.outcome import Outcome, Status
from litmusfuzz.fuzz.executors.native import _executor
from litmusfuzz.fuzz.executors.native.accelerators import library, refuse_beside_tensorflow
from litmusfuzz.fuzz.executors.protocol import Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.fuzz.executors.protocol import Histogram

ORDERS: Final = ("seq_cst", "fences", "acq_rel", "relaxed")
"""Memory orders of accesses: sequentially consistent, relaxed with sequentially consistent fences
between them, acquire and release, relaxed."""
INSTANCES: Final = 4096
"""Instances of a test in one launch."""
MAX_ITEMS: Final = 8
_SCALAR: Final = TensorType("int32", ())
_PURE: Final = {
    "Identity": "{0}",
    "Neg": "-({0})",
    "AddV2": "{0} + {1}",
    "Sub": "{0} - {1}",
    "Mul": "{0} * {1}",
    "Maximum": "max({0}, {1})",
    "Minimum": "min({0}, {1})",
}
_ACCESSES: Final = ("ReadVariableOp", "AssignVariableOp")
_UPDATES: Final = {"AssignAddVariableOp": "add", "AssignSubVariableOp": "sub"}
_HEAD: Final = """\
#define AT(v, i) &variables[((v) * n + (i)) * 16]
#define SEEN(o, i) seen[(o) * n + (i)]
#define DEVICE memory_scope_device

// The first work-items of all chains wait for each other, for some 50 us at most: they may have
// one processor.
void meet(global atomic_int* arrived) {{
  atomic_fetch_add_explicit(arrived, 1, memory_order_relaxed, DEVICE);
  for (uint tries = 0; tries < 1 << 17; ++tries) {{
    if (atomic_load_explicit(arrived, memory_order_relaxed, DEVICE) >= {chains}) return;
  }}
}}
#define MEET meet(AT({variables}, 0))
"""
_FENCE: Final = (
    "atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_seq_cst, memory_scope_device);"
)


@dataclass(frozen=True, slots=True)
class WorkItems:
    """A test as kernels of OpenCL C.

    Parameters
    ----------
    test : LitmusTest
    source : str
    items : tuple of int
        Work-items of each kernel.
    guaranteed : bool
        True if OpenCL guarantees what the model `executor` says.
    """

    test: LitmusTest
    source: str
    items: tuple[int, ...]
    guaranteed: bool

    def request(self, count: int, seed: int, number: int = 0) -> dict[str, Any]:
        """Arguments of `race` for at least `count` executions on ``opencl:number``."""
        return {
            "source": self.source,
            "items": list(self.items),
            "initial": [int(self.test.initial(each)[0]) for each in self.test.variables],
            "observed": len(self.test.observe),
            "count": count,
            "seed": seed,
            "number": number,
        }

    def histogram(self, rows: Iterable[tuple[Sequence[int], int]]) -> Histogram:
        """What `race` returned, as outcomes of the test."""
        names = (*self.test.observe, *(each.name for each in self.test.variables))
        return {
            Outcome.of(
                self.test,
                {name: (value,) for name, value in zip(names, row, strict=True)},
                Status.COMPLETED,
            ): times
            for row, times in rows
        }


def race(
    *,
    source: str,
    items: Sequence[int],
    initial: Sequence[int],
    observed: int,
    count: int,
    seed: int,
    number: int,
) -> list[tuple[list[int], int]]:
    """Race work-items in this process; `count` is rounded up to a launch.

    Returns
    -------
    list of tuple
        Observed values, then final values of variables; and the number of executions that showed
        them.

    Raises
    ------
    Unavailable
        With one line, if the device is missing or has no such atomics.
    """
    path = library("opencl")
    if path is None:
        raise Unavailable("no OpenCL headers when this was built")
    try:
        refuse_beside_tensorflow()
        return _executor.plugin_race(
            path,
            source=source,
            items=items,
            initial=initial,
            observed=observed,
            instances=min(count, INSTANCES),
            count=count,
            seed=seed,
            number=number,
        )
    except RuntimeError as error:
        raise Unavailable(" ".join(str(error).split())) from None


def work_items(test: LitmusTest, order: str, kernels: int) -> WorkItems:
    """Translate a test.

    Parameters
    ----------
    test : LitmusTest
        One run of one graph of int32 scalars, in chains that exchange nothing.
    order : str
        One of `ORDERS`.
    kernels : int
        1 or 2: chains take turns.

    Raises
    ------
    Refused
        Naming what the test has and work-items cannot do.
    """
    chains = _chains(test)
    if kernels > len(chains):
        raise Refused("two kernels for one chain")
    made = [_Writer(test, order).chain(chain) for chain in chains]
    parts = [made[number::kernels] for number in range(kernels)]
    head = _HEAD.format(variables=len(test.variables), chains=len(chains))
    source = head + "".join(_kernel(number, part) for number, part in enumerate(parts))
    guaranteed = order == "seq_cst" or (order == "fences" and len(chains) < 3)
    return WorkItems(test, source, tuple(map(len, parts)), guaranteed)


def _kernel(number: int, chains: Sequence[str]) -> str:
    """A kernel in which groups of work-items on different instances take the chains in turns.

    Instances are shifted against each other at random, and so is the chain that comes first.
    """
    cases = "".join(
        f"    case {k}: {{\n{chain}      return;\n    }}\n" for k, chain in enumerate(chains)
    )
    return f"""
kernel void race_{number}(global atomic_int* variables, global int* seen, uint n, uint seed) {{
  const uint item = get_global_id(0), chain = (item / n + seed) % {len(chains)};
  const uint shift = (seed >> 4 * chain) % 61;
  const uint i = (item + shift) % n;
  if (item % n == 0) MEET;
  switch (chain) {{
{cases}  }}
}}
"""


def _chains(test: LitmusTest) -> list[list[Node]]:
    """The nodes of each chain, in its order; constants are left out.

    Raises
    ------
    Refused
        If they are not chains, or have what work-items cannot do.
    """
    if len(test.runs) != 1 or len(test.graphs) != 1 or test.runs[0].fetches or test.runs[0].targets:
        raise Refused("anything but one run of one whole graph")
    if test.queues or test.mutexes or test.clusters:
        raise Refused("queues, mutexes or clusters")
    for variable in test.variables:
        if variable.type != _SCALAR:
            raise Refused(f"variable {variable.name} of {variable.type}; only int32 scalars")
        if variable.init is None:
            raise Refused(f"variable {variable.name} without an initial value")
    chain_of: dict[str, int] = {}
    chains: list[list[Node]] = []
    for node in test.graphs[0].nodes:  # each after those that it needs
        if node.op != "Const" and node.op not in (*_PURE, *_UPDATES, *_ACCESSES):
            raise Refused(f"op {node.op}")
        if (made := test.types[node.name]) not in (None, _SCALAR):
            raise Refused(f"node {node.name} of {made}; only int32 scalars")
        before = [name for name in node.sources if name in chain_of]
        if node.op == "Const" and not before:
            continue
        if len({chain_of[name] for name in before}) > 1:
            raise Refused(f"node {node.name}, which joins two chains")
        number = chain_of[before[0]] if before else len(chains)
        if not before:
            chains.append([])
        last = next((n for n in reversed(chains[number]) if n.definition.has_effect), None)
        needed = _needed(chains[number], before)
        if node.definition.has_effect and last is not None and last.name not in needed:
            raise Refused(f"nodes {last.name} and {node.name}, unordered in one chain")
        if node.op != "Const":
            chains[number].append(node)
        chain_of[node.name] = number
    if len(chains) > MAX_ITEMS:
        raise Refused(f"{len(chains)} chains; at most {MAX_ITEMS}")
    return chains


def _needed(chain: Sequence[Node], names: Sequence[str]) -> set[str]:
    """Those nodes of a chain, and all that they wait for."""
    needed = set(names)
    for node in reversed(chain):
        if node.name in needed:
            needed.update((*node.inputs, *node.after))
    return needed


class _Writer:
    """Writes chains as statements of OpenCL C."""

    def __init__(self, test: LitmusTest, order: str) -> None:
        self.numbers = {variable.name: number for number, variable in enumerate(test.variables)}
        self.seen = {name: number for number, name in enumerate(test.observe)}
        self.constants = {
            node.name: str(test.constant(node)[0])
            for node in test.graphs[0].nodes
            if isinstance(node.attrs, ConstAttrs)
        }
        self.fences = order == "fences"
        weakest = "relaxed" if self.fences else order
        load, store = ("acquire", "release") if order == "acq_rel" else (weakest, weakest)
        self.orders = {"load": load, "store": store, "fetch": weakest}

    def chain(self, nodes: Sequence[Node]) -> str:
        """The statements of a chain."""
        lines: list[str] = []
        accessed = False
        for node in nodes:
            if node.definition.has_effect:
                if accessed and self.fences:
                    lines.append(_FENCE)
                accessed = True
            lines.append(self.statement(node))
        seen = (n.name for n in nodes if n.name in self.seen)
        lines += (f"SEEN({self.seen[name]}, i) = {_local(name)};" for name in seen)
        return "".join(f"      {line}\n" for line in lines)

    def statement(self, node: Node) -> str:
        values = [self.constants.get(name) or _local(name) for name in node.inputs]
        if node.op in _PURE:
            return f"const int {_local(node.name)} = {_PURE[node.op].format(*values)};"
        at = f"AT({self.numbers[node.resources[0]]}, i)"
        if node.op == "ReadVariableOp":
            return f"const int {_local(node.name)} = {self.call('load', 'load', at)};"
        if node.op == "AssignVariableOp":
            return f"{self.call('store', 'store', at, values[0])};"
        return f"{self.call('fetch', f'fetch_{_UPDATES[node.op]}', at, values[0])};"

    def call(self, sort: str, name: str, *arguments: str) -> str:
        order = f"memory_order_{self.orders[sort]}"
        return f"atomic_{name}_explicit({', '.join(arguments)}, {order}, DEVICE)"


def _local(name: str) -> str:
    """The variable of a kernel that holds a node's value."""
    return f"v_{name}"
