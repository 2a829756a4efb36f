"""Tests of findings on large tensors, made small for schedules of pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.library import FOLDERS
from litmusfuzz.corpus.textfile import loads

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest


def two_pages(name: str) -> LitmusTest:
    """The test of a finding, whose variables have two pages each."""
    text = (FOLDERS[1] / f"{name}.yaml").read_text(encoding="utf-8").partition("\nfinding:")[0]
    return loads(text.replace("[1, 4096]", "[1, 2048]") + "\n").test
