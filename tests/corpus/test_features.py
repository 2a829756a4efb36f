"""Runs, sections, queues, bodies: each rule of the format, with its line and field."""

from __future__ import annotations

import pytest

from litmusfuzz.corpus.textfile import FileError, dumps, loads

BASE = """\
litmusfuzz: 2
name: base
variables:
  X: {dtype: int32, shape: [], init: 0}
mutexes:
  M: {}
queues:
  Q: {dtype: int32, shape: [], capacity: 2, init: [5]}
graphs:
  work:
    zero: {op: Const, dtype: int32, shape: [], value: 0}
    two: {op: Const, dtype: int32, shape: [], value: 2}
    one: {op: Const, dtype: int32, shape: [], value: 1}
    pair: {op: Const, dtype: int32, shape: [2], value: [3, 4]}
    r0: {op: ReadVariableOp, resources: [X]}
    w0: {op: AssignVariableOp, resources: [X], inputs: [one], after: [r0]}
    sec: {op: CriticalSection, resources: [M], members: [r0, w0]}
    put: {op: QueueEnqueueV2, resources: [Q], inputs: [one], after: [sec]}
    many: {op: QueueDequeueManyV2, resources: [Q], count: 2}
    loop:
      op: While
      inputs: [zero, one]
      after: [put]
      carried: [i, sum]
      captures: {limit: two, step: one}
      parallel_iterations: 3
      condition:
        nodes:
          more: {op: Less, inputs: [i, limit]}
        results: [more]
      body:
        nodes:
          next: {op: AddV2, inputs: [i, step]}
          more_sum: {op: AddV2, inputs: [sum, i]}
        results: [next, more_sum]
    high: {op: Less, inputs: [one, loop.sum]}
    pick:
      op: If
      inputs: [high]
      captures: {value: one}
      results: [out]
      then:
        nodes:
          store: {op: AssignVariableOp, resources: [X], inputs: [value]}
        results: [value]
      else:
        nodes:
          minus: {op: Neg, inputs: [value]}
        results: [minus]
  look:
    r1: {op: ReadVariableOp, resources: [X]}
client:
  a: {graph: work}
  b: {graph: look, after: [a]}
observe: [a.many, a.loop.sum, a.pick.out, b.r1]
"""


def test_the_base_loads_and_is_byte_stable() -> None:
    entry = loads(BASE)
    assert dumps(entry) == BASE
    assert entry.test.features == {
        *("several runs", "critical sections", "queues", "loops", "conditionals"),
    }
    assert entry.test.bounds == {"loop": 2}


@pytest.mark.parametrize(
    ("old", "new", "line", "fields", "message"),
    [
        ("  M: {}", "  X: {}", 6, "mutexes.X", "stands twice"),
        ("  M: {}", "  M: {fair: true}", 6, "mutexes.M.fair", "unknown field"),
        ("capacity: 2", "capacity: 0", 8, "queues.Q.capacity", "must be 1 to 1024, got 0"),
        ("init: [5]", "init: [5, 6, 7]", 8, "queues.Q.init", "3 elements, capacity 2"),
        ("init: [5]", "init: [99999999]", 8, "queues.Q.init", "below 2**24"),
        ("[M], members", "[N], members", 17, "graphs.work.sec.resources.0", "no mutex 'N'"),
        ("[M], members", "[X], members", 17, "graphs.work.sec.resources.0", "no mutex 'X'"),
        ("members: [r0, w0]", "members: []", 17, "graphs.work.sec.members", "at least one"),
        ("members: [r0, w0]", "members: [r0, r0]", 17, "graphs.work.sec.members.1", "twice"),
        ("members: [r0, w0]", "members: [r9]", 17, "graphs.work.sec.members.0", "no node 'r9'"),
        (
            "    put:",
            "    sec2: {op: CriticalSection, resources: [M], members: [w0, two]}\n    put:",
            18,
            "graphs.work.sec2.members",
            "overlaps 'sec', and neither lies inside the other",
        ),
        (
            "    put:",
            "    s2: {op: CriticalSection, resources: [M], after: [sec], members: [r0]}\n    put:",
            18,
            "graphs.work.s",
            "cycle through a section",
        ),
        ("[Q], inputs: [one]", "[X], inputs: [one]", 18, "graphs.work.put.resources.0", "no queue"),
        ("[Q], inputs: [one]", "[Q], inputs: [pair]", 18, "graphs.work.put.inputs.0", "int32[]"),
        ("count: 2", "count: 0", 19, "graphs.work.many.count", "must be 1 to 1024, got 0"),
        ("carried: [i, sum]", "carried: [i]", 22, "graphs.work.loop.inputs", "2 inputs for 1"),
        ("carried: [i, sum]", "carried: [i, X]", 24, "graphs.work.loop.carried.1", "a resource"),
        ("carried: [i, sum]", "carried: [i, one]", 24, "graphs.work.loop.carried.1", "twice"),
        ("limit: two", "limit: r9", 25, "graphs.work.loop.captures.limit", "no value 'r9' above"),
        ("iterations: 3", "iterations: 0", 26, "graphs.work.loop.parallel_iterations", "1 to 64"),
        ("results: [more]", "results: [i]", 30, "graphs.work.loop.condition.results.0", "one bool"),
        (
            "results: [next, more_sum]",
            "results: [next]",
            35,
            "graphs.work.loop.body.results",
            "must",
        ),
        ("inputs: [i, step]", "inputs: [i, sum]", 20, "graphs.work.loop", "must be a counter"),
        ("inputs: [zero, one]\n", "inputs: [r0, one]\n", 20, "graphs.work.loop", "a counter"),
        ("value: 2}", "value: 99}", 20, "graphs.work.loop", "more than 64 iterations: 99"),
        (
            "inputs: [sum, i]",
            "inputs: [sum, one]",
            34,
            "graphs.work.loop.body.nodes.more_sum",
            "'one'",
        ),
        (
            "inputs: [one, loop.sum]",
            "inputs: [one, loop.total]",
            36,
            "graphs.work.high",
            "loop.total",
        ),
        ("inputs: [high]", "inputs: [r0]", 39, "graphs.work.pick.inputs.0", "a predicate is one"),
        ("results: [out]", "results: []", 41, "graphs.work.pick.results", "at least one result"),
        ("results: [minus]", "results: []", 49, "graphs.work.pick.else.results", "0 values, not 1"),
        ("          minus:", "          store:", 48, "graphs.work.pick.else.nodes.store", "twice"),
        ("    r1: {", "    r0: {", 51, "graphs.look.r0", "another graph"),
        ("graph: look", "graph: lock", 54, "client.b.graph", "no graph 'lock'"),
        ("after: [a]}", "after: [c]}", 54, "client.b.after.0", "no run 'c' above"),
        ("a.many, ", "many, ", 55, "observe.0", "run.node, with several runs"),
        ("a.pick.out", "a.pick", 55, "observe.2", "has no result"),
        ("a.pick.out", "a.minus", 55, "observe.2", "is no node"),
    ],
)
def test_an_edit_is_refused_with_its_line_and_field(
    old: str, new: str, line: int, fields: str, message: str
) -> None:
    assert BASE.count(old) >= 1
    with pytest.raises(FileError) as caught:
        loads(BASE.replace(old, new, 1), "f.yaml")
    error = caught.value
    assert error.line == line
    assert ".".join(map(str, error.fields)).startswith(fields)
    assert message in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  look:\n", "  look:\n    shut: {op: QueueCloseV2, resources: [Q]}\n", ""),
        (
            "    put:",
            "    shut: {op: QueueCloseV2, resources: [Q]}\n    put:",
            "'put' is not ordered",
        ),
        ("    many:", "    shut: {op: QueueCloseV2, resources: [Q], after: [put]}\n    many:", ""),
        (
            "          store:",
            "          shut: {op: QueueCloseV2, resources: [Q]}\n          store:",
            "closed outside bodies",
        ),
        (
            "    many:",
            "    s1: {op: QueueCloseV2, resources: [Q], after: [put]}\n"
            "    s2: {op: QueueCloseV2, resources: [Q], after: [put]}\n    many:",
            "closed once",
        ),
    ],
)
def test_every_enqueue_comes_before_the_close(old: str, new: str, message: str) -> None:
    """semantics.md, 3, "Not specified"."""
    text = BASE.replace(old, new, 1)
    if message:
        with pytest.raises(FileError, match=message):
            loads(text)
    else:
        assert loads(text)


ENQUEUE_INSIDE = """\
litmusfuzz: 2
name: inside
queues:
  Q: {dtype: int32, shape: [], capacity: 2, init: []}
graphs:
  main:
    c: {op: Const, dtype: int32, shape: [], value: 1}
    yes: {op: Const, dtype: bool, shape: [], value: 1}
    node:
HEAD
BODY
    shut: {op: QueueCloseV2, resources: [Q], after: [node]}
"""
IF = """\
      op: If
      inputs: [yes]
      captures: {a: c}
      results: [y]
      else: {results: [a]}
      then:
"""
WHILE = """\
      op: While
      inputs: [c]
      carried: [i]
      captures: {a: c}
      condition:
        nodes:
          limit: {op: Const, dtype: int32, shape: [], value: 3}
          more: {op: Less, inputs: [i, limit]}
        results: [more]
      body:
"""
CALL = """\
      op: Call
      captures: {a: c}
      results: [y]
      body:
"""
PUT = """\
        nodes:
          put: {op: QueueEnqueueV2, resources: [Q], inputs: [a]}
          next: {op: AddV2, inputs: [a, a]EDGE}
        results: [next]"""
IN_A_CALL = """\
        nodes:
          inner:
            op: Call
            captures: {b: a}
            body:
              nodes:
                put: {op: QueueEnqueueV2, resources: [Q], inputs: [b]}
              results: []
          next: {op: AddV2, inputs: [a, a]EDGE}
        results: [next]"""


@pytest.mark.parametrize("body", [PUT, IN_A_CALL], ids=["enqueue", "enqueue in a call"])
@pytest.mark.parametrize("holder", [IF, WHILE, CALL], ids=["If", "While", "Call"])
def test_an_edge_from_a_loop_or_branch_waits_for_its_results_alone(holder: str, body: str) -> None:
    """An enqueue of which they do not wait may follow the close; a call is done when all is."""
    loop = holder is WHILE
    text = ENQUEUE_INSIDE.replace("HEAD\n", holder).replace("BODY", body)
    text = text.replace("inputs: [a, a]", "inputs: [i, a]") if loop else text
    name = "inner" if body is IN_A_CALL else "put"
    assert loads(text.replace("EDGE", f", after: [{name}]"))
    if holder is CALL:
        assert loads(text.replace("EDGE", ""))
    else:
        with pytest.raises(FileError, match="'node' is not ordered before it"):
            loads(text.replace("EDGE", ""))


def test_outcomes_of_queues_and_of_blocked_runs() -> None:
    small = BASE[: BASE.index("observe:")] + "observe: [b.r1]\nallowed:\n  rfc:\n"
    good = small + "  - {b.r1: 1, X: 1, Q: [1, 2]}\n  - {_status: blocked, X: 0, Q: []}\n"
    entry = loads(good)
    assert dumps(entry) == good
    for row, message in (
        ("{b.r1: 1, X: 1, Q: 1}", "a queue's contents are a list"),
        ("{b.r1: 1, X: 1, Q: [1, 2, 3]}", "3 elements, capacity 2"),
        ("{b.r1: 1, X: 1, Q: [[1, 2]]}", "must have 1 ints, got 2"),
        ("{X: 1, Q: []}", "no value for 'b.r1'"),
        ("{_status: stuck, X: 1, Q: []}", "must be blocked or failed"),
        ("{_status: failed, X: 1}", "a failed outcome has no values"),
        ("{_status: blocked, Q: []}", "no value for 'X'"),
    ):
        with pytest.raises(FileError, match=message):
            loads(f"{small}  - {row}\n")


CLUSTERS = """\
litmusfuzz: 2
name: clusters
variables:
  X: {dtype: int32, shape: [], init: 0}
mutexes:
  M: {}
queues:
  Q: {dtype: int32, shape: [], capacity: 2, init: []}
graphs:
  main:
    one: {op: Const, dtype: int32, shape: [], value: 1}
    w0: {op: AssignVariableOp, resources: [X], inputs: [one]}
    r0: {op: ReadVariableOp, resources: [X], after: [w0]}
    sum: {op: AddV2, inputs: [r0, one]}
    sec: {op: CriticalSection, resources: [M], members: [w0, r0, sum]}
    w1: {op: AssignVariableOp, resources: [X], inputs: [sum]}
    put: {op: QueueEnqueueV2, resources: [Q], inputs: [one]}
    high: {op: Less, inputs: [one, r0]}
    pick:
      op: If
      inputs: [high]
      captures: {v: one}
      results: [out]
      then:
        nodes:
          add: {op: AssignAddVariableOp, resources: [X], inputs: [v]}
        results: [v]
      else:
        nodes:
          minus: {op: Neg, inputs: [v]}
        results: [minus]
clusters:
  k0: [w0, r0, sum]
  k1: [w1]
"""


def test_a_cluster_may_have_members_in_several_sections_and_in_none() -> None:
    """TensorFlow makes such clusters: what they allow decides, not the format."""
    across = CLUSTERS.replace("[w0, r0, sum]\n  k1", "[w0, r0, sum, high]\n  k1")
    entry = loads(across)
    assert dumps(entry) == across
    after_release = CLUSTERS.replace("high: {op: Less, ", "high: {op: Less, after: [sec], ")
    with pytest.raises(FileError, match="cycle through a cluster"):
        loads(after_release.replace("[w0, r0, sum]\n  k1", "[w0, r0, sum, high]\n  k1"))


def test_clusters_load_and_are_byte_stable() -> None:
    entry = loads(CLUSTERS)
    assert dumps(entry) == CLUSTERS
    assert "clusters" in entry.test.features
    assert [c.members for c in entry.test.clusters] == [("w0", "r0", "sum"), ("w1",)]


@pytest.mark.parametrize(
    ("old", "new", "fields", "message"),
    [
        ("k1: [w1]", "k1: []", "clusters.k1", "at least one member"),
        ("k1: [w1]", "k1: [w9]", "clusters.k1.0", "no node 'w9'"),
        ("k1: [w1]", "k1: [w1, w9]", "clusters.k1.1", "'w9' is no node beside 'w1'"),
        ("k1: [w1]", "k1: [w1, add]", "clusters.k1.1", "'add' is no node beside 'w1'"),
        ("k1: [w1]", "k1: [add, one]", "clusters.k1.1", "'one' is no node beside 'add'"),
        ("k1: [w1]", "k1: [w1, w1]", "clusters.k1.1", "stands twice"),
        ("k1: [w1]", "k1: [sum, w1]", "clusters.k1.0", "in another cluster"),
        ("k1: [w1]", "k1: [put]", "clusters.k1.0", "cannot be compiled"),
        ("k1: [w1]", "k1: [sec]", "clusters.k1.0", "cannot be compiled"),
        ("k1: [w1]", "w1: [w1]", "clusters.w1", "name of something else"),
        ("k1: [w1]", "X: [w1]", "clusters.X", "name of something else"),
        ("k1: [w1]", "1k: [w1]", "clusters.1k", "a name is a letter"),
        ("k1: [w1]", "k1: 5", "clusters.k1", "list"),
        ("[w0, r0, sum]\n  k1", "[r0, w0, sum]\n  k1", "clusters.k0.0", "stands before 'w0'"),
        ("k1: [w1]", "k1: [pick, high]", "clusters.k1.0", "stands before 'high'"),
        ("k1: [w1]", "k1: [one, w1]", "clusters.k", "cycle through a cluster"),
        ("k1: [w1]", "k1: [pick]\n  k2: [add]", "clusters.k2", "inside a member of another"),
        ("k1: [w1]", "k1: [one, high]", "clusters.k", "cycle through a cluster"),
    ],
)
def test_a_cluster_that_is_none_is_refused(old: str, new: str, fields: str, message: str) -> None:
    assert CLUSTERS.count(old) == 1
    with pytest.raises(FileError) as caught:
        loads(CLUSTERS.replace(old, new, 1), "f.yaml")
    assert ".".join(map(str, caught.value.fields)).startswith(fields)
    assert caught.value.line > 0
    assert message in str(caught.value)


ASKING = """\
litmusfuzz: 2
name: asking
variables:
  X: {dtype: int32, shape: [], init: 0}
mutexes:
  M: {}
graphs:
  g:
    p: {op: Placeholder, dtype: int32, shape: [2]}
    b: {op: Placeholder, dtype: bool, shape: []}
    two: {op: Const, dtype: int32, shape: [], value: 2}
    r0: {op: ReadVariableOp, resources: [X]}
    s: {op: AddV2, inputs: [r0, two]}
    w0: {op: AssignVariableOp, resources: [X], inputs: [s]}
    sec: {op: CriticalSection, resources: [M], members: [r0, w0]}
    pick:
      op: If
      inputs: [b]
      captures: {v: two}
      results: [out]
      then:
        nodes:
          neg: {op: Neg, inputs: [v]}
        results: [neg]
      else:
        nodes:
          pos: {op: Relu, inputs: [v]}
        results: [pos]
    q: {op: AddV2, inputs: [p, two]}
client:
  a: {graph: g, fetches: [s, pick.out], targets: [q], feeds: {p: [3, 4], b: 1}}
  c: {graph: g, after: [a], fetches: [r0]}
observe: [a.pick.out, a.s, c.r0]
"""


def test_runs_that_ask_load_and_are_byte_stable() -> None:
    test = loads(ASKING).test
    assert dumps(loads(ASKING)) == ASKING
    assert {"fetches", "placeholders"} <= test.features
    a, c = test.runs
    executed = {node.name for node in test.graph_of(a).nodes}
    assert executed == {"p", "b", "two", "r0", "s", "sec", "pick", "q"}
    assert {node.name for node in test.graph_of(c).nodes} == {"r0", "sec"}
    assert test.nodes_by_key() == {
        "a.s": "s",
        "a.pick.out": "pick.out",
        "c.r0": "r0",
    }


@pytest.mark.parametrize(
    ("old", "new", "line", "fields", "message"),
    [
        ("[s, pick.out]", "[s, pick.in]", 31, "client.a.fetches.1", "no node of graph 'g'"),
        ("[s, pick.out]", "[s, neg]", 31, "client.a.fetches.1", "outside bodies"),
        ("[s, pick.out]", "[s, pick]", 31, "client.a.fetches.1", "no value: it can be a target"),
        ("[s, pick.out]", "[s, s]", 31, "client.a.fetches.1", "stands twice"),
        ("[s, pick.out]", "[s, p]", 31, "client.a.fetches.1", "is fed"),
        ("targets: [q]", "targets: [pick.out]", 31, "client.a.targets.0", "no node of graph"),
        ("targets: [q]", "targets: [s]", 31, "client.a.targets.0", "stands twice"),
        ("targets: [q]", "targets: [b]", 31, "client.a.targets.0", "is fed"),
        ("p: [3, 4], ", "", 31, "client.a.feeds", "feeds no value to placeholder 'p'"),
        ("p: [3, 4]", "p: [3]", 31, "client.a.feeds.p", "must be 2 rows or one int"),
        ("b: 1}", "b: 2}", 31, "client.a.feeds.b", "a bool is 0 or 1"),
        ("b: 1}", "b: yes1}", 31, "client.a.feeds.b", "expected an int or a list"),
        ("b: 1}", "b: 1, two: 3}", 31, "client.a.feeds.two", "executes no placeholder 'two'"),
        ("fetches: [r0]}", "fetches: [r0], feeds: {p: 1}}", 32, "client.c.feeds.p", "executes no"),
        ("c.r0]", "c.s]", 33, "observe.2", "run 'c' does not fetch 's', nor anything that needs"),
        ("a.s, ", "a.r0, ", 33, "observe.1", "run 'a' does not fetch 'r0'"),
        ("[r0, w0]", "[r0, p]", 15, "graphs.g.sec.members.1", "fed before the run"),
        ("shape: [2]}", "shape: [2], after: [r9]}", 9, "graphs.g.p.after.0", "no node 'r9'"),
        (
            "    b: {op: Placeholder, dtype: bool, shape: []}",
            "    b: {op: Placeholder, dtype: bool, shape: [], after: [p]}",
            10,
            "graphs.g.b",
            "outside bodies, after nothing",
        ),
        (
            "neg: {op: Neg, inputs: [v]}",
            "neg: {op: Placeholder, dtype: int32}",
            23,
            "graphs.g.pick.then.nodes.neg",
            "outside bodies",
        ),
        (
            "observe:",
            "clusters:\n  k: [two, s]\nobserve:",
            31,
            "client.a.fetches",
            "in a test with clusters",
        ),
        (
            "observe:",
            "clusters:\n  k: [b]\nobserve:",
            34,
            "clusters.k.0",
            "cannot be compiled",
        ),
    ],
)
def test_what_a_run_asks_for_is_refused_with_its_line_and_field(
    old: str, new: str, line: int, fields: str, message: str
) -> None:
    assert ASKING.count(old) >= 1
    with pytest.raises(FileError) as caught:
        loads(ASKING.replace(old, new, 1), "f.yaml")
    error = caught.value
    assert (error.line, ".".join(map(str, error.fields))) == (line, fields)
    assert message in str(error)


def test_a_graph_with_a_placeholder_needs_a_client() -> None:
    text = ASKING.partition("client:")[0] + "observe: []\n"
    with pytest.raises(FileError, match="run 'g' feeds no value to placeholder 'b'"):
        loads(text)


def test_a_variable_without_a_value_loads_and_is_byte_stable() -> None:
    text = """\
litmusfuzz: 2
name: empty
variables:
  X: {dtype: int32, shape: [2], initialized: false}
graphs:
  main:
    s: {op: VarIsInitializedOp, resources: [X]}
observe: [s]
allowed:
  rfc:
  - {s: 0, X: []}
"""
    entry = loads(text)
    assert dumps(entry) == text
    assert entry.test.features == {"uninitialized variables"}
    assert entry.test.initial(entry.test.variables[0]) == ()
    for old, new, line, fields in (
        ("initialized: false", "initialized: false, init: 1", 4, "variables.X.init"),
        ("initialized: false", "init: null", 4, "variables.X.init"),
        ("observe", "clusters:\n  k: [s]\nobserve", 9, "clusters.k.0"),
        ("VarIsInitializedOp, resources: [X]", "VarIsInitializedOp", 7, "graphs.main.s.resources"),
        ("X: []}", "X: [1]}", 11, "allowed.rfc.0.X"),
    ):
        with pytest.raises(FileError) as caught:
            loads(text.replace(old, new, 1))
        assert (caught.value.line, ".".join(map(str, caught.value.fields))) == (line, fields)
