"""Every defect of `oracle_defects` still applies to its file."""

from __future__ import annotations

import pytest
from oracle_defects import DEFECTS, ROOT, Defect


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.what)
def test_defect_applies_to_its_file(defect: Defect) -> None:
    text = (ROOT / defect.file).read_text(encoding="utf-8")
    assert text.count(defect.old) == 1
    assert (ROOT / defect.tests).exists()


def test_there_are_at_least_twenty_defects() -> None:
    assert len(DEFECTS) >= 20
    assert len({defect.what for defect in DEFECTS}) == len(DEFECTS)
