"""Names of findings, which are also those of their files."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from litmusfuzz.corpus.textfile import Entry, dumps
from litmusfuzz.reports.headline import in_a_name, symptom_in_words

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome


def finding_name(test: LitmusTest, outcome: Outcome) -> str:
    """Name of the finding that a test shows an outcome: symptom, ops, digest.

    The symptom is in the words of the finding's headline.
    """
    return name_for(in_a_name(symptom_in_words(outcome)), test)


def name_for(what: str, test: LitmusTest) -> str:
    """A name that starts with `what`; its ops and digest depend on the test alone."""
    ops = "+".join(sorted(n.definition.short_name for n in test.named_nodes))
    # The digest is of the test without its name, description and condition.
    text = dumps(Entry(test.titled("x", "").asked(None)))
    short = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{what}-{ops[:72]}-{short}"
