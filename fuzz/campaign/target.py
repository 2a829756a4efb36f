"""A target: the configuration of an executor in which tests run, and what judges them there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from litmusfuzz.fuzz.campaign.preemption_bounds import switches_inside
from litmusfuzz.fuzz.finding.canonical import executor_class

if TYPE_CHECKING:
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.oracles.model import Model


@dataclass(frozen=True, slots=True)
class Target:
    """A configuration of an executor, and the model that judges its outcomes.

    Parameters
    ----------
    executor : str
        Name of the executor.
    config : Config
    model : Model
    finding_class : str
        The part of a finding's key that says on which kind of executor it shows
        (`fuzz.finding.canonical.executor_class`).
    """

    executor: str
    config: Config
    model: Model
    finding_class: str

    @classmethod
    def of(cls, executor: str, config: Config, model: Model) -> Target:
        """A configuration that this model judges, with the class of its findings."""
        found = executor_class(executor, dict(config.settings), model.name)
        return cls(executor, config, model, found)

    @property
    def explorable(self) -> bool:
        """True if it is under control: all schedules of a test can be executed."""
        return switches_inside(self.executor, self.config) is not None

    @property
    def title(self) -> str:
        """Executor and configuration."""
        return f"{self.executor}/{self.config.name}"
