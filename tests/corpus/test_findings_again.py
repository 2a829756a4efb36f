"""Findings of `corpus/findings` come back through the whole pipeline; see `findings_again`.

Two are taken here, each in 15 s of processor time. The others compile each smaller test with XLA,
have a process for each run, or show so rarely on busy cores that each takes a minute or more: they
are left to ``make nightly``.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import findings_again
import pytest
from findings_again import FOLDER, NEEDS, WITHOUT_OUTCOME, again

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import load, save

if TYPE_CHECKING:
    from pathlib import Path

# Both show in every execution, so that there is no chance in it. The first blocks, and was seen
# with all rewrites, which it does not need; the second has a wrong pure op, and nothing races.
QUICK = ("cluster-spans-two-sections", "max-pool-grad-grad-clears-its-input")


def test_each_finding_is_taken_or_left_out_for_a_reason() -> None:
    files = sorted(path.stem for path in FOLDER.glob("*.yaml"))
    assert sorted([*NEEDS, *WITHOUT_OUTCOME]) == files
    assert set(QUICK) <= NEEDS.keys()


@pytest.mark.skipif(not find_spec("tensorflow"), reason="needs TensorFlow")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", QUICK)
def test_a_finding_comes_back(name: str, tmp_path: Path) -> None:
    result = again(name, tmp_path / "out")
    assert result.came_back, str(result)
    assert not result.problem, str(result)


@pytest.mark.parametrize(("shown", "is_error"), [(500, True), (1, False)])
def test_what_does_not_show_is_an_error_if_chance_cannot_explain_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: int, *, is_error: bool
) -> None:
    """The native executor shows none of it, whatever the file says of its rate."""
    name = "scatter-beside-read"
    entry = load(FOLDER / f"{name}.yaml")
    assert entry.finding is not None
    forbidden = tuple((outcome, shown) for outcome, _ in entry.finding.forbidden)
    settings = dict(findings_again.configuration("native").settings)
    wrong = replace(
        entry.finding,
        executor="native",
        configuration="plain",
        settings=settings,
        forbidden=forbidden,
        executions=1 << 20 if shown == 1 else 1024,
    )
    save(replace(entry, finding=wrong), tmp_path / f"{name}.yaml")
    monkeypatch.setattr(findings_again, "FOLDER", tmp_path)
    monkeypatch.setattr(findings_again, "RUN_S", 0.5)
    result = again(name, tmp_path / "out")
    assert not result.came_back
    assert bool(result.problem) is is_error, str(result)
    assert "shown in 0 of " in str(result)
    assert ("ERROR" in str(result)) is is_error
