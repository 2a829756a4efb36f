"""The litmus test as a value: resources, graphs, the client's runs, and what is observed.

Other packages import from here. `resources`, `client`, `graph` and `test` are frozen data;
`names` has the rule for names, and makes new ones; `validation` has the rules that a test
obeys, checked when it is made; `order` has program order; `reordering` has other orders of the
unordered parts; `outputs` has the nodes that are results of one op; `traversal` has the one fold
and the one map over nodes, bodies included.
"""

from litmusfuzz.corpus.model.client import Run, listed
from litmusfuzz.corpus.model.done import done_before
from litmusfuzz.corpus.model.graph import (
    Body,
    BranchAttrs,
    CallAttrs,
    Cluster,
    Graph,
    LoopAttrs,
    NestAttrs,
    Node,
    bodies,
    captures_of,
    clusters_of,
)
from litmusfuzz.corpus.model.names import CONTROL, FreshNames, Naming, after_dot, check_name, head
from litmusfuzz.corpus.model.order import (
    Step,
    enclosing,
    nested_pairs,
    nesting,
    predecessors,
    pruned,
    steps,
    steps_before,
    topological_order,
)
from litmusfuzz.corpus.model.outputs import first_results
from litmusfuzz.corpus.model.reordering import Reordering
from litmusfuzz.corpus.model.resources import Accumulator, Mutex, Queue, Resource, Variable
from litmusfuzz.corpus.model.test import FEATURES, LitmusTest
from litmusfuzz.corpus.model.traversal import (
    Level,
    all_nodes,
    handles_of,
    levels,
    map_bodies,
    map_levels,
    map_nodes,
    redirected,
    renamed,
)
from litmusfuzz.corpus.model.validation import (
    MAX_CAPACITY,
    MAX_ITERATIONS,
    MAX_NESTING,
    MAX_NODES,
    MAX_VARIABLES,
    check_clusterable,
    loop_bound,
)
from litmusfuzz.corpus.ops import Kind, MalformedTest, TensorType

__all__ = [
    "CONTROL",
    "FEATURES",
    "MAX_CAPACITY",
    "MAX_ITERATIONS",
    "MAX_NESTING",
    "MAX_NODES",
    "MAX_VARIABLES",
    "Accumulator",
    "Body",
    "BranchAttrs",
    "CallAttrs",
    "Cluster",
    "FreshNames",
    "Graph",
    "Kind",
    "Level",
    "LitmusTest",
    "LoopAttrs",
    "MalformedTest",
    "Mutex",
    "Naming",
    "NestAttrs",
    "Node",
    "Queue",
    "Reordering",
    "Resource",
    "Run",
    "Step",
    "TensorType",
    "Variable",
    "after_dot",
    "all_nodes",
    "bodies",
    "captures_of",
    "check_clusterable",
    "check_name",
    "clusters_of",
    "done_before",
    "enclosing",
    "first_results",
    "handles_of",
    "head",
    "levels",
    "listed",
    "loop_bound",
    "map_bodies",
    "map_levels",
    "map_nodes",
    "nested_pairs",
    "nesting",
    "predecessors",
    "pruned",
    "redirected",
    "renamed",
    "steps",
    "steps_before",
    "topological_order",
]
