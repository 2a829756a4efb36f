"""Configurations, and the space of an executor, as the events of a campaign have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.ops import OPS
from litmusfuzz.fuzz.executors.configuration_generator import PRODUCT
from litmusfuzz.fuzz.executors.configuration_space import HasConfigurationSpace
from litmusfuzz.fuzz.executors.table import executor_class
from litmusfuzz.fuzz.finding.canonical import executor_class as class_of
from litmusfuzz.fuzz.finding.judging_model import judging_model
from litmusfuzz.reports.events import Configured, Space

if TYPE_CHECKING:
    from collections.abc import Iterable

    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.oracles.model import Model


def configured(executor: str, config: Config, model: Model | None, group: int = 0) -> Configured:
    """A configuration.

    Parameters
    ----------
    executor : str
    config : Config
        May stand for all generated configurations (`PRODUCT`): each of these has its own guarantee.
    model : Model or None
        Judges all outcomes; None for the model that each configuration guarantees.
    group : int
        A test runs in some of the configurations of a group.
    """
    if config.name == PRODUCT:
        judged_by = model.name if model else ""
        return Configured(executor, PRODUCT, "", judged_by, f"{executor}/{PRODUCT}", group)
    judging = judging_model(executor, config, asked=model).model
    made = executor_class(executor)
    point = made.point_of(config) if isinstance(made, HasConfigurationSpace) else None
    return Configured(
        executor,
        config.name,
        config.guarantees,
        judging.name,
        class_of(executor, dict(config.settings), judging.name),
        group,
        point or {},
    )


def spaces(configurations: Iterable[Configured]) -> dict[str, Space]:
    """The spaces of those executors that run several configurations, by executor."""
    found: dict[str, Space] = {}
    names: dict[str, set[str]] = {}
    for each in configurations:
        names.setdefault(each.executor, set()).add(each.name)
    for executor, of in names.items():
        made = executor_class(executor)
        if isinstance(made, HasConfigurationSpace) and (len(of) > 1 or PRODUCT in of):
            space = made.space
            impossible = tuple((*one, *other) for one, other in space.impossible)
            takes = made.support.takes_op
            ops = tuple(name for name, op in OPS.items() if op.has_effect and takes(name))
            found[executor] = Space(dict(space.values), impossible, ops, space.seldom)
    return found
