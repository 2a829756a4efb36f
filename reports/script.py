"""Standalone Python script of a finding on TensorFlow, which needs TensorFlow and NumPy only.

The file builds copies of the test's graph from ``tf.raw_ops``, one copy after the other,
executes them until a forbidden outcome shows or its time is up, prints how often each
outcome showed, and exits 1 if a forbidden one did. It varies executions as
`fuzz/executors/tensorflow/lowering.py` does. `reports.raw_ops` writes the nodes;
`litmusfuzz.reports.script_text` has the text that all scripts share.
"""

from __future__ import annotations

import re
import textwrap
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import first_results
from litmusfuzz.corpus.ops import Kind
from litmusfuzz.corpus.outcome import TORN, Outcome, Status, nearest
from litmusfuzz.corpus.shapes import copies_of
from litmusfuzz.corpus.takes import steady, uneven
from litmusfuzz.reports import drawing
from litmusfuzz.reports import python_text as python
from litmusfuzz.reports import script_text as fixed
from litmusfuzz.reports.headline import headline, symptom_of
from litmusfuzz.reports.python_code import program, shapes
from litmusfuzz.reports.raw_ops import (
    Names,
    Part,
    compiles,
    fed_nodes,
    literal,
    observed,
    parts_of,
    shown_by,
    written,
)
from litmusfuzz.reports.script_text import filled
from litmusfuzz.reports.tables import counted
from litmusfuzz.reports.text import broken_rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Queue, Run
    from litmusfuzz.corpus.outcome import Value
    from litmusfuzz.corpus.textfile import Entry, Finding, Setting

MAX_LISTED: Final = 100
"""Allowed outcomes that a script lists; where there are more, it knows the forbidden ones."""
CLUSTERED_COPIES: Final = 8
"""Compiling a cluster takes some 10 ms."""
_REWRITTEN: Final = 64
"""Executions after which a program with functions is written anew."""
LAST_LINE: Final = re.compile(r"forbidden outcomes in (\d+) of (\d+) executions; none is allowed")
"""How a script ends."""
FIRST_SEEN: Final = "FORBIDDEN  "
"""With this begins the line that a script prints when it sees a forbidden outcome first."""
_NOISE: Final = MappingProxyType({"copies": 32, "steps": 96, "padding": 1024})
"""Of a finding that has a schedule instead: that with which campaigns run tests."""
_WIDTH: Final = 92
_WORD: Final = re.compile("[A-Za-z_]+")
_DEFAULT_ITERATIONS: Final = 2
"""Iterations of Grappler by TensorFlow's default."""
_INDIVISIBLE: Final = (
    " Beyond it, TensorFlow's executor on the CPU locks a variable during a dense update"
    " (AssignAdd, AssignSub, ResourceApply*), which is thus one operation."
)


class NoScript(ValueError):
    """A finding that cannot be written as a script, and why."""


def script(
    entry: Entry,
    environment: Mapping[str, str] | None = None,
    reason: str = "",
    needs: str = "",
) -> str:
    """The text of a script that shows a finding.

    Parameters
    ----------
    entry : Entry
        With a finding.
    environment : mapping of str to str
        Of the finding's configuration; what is not TensorFlow's, or only its log, is left out.
    reason : str
        Why the first outcome is forbidden.
    needs : str
        The settings that the finding needs, in words, for its headline.

    Raises
    ------
    NoScript
        If there is no finding, it is not TensorFlow's, or takes what a script has not.
    """
    found = entry.finding
    if found is None:
        raise NoScript("has no finding; a script shows one")
    if found.executor != "tf":
        raise NoScript(
            f"was found on {found.executor}, not on TensorFlow (tf) or JAX's references (jax_refs)"
        )
    missing = _missing(entry.test, found)
    if missing:
        raise NoScript(f"a script cannot have {missing}")
    return _Script(entry, found, environment or {}, reason, needs).text()


_MODELS: Final = {
    **dict.fromkeys(("function", "function_kernels"), ("acd", "rfc", "one_cluster")),
    **dict.fromkeys(("python_v1", "python_v2"), ("executor", "rfc")),
    "eager": ("program",),
    "eager_functions": ("acd", "one_cluster"),
}
"""The front ends of Python, and the models that they guarantee."""
_GUARANTEES: Final = {
    "rfc": "",
    "executor": _INDIVISIBLE,
    "acd": _INDIVISIBLE + " In a tf.function, automatic control dependencies order ops on one"
    " handle as the code has them, two reads excepted, and what a function, branch or iteration"
    " returns comes after all its effects.",
    "program": _INDIVISIBLE + " Eager execution is synchronous: the ops of a thread come one by"
    " one, in the order of the code.",
    "one_cluster": " With jit_compile, XLA reads all variables of a function at once, before it"
    " computes, and writes them at once after that.",
}
_PLAIN: Final = (
    *(("front_end", "graph"), ("model_code", False), ("workers", 0), ("devices", 1)),
    ("compiled", ""),
)
"""Settings that a script can have, without clusters that XLA chooses."""


def _missing(test: LitmusTest, found: Finding) -> str:
    """Part of a finding that a script cannot express; "" if there is none."""
    if test.clusters:
        return "clusters of the test's own"
    if "gradients" in test.features:
        return "gradients"
    if found.model not in _MODELS.get(_front_end(found), ("rfc", "executor")):
        return f"the edges that the model {found.model} adds"  # without them it may be allowed
    put = {n.resources[0] for n in test.nodes if n.definition.puts}
    if test.mutexes and len(test.runs) > 1 and len(put) > 1:
        return "several full queues and critical sections in several runs"  # as in `LiveSession`
    return next((f"the device {name}" for name in _devices(test) if name.startswith("gpu")), "")


def _front_end(found: Finding) -> str:
    """The front end of Python that a script has; "" for a graph that is built edge by edge."""
    front_end = str(found.settings.get("front_end", ""))
    if front_end == "keras":  # the ops of its steps in place of Keras
        return "eager_functions"
    return front_end if front_end in _MODELS else ""


def _left_out(found: Finding) -> list[str]:
    """Settings that a script does without: the test's own edges forbid the outcome all the same."""
    settings = found.settings
    there = ("clusters", "whole", _front_end(found)) if _front_end(found) else ("clusters",)
    return [
        f"{name}={settings[name]}"
        for name, plain in _PLAIN
        if settings.get(name, plain) not in (plain, *there)
    ]


def _devices(test: LitmusTest) -> list[str]:
    """Devices that the test names."""
    return sorted({each.device for each in (*test.resources, *test.nodes)} - {""})


class _Script:
    """One script while it is written."""

    def __init__(
        self,
        entry: Entry,
        found: Finding,
        environment: Mapping[str, str],
        reason: str,
        needs: str,
    ) -> None:
        test = entry.test
        self.entry, self.test, self.found, self.reason = entry, test, found, reason
        self.needs = needs
        # Flags that change what TensorFlow does, without those that only make it log.
        self.environment = {
            name: value
            for name, value in environment.items()
            if name.startswith("TF_") and not name.startswith("TF_CPP_")
        }
        self.clustered = found.settings.get("compiled") == "clusters"
        self.front_end = _front_end(found)
        self.eager = self.front_end.startswith("eager")
        self.whole = bool(self.front_end) and found.settings.get("compiled") == "whole"
        allowed = entry.allowed.get(found.model)
        self.allowed = allowed if isinstance(allowed, frozenset) else frozenset()
        self.lists_allowed = 0 < len(self.allowed) <= MAX_LISTED
        outcomes = {outcome for outcome, _ in found.forbidden} | self.allowed
        # One copy that is blocked, or fails, would hold up all those behind it.
        self.unset = any(variable.init is None for variable in test.variables)
        self.alone = bool(test.queues or test.accumulators) or self.unset
        self.alone |= any(o.status is not Status.COMPLETED for o in outcomes)
        self.alone |= bool(test.failing) and not self.allowed
        self.parts = parts_of(test)
        self.feeds = "placeholders" in test.features
        self.threads = self.alone or len(test.runs) > 1 or self.feeds
        self.kinds = {node.definition.kind for node in test.nodes}
        self.placed = _devices(test)
        self.pool = found.settings.get("pool", "own")
        self.takes = {n.resources[0] for n in test.nodes if n.definition.takes_sum}
        self.uneven = uneven(test)
        self.known = [
            each.name
            for each in test.accumulators
            if each.name not in self.takes or (steady(test) and not self.uneven)
        ]
        self.options = bool(self.takes) or self.pool in ("second", "caller", "run_handler")

    def text(self) -> str:
        """The whole script."""
        names = Names(self.test)
        constants = self.constants()
        if self.front_end:
            graphs, tables = self.program(names)
        else:
            graphs = [
                written(self.test, part, names, clustered=self.clustered) for part in self.parts
            ]
            tables = self.tables(names)
        rows = fixed.ROWS if "rows(" in constants + "".join(graphs) else ""
        parts = [
            *(self.header(), self.imports(), rows, constants),
            *self.helpers(),
            *graphs,
            tables,
            *self.running(),
        ]
        return "\n\n\n".join(part.strip("\n") for part in parts if part) + "\n"

    # --- what is said ------------------------------------------------------------------

    def header(self) -> str:
        """The docstring: the graph, what was seen, what is allowed, and why that is not."""
        found = self.found
        seen, times = found.forbidden[0]
        version = found.versions.get("tensorflow", "")
        title = headline(symptom_of(self.entry), self.test, self.needs)
        executions = counted(found.executions, "execution")
        near = nearest(seen, self.allowed)
        unexplained = seen.torn or not self.reason
        why = broken_rule(seen, found.model, None) if unexplained else self.reason
        paragraphs = [
            f"TensorFlow {version} shows what its memory model forbids.",
            "The memory model (RFC 20190610, resource variables): a graph's operations behave as"
            " if executed one by one, in some order that its edges allow; reads and writes of a"
            " whole variable are atomic." + _GUARANTEES[found.model],
            "The test; ops in different columns have no edge between them unless it is said:",
            drawing.text(self.test).partition("\n")[2],
            f"Seen       {seen}, in {times} of {executions}",
            *([f"Allowed    {near} is the nearest"] if near is not None else []),
            f"Forbidden  {why}",
            *self.simpler(),
            "Needs TensorFlow and NumPy only. Racing ops have to meet, so that chance has a part:"
            " on busy cores it takes longer. Ends when a forbidden outcome has shown (exit code 1),"
            " or after a minute, or as many seconds as the first argument says (exit code 0).",
        ]
        text = textwrap.fill(f"{title}.", _WIDTH, break_long_words=False, break_on_hyphens=False)
        for paragraph in paragraphs:
            narrow = (
                paragraph
                if "\n" in paragraph
                else textwrap.fill(
                    paragraph,
                    _WIDTH,
                    subsequent_indent=" " * 11 * bool(re.match(r"\w+  ", paragraph)),
                )
            )
            text += f"\n\n{narrow}"
        return f'"""{_quoted(text)}\n"""'

    def simpler(self) -> Iterator[str]:
        """Parts of the finding that the script lacks."""
        if left_out := _left_out(self.found):
            yield (
                f"Found with {', '.join(left_out)}, which this script does without: that forbids"
                " the outcome no less, but may be what makes it show."
            )

    # --- what it is made of ------------------------------------------------------------

    def imports(self) -> str:
        """Environment variables that TensorFlow reads when imported, and the imports."""
        lines = ["import os"] if self.environment else []
        lines += ["import random", "import sys", *["import threading"] * self.eager, "import time"]
        lines.append(f"from collections import Counter{', namedtuple' * bool(self.front_end)}")
        if self.threads or self.eager:
            lines.append("from concurrent.futures import ThreadPoolExecutor, wait")
        used = ["closing"] * (self.alone and not self.eager)
        used += ["nullcontext"] * bool(self.front_end)
        if used:
            lines.append(f"from contextlib import {', '.join(used)}")
        if self.front_end and not self.eager:
            lines.append("from functools import partial")
        lines += ["", "import numpy as np", *([""] if self.environment else [])]
        lines += [f"os.environ[{name!r}] = {value!r}" for name, value in self.environment.items()]
        lines.append("import tensorflow as tf")
        if Kind.CALL in self.kinds and not self.front_end:
            lines.append(fixed.CALL_IMPORTS)
        if self.front_end.startswith("function"):
            lines.append(python.TRACED_IMPORT)
        lines += [python.IMPORTS] * bool(self.front_end)
        if self.front_end.startswith("python"):
            way = "disable" if self.front_end == "python_v1" else "enable"
            lines += ["", f"tf.compat.v1.{way}_control_flow_v2()"]
        return "\n".join(lines)

    def constants(self) -> str:
        """Sizes, resources, and what is allowed."""
        # A schedule under control has none; a script needs what lets chance show it.
        test, noise = self.test, _NOISE if self.found.settings.get("control") else self.found.noise
        copies, steps = int(noise.get("copies", 32)), int(noise.get("steps", 96))
        most = min(copies, CLUSTERED_COPIES) if self.clustered or self.whole else copies
        fewer = copies_of(self.test, most)
        if fewer < copies:
            copies, steps = fewer, steps * copies // fewer
        padding = int(noise.get("padding", 0))
        lines = [
            "raw = tf.raw_ops",
            f"COPIES, STEPS, SECONDS = {1 if self.alone else copies}, {steps}, 60",
            f"PADDING = {padding}  # elements, at most, of work before an op",
        ]
        if self.eager:
            lines[1:] = [f"STEPS, SECONDS = {_REWRITTEN}, 60"]
        if self.alone and not self.eager:
            lines.append("BLOCKED_S = 2  # what is not done by then waits for ever")
        if Kind.LOOP in self.kinds and not self.front_end:
            lines.append("BACK = {}  # for each Merge of a loop what leads back to it")
        variables = [
            f"{v.name!r}: (tf.{v.dtype}, {list(v.shape)}, {first})"
            for v in test.variables
            for first in [
                None if v.init is None else literal(v.init, v.shape, v.dtype, whole=test.whole)
            ]
        ]
        lines += [
            "",
            f"# Type, shape and what it holds at first{', or None' * self.unset}.",
            *_listed("VARIABLES", "{}", variables),
        ]
        if test.queues:
            about = "# Type, shape, capacity, and the elements at first."
            lines += [about, *_listed("QUEUES", "{}", [self.queue(q) for q in test.queues])]
        if test.accumulators:
            made = [f"{a.name!r}: (tf.{a.dtype}, {list(a.shape)})" for a in test.accumulators]
            lines += ["# Type and shape of a gradient.", *_listed("ACCUMULATORS", "{}", made)]
            lines += [
                "# Of these it is known what they hold when a run was blocked.",
                *_listed("KNOWN", "[]", [repr(name) for name in self.known]),
            ]
        if self.uneven:
            lines += [
                "# The fewest and the most gradients that takes of it require.",
                *_listed("UNEVEN", "{}", [f"{n!r}: {both}" for n, both in self.uneven.items()]),
            ]
        placed = [f"{r.name!r}: '/{r.device}'" for r in test.resources if r.device]
        lines += _listed("DEVICES", "{}", placed) if placed else []
        shown = ("ended", *test.names) if self.alone else test.names
        lines += ["", *_listed("NAMES", "[]", [repr(name) for name in shown])]
        known = self.allowed if self.lists_allowed else {o for o, _ in self.found.forbidden}
        title = "ALLOWED" if self.lists_allowed else "FORBIDDEN"
        return "\n".join(
            lines + _listed(title, "{}", [self.outcome(o) for o in sorted(known, key=str)])
        )

    def queue(self, queue: Queue) -> str:
        """A queue's row in the table of queues."""
        whole, shape = self.test.whole, list(queue.shape)
        elements = [
            f"np.full({shape}, {each})"
            if isinstance(each, int)
            else f"np.array({literal(each, shape, queue.dtype, whole=whole)})"
            for each in queue.init
        ]
        held = ", ".join(elements)
        return f"{queue.name!r}: (tf.{queue.dtype}, {shape}, {queue.capacity}, [{held}])"

    def outcome(self, outcome: Outcome) -> str:
        """An outcome as the script has it."""
        queues = {queue.name for queue in self.test.queues}
        cells = dict.fromkeys(self.test.names, "None")
        for name, value in outcome.values:
            cell = _cell(value)
            if name in queues and value is not TORN:
                cell = tuple(_cell(each) for each in value if isinstance(each, tuple))
            cells[name] = repr(cell)
        ended = [repr(str(outcome.status))] if self.alone else []
        listed = ", ".join([*ended, *cells.values()])
        return f"({listed},)" if len(ended) + len(cells) == 1 else f"({listed})"

    def helpers(self) -> Iterator[str]:
        """Functions that build copies, loops and conditionals."""
        test = self.test
        if self.eager:
            yield from self.python_helpers()
            return
        made = fixed.RESOURCE_VARIABLE if test.variables else ""
        made += fixed.RESOURCE_QUEUE if test.queues else ""
        made += fixed.RESOURCE_ACCUMULATOR if test.accumulators else ""
        made += fixed.RESOURCE_MUTEX if test.mutexes else ""
        if any(each.device for each in test.resources):
            made = f"        with tf.device(DEVICES.get(name)):\n{textwrap.indent(made, '    ')}"
        start = fixed.START_QUEUES if test.queues else ""
        start += fixed.START_ACCUMULATORS if test.accumulators else ""
        text = fixed.COPY
        final = fixed.FINAL_READS_OR_UNSET if self.unset else fixed.FINAL_READS
        final += fixed.FINAL_SUMS if test.accumulators else ""
        text += fixed.HANDLE_SHARED if self.clustered else fixed.HANDLE_OF_ITS_OWN
        text += fixed.ACQUIRE if test.mutexes else ""
        text += fixed.PLACEHOLDER if self.feeds else ""
        placeholders = fixed.PLACEHOLDERS if self.feeds else ""
        unset = fixed.UNSET_DESTROYS if self.unset else ""
        yield filled(
            text,
            placeholders=placeholders,
            resource=made,
            unset=unset,
            start=start,
            final=final,
        )
        if self.front_end:
            yield from self.python_helpers()
            return
        if Kind.LOOP in self.kinds:
            yield fixed.LOOP
        if Kind.BRANCH in self.kinds:
            yield fixed.CONDITIONAL
        if Kind.CALL in self.kinds:
            yield fixed.CALL
        if {Kind.CALL, Kind.LOOP} <= self.kinds:
            yield fixed.INLINED

    def python_helpers(self) -> Iterator[str]:
        """Functions that execute, trace or build what Python code says."""
        yield python.VALUES
        if first_results(self.test.graphs):
            yield python.SEVERAL
        for kind, text in (
            (Kind.BRANCH, python.CONDITIONAL),
            (Kind.LOOP, python.LOOP),
            (Kind.CALL, python.CALL),
        ):
            if kind in self.kinds:
                yield text

    def program(self, names: Names) -> tuple[list[str], str]:
        """The nodes of all graphs as functions, and the tables of graphs, runs and settings."""
        test, seen = self.test, shown_by(self.test)
        functions: dict[str, None] = {}  # of runs that fetch, some twice
        programs, fed, shown = [], [], []
        for part in self.parts:
            made, rows = program(test, part, names)
            functions |= dict.fromkeys(made)
            listed = "".join(f"        {row},\n" for row in rows)
            programs.append(f"{part.key!r}: [\n{listed}    ]" if rows else f"{part.key!r}: []")
            kinds = ((node.name, test.type_of(node.name)) for node in fed_nodes(test, part))
            given = [f"{name!r}: (tf.{k.dtype}, {list(k.shape)})" for name, k in kinds]
            fed.append(f"{part.key!r}: {{{', '.join(given)}}}")
            shown.append(f"{part.key!r}: {observed(test, part)}")
        renamed = [f"{names.of(n.name)!r}: {n.name!r}" for n in test.nodes]
        renamed = [each for each in renamed if len(set(each.split(": "))) > 1]
        lines = [
            "# Of each graph its nodes: what they make, which values they take, which variables",
            "# they use, the variable of a further handle, and whether it is an Identity of one.",
            *["PROGRAMS = {", *(f"    {row}," for row in programs), "}"],
            *_listed("RENAMED", "{}", renamed),
            *_listed("FED", "{}", fed),
            *_listed("SHOWN", "{}", shown),
            *_listed("SHAPES", "{}", shapes(test)),
            f"WAITS = {self.front_end.startswith('python')}"
            "  # TensorFlow leaves out what no result of a body waits for",
        ]
        if not self.front_end.startswith("python"):
            lines.append(f"JIT_COMPILE = {self.whole or None}")
        part_of = {run.name: part for part in self.parts for run in part.runs}
        if self.eager:
            runs = [
                f"{run.name!r}: ({part_of[run.name].key!r}, {list(run.after)},"
                f" {{{', '.join(self.fed_eagerly(run, part_of[run.name]))}}})"
                for run in test.runs
            ]
            places = [(name, observed(test, part_of[name])[place]) for name, place in seen]
            lines += [
                "# Of which graph, after which runs, and what is fed.",
                *_listed("RUNS", "{}", runs),
                "# Of which run, and which value.",
                *_listed("OBSERVED", "[]", [repr(place) for place in places]),
                f"MAY_FAIL = {self.alone}",
            ]
            return list(functions), "\n".join(lines)
        if self.front_end.startswith("function"):
            lowered = self.front_end == "function"
            lines.append(f"LOWERED = {lowered}  # inlined, and not executed by its kernel")
            lines.append(f"ONE_HANDLE = {self.clustered or self.whole}")
        lines = [
            *lines,
            "",
            "",
            (python.TRACED if "LOWERED" in lines[-2] else python.BUILT).strip(),
        ]
        lines += ["", "", "GRAPHS = {name: partial(write, name) for name in PROGRAMS}"]
        if self.threads:
            lines += self.runs()
        return list(functions), "\n".join(lines)

    def fed_eagerly(self, run: Run, part: Part) -> Iterator[str]:
        """What a run feeds to placeholders, as entries of a mapping."""
        values = dict(run.feeds)
        for node in fed_nodes(self.test, part):
            kind = self.test.type_of(node.name)
            value = literal(values[node.name], kind.shape, kind.dtype, whole=self.test.whole)
            yield f"{node.name!r}: tf.constant({value}, tf.{kind.dtype}, {list(kind.shape)})"

    def tables(self, names: Names) -> str:
        """Tables of graphs, runs and observed values."""
        test = self.test
        built = [f"{part.key!r}: {names.graph(part.key)}" for part in self.parts]
        lines = _listed("GRAPHS", "{}", built)
        if self.clustered:
            nodes = [repr(node.name) for node in test.nodes if compiles(test, node)]
            lines += ["# Nodes that XLA may take into clusters.", *_listed("COMPILED", "{}", nodes)]
        if self.threads:
            lines += self.runs()
        return "\n".join(lines)

    def runs(self) -> list[str]:
        """Tables of runs, and of what is observed of them."""
        part_of = {run.name: part for part in self.parts for run in part.runs}
        runs = [
            f"{run.name!r}: ({part_of[run.name].key!r}, {list(run.after)}"
            f"{self.fed(run, part_of[run.name])})"
            for run in self.test.runs
        ]
        what = (
            "Of which graph, after which runs, and what is fed."
            if self.feeds
            else ("Of which graph, and after which runs.")
        )
        seen = [repr(place) for place in shown_by(self.test)]
        return [
            *(f"# {what}", *_listed("RUNS", "{}", runs)),
            "# Of which run, and which value of its graph.",
            *_listed("OBSERVED", "[]", seen),
        ]

    def fed(self, run: Run, part: Part) -> str:
        """What a run feeds to the placeholders of its graph, as the last entry of its row."""
        if not self.feeds:
            return ""
        values = dict(run.feeds)
        listed = []
        for node in fed_nodes(self.test, part):
            kind = self.test.type_of(node.name)
            value = literal(values[node.name], kind.shape, kind.dtype, whole=self.test.whole)
            listed.append(f"np.broadcast_to({value}, {list(kind.shape)})" if kind.shape else value)
        return f", [{', '.join(listed)}]"

    def running(self) -> Iterator[str]:
        """Functions that build a graph, execute it, and count outcomes."""
        if self.eager:
            yield fixed.COLUMNS_WHOLE if self.test.whole else fixed.COLUMNS_OF_LANES
            yield python.EAGER
            yield python.EAGER_RUN if self.front_end == "eager" else python.MIXED_RUN
            yield python.EAGER_EXECUTE
            yield from self.ending()
            return
        loops = Kind.LOOP in self.kinds and not self.front_end
        edits = fixed.EDITS_OF_LOOPS if loops else ""
        if self.front_end:
            edits += python.KERNELS * (self.front_end == "function_kernels")
            edits += python.NOT_COMPILED_OUTSIDE * self.clustered
        elif self.clustered:
            edits += fixed.EDITS_NOT_COMPILED
            edits += fixed.EDITS_NOT_COMPILED_INSIDE * (Kind.CALL in self.kinds)
        traced = self.front_end.startswith("function")
        yield filled(
            fixed.BUILD,
            clear=fixed.CLEAR_BACK * loops
            + python.CLEAR_TRACES * traced
            + fixed.CLEAR_FED * self.feeds,
            runs=fixed.RUN_QUEUES * bool(self.test.queues)
            + fixed.RUN_SUMS * bool(self.test.accumulators)
            + fixed.RUN_FED * self.feeds,
            finals=fixed.FINALS_THERE * self.unset
            + fixed.FINALS_COUNTS * bool(self.test.accumulators),
            feeds=fixed.FEEDS_OF_COPY if self.feeds else "",
            edits=edits,
        )
        yield "\n".join(self.configuration())
        yield fixed.COLUMNS_WHOLE if self.test.whole else fixed.COLUMNS_OF_LANES
        calls = fixed.CALLS_WITH_OPTIONS if self.options else fixed.CALLS
        if self.feeds:
            calls = filled(fixed.CALLS_FED, options=", options=OPTIONS" * self.options)
        if self.alone:
            closes = any(node.definition.closes for node in self.test.nodes)
            queues, sums = bool(self.test.queues), bool(self.test.accumulators)
            contents = fixed.CONTENTS
            if self.unset or sums:
                contents = fixed.CONTENTS_AND_MORE + fixed.CONTENTS_UNSET * self.unset
                contents += fixed.CONTENTS_COUNTS * sums
            elements = fixed.ELEMENTS_QUEUES * queues
            if sums:
                feed = fixed.FEED_UNEVEN if self.uneven else ""
                elements += filled(fixed.ELEMENTS_SUMS, feed=feed)
            yield filled(
                fixed.EXECUTE_ALONE,
                **(fixed.FED if self.feeds else fixed.NOT_FED),
                calls=calls + (fixed.CALLS_OF_QUEUES if queues else ""),
                contents=contents,
                elements=elements,
                failed=fixed.FAILED_ENDS if closes else fixed.FAILED_GOES_ON,
                finish=fixed.FINISH_AT_ONCE if closes else fixed.FINISH_IF_BLOCKED,
            )
        else:
            fed = fixed.FED if self.feeds else fixed.NOT_FED
            runs = filled(fixed.EXECUTE_RUNS, **fed) if self.threads else fixed.EXECUTE
            yield filled(runs, calls=calls)
        yield fixed.OUTCOMES
        yield from self.ending()

    def ending(self) -> Iterator[str]:
        """Functions that judge and count outcomes."""
        known = fixed.FORBIDDEN_UNLESS
        if len(self.known) < len(self.test.accumulators):
            known = fixed.FORBIDDEN_UNLESS_UNKNOWN
        yield known if self.lists_allowed else fixed.FORBIDDEN_IF
        yield filled(fixed.MAIN, verdict_else="allowed" if self.lists_allowed else "not listed")

    def configuration(self) -> Iterator[str]:
        """The session's configuration as the executor makes it of the finding's settings."""
        settings, pool = self.found.settings, self.pool
        threads = _number(settings, "inter_op_threads", 4)
        rewrites = str(settings.get("rewrites", ""))
        cpus = 1 + max((int(name.partition(":")[2]) for name in self.placed), default=0)
        yield "def config():"
        yield '    """Of a session."""'
        intra = _number(settings, "intra_op_threads", 1)
        yield f"    made = tf.compat.v1.ConfigProto(intra_op_parallelism_threads={intra})"
        yield f'    made.device_count["CPU"], made.device_count["GPU"] = {cpus}, 0'
        if settings.get("spinning") is False:
            yield "    made.experimental.disable_thread_spinning = True"
        if settings.get("executor_type"):
            yield f"    made.experimental.executor_type = {settings['executor_type']!r}"
        if pool in ("own", "second"):
            if pool == "second":
                yield "    made.session_inter_op_thread_pool.add(num_threads=1)"
            yield f"    made.session_inter_op_thread_pool.add(num_threads={threads})"
        else:
            yield f"    made.inter_op_parallelism_threads = {threads}"
            yield f"    made.use_per_session_threads = {pool == 'per_session'}"
        yield "    rewrites = made.graph_options.rewrite_options"
        if rewrites:
            yield "    rewrites.min_graph_nodes = -1"
            # A finding without the setting is older, and was run with one iteration.
            iterations = _number(settings, "rewrite_iterations", 1)
            if iterations != _DEFAULT_ITERATIONS:
                yield f"    rewrites.meta_optimizer_iterations = {iterations}"
        else:
            yield "    rewrites.disable_meta_optimizer = True"
        if rewrites not in ("", "all"):
            yield "    for field in rewrites.DESCRIPTOR.fields:"
            yield "        if field.enum_type is not None and field.enum_type.name == 'Toggle':"
            yield "            setattr(rewrites, field.name, rewrites.OFF)"
            yield "    rewrites.disable_model_pruning = rewrites.disable_tfg_optimizer = True"
            yield "    rewrites.memory_optimization = rewrites.NO_MEM_OPT"
            for each in rewrites.split(","):
                name, _, value = each.partition("=")
                if not (_WORD.fullmatch(name) and _WORD.fullmatch(value)):
                    raise NoScript(f"a script cannot have the rewrite {each!r:.60}")
                known = {"true": "True", "false": "False"}.get(value, f"rewrites.{value}")
                yield f"    rewrites.{name} = {known}"
        if rewrites != "all":
            yield "    made.graph_options.optimizer_options.opt_level = -1"
        if self.clustered:
            yield "    made.graph_options.optimizer_options.global_jit_level = 2"
        yield "    return made"
        if self.options:
            yield ""
            yield ""
            yield "OPTIONS = tf.compat.v1.RunOptions()"
            if self.takes:
                yield "OPTIONS.timeout_in_ms = 2000 * BLOCKED_S  # cancels what is blocked"
            if pool == "run_handler":
                yield "OPTIONS.experimental.use_run_handler_pool = True"
            elif pool in ("second", "caller"):
                yield f"OPTIONS.inter_op_thread_pool = {1 if pool == 'second' else -1}"


def _number(settings: Mapping[str, Setting], name: str, default: int) -> int:
    """A setting that stands in a script as a number.

    Files are checked when they are loaded; text that is no number enters no code all the same.
    """
    value = settings.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise NoScript(f"a script cannot have {name}={value!r:.60}")
    return value


def _listed(name: str, brackets: str, rows: Sequence[str]) -> list[str]:
    """A constant that holds several things, on one line if they fit."""
    left, right = brackets[0], brackets[1]
    line = f"{name} = {left}{', '.join(rows)}{right}"
    if len(line) <= _WIDTH:
        return [line]
    return [f"{name} = {left}", *(f"    {row}," for row in rows), right]


def _cell(value: Value) -> object:
    """A value as a script counts it: an int, rows, or "torn"."""
    if value is TORN:
        return "torn"
    return value[0] if len(value) == 1 else value


def _quoted(text: str) -> str:
    """Text escaped for a docstring."""
    return text.replace("\\", "\\\\").replace('"""', "'''")
