"""Every two ops on a variable of two pages, in all schedules with two switches at most.

``python -m tests.corpus.pairs_under_control [WORD]`` takes each pair of ops that read or change a
dense variable (of those with the word in their names), and executes on TensorFlow all schedules of
locks and of pages with at most two switches inside ops. A pair is *atomic* at a level if each
outcome is one of the two ops one after the other. Otherwise a row says the others, and the schedule
of each, in Markdown, as in ``docs/tensorflow-findings.md``. Exits with 3 if a search was cut off.
"""

from __future__ import annotations

import argparse
import re
import sys
from contextlib import closing
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow.executor import TensorFlowExecutor
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR, unsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.schedule import Decision

LEVELS: Final = ("locks", "pages")
SWITCHES: Final = 2
LIMIT: Final = 20_000
_ROW: Final = ", indices: [0]"
_SCATTERS: Final = tuple(
    f"Resource{kind}{name}"
    for kind, names in (
        ("Scatter", ("Update", "Add", "Sub", "Mul", "Min", "Max")),
        ("ScatterNd", ("Update", "Add", "Sub")),
    )
    for name in names
)
OPS: Final[Mapping[str, tuple[str, str]]] = {
    "ReadVariableOp": ("[X]", ""),
    "ResourceGather": ("[X]", _ROW),
    "ResourceGatherNd": ("[X]", _ROW),
    "AssignVariableOp": ("[X]", ", inputs: [{value}]"),
    "AssignAddVariableOp": ("[X]", ", inputs: [{value}]"),
    "AssignSubVariableOp": ("[X]", ", inputs: [{value}]"),
    "ResourceApplyGradientDescent": ("[X]", ", inputs: [rate, {value}]"),
    "ResourceApplyMomentum": ("[X, M]", ", inputs: [rate, {value}, rate], use_nesterov: false"),
    **dict.fromkeys(_SCATTERS, ("[X]", ", inputs: [{value}]" + _ROW)),
    "ResourceScatterDiv": ("[X]", ", inputs: [row, {value}]"),
    "ResourceStridedSliceAssign": ("[X]", ", inputs: [{value}], begin: 0, end: 1, strides: 1"),
}
"""By op, its resources and its other fields."""
_VALUES: Final[Mapping[str, tuple[int, int]]] = {
    "ResourceScatterMax": (16, 32),
    "ResourceScatterDiv": (-1, -1),
}
"""Operands of the two ops, if not 2 and 4: each op changes the initial 8."""
READS: Final = ("ReadVariableOp", "ResourceGather", "ResourceGatherNd")


def pair(first: str, second: str) -> LitmusTest:
    """The test in which one op runs beside the other."""
    nodes, consts, observed = [], [], []
    for number, (name, op) in enumerate((("a", first), ("b", second))):
        resources, fields = OPS[op]
        value = _VALUES.get(op, (2, 4))[number]
        fields = fields.format(value=f"{name}_value")
        nodes.append(f"    {name}: {{op: {op}, resources: {resources}{fields}}}")
        if op in READS:
            observed.append(name)
        else:
            shape = f"dtype: float32, shape: [1, 2048], value: {value}"
            consts.append(f"    {name}_value: {{op: Const, {shape}}}")
    if any("rate" in node for node in nodes):
        consts.append("    rate: {op: Const, dtype: float32, shape: [], value: 2}")
    if any("row," in node for node in nodes):
        consts.append("    row: {op: Const, dtype: int32, shape: [1], value: 0}")
    variables = ["  X: {dtype: float32, shape: [1, 2048], init: 8}"]
    if any("M]" in node for node in nodes):
        variables.append("  M: {dtype: float32, shape: [1, 2048], init: 0}")
    text = ["litmusfuzz: 2", "name: pair", "variables:", *variables, "graphs:", "  main:"]
    text += [*consts, *nodes, f"observe: [{', '.join(observed)}]"]
    return loads("\n".join(text) + "\n").test


def wrong(test: LitmusTest, level: str) -> tuple[Mapping[Outcome, tuple[Decision, ...]], int, bool]:
    """Outcomes that no order of whole ops has, with schedules; executions; false if cut off."""
    allowed = Explorer(test, unsplit(EXECUTOR), loosest=True).allowed_outcomes().witnesses
    prepared = TensorFlowExecutor().prepare(test, configuration("tf", f"controlled_{level}"))
    with closing(prepared):
        found = prepared.explore(LIMIT, SWITCHES)
    schedules = {o: s for o, s in found.schedules.items() if o not in allowed}
    return schedules, found.executions, found.complete


def short(outcome: Outcome) -> str:
    """The outcome; of a long value, what it consists of."""
    return re.sub(
        r"\[([^]]*)\]", lambda found: "/".join(dict.fromkeys(found[1].split(","))), str(outcome)
    )


def inside(schedule: tuple[Decision, ...]) -> str:
    """A schedule: what each op does until it is the other one's turn."""
    parts: list[str] = []
    last = ""
    for each in schedule:
        point = "" if each.point == "begin" else each.point
        if each.node != last:
            parts.append(f"{each.node}:")
        if point:
            parts.append(f"{point},")
        last = each.node
    return " ".join(parts).rstrip(",").replace(", a:", "; a:").replace(", b:", "; b:")


def rows(word: str) -> Iterator[tuple[str, bool]]:
    """Rows of the table, and whether all schedules of the row were executed."""
    for first, second in combinations_with_replacement(OPS, 2):
        if word not in first and word not in second:
            continue
        test = pair(first, second)
        for level in LEVELS:
            schedules, executions, complete = wrong(test, level)
            said = "; ".join(f"{short(o)}: `{inside(s)}`" for o, s in schedules.items()) or "atomic"
            yield f"| {first} (a), {second} (b) | {level} | {executions} | {said} |", complete


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("word", nargs="?", default="")
    word = parser.parse_args().word
    _print("| ops | level | schedules | outcomes of no order of whole ops |\n|---|---|--:|---|")
    cut_off = 0
    for row, complete in rows(word):
        _print(row)
        cut_off += not complete
    return 3 if cut_off else 0


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
