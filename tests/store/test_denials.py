"""Sentences that deny something: each is shown where it is true, and nowhere else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from helpers_open_stores import OTHERS, STORES
from test_open_tests import elements, outputs

from litmusfuzz.reports import denials
from litmusfuzz.reports.denials import DENIALS, Denial, no_findings
from litmusfuzz.reports.sarif import sarif

REPORTS = Path(__file__).parents[2] / "reports"
ALL = STORES | OTHERS
WORDS = {
    "nothing new": "nothing new",
    "nothing ran": "nothing ran",
    "nothing judged": "no outcome was judged",
    "all allowed": "allows every observed outcome",
    "all decided allowed": "allows every outcome that was decided",
    "all known": "known causes explain every forbidden outcome",
    "nothing observed": "no outcome was judged",
    "not seen": "not seen",
    "gone": "no longer show",
}
"""For each denial, words that no output has unless it is true."""
OUTPUTS = {
    **dict.fromkeys(("nothing new", "nothing ran", "nothing judged", "gone"), ()),
    **dict.fromkeys(
        ("all allowed", "all decided allowed", "all known", "nothing observed"),
        ("html", "markdown", "json"),
    ),
    "not seen": ("terminal", "html", "markdown"),
}
"""The outputs that show it; the verdict has the others."""


def test_each_denial_is_true_of_a_store_and_false_of_another() -> None:
    assert set(WORDS) == set(OUTPUTS) == set(DENIALS)
    there = {each for each in vars(denials).values() if isinstance(each, Denial)}
    assert there == set(DENIALS.values())
    for name in DENIALS:
        assert {name in made.denials for made in ALL.values()} == {True, False}, name


@pytest.mark.parametrize("unattended", [False, True], ids=["run", "nightly"])
@pytest.mark.parametrize("name", ALL)
def test_a_denial_is_shown_only_where_it_is_true(
    tmp_path: Path, name: str, *, unattended: bool
) -> None:
    made = ALL[name]
    report = made.report(tmp_path / "n", unattended=unattended)
    assert {each for each, denial in DENIALS.items() if denial.of(report)} == made.denials
    shown = outputs(report)
    true = {WORDS[each] for each in made.denials}
    for words in set(WORDS.values()) - true:
        for output, text in shown.items():
            assert words not in text, output
    for each in made.denials:
        for output in OUTPUTS[each]:
            assert DENIALS[each].of(report).lower() in shown[output].lower(), output
    assert bool(no_findings(report)) is not bool(report.findings)
    # What denies without words.
    red = any(elements(report)[each] for each in ("failures", "errors"))
    assert red is (report.exit_code() != 0)
    assert bool(sarif(report)["runs"][0]["results"]) is bool(report.open_tests or report.findings)


DENYING = re.compile(
    r"\b(nothing|None:|clean|not seen|no longer|every (?:observed |forbidden )?outcomes?"
    r"|no (?:new|finding|forbidden|crash|outcome|violation|race)\w*"
    r"|all [a-z ]*(?:allowed|known)|0 (?:findings|new))\b"
)
ELSEWHERE = {
    "this campaign proves nothing": "the canary failed: it denies the campaign, not a defect",
}
"""Texts that match and deny no defect, with the reason."""
SHARED = (
    *("report.py", "summary.py", "sections.py", "markdown.py", "junit.py", "sarif.py", "stats.py"),
    *("terminal.py", "outputs.py", "open_tests.py", "text.py", "headline.py", "commands.py"),
    *("html/page.py", "html/page.html", "html/finding.html", "html/open.html"),
)
"""What writes the outputs of a campaign."""


def texts(path: Path) -> list[str]:
    """All texts of a module but docstrings, or all of a template but its code."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        inside = re.findall(r"'([^']*)'", "".join(re.findall(r"{[{%].*?[%}]}", source)))
        return [*re.sub(r"{[{%].*?[%}]}", "", source).splitlines(), *inside]
    tree = ast.parse(source)
    bare = {each.value for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    constants = (each for each in ast.walk(tree) if isinstance(each, ast.Constant))
    return [each.value for each in constants if isinstance(each.value, str) and each not in bare]


def test_no_output_words_a_denial_of_its_own() -> None:
    found = [
        f"{name}: {text.strip()}"
        for name in SHARED
        for text in texts(REPORTS / name)
        if DENYING.search(text) and not any(each in text for each in ELSEWHERE)
    ]
    assert found == []
    # The search finds them where they are.
    there = [text for text in texts(REPORTS / "denials.py") if DENYING.search(text)]
    assert len(there) > 8
