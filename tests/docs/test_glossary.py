"""docs/glossary.md: each term is defined once, and the pages use no other word for it."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from pages import PAGES, ROOT

if TYPE_CHECKING:
    from pathlib import Path

GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
TERMS = re.findall(r"^- \*\*(.+?)\*\*:", GLOSSARY, re.MULTILINE)
BANNED = {
    "acd": r"acd",  # spelled out: "automatic control dependencies"
    "bait": r"baits?",
    "configuration": r"profiles?",
    "configuration sampler, dispatcher": r"rotas?|dealers?|dealing|dealt",
    "context, captures": r"scenes?|stages?|walls?|drafts?",
    "control": r"sound form",
    "differential comparison": r"sides?|side by side",
    "event log, ingest": r"journals?|spools?|takes? over|taken over|taking over",
    "finding": r"raw findings?",
    "generated": r"drawn|drew",
    "guarantee": r"promis(?:e|es|ed|ing)",
    "nightly run, shard": r"nights?|turns?",
    "package, layer, architecture": r"rooms?|floors?|house",
    "report": r"told|tells?|telling|tellers?",
    "rewriter": r"sketch(?:es)?",
    "scheduler, generator": r"strateg(?:y|ies)",
    "status, reproduce": r"whatsup|redraws?",
    "value class, symmetric instances": r"stock|twins?|settles?|settled",
}
"""The term that the pages use, and the words that they do not use for it."""
PLAIN = ("Hypothesis strateg", "`acd`", "`ACD`", "--model acd")
"""Uses that are right."""


def old_words(text: str) -> list[str]:
    """The words of `BANNED` in a page, each with the term to use."""
    for allowed in PLAIN:
        text = text.replace(allowed, "")
    return [
        f"{match[0]!r}: write {term}"
        for term, pattern in BANNED.items()
        for match in re.finditer(rf"(?<![\w/.-])(?:{pattern})(?![\w/-])", text, re.IGNORECASE)
    ]


def test_each_term_is_defined_once() -> None:
    assert len(TERMS) > 100
    assert not [term for term, count in Counter(map(str.lower, TERMS)).items() if count > 1]


def test_an_old_word_is_found_with_its_replacement() -> None:
    assert old_words("The night's turns: a Hypothesis strategy, and a strategy") == [
        "'night': write nightly run, shard",
        "'turns': write nightly run, shard",
        "'strategy': write scheduler, generator",
    ]


HISTORY = ROOT / "docs" / "decisions" / "0014-names.md"
"""The page that lists the old names."""
# The page of ops lists names of TensorFlow's registry.
CHECKED = [page for page in PAGES if page not in {HISTORY, ROOT / "docs" / "ops.md"}]


@pytest.mark.parametrize("page", CHECKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_use_the_terms_of_the_glossary(page: Path) -> None:
    assert old_words(page.read_text(encoding="utf-8")) == []
