"""Chooses the memory model that judges an executor; every command, test item and call asks here.

A configuration is judged by the model that it guarantees. Only an explicit choice weakens or
strengthens that: of the user, or of whoever recorded the finding that is replayed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration
from litmusfuzz.oracles.model import GUARANTEES
from litmusfuzz.reports.tables import the_model

if TYPE_CHECKING:
    from litmusfuzz.corpus.textfile import Finding
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.oracles.model import Model


class UnknownGuarantee(ValueError):
    """A configuration guarantees something that is no memory model; says which there are."""


@dataclass(frozen=True, slots=True)
class JudgingModel:
    """The model that judges, and why it is that one; as text, one line for a person."""

    model: Model
    why: str

    def __str__(self) -> str:
        return f"judged by {the_model(self.model.name)}, {self.why}"


def guaranteed(executor: str, config: Config) -> Model:
    """The memory model that a configuration guarantees.

    Raises
    ------
    UnknownGuarantee
    """
    if config.guarantees not in GUARANTEES:
        there = ", ".join(GUARANTEES)
        raise UnknownGuarantee(
            f"{executor}/{config.name} guarantees {config.guarantees!r:.80}, which is no memory"
            f" model; there are {there}"
        )
    return GUARANTEES[config.guarantees]


def judging_model(
    executor: str,
    config: Config,
    *,
    asked: Model | None = None,
    asked_by: str = "--model",
    finding: Finding | None = None,
) -> JudgingModel:
    """The model that judges what an executor shows in a configuration.

    Parameters
    ----------
    executor : str
    config : Config
    asked : Model, optional
        What the user asks for.
    asked_by : str
        How: the option or the argument.
    finding : Finding, optional
        Of the file that is run. It was judged by the model that it names, which counts where it
        was seen: on this executor in this configuration.

    Raises
    ------
    UnknownGuarantee
    """
    on, keeps = f"{executor}/{config.name}", guaranteed(executor, config)
    if asked is not None:
        chosen, why = asked, f"as {asked_by} asks"
    elif finding is not None and finding.executor == executor and _is_of(finding, config):
        chosen, why = GUARANTEES[finding.model], "which the finding's file names"
    else:
        return JudgingModel(keeps, f"which {on} guarantees")
    differs = "" if chosen == keeps else f"; {on} guarantees {keeps.name}"
    return JudgingModel(chosen, why + differs)


def _is_of(finding: Finding, config: Config) -> bool:
    """True if a finding was seen in that configuration, whichever way its file writes the name."""
    if finding.configuration == config.name:
        return True
    try:
        return configuration(finding.executor, finding.configuration).name == config.name
    except UnknownExecutor:  # a name of another version
        return False
