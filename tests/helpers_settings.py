"""Settings of campaigns for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litmusfuzz.fuzz.campaign.settings import Settings
from litmusfuzz.reports.events import Options

if TYPE_CHECKING:
    from litmusfuzz.fuzz.executors.protocol import Config

OUT = Path("out")


def settings_of(
    seed: int = 1,
    out: Path = OUT,
    executors: tuple[tuple[str, *tuple[Config, ...]], ...] = (),
    time_s: float = 60.0,
    *,
    families: Iterable[str] | Mapping[str, float] = (),
    **changes: Any,
) -> Settings:
    """Settings of a campaign; of the changes, what is an option goes to its options."""
    asked = {name: changes.pop(name) for name in Options.__struct_fields__ if name in changes}
    weights = families if isinstance(families, Mapping) else dict.fromkeys(families, 1.0)
    options = Options(seed=seed, asked_s=time_s, families=weights, **asked)
    return Settings(options, out, executors, time_s, **changes)
