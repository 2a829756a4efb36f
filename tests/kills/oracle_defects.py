"""Mutation test of the oracles: one-line defects that the tests must catch.

``python tests/kills/oracle_defects.py`` applies one defect after another, runs the
tests named with it, expects them to fail, and restores the file. It takes about an
hour and a half, since most defects need a rebuild of the C++. ``make nightly`` runs
it; ``make test`` only checks that each defect still applies to its file.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
EVENTS, EXPLORER = "oracles/events.py", "oracles/explorer.py"
CORE = "oracles/native/core/"
SETS = "tests/oracles/test_explorer.py"
HAND = "tests/oracles/test_whole_model.py"
REFERENCE = "tests/oracles/test_reference.py"
LIVE = "tests/oracles/test_live_values.py"
SYMMETRY = "tests/oracles/test_symmetry.py"
HISTORIES = "tests/oracles/test_histories.py"


@dataclass(frozen=True)
class Defect:
    """Replacement of `old`, which occurs once in `file`, by `new`; `tests` then fail."""

    what: str
    file: str
    old: str
    new: str
    tests: str = SETS


DEFECTS = (
    # --- events.py, which all oracles share: caught by sets written by hand ----------------
    Defect(
        "a node's first control edge is dropped",
        EVENTS,
        "waits += tuple([values[name] for name in node.after])",
        "waits += tuple([values[name] for name in node.after[1:]])",
    ),
    Defect(
        "an update's write does not wait for its read",
        EVENTS,
        "        return [reads, writes]",
        "        return [writes, reads]",
    ),
    Defect(
        "a section's members do not wait for its acquire",
        EVENTS,
        "held[name] = (*held.get(name, ()), *held[node.name])",
        "held[name] = held.get(name, ())",
    ),
    Defect(
        "a section is released before the instances in its members' bodies",
        EVENTS,
        "needs += tuple(t for name in node.attrs.members for t in inside.get(name, ()))",
        "needs += ()",
    ),
    Defect(
        "a run waits for the first of the runs before it only",
        EVENTS,
        "source = tuple(ended[name] for name in run.after)",
        "source = tuple(ended[name] for name in run.after[:1])",
    ),
    Defect(
        "a run ends though instances inside its loops and branches are pending",
        EVENTS,
        "Join((*token_of.values(), everything, *source))",
        "Join((*token_of.values(), *source))",
    ),
    Defect(
        "both branches are taken",
        EVENTS,
        "(*frame.guards, (predicate, taken))",
        "frame.guards",
    ),
    Defect(
        "one iteration too many at once",
        EVENTS,
        "if parallel is not None and number >= parallel:",
        "if parallel is not None and number > parallel:",
    ),
    Defect(
        "an iteration does not wait for its first carried value",
        EVENTS,
        "                starts += (carried[0],)",
        "                starts += ()",
    ),
    Defect(
        "a loop returns the carried values of its last possible iteration",
        EVENTS,
        "            for number in reversed(range(bound)):",
        "            for number in reversed(range(1, bound)):",
    ),
    Defect(
        "elements of a many-op in any order",
        EVENTS,
        "                    after=tuple(done[-1:]),",
        "                    after=(),",
    ),
    Defect(
        "a blocked outcome of a stricter executor: late results forgotten",
        EVENTS,
        "    flags = [(gathers, late) for gathers in (False, True) for late in (False, True)]",
        "    flags = [(gathers, late) for gathers in (False, True) for late in (False,)]",
        HAND,
    ),
    Defect(
        "a cluster's results are ready before its write-back",
        EVENTS,
        "return {name: self.token(Held(token, done)) for name, token in results.items()}",
        "return {name: self.token(Held(token, needs)) for name, token in results.items()}",
    ),
    Defect(
        "a cluster writes back variables that the path taken did not write",
        EVENTS,
        "name: self.pick(predicate, then[1].get(name, self.no), other[1].get(name, self.no))",
        "name: self.pick(predicate, then[1].get(name, self.yes), other[1].get(name, self.yes))",
    ),
    Defect(
        "a cluster waits for the edges of its first member only",
        EVENTS,
        "sources += [name for n in members for name in n.after]",
        "sources += [name for n in members[:1] for name in n.after]",
    ),
    # --- explorer.py and its core: caught by the reference and the same sets --------------
    Defect(
        "a capacity off by one",
        CORE + "search.cpp",
        "queue_elements(held, table_).size() < static_cast<size_t>(capacity)",
        "queue_elements(held, table_).size() <= static_cast<size_t>(capacity)",
    ),
    Defect(
        "the memo key forgets the last resource",
        CORE + "search.cpp",
        "std::memcpy(out, memory(depth), cells_ * sizeof(uint32_t));",
        "std::memcpy(out, memory(depth), cells_ * sizeof(uint32_t)); "
        "out[c_.variables.size() - 1] = 0;",
    ),
    Defect(
        "the memo key forgets the results of reads",
        CORE + "search.cpp",
        "std::memcpy(out, memory(depth), cells_ * sizeof(uint32_t));",
        "std::memcpy(out, memory(depth), c_.variables.size() * sizeof(uint32_t));",
    ),
    Defect(
        "a value is dropped while an event still uses it",
        CORE + "search.cpp",
        "if (forgotten(slot, depth)) slots(depth)[slot] = 0;",
        "if (!keep_[slot]) slots(depth)[slot] = 0;",
    ),
    Defect(
        "partial-order reduction ignores a conflict",
        CORE + "search.cpp",
        "(!(only_reads(event.access) && event.slot < 0) ||",
        "(!only_reads(event.access) ||",
    ),
    Defect(
        "live values: those that a live write uses are dropped",
        CORE + "live.cpp",
        "return uses.known ? live : live | uses.consumed;",
        "return live;",
        LIVE,
    ),
    Defect(
        "live values: a variable that a live read sees is dropped",
        CORE + "live.cpp",
        "if (uses.compared || (live & uses.slot)) live |= uses.variables;",
        "if (uses.compared) live |= uses.variables;",
        LIVE,
    ),
    Defect(
        "live values: a variable that an atomic update changes is dropped",
        CORE + "live.cpp",
        "live |= uses.variables | uses.consumed;",
        "live = (live & ~uses.variables) | uses.consumed;",
        LIVE,
    ),
    Defect(
        "live values: a value that a variable keeps on one path is dropped",
        CORE + "live.cpp",
        "live &= ~uses.definite;",
        "live &= ~uses.variables;",
        LIVE,
    ),
    Defect(
        "live values: an observed value is dropped",
        CORE + "live.cpp",
        "last_ |= slot(c_.slot_of[e]);",
        "last_ |= slot(c_.slot_of[e]) & 0;",
        LIVE,
    ),
    Defect(
        "live values: not all that may be live after some events",
        CORE + "live.cpp",
        "for (size_t to = 0; to < found[move.to].size(); ++to) {",
        "for (size_t to = 0; to < 1; ++to) {",
        LIVE,
    ),
    Defect(
        "live values: dropped where one of them may be too large",
        EXPLORER,
        "plain = budget.plain if small else NEVER",
        "plain = budget.plain",
        LIVE,
    ),
    Defect(
        "interchangeable threads: constants that are computed with are exchanged",
        CORE + "symmetry.cpp",
        "return !event.gathers && all_move(event.closure);",
        "return !event.gathers;",
        SYMMETRY,
    ),
    Defect(
        "interchangeable threads: other constants, although they are no symbols",
        CORE + "symmetry.cpp",
        "return from.value == to.value;",
        "return true;",
        SYMMETRY,
    ),
    Defect(
        "interchangeable threads: the symbols are not exchanged",
        CORE + "symmetry.cpp",
        "if (symbol == value) return other;",
        "if (symbol == value) return symbol != other ? symbol : other;",
        SYMMETRY,
    ),
    Defect(
        "interchangeable threads: on other resources",
        CORE + "symmetry.cpp",
        "from.part != to.part || from.variables != to.variables ||",
        "from.part != to.part ||",
        SYMMETRY,
    ),
    Defect(
        "interchangeable threads: the observed values are not exchanged",
        CORE + "symmetry.cpp",
        "[&](size_t i) { return exchange.observations[i]; });",
        "[&](size_t i) { return i; });",
        SYMMETRY,
    ),
    Defect(
        "histories: a write occurs twice",
        "oracles/histories.py",
        "if last in sources and not writes & excluded:",
        "if last in sources and not writes & excluded & ~bit:",
        HISTORIES,
    ),
    Defect(
        "histories: none begins with a write that depends on no read",
        "oracles/histories.py",
        "            found.add((_known(store(())), write, 1 << write))\n",
        "",
        HISTORIES,
    ),
    Defect(
        "a mutex is not freed",
        CORE + "search.cpp",
        "kRelease: held = 0; return true;",
        "kRelease: held = 1; return true;",
    ),
    Defect(
        "a dequeue returns the newest element",
        CORE + "search.cpp",
        "returned = static_cast<Value>(elements_[element_]);",
        "returned = static_cast<Value>(elements_.back());",
    ),
    Defect(
        "constant folding takes the wrong branch",
        CORE + "fold.cpp",
        "token.inputs = {token.inputs[is_true(predicate) ? 1 : 2]};",
        "token.inputs = {token.inputs[is_true(predicate) ? 2 : 1]};",
    ),
    Defect(
        "a cluster's snapshot sees its first variable only",
        CORE + "evaluator.h",
        "std::vector<int64_t> own(ints.begin() + token.first, "
        "ints.begin() + token.first + token.count);",
        "std::vector<int64_t> own(ints.begin(), ints.begin() + token.count);",
    ),
    Defect(
        "a cluster's write-back ignores the path taken",
        CORE + "search.cpp",
        "if (evaluator_.holds(event.operands[2 * i + 1])) {",
        "{",
    ),
    Defect(
        "saturation: a write after one source comes after the read",
        CORE + "query.cpp",
        "{ later = later && before.test(other, write); }",
        "{ later = before.test(other, write); }",
    ),
    Defect(
        "components are split though they share a variable",
        CORE + "program.cpp",
        "      unions.join(e, of_variable(v));\n",
        "",
    ),
    Defect(
        "op instances are symmetric though their operands differ",
        CORE + "program.cpp",
        "        out.push_back(constant ? token.value : t);\n",
        "",
    ),
    Defect(
        "op instances are symmetric though only one's run is observed",
        CORE + "program.cpp",
        "out.push_back(out_.endings.test(i, e));",
        "out.push_back(0);",
    ),
    Defect(
        "sets of more than 64 events: the second word repeats the first",
        CORE + "program.h",
        "f(static_cast<int32_t>((w << 6) + static_cast<size_t>(__builtin_ctzll(rest))));",
        "f(static_cast<int32_t>(static_cast<size_t>(__builtin_ctzll(rest))));",
    ),
    Defect(
        "a scatter's repeated rows do not accumulate",
        CORE + "arithmetic.cpp",
        "cell = combine(op, cell, updates[updates.size() == 1 ? 0 : position]);",
        "cell = combine(op, old[static_cast<size_t>(row) * op.row_size + i], "
        "updates[updates.size() == 1 ? 0 : position]);",
    ),
    Defect(
        "the values that an update of two saw are exchanged",
        CORE + "arithmetic.cpp",
        "  Value var = seen[0], accum = seen[1];",
        "  Value var = seen[1], accum = seen[0];",
    ),
)


@contextmanager
def applied(defect: Defect) -> Iterator[None]:
    """Apply a defect to its file; restore the file at the end."""
    path = ROOT / defect.file
    text = path.read_text(encoding="utf-8")
    assert text.count(defect.old) == 1, defect.what
    try:
        path.write_text(text.replace(defect.old, defect.new), encoding="utf-8")
        yield
    finally:
        path.write_text(text, encoding="utf-8")


def is_caught(defect: Defect) -> bool:
    """Return True if the defect's tests fail."""
    with applied(defect):
        if defect.file.startswith(CORE):
            subprocess.run(["make", "setup"], cwd=ROOT, check=True, capture_output=True)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, defect.tests],
            cwd=ROOT,
            env=os.environ | {"LITMUSFUZZ_WHOLE": "1"},
            capture_output=True,
            check=False,
        )
    # 1: a test failed. A crash of the interpreter is a failure as well. Exit codes 2
    # to 5 (collection failed) prove nothing.
    return done.returncode == 1 or done.returncode < 0


def main() -> int:
    """Run all defects, or those whose description contains the given words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="?", default="")
    words = parser.parse_args().words
    missed = 0
    chosen = [defect for defect in DEFECTS if words in defect.what]
    try:
        for number, defect in enumerate(chosen, 1):
            caught = is_caught(defect)
            missed += not caught
            verdict = "caught" if caught else "MISSED"
            print(f"{number:2}/{len(chosen)} {verdict}  {defect.file}: {defect.what}", flush=True)
    finally:
        subprocess.run(["make", "setup"], cwd=ROOT, check=True, capture_output=True)
    print(f"{len(chosen) - missed} of {len(chosen)} caught")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
