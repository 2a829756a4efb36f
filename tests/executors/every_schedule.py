"""Every schedule of ops of TensorFlow, against what the model allows without a split update.

``python -m tests.executors.every_schedule --tests 2000 --seed 1`` executes all schedules of the
corpus's tests and of random ones of every family, as far as `tf:controlled` runs them and they have
at most ``--limit`` schedules; of the others it samples ``--samples``. What is shown must be what
is allowed; a test in which TensorFlow may do less (`reason_for_less`) must show nothing else. It
prints how many tests were equal, less, sampled, undecided by the oracle and refused, each of them
by name but the equal and the refused ones, and exits with 1 if some test shows something else, or
does not repeat.
Interrupted, it prints how far it came.

With ``--configuration "compiled=clusters;control=ops"``, or another one under control that
guarantees another model, all that is shown must be allowed by that; or by the clusters that
TensorFlow has chosen, which are unsound then, as without control. It may be less.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from litmusfuzz import corpus
from litmusfuzz.corpus.model import LoopAttrs
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.textfile import load
from litmusfuzz.fuzz.campaign.cluster_validation import judge_clusters
from litmusfuzz.fuzz.executors.protocol import Clustered, Diverged, Explorable, Noise, Refused
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow.executor import TensorFlowExecutor
from litmusfuzz.fuzz.generators import FAMILIES, NotGenerated, generate
from litmusfuzz.oracles.errors import NoAllowedSet
from litmusfuzz.oracles.explorer import DEFAULT_BUDGET, Explorer
from litmusfuzz.oracles.model import EXECUTOR, GUARANTEES, unsplit
from litmusfuzz.oracles.translation import Soundness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.protocol import Config

UNSPLIT = unsplit(EXECUTOR)
"""Under control op by op, an update happens at once."""
LITMUS: Final = Path(corpus.__file__).parent / "litmus"
CONTROLLED: Final = configuration("tf", "controlled")
_STILL: Final = Noise(copies=1, steps=1, shuffle=False, padding=0)
_WINDOW: Final = 10
"""Iterations of a loop that may be at work at once, if it does not say otherwise."""
_LINE: Final = 100
"""Tests between two lines of progress."""


def reason_for_less(test: LitmusTest) -> str:
    """Why TensorFlow may show less of a test than the model allows; "" if there is no reason."""
    ops = {node.op for node in test.nodes}
    if any("Many" in op or "UpTo" in op for op in ops):
        return "elements that TensorFlow moves at once"
    if "While" in ops and any(node.device for node in test.nodes):
        return "a loop's window, which each device keeps by itself"
    loops = [node.attrs for node in test.nodes if isinstance(node.attrs, LoopAttrs)]
    if any(len(loop.carried) > 1 and loop.parallel_iterations < _WINDOW for loop in loops):
        # Its first iteration ends when that is there, and frees the window for a later one.
        return "a small window, in which a loop waits for all values that it starts with"
    return ""


def within(test: LitmusTest, config: Config, limit: int, samples: int) -> tuple[str, str]:
    """How the outcomes shown compare with what a configuration guarantees, and its clusters."""
    model = GUARANTEES[config.guarantees]
    with closing(TensorFlowExecutor().prepare(test, config)) as prepared:
        assert isinstance(prepared, Explorable)
        found = prepared.explore(limit)
        seen = set(found.histogram)
        if not found.complete:
            seen |= set(prepared.run(samples, _STILL, 1))
        chosen = prepared.clusters_run() if isinstance(prepared, Clustered) else ()
    explorers = [Explorer(test, model)]
    verdicts = {each: explorers[0].judge(each) for each in seen}
    more = {each for each, verdict in verdicts.items() if verdict is Verdict.FORBIDDEN}
    if not more:
        unknown = Verdict.UNKNOWN in verdicts.values()
        return ("undecided", "over the oracle's budget") if unknown else ("within", "")
    said = "; ".join(map(str, sorted(more, key=str)))
    for each in chosen:
        judged = judge_clusters(test, each, DEFAULT_BUDGET)
        if judged.verdict == Soundness.UNSOUND:
            clustered = Explorer(judged.test, model)
            more -= {one for one in more if clustered.judge(one) is Verdict.ALLOWED}
            said += f" (unsound: {'; '.join(judged.reason)})"
            if judged.lost:
                more.clear()
        elif judged.problem:
            said += f" ({judged.problem})"
    return ("forbidden" if more else "unsound"), said


def compared(test: LitmusTest, limit: int, samples: int) -> tuple[str, str]:
    """How the outcomes shown compare with those allowed, and what is to be said of it."""
    witnesses = Explorer(test, UNSPLIT, loosest=True).allowed_outcomes()
    if not witnesses.complete:
        return "undecided", "over the oracle's budget"
    allowed = set(witnesses.witnesses)
    with closing(TensorFlowExecutor().prepare(test, CONTROLLED)) as prepared:
        found = prepared.explore(limit)  # type: ignore[union-attr]
        seen, schedules = set(found.histogram), sum(found.histogram.values())
        if not found.complete:
            seen |= set(prepared.run(samples, _STILL, 1))
    # An execution may block because TensorFlow waits for more than the model asks of it.
    judge = Explorer(test, UNSPLIT).judge
    more = {each for each in seen - allowed if judge(each) is not Verdict.ALLOWED}
    if more:
        return "forbidden", "; ".join(map(str, sorted(more, key=str)))
    if not found.complete:
        return "sampled", f"{len(seen)} of {len(allowed)} outcomes, over {schedules} schedules"
    if less := allowed - seen:
        lacking = f"{len(less)} of {len(allowed)} not shown, such as {min(map(str, less))}"
        if seen - allowed:
            return "less", f"{lacking}: TensorFlow blocks there, and waits for more than it has to"
        if reason := reason_for_less(test):
            return "less", f"{lacking}: {reason}"
        return "different", lacking
    return "equal", ""


def tests(count: int, seed: int) -> Iterator[tuple[str, LitmusTest]]:
    """The corpus's tests, then random ones of all families in turn."""
    for path in sorted(LITMUS.glob("*.yaml")):
        yield path.stem, load(path).test
    families = [name for name in FAMILIES if name != "mutations"]
    made = index = 0
    while made < count:
        family = families[index % len(families)]
        index += 1
        try:
            test = generate(family, seed, index, TensorFlowExecutor.support)
        except NotGenerated:
            continue
        made += 1
        yield f"{family} {index} of seed {seed}", test


def main() -> int:
    """Compare, and print."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--tests", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=100_000)
    parser.add_argument("--samples", type=int, default=2_000)
    parser.add_argument("--configuration", default=CONTROLLED.name)
    parser.add_argument("--part", default="0/1", help="0/2 and 1/2 are the halves")
    args = parser.parse_args()
    part, parts = map(int, args.part.split("/"))
    config = configuration("tf", args.configuration)
    for name, value in config.environment:  # before TensorFlow has made a graph
        os.environ[name] = value
    kinds: Counter[str] = Counter()
    try:
        for number, (name, test) in enumerate(tests(args.tests, args.seed)):
            if number % parts != part:
                continue
            try:
                if config == CONTROLLED:
                    kind, said = compared(test, args.limit, args.samples)
                else:
                    kind, said = within(test, config, args.limit, args.samples)
            except Refused as reason:
                kind, said = "refused", str(reason)
            except NoAllowedSet as reason:
                kind, said = "refused", f"no allowed set: {reason}"
            except Diverged as reason:
                kind, said = "diverged", str(reason)
            kinds[kind] += 1
            if kind not in ("equal", "within", "refused"):
                print(f"{kind}: {name}: {said}", flush=True)
            if sum(kinds.values()) % _LINE == 0:
                print(f"... {dict(kinds.most_common())}", flush=True)
    except KeyboardInterrupt:
        print("interrupted")
    print(f"{sum(kinds.values())} tests: {dict(kinds.most_common())}")
    return 1 if kinds["forbidden"] or kinds["different"] or kinds["diverged"] else 0


if __name__ == "__main__":
    sys.exit(main())
