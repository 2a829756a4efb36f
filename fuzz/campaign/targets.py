"""The executors of a campaign, and the targets in which their tests run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.fuzz.campaign.campaign_executor import CampaignExecutor
from litmusfuzz.fuzz.campaign.candidate import Candidate, State
from litmusfuzz.fuzz.campaign.configured import configured
from litmusfuzz.fuzz.campaign.sampler import ConfigurationSampler, SampledConfiguration
from litmusfuzz.fuzz.campaign.target import Target
from litmusfuzz.fuzz.executors.configuration_generator import PRODUCT, ConfigurationGenerator
from litmusfuzz.fuzz.executors.protocol import Clusters, Noise, Packing
from litmusfuzz.fuzz.executors.table import CANARY, configuration, executor_class
from litmusfuzz.fuzz.finding.judge import Judgement, explorer_or_none
from litmusfuzz.fuzz.finding.judging_model import guaranteed, judging_model
from litmusfuzz.reports.events import ConfigurationGenerated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from litmusfuzz.corpus.textfile import Entry, Finding
    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.reports.events import Event


class Targets:
    """Makes the executors of a campaign.

    Parameters
    ----------
    settings : Settings
    log : callable
        Receives an event for each configuration that is generated.
    """

    def __init__(self, settings: Settings, log: Callable[[Event], None]) -> None:
        self.settings = settings
        self.log = log

    def executors(self) -> list[CampaignExecutor]:
        """Those that the settings name, and the canary."""
        every = (*self.settings.executors, (CANARY, configuration(CANARY)))
        return [self._executor(n, name, configs) for n, (name, *configs) in enumerate(every)]

    def _executor(self, number: int, name: str, configs: Sequence[Config]) -> CampaignExecutor:
        settings, implementation = self.settings, executor_class(name)
        presets = [config for config in configs if config.name != PRODUCT]
        sampler = ConfigurationSampler(
            [SampledConfiguration(self.target(name, config)) for config in presets],
            settings.options.tests or settings.time_s,
            counted=settings.counted,
            generate=next(
                (self._generator(name, each) for each in configs if each.name == PRODUCT), None
            ),
        )
        return CampaignExecutor(
            name,
            sampler,
            () if name == CANARY else settings.families_for_executor(name),
            implementation.support,
            implementation if issubclass(implementation, Clusters) else None,
            getattr(implementation, "damaging_ops", frozenset()),
            deadly_ops=frozenset(settings.options.deadly_ops),
            packing=implementation if issubclass(implementation, Packing) else None,
            sample=partial(self._simpler, name),
            number=number,
        )

    def _generator(self, name: str, product: Config) -> Callable[[], SampledConfiguration]:
        """Generates further configurations of an executor, each with an event."""
        generator = ConfigurationGenerator(name, self.settings.options.seed, product)

        def generate() -> SampledConfiguration:
            config = generator.next()
            described = configured(name, config, self.settings.model)
            self.log(ConfigurationGenerated(configuration=described))
            return SampledConfiguration(self.target(name, config))

        return generate

    def target(self, name: str, config: Config) -> Target:
        """A configuration that tests run in."""
        judging = judging_model(name, config, asked=self.settings.model)
        return Target.of(name, config, judging.model)

    def _simpler(self, name: str, config: Config) -> Target:
        """A configuration in which a finding of another one is tried.

        It is judged by what it guarantees, or by the campaign's model if that is weaker.
        """
        model, keeps = self.settings.model, guaranteed(name, config)
        weaker = model is not None and model.axioms <= keeps.axioms
        return Target.of(name, config, model if model and weaker else keeps)

    def candidates(
        self, executors: Sequence[CampaignExecutor], entries: Sequence[Entry], state: State
    ) -> Iterator[Candidate]:
        """The candidates that earlier shards left as files, if they can be judged."""
        for entry in entries:
            finding = entry.finding
            assert finding is not None
            executor, target = self._found_in(executors, finding)
            oracle = explorer_or_none(entry.test, target.model, self.settings.budget)
            if oracle is None:  # of another version, or of a stranger: it stays as it is
                continue
            verdicts = {
                Verdict.FORBIDDEN: finding.count,
                Verdict.ALLOWED: finding.executions - finding.count,
            }
            yield Candidate(
                index=finding.index,
                family=finding.family,
                test=entry.test,
                executor=executor.number,
                target=target,
                judgement=Judgement(
                    oracle,
                    dict(finding.forbidden),
                    verdicts,
                    finding.forbidden,
                    finding.schedule,
                ),
                noise=Noise(**cast("dict[str, Any]", dict(finding.noise))),
                seed=finding.run_seed or 0,
                past=(state,),
            )

    def _found_in(
        self, executors: Sequence[CampaignExecutor], finding: Finding
    ) -> tuple[CampaignExecutor, Target]:
        """The executor and target of an unreduced finding; that may be a generated one."""
        candidates = [each for each in executors if each.name == finding.executor]
        for executor in candidates:
            for sampled in executor.sampler.configurations:
                if sampled.config.name == finding.configuration:
                    return executor, sampled.target
        config = configuration(finding.executor, finding.configuration)
        return candidates[0], self.target(finding.executor, config)
