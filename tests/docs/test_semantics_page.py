"""docs/semantics.md: each rule names tests that exist; each axiom has its rule."""

from __future__ import annotations

import re

import pytest
from helpers import LITMUS
from pages import ROOT

from litmusfuzz.oracles.model import Axiom

ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in (ROOT / "docs" / "semantics.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.endswith("checked by |")
]
CORPUS = {path.stem for path in LITMUS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_each_rule_names_a_test_that_exists(row: list[str]) -> None:
    """tests/docs/test_pages.py checks files that are named with a path."""
    named = re.findall(r"`([^`]+)`", row[-1])
    assert named
    assert not {name for name in named if "/" not in name} - CORPUS


def test_each_axiom_is_a_rule_of_the_page() -> None:
    bold = re.findall(r"\*\*([a-z ,]+)\*\*", "\n".join(row[0] for row in ROWS))
    assert sorted(bold) == sorted(Axiom)


def test_each_rule_file_of_the_corpus_is_named_in_a_row() -> None:
    rules = {name for name in CORPUS if name.startswith("rule-")}
    named = re.findall(r"`(rule-[^`]+)`", "\n".join(row[-1] for row in ROWS))
    assert sorted(named) == sorted(rules)
