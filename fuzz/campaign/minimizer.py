"""Minimizes a finding: runs each smaller test often enough, in new sessions.

`fuzz.finding.reducer` yields the smaller tests. Here each is run and judged. An executor is not
deterministic, so one run of a test says little.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.preemption_bounds import coarser
from litmusfuzz.fuzz.campaign.probing import Prober
from litmusfuzz.fuzz.campaign.recording import ScheduleRecorder
from litmusfuzz.fuzz.campaign.tuning import CONFIGURATION_SHARE
from litmusfuzz.fuzz.finding.configuration_reducer import (
    PutBack,
    has_space,
    simpler_configurations,
)
from litmusfuzz.fuzz.finding.driver import drive
from litmusfuzz.fuzz.finding.normalization import in_whole, normalize
from litmusfuzz.fuzz.finding.reducer import reduce, widened

if TYPE_CHECKING:
    import random

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.campaign.best import Best
    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.fuzz.campaign.slots import Slot
    from litmusfuzz.fuzz.campaign.target import Target
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.finding.judge import Judgement

MAX_REDUCTION_EXECUTIONS: Final = 1 << 24


class Minimizer:
    """Makes findings smaller on a worker slot: their configurations, their tests, their names.

    Parameters
    ----------
    settings : Settings

    Attributes
    ----------
    prober : Prober
        Says whether a smaller test shows the finding.
    recorder : ScheduleRecorder
    put_back : PutBack
        What is known of the settings that findings need.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.prober = Prober(settings)
        self.recorder = ScheduleRecorder()
        self.put_back = PutBack()

    async def reduce_configuration(
        self,
        slot: Slot,
        best: Best,
        rng: random.Random,
        *,
        lenient: bool = False,
    ) -> bool:
        """Find the simplest configuration in which `best` shows; False if there was no time.

        Before its test is reduced, a finding must show about as often there as in its own
        configuration: the reduction runs each smaller test there. In plain TensorFlow that takes
        seconds, and minutes where each test is compiled. Afterwards it is enough that it shows at
        all (`lenient`): a setting that only makes it more frequent is none that it needs.
        """
        end = clock.now() + CONFIGURATION_SHARE * self.settings.max_reduction_s
        if not (lenient or best.target.explorable or has_space(slot.executor.name, slot.config)):
            await self.recorder.record(slot, best, rng)
        if best.schedule is not None and not best.target.explorable:
            # A recorded execution, of this configuration alone, is worth more than a simpler one.
            return True

        async def shows(config: Config) -> bool:
            target = slot.executor.sample(config)
            if best.target.explorable and not target.explorable:
                return False  # control is no setting that it needs: it says how it is shown
            shown = await self._probe_in(slot, target, best, rng, end, lenient=lenient)
            if shown is not None:
                best.move(target, shown)
            return shown is not None

        if best.target.explorable:
            for config in coarser(slot.executor.name, best.target.config):
                if await shows(config):
                    break
        simpler = simpler_configurations(slot.executor.name, best.target.config, self.put_back)
        driven = await drive(simpler, shows, lambda: clock.now() < end)
        slot.switch_to(best.target)
        return driven.complete

    async def _probe_in(
        self,
        slot: Slot,
        target: Target,
        best: Best,
        rng: random.Random,
        end: float,
        *,
        lenient: bool,
    ) -> Judgement | None:
        """As `probe`, in another configuration, judged by what that guarantees."""
        slot.switch_to(target)
        if await slot.why_unavailable():
            return None
        there = copy(best)
        there.lenient = lenient
        return await self.prober.probe(slot, best.test, there, rng, end)

    async def reduce(self, slot: Slot, best: Best, rng: random.Random) -> bool:
        """Make `best` as small as possible; False if the time did not suffice."""
        end = clock.now() + self.settings.max_reduction_s
        if best.rate < 0.05 and not best.target.explorable:
            for wider in widened(best.test):
                shown = await self.prober.probe(slot, wider, best, rng, end)
                if shown is not None and shown.rate > 2 * best.rate:
                    best.improve(wider, shown)
                    break
        last = slot.executions + MAX_REDUCTION_EXECUTIONS

        async def shows(candidate: LitmusTest) -> bool:
            if _has_other_kernels(candidate, best):
                return False
            shown = await self.prober.probe(slot, candidate, best, rng, end)
            if shown is not None:
                best.improve(candidate, shown)
                await self.use_all_noise(slot, best, rng, end)
            return shown is not None

        driven = await drive(
            reduce(best.test), shows, lambda: clock.now() < end and slot.executions < last
        )
        if driven.complete:
            await self.use_all_noise(slot, best, rng, end, reduced=True)
        return driven.complete

    async def normalize(self, slot: Slot, best: Best, rng: random.Random) -> bool:
        """Give `best` canonical names and order, as far as it still shows as often.

        What makes it only more frequent stays in the test, and is none that it needs. False if the
        time did not suffice: what it needs is not known then.
        """
        end = clock.now() + CONFIGURATION_SHARE * self.settings.max_reduction_s

        async def shows(candidate: LitmusTest) -> bool:
            shown = await self.prober.probe(slot, candidate, best, rng, end)
            if shown is not None:
                best.improve(candidate, shown)
            return shown is not None

        _, needs = await drive(
            normalize(best.test, best.target.model), shows, lambda: clock.now() < end
        )
        if needs is None:
            return False
        if needs.names or needs.order:
            whole = in_whole(best.test, best.target.model)
            rarely = copy(best)
            rarely.lenient = True
            if await self.prober.probe(slot, whole, rarely, rng, end) is not None:
                return True
            if clock.now() >= end:
                return False
        best.needs_names, best.needs_order = needs.names, needs.order
        return True

    async def use_all_noise(
        self,
        slot: Slot,
        best: Best,
        rng: random.Random,
        end: float | None = None,
        *,
        reduced: bool = False,
    ) -> None:
        """Let many copies race, if the finding shows there too: they execute faster than one.

        Where it does not, that is tried again each time the test has half as many nodes, and once
        it is `reduced`: many copies of a large test leave no core free for ops that have to meet.
        """
        noise, nodes = self.settings.noise, len(best.test.nodes)
        if best.target.explorable:
            return
        if best.noise != noise and best.raced >= (nodes + 1 if reduced else 2 * nodes):
            best.raced = nodes
            there = replace(best, noise=noise)
            shown = await self.prober.probe(slot, best.test, there, rng, end)
            if shown is not None:
                best.noise, best.rate = noise, 0.0
                best.improve(best.test, shown)


def _has_other_kernels(candidate: LitmusTest, best: Best) -> bool:
    """True if a torn finding's candidate writes with a kernel that the finding does not have.

    What tears is a kernel: a simpler op in the place of another one would show its own tear.
    """
    if best.symptom != "torn":
        return False
    now, before = (
        Counter(n.definition.kernel_class for n in test.effects if n.definition.kind.writes)
        for test in (candidate, best.test)
    )
    return bool(now - before)
