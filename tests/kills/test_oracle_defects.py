"""The defects of `oracle_defects` still fit the code that they are put into."""

from __future__ import annotations

import pytest
from oracle_defects import DEFECTS, ROOT, Defect


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.what)
def test_fits_its_file(defect: Defect) -> None:
    text = (ROOT / defect.file).read_text(encoding="utf-8")
    assert text.count(defect.old) == 1
    assert (ROOT / defect.tests).exists()


def test_there_are_twenty_at_least() -> None:
    assert len(DEFECTS) >= 20
    assert len({defect.what for defect in DEFECTS}) == len(DEFECTS)
