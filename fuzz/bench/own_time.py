"""Samples what the process of a campaign spends its processor time on."""

from __future__ import annotations

import signal
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Self

PARTS: Final = ("generating", "judging", "storing", "the rest")
"""What a campaign does. A test that is run under other names is generated; the rest are requests,
replies, and the choice of what runs where."""
_EVERY_S: Final = 0.005
"""Processor time between two samples: a thousand in the five seconds of a short campaign."""
_WITHIN: Final = (
    ("/fuzz/generators/", "generating"),
    ("/fuzz/finding/judge.py", "judging"),
    ("/fuzz/campaign/depth.py", "judging"),
    ("/fuzz/campaign/cluster_validation.py", "judging"),
    ("/fuzz/store/store.py", "storing"),
    ("/fuzz/campaign/event_log.py", "storing"),
    ("/fuzz/campaign/findings.py", "storing"),
    ("/fuzz/campaign/variation.py", "generating"),
    ("/fuzz/finding/canonical.py", "generating"),
)
"""The part to which code in such a file belongs, with all that it calls."""


@dataclass(slots=True)
class Sampler:
    """Looks at the stack of the main thread at regular intervals of processor time.

    Attributes
    ----------
    samples : Counter of str
        By part, how often the main thread was found in it.
    """

    samples: Counter[str] = field(default_factory=Counter)
    _handled: Any = None
    """What the signal did before."""

    def __enter__(self) -> Self:
        """Begin."""
        self._handled = signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, _EVERY_S, _EVERY_S)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End."""
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        # `SIG_IGN` first: by default this signal ends a process, and one may be on its way.
        signal.signal(signal.SIGPROF, signal.SIG_IGN)
        signal.signal(signal.SIGPROF, self._handled)

    def share(self, *parts: str) -> float:
        """The share of the samples in these parts, 0 to 1."""
        return sum(self.samples[part] for part in parts) / max(1, self.samples.total())

    def _look(self, _: int, frame: FrameType | None) -> None:
        self.samples[part_of(frame)] += 1


def part_of(frame: FrameType | None) -> str:
    """The part to which a stack belongs: that of the outermost frame that has one."""
    found = PARTS[-1]
    while frame is not None:
        name = frame.f_code.co_filename
        found = next((part for where, part in _WITHIN if where in name), found)
        frame = frame.f_back
    return found
