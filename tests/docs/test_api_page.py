"""docs/api.md: every public name, and no other."""

from __future__ import annotations

import re

from pages import ROOT

import litmusfuzz

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


def test_the_page_names_the_public_api() -> None:
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", PAGE, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert named | {"__version__"} == set(litmusfuzz.__all__)
