"""Experiments that decide whether a known cause explains a finding.

A *cause* is a minimized test with the settings that it needs. It explains a minimized finding if
the finding is the same defect as far as executions can tell:

1. *Shape*: the finding's test contains the cause's ops, in the same relations. If no ops race in
   the cause, an op of it is wrong: none race in the finding, which has its last pure ops too.
2. *Trigger*: with an order between the ops that race in the cause, the finding is gone. If none
   race there, it is gone with constants in place of the pure ops whose values show the cause.
   Programs whose outcome program order decides (the model `sequential`) have no ops that race.
3. *Settings*: the finding's test shows its symptom in the cause's settings. Where settings were put
   back one by one, one of the two needs all settings that the other needs.
4. *Test*: where the cause's settings are not among the finding's, or its symptom is another, the
   cause's test shows the finding's symptom in the finding's settings. Whether a value is torn is
   undecided where lanes differ.

A single experiment that fails sets the two apart. "Not seen" counts only after so many executions
that a miss has less than one chance in `MISS_ODDS`; where that takes too many, the two are
*undecided*, and both are kept. The odds are those of runs, each built anew, because the executions
of one run are not independent.

Where all schedules of a test can be executed, no odds are left: what none of them shows, the test
does not show. A search that its budget has ended says nothing about what it has not shown.

`compare` runs nothing. It yields a `Trial` at a time, and receives what its executions showed
(`Tally`), as the reducer does with its candidates. docs/decisions/0012-known-findings.md says what
the rule cannot tell apart.

References
----------
Zeller, "Isolating Cause-Effect Chains from Computer Programs", FSE 2002: a cause is what must be
changed for the failure to disappear. Garwood, "Fiducial Limits for the Poisson Distribution",
Biometrika 1936: the bound on a rate.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.finding.race_shapes import (
    computes_the_same,
    contains,
    races_of,
    without_causes,
)
from litmusfuzz.fuzz.finding.reducer import widened
from litmusfuzz.fuzz.finding.trials import Case, Experiment, Reason, Tally, Trial
from litmusfuzz.oracles.model import Axiom

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.corpus.model import LitmusTest

MISS_ODDS: Final = 1000
"""A defect that is there is missed in less than one of so many experiments."""
CONTROL_RUNS: Final = 12
"""Runs that show a finding, from which its rate is estimated, if that is possible."""


class Verdict(StrEnum):
    """The result of a comparison."""

    EXPLAINED = "explained"
    NEW = "new"
    UNDECIDED = "undecided"


# --- odds ------------------------------------------------------------------------------


def lower_bound(hits: int, risk: float) -> float:
    """The Poisson mean that shows `hits` or more with probability `risk`, a lower bound."""
    if not hits:
        return 0.0

    def reaches(mean: float) -> float:
        """Probability of `hits` or more."""
        term = total = math.exp(-mean)
        for number in range(1, hits):
            term *= mean / number
            total += term
        return 1.0 - total

    low, high = 0.0, float(hits)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if reaches(middle) > risk else (middle, high)
    return low


def executions_needed(hits: int, executions: int) -> float:
    """Executions after which not seeing a finding has less than one chance in `MISS_ODDS`.

    The rate is itself an estimate. Half of the risk is that it is below its bound, the other half
    that executions at that bound show nothing. Infinite without hits.

    Hits must be independent. Executions of one run are not: they share its order and padding, and
    the load of that moment, so that a race shows in half of one run and in none of the next ten.
    `compare` therefore takes a run that shows a finding for one hit, and runs of one length.

    Parameters
    ----------
    hits, executions : int
        How often the finding showed, and in how many executions.
    """
    risk = 1 / (2 * MISS_ODDS)
    bound = lower_bound(min(hits, 200), risk) / max(1, executions)  # more would not be tighter
    return math.log(1 / risk) / bound if bound else math.inf


# --- comparisons -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict on a finding and a cause, and the experiments that led to it."""

    verdict: Verdict
    why: str
    experiments: tuple[Experiment, ...] = field(default=())


BEHIND: Final = "shows without what the cause needs"
"""Why a finding is new whose test also has the races of the cause: something hides behind these."""


Comparing = Generator[Trial, Tally, Comparison]


# --- the rule --------------------------------------------------------------------------


def compare(finding: Case, cause: Case, control: Experiment | None = None) -> Comparing:
    """Decide whether a cause explains a finding.

    Parameters
    ----------
    finding, cause : Case
        Of one executor.
    control : Experiment, optional
        How often the finding shows in its own settings, if that was measured before.
    """
    if control is None:
        control = yield from _run(control_trial(finding))
    done = [control]
    if not control.seen:
        return Comparison(Verdict.UNDECIDED, "the finding does not show again", tuple(done))
    if not contains(cause.test, finding.test, strict=True):
        return Comparison(Verdict.NEW, "shows without the ops of the cause", tuple(done))
    if _races(finding) and not _races(cause):
        return Comparison(Verdict.NEW, "its ops race, those of the cause do not", tuple(done))
    if finding.as_it_stands is not cause.as_it_stands:
        # The reduction has run it under other names.
        needs = "shows" if finding.as_it_stands else "the cause shows"
        why = f"{needs} only under its names, or in its order of nodes"
        return Comparison(Verdict.NEW, why, tuple(done))
    if finding.is_large is not cause.is_large:
        # The reduction has run it with fewer lanes.
        needs = "shows" if finding.is_large else "the cause shows"
        return Comparison(Verdict.NEW, f"{needs} only in large tensors", tuple(done))
    if finding.minimal_needs and cause.minimal_needs and not _comparable(finding, cause):
        return Comparison(Verdict.NEW, "needs other settings than the cause", tuple(done))
    needed, length = executions_needed(control.showing, control.executions), control.length
    symptoms = finding.symptoms[:1]
    undecided = []

    without = _without(finding, cause)
    if without is None:
        undecided.append("what the cause needs cannot be taken out")
    elif without != finding.test:
        trial = Trial(Reason.TRIGGER, without, finding, symptoms, 1, needed, length)
        done.append((yield from _run(trial)))
        if done[-1].shows:
            return Comparison(Verdict.NEW, BEHIND, tuple(done))
        if done[-1].shows is None:
            undecided.append("whether it shows without what the cause needs")
    elif _differ(finding, cause):
        return Comparison(Verdict.NEW, "its pure ops are others", tuple(done))

    if cause.needs != finding.needs:
        there = replace(finding, config=cause.config)
        trial = Trial(Reason.SETTINGS, finding.test, there, symptoms, 1, needed, length)
        done.append((yield from _run(trial)))
        if done[-1].shows is False:
            return Comparison(Verdict.NEW, "does not show in the cause's settings", tuple(done))
        if done[-1].shows is None:
            undecided.append("whether it shows in the cause's settings")

    same = symptoms[0] in cause.symptoms
    if not same and _shows_tears_as_wrong(finding, cause):
        undecided.append("whether a value is torn: in one of the two, lanes differ")
        same = True
    elif not same and (wide := next(widened(finding.test), None)) is not None:
        # In a test with one lane, a torn value shows as a wrong one.
        trial = Trial(Reason.TEST, wide, finding, cause.symptoms, 1, needed, length)
        done.append((yield from _run(trial)))
        same = bool(done[-1].shows)
    if not (same and cause.needs <= finding.needs):
        there = replace(cause, config=finding.config)
        wanted = cause.symptoms if same else symptoms
        if same:  # how often the cause shows is asked of its own test
            own = yield from _run(control_trial(cause, cause.symptoms))
            done.append(own)
            needed, length = executions_needed(own.showing, own.executions), own.length
        test = cause.test if same else next(widened(cause.test), cause.test)
        trial = Trial(Reason.TEST, test, there, wanted, 1, needed, length)
        done.append((yield from _run(trial)))
        if done[-1].shows is False:
            why = "the cause's test does not show " + ("it there" if same else "this symptom")
            return Comparison(Verdict.NEW, why, tuple(done))
        if done[-1].shows is None:
            undecided.append("whether the cause's test shows it")
    if undecided:
        return Comparison(Verdict.UNDECIDED, "; ".join(undecided), tuple(done))
    return Comparison(Verdict.EXPLAINED, "", tuple(done))


def _shows_tears_as_wrong(finding: Case, cause: Case) -> bool:
    """True if their symptoms may differ only because the values of one are whole tensors.

    There the lanes of a value may differ, so that a torn one shows as a wrong one, and never as
    torn.
    """
    one, other = finding.symptoms[0], cause.symptoms
    if finding.test.whole:
        return not cause.test.whole and one == "wrong" and "torn" in other
    return cause.test.whole and one == "torn" and "wrong" in other


def _races(case: Case) -> bool:
    """True if ops of its test race; where program order alone decides, none do."""
    return Axiom.SEQUENCE not in case.model.axioms and races_of(case.test).any


def _differ(finding: Case, cause: Case) -> bool:
    """True if nothing races in two findings, and their pure ops differ.

    Of programs whose order decides all, settings alone say what is one cause.
    """
    if Axiom.SEQUENCE in finding.model.axioms or _races(finding) or _races(cause):
        return False
    return not computes_the_same(finding.test, cause.test)


def _without(case: Case, *causes: Case) -> LitmusTest | None:
    """The test without what the causes need, as of `without_causes`.

    Where program order alone decides, no ops race, whatever edges and windows of loops a test has.
    """
    if Axiom.SEQUENCE in case.model.axioms:
        return case.test
    return without_causes(case.test, *(each.test for each in causes))


def _comparable(finding: Case, cause: Case) -> bool:
    """True if one needs all settings that the other needs."""
    return finding.needs <= cause.needs or cause.needs <= finding.needs


def check_look_alike(
    unreduced: Case, causes: Sequence[Case], control: Experiment, count: int
) -> Comparing:
    """Decide whether a test that is not minimized shows anything beside known causes.

    It must show the same with no more settings than one of the causes needs, and nothing once what
    the causes need is taken out (`without_causes`). The test without it has at least `count`
    executions and four times as many at most: a defect that hides in it is of unknown rate. If
    nothing can be taken out, as no ops race in the causes and none is pure, it counts as explained.

    Parameters
    ----------
    unreduced : Case
    causes : sequence of Case
        Causes whose ops it contains, and which show in its configuration.
    control : Experiment
        How often it showed a forbidden outcome.
    count : int
        Executions of a test in the campaign.
    """
    needed = executions_needed(control.seen, control.executions)
    done = [control]
    there = yield from _in_fewer_settings(unreduced, causes, needed, done)
    if there is False:
        why = "does not show in the settings of known causes"
        return Comparison(Verdict.NEW, why, tuple(done))
    undecided = [] if there else ["whether it shows in the settings of known causes"]
    without = _without(unreduced, *causes)
    if without is None:
        undecided.append("what known causes need cannot be taken out")
    elif without != unreduced.test:
        enough = min(4 * count, max(count, needed))
        wanted = tuple(dict.fromkeys((*unreduced.symptoms, "torn", "wrong")))
        trial = Trial(Reason.TRIGGER, without, unreduced, wanted, 1, enough)
        done.append((yield from _run(trial)))
        if done[-1].shows:
            return Comparison(Verdict.NEW, BEHIND, tuple(done))
        if done[-1].shows is None:
            undecided.append("whether it shows without what known causes need")
    if undecided:
        return Comparison(Verdict.UNDECIDED, "; ".join(undecided), tuple(done))
    return Comparison(Verdict.EXPLAINED, "", tuple(done))


def _in_fewer_settings(
    unreduced: Case, causes: Sequence[Case], needed: float, done: list[Experiment]
) -> Generator[Trial, Tally, bool | None]:
    """True if a test shows in the settings of one of the causes, which are among its own."""
    configs = {each.needs: each.config for each in causes}
    if not configs or unreduced.needs in configs:
        return True
    answers = []
    for _, config in sorted(configs.items(), key=lambda each: -len(each[0])):
        there = replace(unreduced, config=config)
        trial = Trial(Reason.SETTINGS, unreduced.test, there, unreduced.symptoms, 1, needed)
        done.append((yield from _run(trial)))
        if done[-1].shows:
            return True
        answers.append(done[-1].shows)
    return None if None in answers else False


def control_trial(case: Case, symptoms: tuple[str, ...] = ()) -> Trial:
    """How often a case shows its first symptom, or one of `symptoms`, in its own settings."""
    wanted = symptoms or case.symptoms[:1]
    return Trial(Reason.CONTROL, case.test, case, wanted, CONTROL_RUNS, math.inf)


def _run(trial: Trial) -> Generator[Trial, Tally, Experiment]:
    return result_of(trial, (yield trial))


def result_of(trial: Trial, tally: Tally) -> Experiment:
    """A trial with its result."""
    needed = None if math.isinf(trial.needed) else math.ceil(trial.needed)
    return Experiment(
        trial.reason,
        trial.test,
        trial.case.config.name,
        trial.symptoms,
        needed,
        tally.executions,
        tally.seen,
        tally.problem,
        tally.showing,
        tally.length,
        tally.searched,
    )
