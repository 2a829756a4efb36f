"""What shows that a change of the code has changed nothing that a campaign does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from campaign.golden import event_log
from moved_only import without_imports

if TYPE_CHECKING:
    from pathlib import Path


def test_a_campaign_has_the_same_events_each_time(tmp_path: Path) -> None:
    one, other = (
        event_log("mutant/stale-reads", "plain", 30, 7, tmp_path / name) for name in ("1", "2")
    )
    assert one == other
    text = "\n".join(one)
    for kind in ("Generated", "Executed", "Continued", "Confirmed", "FindingAdded", "SeenAgain"):
        assert f'"event":"{kind}"' in text


def test_a_move_is_distinguished_from_another_change() -> None:
    before = "import a\n\n\ndef test() -> None:\n    from b import c\n\n    assert c(1)\n"
    moved = "import z  # new\n\n\ndef test() -> None:\n    from d import c\n\n    assert c(1)\n"
    assert without_imports(before) == without_imports(moved)
    assert without_imports(before) != without_imports(moved.replace("c(1)", "c(2)"))
