"""The litmus file: errors with their position, and saving without loss."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from helpers import LITMUS, corpus_entry, for_each
from hypothesis import given, settings
from hypothesis import strategies as st

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.document import MAX_BYTES, Document
from litmusfuzz.corpus.model import Graph, LitmusTest, MalformedTest
from litmusfuzz.corpus.outcome import TORN, Outcome, digest
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import (
    MAX_LISTED,
    Digest,
    Entry,
    FileError,
    Finding,
    dumps,
    load,
    loads,
    outcome_from_plain,
    outcome_order,
    plain_of,
    read_plain,
    save,
    write_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Fields = tuple[str | int, ...]

# Lines count from 1; the table below relies on them.
BASE = """\
litmusfuzz: 2
name: base
description: |-
  what it shows
variables:
  X: {dtype: int32, shape: [3], init: [1, 2, 3]}
  F: {dtype: float32, shape: [], init: 0, device: 'cpu:0'}
  G: {dtype: float32, shape: [], init: 0}
graphs:
  main:
    c: {op: Const, dtype: int32, shape: [3], value: 1}
    f: {op: Const, dtype: float32, shape: [], value: -1}
    w: {op: AssignVariableOp, resources: [X], inputs: [c]}
    u: {op: ResourceScatterUpdate, resources: [X], inputs: [r], after: [w], indices: [0, 2]}
    m: {op: ResourceApplyMomentum, resources: [F, G], inputs: [f, f, f], use_nesterov: true}
    s: {op: ResourceStridedSliceAssign, resources: [X], inputs: [r], begin: 0, end: 3, strides: 2}
    g: {op: ResourceGather, resources: [X], after: [m], indices: [1]}
    b: {op: Less, inputs: [f, f]}
observe: [g, b]
allowed:
  rfc:
  - {g: 1, b: 0, X: [1, 2, 3], F: 0, G: 0}
  - {g: 2, b: 0, X: [1, 2, 3], F: 0, G: 0}
  executor: {count: 2000, sha256: SHA}
finding:
  executor: tensorflow/session
  configuration: two-threads
  model: rfc
  cause: torn-scatter
  executions: 100
  forbidden:
  - {count: 7, outcome: {g: torn, b: 0, X: [1, 2, 3], F: 0, G: 0}}
  - {count: 3, outcome: {g: 9, b: 0, X: [1, 2, 3], F: 0, G: 0}}
  noise: {copies: 32, shuffle: true}
  settings: {threads: 2, kind: a, grappler: false}
  versions: {tensorflow: 2.21.0}
  seed: 5
  index: 17
  family: dag
  minimized: true
  confirmed: false
  run_seed: 99
  schedule:
    outcome: {g: torn, b: 0, X: [1, 2, 3], F: 0, G: 0}
    choices: ['2/3:00000000000000ff', '0/1:fedcba9876543210']
  executed: |
    litmusfuzz: 2
    name: as-executed
    variables:
      second: {dtype: int32, shape: [], init: 0}
    graphs:
      all:
        last: {op: ReadVariableOp, resources: [second]}
    observe: [last]
""".replace("inputs: [r]", "inputs: [g2]").replace("SHA", "ab" * 32)
# The rows that `u` and `s` write.
BASE = BASE.replace(
    "    w: {op", "    g2: {op: ResourceGather, resources: [X], indices: [0, 1]}\n    w: {op"
)


def line_of(fragment: str, text: str = BASE) -> int:
    assert text.count(fragment) == 1, fragment
    return text[: text.index(fragment)].count("\n") + 1


def edited(*pairs: tuple[str, str]) -> str:
    text = BASE
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def refusal(text: str) -> FileError:
    with pytest.raises(FileError) as caught:
        loads(text, "some.yaml")
    error = caught.value
    assert str(error).isprintable(), "an error is one line, without escape sequences"
    assert str(error).startswith("some.yaml:")
    return error


def test_the_base_of_the_table_is_a_valid_file() -> None:
    """Else each row of the table below could be refused for a reason of its own."""
    entry = loads(BASE)
    assert dumps(entry) == BASE
    assert entry.finding is not None
    assert entry.finding.count == 10
    assert entry.finding.noise == {"copies": 32, "shuffle": True}
    assert entry.finding.versions == {"tensorflow": "2.21.0"}
    assert entry.finding.run_seed == 99
    assert entry.finding.schedule is not None
    assert entry.finding.schedule.outcome == entry.finding.forbidden[0][0]
    # Digests have all 64 bits, which a bare int of the format has not.
    assert entry.finding.schedule.choices == ((2, 3, 255), (0, 1, 0xFEDCBA9876543210))
    assert entry.allowed["executor"] == Digest(2000, "ab" * 32)
    assert entry.finding.cause == "torn-scatter"
    assert entry.finding.executed is not None
    assert [node.name for node in entry.finding.executed.graph.nodes] == ["last"]
    assert entry.finding.unreduced is None


@for_each("path", LITMUS)
def test_a_corpus_file_is_saved_to_the_same_bytes(path: Path) -> None:
    entry = load(path)
    assert dumps(entry).encode() == path.read_bytes()
    assert loads(dumps(entry)) == entry


@for_each("path", LITMUS)
def test_a_corpus_file_bears_its_tests_name(path: Path) -> None:
    assert load(path).test.name == path.stem


EXECUTED = ("finding", "executed", "graphs", "all")

# --- an edit of BASE: old text, new text, field, fragment of the message ---------------
# The error's line is that of the edit's first changed character, unless given.
EDITS: list[tuple[str, str, Fields, str]] = [
    # version and top level
    (
        "litmusfuzz: 2\nname: b",
        "litmusfuzz: 1\nname: b",
        ("litmusfuzz",),
        "is version 1 of the format, this program reads version 2: rename",
    ),
    (
        "litmusfuzz: 2\nname: b",
        "litmusfuzz: 3\nname: b",
        ("litmusfuzz",),
        "unknown version 3; this program reads version 2",
    ),
    (
        "litmusfuzz: 2\nname: b",
        "litmusfuzz: true\nname: b",
        ("litmusfuzz",),
        "unknown version True",
    ),
    ("litmusfuzz: 2\nname: b", "litmusfuzz: '2'\nname: b", ("litmusfuzz",), "unknown version '2'"),
    (
        "litmusfuzz: 2\nname: b",
        f"litmusfuzz: {'9' * 4400}\nname: b",
        ("litmusfuzz",),
        "more than 64 bits",
    ),
    ("litmusfuzz: 2\nname: b", "litmusfuzz: [1]\nname: b", ("litmusfuzz",), "unknown version [1]"),
    ("name: base", "name: base\nmutexs: {}", ("mutexs",), "unknown field"),
    ("name: base", "title: base", ("title",), "unknown field"),
    ("name: base", "name: 7", ("name",), "expected a string, got an int"),
    ("name: base", "name: ../base", ("name",), "not a test's name: '../base'"),
    ("name: base", "name: .base", ("name",), "not a test's name: '.base'"),
    ("name: base", 'name: "a\\nb"', ("name",), "not a test's name: 'a\\nb'"),
    ("name: base", f"name: {'n' * 101}", ("name",), "not a test's name: 'nnn"),
    ("name: base", "name: true", ("name",), "expected a string, got true or false"),
    ("name: base", "name:", ("name",), "expected a string, got nothing"),
    ("name: base", "name: base\nname: base", ("name",), "stands twice"),
    (
        "description: |-\n  what it shows",
        'description: "\\e[2J"',
        ("description",),
        "control characters",
    ),
    (
        "description: |-\n  what it shows",
        'description: "\\0"',
        ("description",),
        "control characters",
    ),
    # YAML that is more than the format has
    ("name: base", "name: &n base", ("name",), "anchors and aliases"),
    ("name: base", "&n name: base", (), "anchors and aliases"),
    ("name: base", "name: !!str base", ("name",), "is not part of the format"),
    ("name: base", "!x name: base", (), "tag '!x' is not part of the format"),
    (
        "name: base",
        "name: !!python/object/apply:os.system ['touch pwned']",
        ("name",),
        "tag 'tag:yaml.org,2002:python/object/apply:os.system' is not part of the format",
    ),
    ("name: base", "name: *n", ("name",), "anchors and aliases"),
    ("name: base", "<<: {name: base}", ("<<",), "unknown field"),
    ("init: [1, 2, 3]}", "<<: {init: 0}}", ("variables", "X", "<<"), "unknown field"),
    ("name: base", "7: base", (), "a key must be a string"),
    ("name: base", "true: base", (), "a key must be a string"),
    ("name: base", "? [a]\n: base", (), "a key must be a string"),
    ("name: base", "? {a: b}\n: base", (), "a key must be a string"),
    ("name: base", '"na\\nme": base', ("na\nme",), "na\\nme: unknown field"),
    ("name: base", 'name: base\n"\\e[2J": 0', (), "control characters"),
    # variables
    ("  X: {", "  9X: {", ("variables", "9X"), "a name is a letter, then letters"),
    ("  X: {", "  ' X': {", ("variables", " X"), "a name is a letter, then letters"),
    ("  X: {", "  Ü: {", ("variables", "Ü"), "a name is a letter, then letters"),
    ("  X: {", '  "X\\"]": {', ("variables", 'X"]'), "a name is a letter, then letters"),
    ("  X: {", '  "X\\nY": {', ("variables", "X\nY"), "a name is a letter, then letters"),
    ("  X: {", f"  {'X' * 65}: {{", ("variables", "X" * 65), "at most 64"),
    ("  X: {", "  5: {", ("variables",), "a key must be a string"),
    ("  F: {", "  X: {", ("variables", "X"), "stands twice"),
    ("dtype: int32, shape: [3], init", "dtype: int8, init", ("variables", "X", "dtype"), "'int8'"),
    ("dtype: int32, shape: [3], init", "init", ("variables", "X"), "missing field `dtype`"),
    ("shape: [3], init", "shape: 3, init", ("variables", "X", "shape"), "expected a list"),
    ("shape: [3], init", "shape: [a], init", ("variables", "X", "shape", 0), "expected an int"),
    ("shape: [3], init", "shape: [0], init", ("variables", "X", "shape", 0), "must be >= 1, got 0"),
    ("shape: [3], init", "shape: [-3], init", ("variables", "X", "shape", 0), "got -3"),
    ("shape: [3], init", "shape: [2], init", ("variables", "X", "init"), "2 rows or one int"),
    ("shape: [3], init", "shape: [], init", ("variables", "X", "init"), "must be one int"),
    ("shape: [3], init", "shape: [2000], init", ("variables", "X", "shape", 0), "1024 rows: 2000"),
    (
        "shape: [3], init",
        "shape: [3, 1000, 1000], init",
        ("variables", "X", "shape", 2),
        "more than 1048576 elements",
    ),
    (
        "shape: [3], init",
        f"shape: [{', '.join(['9' * 18] * 9)}], init",
        ("variables", "X", "shape", 0),
        "more than 1048576 elements",
    ),
    (
        "shape: [3], init",
        "shape: [3, 1, 1, 1, 1, 1, 1, 1, 1], init",
        ("variables", "X", "shape"),
        "more than 8 dimensions: 9",
    ),
    ("init: [1, 2, 3]", "init: 16777216", ("variables", "X", "init"), "2**24, got 16777216"),
    ("init: [1, 2, 3]", "init: -16777216", ("variables", "X", "init"), "2**24, got -16777216"),
    ("init: [1, 2, 3]", "init: [1, 2, 16777216]", ("variables", "X", "init", 2), "2**24"),
    ("init: [1, 2, 3]", f"init: {1 << 63}", ("variables", "X", "init"), "more than 64 bits"),
    ("init: [1, 2, 3]", f"init: {'9' * 5000}", ("variables", "X", "init"), "more than 64 bits"),
    ("init: [1, 2, 3]", "init: [1, [2], 3]", ("variables", "X", "init", 1), "lanes are alike"),
    ("init: [1, 2, 3]", "init: 1.5", ("variables", "X", "init"), "an int or a list, got a string"),
    ("init: [1, 2, 3]", "init: .nan", ("variables", "X", "init"), "an int or a list"),
    ("init: [1, 2, 3]", "init: 0x10", ("variables", "X", "init"), "an int or a list"),
    ("init: [1, 2, 3]", "init: 1_000", ("variables", "X", "init"), "an int or a list"),
    ("init: [1, 2, 3]", "init: 010", ("variables", "X", "init"), "an int or a list"),
    ("init: [1, 2, 3]", "init: {0: 1}", ("variables", "X", "init"), "a key must be a string"),
    ("init: [1, 2, 3]", "init: null", ("variables", "X", "init"), "got nothing"),
    ("init: [1, 2, 3]", "init: yes", ("variables", "X", "init"), "got a string"),
    ("device: 'cpu:0'", "device: tpu:0", ("variables", "F", "device"), "cpu:N, gpu:N or opencl:N"),
    ("device: 'cpu:0'", 'device: "cpu:0\\n"', ("variables", "F", "device"), "got 'cpu:0\\n'"),
    # graphs and nodes
    ("  main:", "  9:", ("graphs",), "a key must be a string"),
    ("  main:", "  ma.in:", ("graphs", "ma.in"), "a name is a letter"),
    ("    c: {op: Const, ", "    c: {", ("graphs", "main", "c", "op"), "a node needs its op"),
    ("op: Const, dtype: int32", "op: [Const]", ("graphs", "main", "c", "op"), "needs its op"),
    ("op: Const, dtype: int32", "op: Consts", ("graphs", "main", "c", "op"), "op 'Consts'"),
    ("    c: {op: Const, ", "    X: {op: Const, ", ("graphs", "main", "X"), "name of a resource"),
    ("    f: {op", "    c: {op", ("graphs", "main", "c"), "stands twice"),
    ("    c: {op", "    c.0: {op", ("graphs", "main", "c.0"), "a name is a letter"),
    (
        "dtype: int32, shape: [3], value",
        "dtype: int32, valve",
        ("graphs", "main", "c", "valve"),
        "",
    ),
    ("[3], value: 1", "[3]", ("graphs", "main", "c"), "missing field `value`"),
    ("[3], value: 1", "[3], value: [1, 2]", ("graphs", "main", "c", "value"), "must be 3 rows"),
    ("[3], value: 1", "[3], value: 99999999", ("graphs", "main", "c", "value"), "got 99999999"),
    ("[3], value: 1", "[3], value: [0, 0, 16777216]", ("graphs", "main", "c", "value", 2), "2**24"),
    (
        "int32, shape: [3], value: 1",
        "bool, shape: [3], value: 2",
        ("graphs", "main", "c", "value"),
        "a bool is 0 or 1",
    ),
    ("inputs: [c]", "inputs: [d]", ("graphs", "main", "w", "inputs", 0), "no node 'd'"),
    ("inputs: [c]", "inputs: [s]", ("graphs", "main", "w", "inputs", 0), "'s' stands below"),
    ("inputs: [c]", "inputs: [w]", ("graphs", "main", "w", "inputs", 0), "cycle: w -> w"),
    ("inputs: [c]", "inputs: c", ("graphs", "main", "w", "inputs"), "expected a list"),
    ("inputs: [c]", "inputs: [c, c]", ("graphs", "main", "w", "inputs"), "takes 1 (value), got 2"),
    ("inputs: [c]", "after: [f]", ("graphs", "main", "w", "inputs"), "takes 1 (value), got 0"),
    (
        "inputs: [c]",
        "inputs: [f]",
        ("graphs", "main", "w", "inputs", 0),
        "value must be int32[3], got float32[]",
    ),
    (
        "inputs: [c]",
        "inputs: [g2]",
        ("graphs", "main", "w", "inputs", 0),
        "value must be int32[3], got int32[2]",
    ),
    ("inputs: [c]", "inputs: [c], indices: [0]", ("graphs", "main", "w", "indices"), "unknown"),
    ("[X], inputs: [c]", "[Z], inputs: [c]", ("graphs", "main", "w", "resources", 0), "'Z'"),
    ("[X], inputs: [c]", "[], inputs: [c]", ("graphs", "main", "w", "resources"), "takes 1 (var)"),
    ("[F, G]", "[F, F]", ("graphs", "main", "m", "resources", 1), "'F' stands twice"),
    ("[F, G]", "[X, G]", ("graphs", "main", "m", "resources", 0), "float32 or float64"),
    ("after: [w]", "after: [u]", ("graphs", "main", "u", "after", 0), "cycle: u -> u"),
    ("after: [w]", "after: [g]", ("graphs", "main", "u", "after", 0), "'g' stands below"),
    ("after: [w]", "after: [w, w]", ("graphs", "main", "u", "after"), "names a node twice"),
    ("after: [w]", "after: [1]", ("graphs", "main", "u", "after", 0), "expected a string"),
    ("inputs: [f, f, f]", "inputs: [w, f, f]", ("graphs", "main", "m", "inputs", 0), "no result"),
    ("use_nesterov: true", "use_nesterov: 1", ("graphs", "main", "m", "use_nesterov"), "true or"),
    (
        "indices: [0, 2]",
        "indices: [0, 16777216]",
        ("graphs", "main", "u", "indices", 1),
        "row 16777216 of 3",
    ),
    ("indices: [0, 2]", "indices: [2, 2]", ("graphs", "main", "u", "indices", 1), "row 2 twice"),
    ("indices: [0, 2]", "indices: []", ("graphs", "main", "u", "indices"), "names no row"),
    ("indices: [1]", f"indices: [{'1, ' * 1025}]", ("graphs", "main", "g", "indices"), "1024 rows"),
    ("strides: 2", "strides: 0", ("graphs", "main", "s", "strides"), "must be >= 1, got 0"),
    ("begin: 0, end: 3", "begin: 0, end: 4", ("graphs", "main", "s", "begin"), "got 0:4"),
    ("begin: 0, end: 3", "begin: 2, end: 2", ("graphs", "main", "s", "begin"), "got 2:2"),
    # observe
    ("observe: [g, b]", "observe: [w, b]", ("observe", 0), "'w' has no result"),
    ("observe: [g, b]", "observe: [X, b]", ("observe", 0), "'X' is no node of a graph"),
    ("observe: [g, b]", "observe: [b, b]", ("observe", 1), "'b' stands twice"),
    ("observe: [g, b]", "observe: {g: b}", ("observe",), "expected a list, got a mapping"),
    # allowed
    ("  rfc:", "  sc:", ("allowed", "sc"), "unknown model 'sc'"),
    ("{g: 1, b", "{h: 1, b", ("allowed", "rfc", 0, "h"), "'h' is not one of g, b, X, F, G"),
    ("{g: 1, b", "{b", ("allowed", "rfc", 0), "no value for 'g'"),
    ("{g: 1, b", "{g: [1, 1], b", ("allowed", "rfc", 0, "g"), "must have 1 ints, got 2"),
    ("{g: 1, b", "{g: [], b", ("allowed", "rfc", 0, "g"), "must have 1 ints, got 0"),
    ("{g: 1, b", "{g: torn, b", ("allowed", "rfc", 0, "g"), "torn is in no allowed set"),
    ("{g: 1, b", "{g: ripped, b", ("allowed", "rfc", 0, "g"), "an int, a list or torn"),
    ("{g: 1, b", "{g: true, b", ("allowed", "rfc", 0, "g"), "got true or false"),
    ("{g: 1, b", "{g: 16777216, b", ("allowed", "rfc", 0, "g"), "2**24, got 16777216"),
    ("{g: 1, b: 0", "{g: 1, b: 2", ("allowed", "rfc", 0, "b"), "a bool is 0 or 1, got 2"),
    ("{g: 1, b: 0", "{g: 1, g: 1, b: 0", ("allowed", "rfc", 0, "g"), "stands twice"),
    ("{g: 2, b", "{g: 1, b", ("allowed", "rfc", 1), "stands twice"),
    ("- {g: 2, b", "- [g]\n  - {g: 2, b", ("allowed", "rfc", 1), "expected a mapping, got a list"),
    ("count: 2000", "count: 1000", ("allowed", "executor", "count"), "more than 1000 outcomes"),
    ("count: 2000", "count: -1", ("allowed", "executor", "count"), "got -1"),
    ("count: 2000, ", "", ("allowed", "executor"), "missing field `count`"),
    ("sha256: ab", "sha256: xb", ("allowed", "executor", "sha256"), "64 hex digits"),
    ("sha256: ab", "sha256: ", ("allowed", "executor", "sha256"), "64 hex digits"),
    ("{count: 2000, sha256: " + "ab" * 32 + "}", "[]", ("allowed", "executor"), "never empty"),
    ("{count: 2000, sha256: " + "ab" * 32 + "}", "5", ("allowed", "executor"), "expected a list"),
    # finding
    ("  executor: t", "  actor: t", ("finding", "actor"), "unknown field"),
    ("tensorflow/session", "''", ("finding", "executor"), "one line, not empty"),
    ("tensorflow/session", "3", ("finding", "executor"), "expected a string, got an int"),
    ("two-threads", '"two\\nthreads"', ("finding", "configuration"), "one line, not empty"),
    ("two-threads", '"\\e[31m"', ("finding", "configuration"), "control characters"),
    ("cause: torn-scatter", "cause: Torn", ("finding", "cause"), "joined by hyphens, got 'Torn'"),
    ("cause: torn-scatter", "cause: a--b", ("finding", "cause"), "joined by hyphens, got 'a--b'"),
    ("cause: torn-scatter", "cause: ''", ("finding", "cause"), "joined by hyphens, got ''"),
    ("cause: torn-scatter", f"cause: {'a' * 81}", ("finding", "cause"), "joined by hyphens"),
    ("cause: torn-scatter", "cause: 3", ("finding", "cause"), "expected a string or nothing"),
    ("model: rfc", "model: tso", ("finding", "model"), "unknown model 'tso'"),
    ("executions: 100", "executions: 9", ("finding", "executions"), "must be >= 10"),
    ("executions: 100", "executions: 0", ("finding", "executions"), "must be >= 1, got 0"),
    ("executions: 100", "executions: -5", ("finding", "executions"), "must be >= 1, got -5"),
    ("executions: 100", "executions: many", ("finding", "executions"), "expected an int"),
    ("count: 7", "count: 0", ("finding", "forbidden", 0, "count"), "must be >= 1, got 0"),
    ("count: 3", "count: -3", ("finding", "forbidden", 1, "count"), "must be >= 1, got -3"),
    ("count: 3", "count: 8", ("finding", "forbidden", 1, "count"), "most frequent outcome"),
    ("count: 7, o", "o", ("finding", "forbidden", 0), "missing field `count`"),
    ("{g: 9, b", "{b", ("finding", "forbidden", 1, "outcome"), "no value for 'g'"),
    ("{g: 9, b", "{g: torn, b", ("finding", "forbidden", 1, "outcome"), "stands twice"),
    ("{g: 9, b", "{g: x, b", ("finding", "forbidden", 1, "outcome", "g"), "a list or torn"),
    ("copies: 32", "copies: a", ("finding", "noise", "copies"), "true or false or an int, got a"),
    ("{copies: 32, shuffle: true}", "7", ("finding", "noise"), "expected a mapping"),
    ("threads: 2", "threads: [2]", ("finding", "settings", "threads"), "got a list"),
    ("2.21.0", "2", ("finding", "versions", "tensorflow"), "expected a string, got an int"),
    ("seed: 5", "seed: -5", ("finding", "seed"), "must be >= 0, got -5"),
    ("seed: 5", f"seed: {1 << 64}", ("finding", "seed"), "more than 64 bits"),
    ("index: 17", "index: -1", ("finding", "index"), "must be >= 0, got -1"),
    ("index: 17", "index: first", ("finding", "index"), "expected an int, got a string"),
    ("family: dag", "family: ''", ("finding", "family"), "one line, not empty"),
    ("minimized: true", "minimized: yes", ("finding", "minimized"), "true or false, got a string"),
    ("confirmed: false", "confirmed: 0", ("finding", "confirmed"), "true or false, got an int"),
    ("run_seed: 99", "run_seed: -1", ("finding", "run_seed"), "must be >= 0, got -1"),
    ("'2/3:0", "'3/3:0", ("finding", "schedule", "choices", 0), "INDEX/COUNT:DIGEST, such as 0/2"),
    ("'0/1:f", "'0/1:g", ("finding", "schedule", "choices", 1), "got '0/1:gedc"),
    ("'2/3:0", "'-1/3:0", ("finding", "schedule", "choices", 0), "a choice is"),
    ("['2/3:00000000000000ff', ", "[7, ", ("finding", "schedule", "choices", 0), "a string, got"),
    (
        "    outcome: {g: torn",
        "    outcome: {h: torn",
        ("finding", "schedule", "outcome", "h"),
        "not one",
    ),
    ("    choices: [", "    chosen: [", ("finding", "schedule", "chosen"), "unknown field"),
    # a test inside a finding: checked like a file, and refused with this file's lines
    ("name: as-executed", "name: a b", ("finding", "executed", "name"), "not a test's name: 'a b'"),
    ("[second]", "[third]", (*EXECUTED, "last", "resources", 0), "no variable 'third'"),
    ("last: {op", "last: {ops", (*EXECUTED, "last", "op"), "a node needs its op"),
    ("observe: [last]", "watch: [last]", ("finding", "executed", "watch"), "unknown field"),
    (
        "    observe: [last]",
        "    allowed: {rfc: [{last: 0}]}",
        ("finding", "executed", "allowed"),
        "a test inside a finding has none",
    ),
    (
        "    observe: [last]",
        "    finding: {executed: ''}",
        ("finding", "executed", "finding"),
        "a test inside a finding has none",
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "fields", "message"),
    EDITS,
    ids=[f"{'.'.join(map(str, f))[:40]!a}-{new[:24]!a}" for _, new, f, _ in EDITS],
)
def test_an_edit_is_refused_with_its_line_and_field(
    old: str, new: str, fields: Fields, message: str
) -> None:
    text = edited((old, new))
    # Where the texts part, or the line below if what parts them is a line put in.
    same = next((old[:i] for i in range(len(old), 0, -1) if new.startswith(old[:i])), "")
    line = line_of(old) + same.count("\n") + new[len(same) :].startswith("\n")
    error = refusal(text)
    assert (error.fields, error.line) == (fields, line), str(error)
    assert message in str(error)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3", "expected a string or nothing, got an int"),
        ("''", "is empty"),
        ("'litmusfuzz: 1'", "is version 1 of the format"),
        ("'- 1'", "a litmus file is a mapping"),
        ('"litmusfuzz: 2\\nname: [x\\n"', "not YAML"),
    ],
)
def test_a_test_on_the_line_of_its_field_is_refused_there(text: str, message: str) -> None:
    before, _, _ = BASE.partition("  executed:")
    error = refusal(before + f"  unreduced: {text}\n")
    assert (error.line, error.fields[:2]) == (before.count("\n") + 1, ("finding", "unreduced"))
    assert message in str(error)


def test_a_finding_keeps_the_test_as_it_was_executed_and_as_it_was_generated() -> None:
    """The tests of the whole corpus, each inside a finding of the base."""
    entry = loads(BASE)
    assert entry.finding is not None
    for path in LITMUS:
        executed = load(path).test
        finding = replace(entry.finding, executed=executed, unreduced=executed)
        text = dumps(replace(entry, finding=finding))
        assert loads(text).finding == finding
        assert dumps(loads(text)) == text


def test_the_type_of_a_setting_is_kept() -> None:
    entry = loads(BASE)
    assert entry.finding is not None
    settings = {"a": 1, "b": True, "c": "1", "d": "true", "e": 0, "f": False, "g": ""}
    kept = loads(dumps(replace(entry, finding=replace(entry.finding, settings=settings))))
    assert kept.finding is not None
    assert [(type(v), v) for v in kept.finding.settings.values()] == [
        (type(v), v) for v in settings.values()
    ]


def test_a_missing_field_is_reported_where_its_part_begins() -> None:
    error = refusal(edited(("  seed: 5\n", "")))
    assert (error.line, error.fields) == (line_of("finding:"), ("finding",))
    assert error.message == "missing field `seed`"


def test_a_finding_shows_at_least_one_outcome() -> None:
    """Else a report would have nothing to show first."""
    lines = [each for each in BASE.splitlines() if not each.startswith("  - {count")]
    error = refusal("\n".join(lines).replace("  forbidden:", "  forbidden: []") + "\n")
    assert (error.line, error.fields) == (line_of("forbidden:"), ("finding", "forbidden"))
    assert error.message == "a finding shows at least one outcome"


def test_a_cycle_is_shown_node_by_node() -> None:
    """Nodes stand in topological order; a cycle is explained."""
    text = edited(("resources: [X], inputs: [c]}", "resources: [X], inputs: [c], after: [u]}"))
    error = refusal(text)
    assert (error.line, error.fields) == (
        line_of("    w: {op"),
        ("graphs", "main", "w", "after", 0),
    )
    assert error.message == "cycle: w -> u -> w"


def test_a_listed_set_is_no_larger_than_what_saving_would_list() -> None:
    """A file that loads is saved to the same bytes: a longer list would become a digest."""
    head = edited(("executor: {count: 2000, sha256: " + "ab" * 32 + "}", "executor: []"))
    rows = [f"  - {{g: {i}, b: 0, X: 0, F: 0, G: 0}}" for i in range(MAX_LISTED + 1)]
    rows = [row.replace("X: 0", "X: [0, 0, 0]") for row in rows]
    listed = head.replace("executor: []", "executor:\n" + "\n".join(rows))
    error = refusal(listed)
    assert error.fields == ("allowed", "executor")
    assert error.message == "more than 1000 outcomes are kept as count and sha256: 1001"
    fewer = head.replace("executor: []", "executor:\n" + "\n".join(rows[:-1]))
    allowed = loads(fewer).allowed["executor"]
    assert isinstance(allowed, frozenset)
    assert len(allowed) == MAX_LISTED


def test_a_field_that_stands_twice_in_a_part_is_reported_at_the_second() -> None:
    error = refusal(edited(("  index: 17\n", "  index: 17\n  seed: 5\n")))
    assert (error.line, error.fields) == (line_of("index: 17") + 1, ("finding", "seed"))
    assert error.message == "stands twice"


# --- whole texts: line, field, fragment of the message ---------------------------------
TEXTS: list[tuple[str, int, Fields, str]] = [
    ("", 1, (), "is empty"),
    ("# a comment only\n", 1, (), "is empty"),
    ("---\n", 2, (), "a litmus file is a mapping"),
    ("~\n", 1, (), "a litmus file is a mapping"),
    ("just text\n", 1, (), "a litmus file is a mapping"),
    ("- 1\n- 2\n", 1, (), "a litmus file is a mapping"),
    ("{}\n", 1, (), "no field 'litmusfuzz'"),
    ("litmusfuzz:\n", 1, (), "no field 'litmusfuzz'"),
    ("# why\n\nname: x\n", 3, (), "no field 'litmusfuzz'"),
    ("litmusfuzz: 2\n", 1, (), "missing field `name`"),
    ("litmusfuzz: 2\nname: x\ngraphs: {}\n", 1, ("variables",), "at least one resource"),
    ("litmusfuzz: 2\nname: x\nvariables: {}\n", 1, (), "missing field `graphs`"),
    ("litmusfuzz: 2\nname: x\nvariables: []\ngraphs: {}\n", 3, ("variables",), "a mapping"),
    ("litmusfuzz: 2\nname: x\nvariables: {}\ngraphs: {m: {}}\n", 3, ("variables",), "at least one"),
    (
        "litmusfuzz: 2\nname: x\nvariables: {X: {dtype: int32}}\ngraphs: {}\n",
        4,
        ("graphs",),
        "a test has at least one graph",
    ),
    ("litmusfuzz: 2\nname: [x\n", 3, (), "not YAML: did not find expected ',' or ']'"),
    ("litmusfuzz: 2\n\tname: x\n", 2, (), "not YAML: found a tab character that violates"),
    ("litmusfuzz: 2\nname: 'x\n", 3, (), "not YAML: found unexpected end of stream"),
    ("a: b: c\n", 1, (), "not YAML: mapping values are not allowed in this context"),
    ('a: 1\nb: "\\q"\n', 2, (), "not YAML: found unknown escape character"),
    ('a: 1\nb: "\\ud800"\n', 2, (), "not YAML: found invalid Unicode character escape code"),
    ("a: 1\n---\nb: 2\n", 2, (), "a second document"),
    ("a: 1\n...\n---\n", 3, (), "a second document"),
    ("%YAML 1.2\n---\na: 1\n", 1, (), "directives are not part of the format"),
    ("a: 1\n%TAG ! x,2002:\n", 2, (), "directives are not part of the format"),
    ("a: 1\nb: \0\n", 2, (), "not YAML: control characters are not allowed"),
    ("é: ü\n\n\nb: \x1b[2J\n", 4, (), "not YAML: control characters are not allowed"),
    ("a: 1\nb: \ud800\n", 2, (), "is not UTF-8"),
    ("[" * 100_000, 1, (0, 0, 0, 0), "is nested too deeply"),
    ("{a: " * 100_000, 1, ("a", "a", "a", "a"), "is nested too deeply"),
    ("- " * 100_000, 1, (0, 0, 0, 0), "is nested too deeply"),
    ("".join(" " * i + "a:\n" for i in range(100)), 42, ("a", "a", "a", "a"), "too deeply"),
    ("? " * 100_000, 1, (), "a key must be a string"),
    ("&a [*a]\n", 1, (), "anchors and aliases"),
    ("[x, &a y, *a]\n", 1, (1,), "anchors and aliases"),
    ("a: 1\n*a : 2\n", 2, (), "anchors and aliases"),
    ("!!python/object/apply:os.system ['touch pwned']\n", 1, (), "python/object/apply:os.system"),
    ("!!map {a: 1}\n", 1, (), "tag 'tag:yaml.org,2002:map' is not part of the format"),
    ("a: 1\nb: 2\n'a': 3\n", 3, ("a",), "stands twice"),
    ('"a\\nb": 1\n"a\\nb": 2\n', 2, ("a\nb",), "a\\nb: stands twice"),
    (f"{'k' * 300}: 1\n{'k' * 300}: 2\n", 2, ("k" * 300,), f": {'k' * 80}: stands twice"),
    ("null: 1\n", 1, (), "a key must be a string"),
    ("?\n: 1\n", 1, (), "a key must be a string"),
]


@pytest.mark.parametrize(
    ("text", "line", "fields", "message"), TEXTS, ids=[f"{text[:30]!a}" for text, *_ in TEXTS]
)
def test_a_text_is_refused_with_its_line_and_field(
    text: str, line: int, fields: Fields, message: str
) -> None:
    error = refusal(text)
    assert (error.line, error.fields) == (line, fields), str(error)
    assert message in str(error)


def test_loading_executes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refusal("litmusfuzz: !!python/object/apply:os.system ['touch pwned']\n")
    refusal("!!python/object/apply:os.system ['touch pwned']: 1\n")
    assert not list(tmp_path.iterdir())


def test_aliases_do_not_multiply() -> None:
    """The "billion laughs": refused at its first anchor, before anything is built."""
    text = "a: &a [x, x]\n" + "".join(
        f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefghij", "bcdefghijk", strict=True)
    )
    assert refusal(text).line == 1


# --- files -----------------------------------------------------------------------------


def put(path: Path, raw: bytes) -> Path:
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize(
    ("make", "line", "message"),
    [
        (lambda d: d / "absent.yaml", 0, "No such file or directory"),
        (lambda d: d, 0, "Is a directory"),
        (lambda d: d / "a\0b.yaml", 0, "cannot be a file's name"),
        (lambda d: put(d / "f", b""), 1, "is empty"),
        (lambda d: put(d / "f", b"a: 1\nb: 2\nc: \xff\n"), 3, "is not UTF-8"),
        (lambda d: put(d / "f", b"a: 1\nb: \xc3"), 2, "is not UTF-8"),
        (lambda d: put(d / "f", BASE.encode("utf-16")), 1, "is not UTF-8"),
        (lambda d: put(d / "f", b"a: 1\nb: \xed\xa0\x80\n"), 2, "is not UTF-8"),
        (lambda d: put(d / "f", b"#" * (MAX_BYTES + 1)), 0, "is larger than 4194304 bytes"),
        (lambda d: put(d / "f", b"#" * MAX_BYTES), 1, "is empty"),
        (lambda d: put(d / "a\nb.yaml", b"- 1\n"), 1, "a litmus file is a mapping"),
    ],
)
def test_a_file_is_refused_by_its_name(
    tmp_path: Path, make: Callable[[Path], Path], line: int, message: str
) -> None:
    path = make(tmp_path)
    with pytest.raises(FileError) as caught:
        load(path)
    error = caught.value
    shown = str(path).replace("\0", "\\x00").replace("\n", "\\n")
    place = f"{shown}:{line}" if line else shown
    assert str(error) == f"{place}: {message}"
    assert (error.source, error.line, error.fields) == (str(path), line, ())


def test_line_ends_and_a_byte_order_mark_do_not_matter(tmp_path: Path) -> None:
    windows = put(tmp_path / "base.yaml", b"\xef\xbb\xbf" + BASE.replace("\n", "\r\n").encode())
    assert load(windows) == loads(BASE)


def test_saving_makes_the_folder_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "new" / "base.yaml"
    save(loads(BASE), path)
    save(loads(BASE), path)
    assert path.read_text(encoding="utf-8") == BASE
    assert list(path.parent.iterdir()) == [path]


# --- names and texts that YAML could take for something else ---------------------------


@pytest.mark.parametrize("name", ["on", "off", "yes", "no", "y", "n", "e1", "null", "true", "NaN"])
def test_a_name_that_yaml_1_1_would_convert_stays_a_name(name: str) -> None:
    """As the name of a node, a variable, and the test, key and value alike."""
    test = litmus(f"{name.upper()}X=1; {name.lower()}=QQ")
    variables = (replace(test.variables[0], name=name.upper()), test.variables[1])
    nodes = tuple(
        replace(n, resources=(name.upper(),)) if n.resources == (f"{name.upper()}X",) else n
        for n in test.graph.nodes
    )
    test = LitmusTest(name, variables, (Graph(name, nodes),), test.observe)
    assert name.lower() in test.names
    assert loads(dumps(Entry(test))) == Entry(test)


def test_yaml_1_1_booleans_are_strings_in_a_file() -> None:
    text = (
        "litmusfuzz: 2\nname: on\nvariables:\n  no: {dtype: int32}\n"
        "graphs:\n  off:\n    yes: {op: ReadVariableOp, resources: [no]}\n"
        "observe: [yes]\nallowed:\n  rfc:\n  - {yes: 0, no: 0}\n"
    )
    entry = loads(text)
    assert entry.test.names == ("yes", "no")
    assert entry.test.name == "on"
    assert loads(dumps(entry)) == entry


@pytest.mark.parametrize(
    "text", ["1", "-1", "007", "true", "null", "~", "", "0x1", "1.5", "=", "<<"]
)
def test_a_setting_keeps_its_type(text: str) -> None:
    """A string that reads like an int is not the int, and the reverse."""
    entry = loads(BASE)
    assert entry.finding is not None
    finding = replace(entry.finding, settings={"s": text, "i": 1, "b": True, text or "e": "x"})
    again = loads(dumps(replace(entry, finding=finding))).finding
    assert again is not None
    assert again.settings == finding.settings
    assert [type(v) for v in again.settings.values()] == [
        type(v) for v in finding.settings.values()
    ]


@pytest.mark.parametrize("value", [(1 << 63) - 1, -(1 << 63), 1 << 24, -(1 << 24)])
def test_a_forbidden_value_may_be_any_int64(value: int) -> None:
    """What an executor wrongly shows is not bound by 2**24; what is allowed is."""
    entry = loads(BASE)
    assert entry.finding is not None
    seen = outcome_from_plain(entry.test, {"g": value, "b": 0, "X": [1, 2, 3], "F": 0, "G": 0})
    finding = replace(entry.finding, forbidden=((seen, 1),), seed=(1 << 63) - 1)
    changed = replace(entry, finding=finding)
    assert loads(dumps(changed)) == changed


@settings(derandomize=True, database=None, deadline=None, max_examples=300)
@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_a_description_is_preserved_or_refused(description: str) -> None:
    """Blank lines, leading blanks, colons, quotes, dashes: all come back."""
    refused = None
    try:
        entry = Entry(replace(litmus("X=1"), description=description))
    except MalformedTest as error:
        refused = error
    if refused is None:
        assert loads(dumps(entry)) == entry
    else:
        assert refused.path == ("description",)
        assert not description.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    "description",
    [
        *(
            "\n",
            "a\n",
            "\na",
            "a\n\n",
            " a",
            "a ",
            "a \nb",
            "\ta",
            "---\na",
            "...",
            "- a",
            "# a",
            "a: b",
        ),
        *("  a\n b", "\n\n a", "'", '"', "%a", "|-", "\u00a0", "\U0001f600", "1", "true"),
    ],
)
def test_a_description_that_yaml_finds_hard_comes_back(description: str) -> None:
    entry = Entry(replace(litmus("X=1"), description=description))
    assert loads(dumps(entry)) == entry


# --- sets ------------------------------------------------------------------------------


def outcomes(count: int) -> tuple[LitmusTest, frozenset[Outcome]]:
    test = litmus("r0=X")
    return test, frozenset(Outcome.of(test, {"r0": (i,), "X": (0,)}) for i in range(count))


def test_a_set_too_large_to_list_is_kept_as_its_digest() -> None:
    test, many = outcomes(MAX_LISTED + 1)
    kept = loads(dumps(Entry(test, {"rfc": many}))).allowed["rfc"]
    assert kept == Digest(MAX_LISTED + 1, digest(many))
    assert kept.matches(many)
    assert kept.matches(sorted(many, key=outcome_order))
    assert not kept.matches(list(many)[1:])
    other = frozenset([*list(many)[1:], Outcome.of(test, {"r0": (-1,), "X": (0,)})])
    assert not kept.matches(other)


def test_a_set_of_a_thousand_is_listed_in_numerical_order() -> None:
    test, many = outcomes(MAX_LISTED)
    entry = Entry(test, {"rfc": many})
    assert loads(dumps(entry)) == entry
    rows = [each for each in dumps(entry).splitlines() if each.startswith("  - ")]
    assert rows == [f"  - {{r0: {i}, X: 0}}" for i in range(MAX_LISTED)]


def test_the_model_rfc_stands_before_executor() -> None:
    test, few = outcomes(1)
    entry = Entry(test, {"executor": few, "rfc": few})
    text = dumps(entry)
    assert text.index("  rfc:") < text.index("  executor:")
    assert loads(text) == entry


def test_torn_comes_last_and_negative_first() -> None:
    test = litmus("r0=X")
    values = [TORN, (3,), (-2,), (10,)]
    listed = [Outcome.of(test, {"r0": v, "X": (0,)}) for v in values]
    assert [o.values[0][1] for o in sorted(listed, key=outcome_order)] == [(-2,), (3,), (10,), TORN]


@pytest.mark.parametrize(
    ("plain", "path", "message"),
    [
        ({"r0": 1}, (), "no value for 'X'"),
        ({"r0": 1, "X": 0, "Y": 0}, ("Y",), "'Y' is not one of r0, X"),
        ({"r0": [1, 2], "X": 0}, ("r0",), "must have 1 ints, got 2"),
        ({"r0": "shredded", "X": 0}, ("r0",), "a value is an int, a list or torn"),
    ],
)
def test_an_outcome_has_exactly_the_tests_names(
    plain: dict[str, int | list[int] | str], path: Fields, message: str
) -> None:
    with pytest.raises(MalformedTest) as caught:
        outcome_from_plain(litmus("r0=X"), plain)
    assert caught.value.path == path
    assert message in caught.value.message


def test_an_outcome_is_made_in_the_tests_order() -> None:
    made = outcome_from_plain(litmus("r0=X"), {"X": [4], "r0": "torn"})
    assert made == Outcome((("r0", TORN), ("X", (4,))))


def test_a_finding_counts_its_forbidden_outcomes() -> None:
    test, two = outcomes(2)
    first, second = sorted(two, key=outcome_order)
    finding = Finding(
        executor="e",
        configuration="c",
        model="rfc",
        forbidden=((first, 5), (second, 2)),
        executions=9,
        noise={},
        settings={},
        versions={},
        seed=0,
        index=0,
        family="dag",
        minimized=False,
        confirmed=False,
    )
    assert finding.count == 7
    entry = Entry(test, {}, finding)
    assert loads(dumps(entry)) == entry


def test_a_failed_write_leaves_no_new_file(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(IsADirectoryError):
        write_text("x", tmp_path / "taken")
    assert [each.name for each in tmp_path.iterdir()] == ["taken"]


def test_the_plain_data_of_a_test_is_made_once_while_the_test_is_in_use() -> None:
    tests = [litmus(f"X={number}; r0=X") for number in range(64)]
    made = [plain_of(test) for test in tests]
    assert all(plain_of(test) is plain for test, plain in zip(tests, made, strict=True))
    same = litmus("X=0; r0=X")
    assert plain_of(same) == made[0]
    assert plain_of(tests[0]) is not made[0]  # made again, after 64 others


@for_each("path", [*LITMUS, *LITMUS[0].parents[1].glob("findings/*.yaml")])
def test_plain_data_is_what_a_file_says_and_gives_the_test_again(path: Path) -> None:
    """As a worker receives it: in JSON, which has no tuples."""
    test = corpus_entry(path).test
    received = json.loads(json.dumps(plain_of(test)))
    assert received == Document(dumps(Entry(test)), "x").data
    assert read_plain(received) == test


def test_plain_data_that_is_no_test_is_refused_without_a_line() -> None:
    wrong = plain_of(litmus("X=1")) | {"observe": ["absent"]}
    with pytest.raises(FileError, match=r"^<message>: observe\.0: ") as caught:
        read_plain(wrong)
    assert caught.value.line == 0


def as_the_library_writes(text: str) -> str:
    """The text of the same file, each of its collections and scalars in the same style."""
    node = yaml.compose(text, Loader=yaml.CSafeLoader)
    written = {"width": 1 << 30, "allow_unicode": True, "indent": 2}
    return yaml.serialize(node, Dumper=yaml.CSafeDumper, **written)


@for_each("path", [*LITMUS, *LITMUS[0].parents[1].glob("findings/*.yaml")])
def test_a_file_is_written_as_the_library_writes_it(path: Path) -> None:
    text = dumps(corpus_entry(path))
    assert text == as_the_library_writes(text)


@given(
    st.one_of(
        st.sampled_from(
            [
                *("1", "-1", "1.5", "0x1f", "2001-01-01", "true", "yes", "null", "~", "=", "<<"),
                *("?", "- a", "a: b", "a, b", "[a]", "{a}", "#a", "a #b", "*a", "&a", "!a", "%a"),
                *("|", ">", "...", "---", "'", '"', "\\", " a", "a ", "\u00a0", "\U0001f600"),
                *("k" * 128, "k" * 129),
            ]
        ),
        st.text(st.characters(exclude_categories=["C", "Z"], include_characters=" "), min_size=1),
    )
)
def test_any_text_is_written_as_the_library_writes_it(text: str) -> None:
    """As a key and a value among others, and alone; inside another file's text as well."""
    test, some = outcomes(1)
    described = replace(test, description=f"{text}\n\n  {text}\n")
    finding = Finding(
        executor="e",
        configuration=text,
        model="rfc",
        forbidden=tuple((each, 1) for each in some),
        executions=1,
        noise={},
        settings={text: text, "a": True, "b": 1},
        versions={},
        seed=0,
        index=0,
        family="dag",
        minimized=False,
        confirmed=False,
        executed=replace(test, description=f"{text}\n\n {text}"),
        unreduced=described,
    )
    entry = Entry(described, {}, finding)
    written = dumps(entry)
    assert loads(written) == entry
    assert written == as_the_library_writes(written)
