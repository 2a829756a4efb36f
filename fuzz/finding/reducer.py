"""Test-case reducer: yields smaller and smaller litmus tests while the caller accepts them.

The reducer runs no test. It generates candidates with the passes of
`fuzz.finding.reduction_passes`, and repeats the passes until none of them succeeds. The caller
runs each candidate and answers whether it still shows the finding. Executors are nondeterministic,
so the caller decides how many executions that takes; Hypothesis's shrinker would call such a test
flaky.

References
----------
MacIver, Hypothesis, ``shrinker.py`` (class docstring): passes to a fixed point.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import LitmusTest, MalformedTest
from litmusfuzz.corpus.rewriter import Rewriter
from litmusfuzz.fuzz.finding.reduction_passes import PASSES
from litmusfuzz.fuzz.finding.resource_passes import wider_lanes

if TYPE_CHECKING:
    from litmusfuzz.fuzz.finding.reduction_parts import Pass

Reduction = Generator[LitmusTest, bool, LitmusTest]
"""Yields candidates, receives True for each that still shows the finding, and returns the smallest
of these."""


def reduce(test: LitmusTest) -> Reduction:
    """Reduce `test` as long as a candidate is accepted.

    A reduction ends: every candidate is a valid test, smaller than the last accepted one in some
    respect, and no candidate is yielded twice.

    Unused nodes are removed together, which is a candidate of its own: as long as that is not
    accepted, no other candidate loses them, and it is tried again after each round of passes.
    """
    asked = {test}
    current = test
    tidies = False
    progress = True
    while progress:
        progress = False
        for tidied in () if tidies else _valid(iter([Rewriter.of(current)]), tidies=True):
            if tidied == current:
                tidies = True
            elif tidied not in asked:
                asked.add(tidied)
                if (yield tidied):
                    current, tidies = tidied, True
        for pass_ in PASSES:
            improved = True
            while improved:
                improved = False
                for candidate in _valid(pass_(current), tidies=tidies):
                    if candidate in asked:
                        continue
                    asked.add(candidate)
                    if (yield candidate):
                        current = candidate
                        progress = improved = True
                        break
    return current


def candidates(pass_: Pass, test: LitmusTest) -> Iterator[LitmusTest]:
    """The valid candidates of one pass."""
    return _valid(pass_(test), tidies=True)


def _valid(rewriters: Iterator[Rewriter], *, tidies: bool) -> Iterator[LitmusTest]:
    """Build the rewritten tests, without unused nodes if it `tidies`; skip those not valid.

    Captures and results stay until a pass removes them: a call waits for what it captures, whether
    it uses it or not.
    """
    for rewriter in rewriters:
        try:
            made = rewriter.tidy(nodes=tidies, captures=False, results=False).build()
        except MalformedTest:
            continue
        yield made


def widened(test: LitmusTest) -> Iterator[LitmusTest]:
    """The test with more lanes, if possible, because wider values tear more often.

    Widening is no reduction pass. It precedes the reduction, so that its effect can be measured.
    """
    yield from _valid(wider_lanes(test), tidies=False)
