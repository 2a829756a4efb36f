"""The headline of a finding, and the beginning of its file's name: both begin with the symptom.

Every output has the headline from here, the live view and the standalone scripts included.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from litmusfuzz.corpus.outcome import Status
from litmusfuzz.reports.events import FindingKind

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.textfile import Entry


def symptom_in_words(outcome: Outcome) -> str:
    """What is wrong with a forbidden outcome: torn, a wrong value, blocked, failed."""
    if outcome.torn:
        return "torn"
    return "wrong value" if outcome.status is Status.COMPLETED else str(outcome.status)


def symptom_of(entry: Entry, kind: str = FindingKind.FORBIDDEN) -> str:
    """What a finding's first forbidden outcome is; of one without, its kind."""
    if entry.finding is None or not entry.finding.forbidden:
        return str(kind)
    return symptom_in_words(entry.finding.forbidden[0][0])


def in_a_name(symptom: str) -> str:
    """A symptom as the beginning of a file's name: ``wrong-value``."""
    return symptom.replace(" ", "-")


def headline(symptom: str, test: LitmusTest, needs: str = "") -> str:
    """The headline: symptom, ops, each once, and the settings that the finding needs."""
    ops = Counter(node.op for node in test.named_nodes)
    names = (op if n == 1 else f"{n} {op}" for op, n in ops.items())
    return f"{symptom}: {' + '.join(names)}{', ' if needs else ''}{needs}"
