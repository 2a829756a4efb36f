"""Runs the canary, the executor that always shows something forbidden: a check of the campaign."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.fuzz.campaign.job import Job
from litmusfuzz.fuzz.campaign.scheduler import Lane, Work
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.finding.judge import judge
from litmusfuzz.reports.events import CanaryRun

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from litmusfuzz.fuzz.campaign.campaign_executor import GeneratedTest
    from litmusfuzz.fuzz.campaign.parts import Parts
    from litmusfuzz.fuzz.campaign.slots import Slot


class Canary(Lane):
    """Tests that wait for the canary."""

    name = "canary"

    def __init__(self, parts: Parts) -> None:
        self.course = parts.course
        self.log = parts.log

    def peek(self, slot: Slot) -> Work | None:
        """The test that has waited longest."""
        if not slot.canary or not slot.executor.waiting or self.course.time_left_s <= 0:
            return None
        return Work(self.name, slot.executor.waiting[0])

    def start(self, slot: Slot, work: Work) -> Coroutine[Any, Any, None]:
        """Run it."""
        taken = slot.executor.take()
        assert taken is work.about
        return self._run(slot, taken)

    async def _run(self, slot: Slot, generated: GeneratedTest) -> None:
        self.log.flush()  # that it was generated
        result = await slot.run(Job(generated.test, 1, Noise(), 0))
        if isinstance(result, dict):
            oracle = next(iter(generated.oracles.values()))  # every model forbids its outcome
            judgement = judge(oracle, result)
            if Verdict.UNKNOWN not in judgement.verdicts:  # the fuzzed executor counts it
                self.log(CanaryRun(reported=judgement.forbidden_count > 0))
