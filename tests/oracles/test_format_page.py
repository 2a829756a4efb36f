"""The examples of docs/file-format.md, one for each feature, load with exact sets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from litmusfuzz.corpus.textfile import dumps, loads
from litmusfuzz.oracles.model import MODELS
from litmusfuzz.oracles.reference import allowed_outcomes

PAGE = Path(__file__).parents[2] / "docs" / "file-format.md"
FILES = re.findall(r"```yaml\n(litmusfuzz.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_page_shows_every_feature() -> None:
    names = [re.search(r"name: (\S+)", text)[1] for text in FILES]
    assert names == [
        "MP",
        "loop-increments",
        "cond-write",
        "call-control-edges",
        "handle-chosen-by-a-race",
        "section-increments",
        "queue-too-many-takers",
        "accumulator-one-or-both",
        "two-workers-then-a-reader",
        "one-graph-two-clients",
        "first-write",
        "SB-asked",
        "devices-carried-edges",
        "blog-problem-clustered",
        "torn-read",
    ]


@pytest.mark.parametrize("text", FILES, ids=lambda t: t[20:50])
def test_each_file_loads_and_its_sets_are_exact(text: str) -> None:
    entry = loads(text)
    assert loads(dumps(entry)) == entry
    for model in MODELS.values():
        expected = entry.allowed.get(model.name, entry.allowed["rfc"])
        assert set(allowed_outcomes(entry.test, model).witnesses) == expected
