"""Output files of a campaign: HTML, JUnit, Markdown, SARIF, JSON, and stats."""

from __future__ import annotations

import html
import io
import json
import os
import re
import shutil
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from example_reports import (
    ENDED,
    ended_finding,
    entries,
    finding,
    nightly_run,
    pending,
    short_run,
    torn_finding,
    unconfirmed,
    unsound_finding,
)
from helpers_outputs import outputs

from litmusfuzz.corpus.model import CONTROL
from litmusfuzz.corpus.outcome import Outcome, Status
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.campaign.scripts import script_of
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.finding.canonical import key_of
from litmusfuzz.fuzz.finding.configuration_reducer import needs_in_words
from litmusfuzz.fuzz.finding.known_file import load as known_findings
from litmusfuzz.fuzz.finding.worker_deaths import death_cause, key_from_parts
from litmusfuzz.reports.events import FindingKind, Kill
from litmusfuzz.reports.html import page
from litmusfuzz.reports.html.page import histogram
from litmusfuzz.reports.junit import junit
from litmusfuzz.reports.markdown import markdown
from litmusfuzz.reports.outputs import FILES, as_json, write_all
from litmusfuzz.reports.report import FamilyTotals, Report, ReportedFinding
from litmusfuzz.reports.sarif import sarif
from litmusfuzz.reports.sections import sections
from litmusfuzz.reports.stats import plain, read, text, together
from litmusfuzz.reports.summary import summary
from litmusfuzz.reports.tables import printable
from litmusfuzz.reports.terminal import LiveView

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Command

EVIL = (
    '</style><script>alert("1")</script> `x` | **b** ]]> &amp; \x1b[31m\x9b1m\u202e\u2066\ufffe'
    " ![i](http://evil/x.png) [l](javascript:x) https://evil/ $x$"
)
VOID = {"meta", "link", "br", "hr", "img", "input"}
OUTSIDE = re.compile(r"""(?:src|href|srcset|action)\s*=\s*["']?(?:https?:)?//""", re.IGNORECASE)


class Balanced(HTMLParser):
    """Each element is closed where it was opened; ids stand once; links lead somewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open."""
        output = dict(attrs)
        assert len(output) == len(attrs), (tag, attrs)
        assert not any(name.startswith("on") for name in output)
        self.tags.add(tag)
        self.ids += [output["id"]] if "id" in output else []
        self.links += [output["href"]] if "href" in output else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Of SVG."""
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close."""
        assert tag not in VOID
        assert self.open.pop() == tag, self.getpos()

    def handle_data(self, data: str) -> None:
        """Keep what is read."""
        self.words.append(data)


def with_evil_words(made: Report) -> Report:
    """All text that comes from outside is hostile."""
    first = made.findings[0]
    entry = replace(first.entry, test=replace(first.entry.test, description=CONTROL.sub("", EVIL)))
    bad = replace(
        first,
        entry=entry,
        key=EVIL,
        file=f"findings/{EVIL}.yaml",
        executor=EVIL,
        config_class=EVIL,
        model=EVIL,
        cause=EVIL,
        reason=(EVIL,),
        rules=(EVIL,),
        is_cycle=False,
        arcs=(),
        configs={EVIL: 3},
        replay=EVIL,
        script=EVIL,
    )
    return replace(
        made,
        folder=EVIL,
        command=EVIL,
        problem=EVIL,
        findings=(bad, replace(bad, key="2", known=EVIL), *made.findings[1:]),
        known=tuple(replace(each, key=EVIL, why=EVIL) for each in made.known),
        by_config=tuple(
            replace(
                each,
                name=EVIL,
                model=EVIL,
                unknown={EVIL: 1},
                refused=1,
                refused_for={EVIL: 1},
                clusterings={EVIL: 1},
                counters={EVIL: 1},
            )
            for each in made.by_config
        ),
        families={EVIL: FamilyTotals(1, 1.0, 1, 1, 1)},
        differential=dict.fromkeys([EVIL], next(iter(made.differential.values()))),
        ops={EVIL: 1},
        verdicts={EVIL: 1},
        clusterings={EVIL: 1},
        by_family=tuple(replace(e, name=f"{EVIL}{n}/{EVIL}") for n, e in enumerate(made.by_family)),
        workers=tuple(replace(each, name=EVIL, host=EVIL) for each in made.workers),
        kills=(*made.kills, Kill(EVIL, EVIL, None, 3, EVIL, EVIL)),
        versions={EVIL: {EVIL: EVIL}},
        unavailable={EVIL: EVIL},
    )


def test_the_page_has_each_finding_with_its_picture_histogram_reason_and_replay() -> None:
    made = nightly_run(8)
    whole = page(made)
    parsed = Balanced(whole)
    assert len(parsed.ids) == len(set(parsed.ids))
    assert {link[1:] for link in parsed.links if link.startswith("#")} <= set(parsed.ids)
    assert not OUTSIDE.search(whole)
    assert "script" not in parsed.tags
    words = " ".join(" ".join(parsed.words).split())
    for each in made.findings:
        assert each.headline in words
        assert each.replay in words
        for sentence in each.reason:
            assert sentence in words
    assert whole.count('<svg class="graph"') == len(made.findings)
    assert "all 10, in a table" in words.lower()
    # New ones come first.
    marks = re.findall(r'<details class="finding( known)?"', whole)
    assert marks == sorted(marks)
    assert set(marks) == {"", " known"}


_WITH_OUTCOME = (FindingKind.FORBIDDEN, FindingKind.UNSOUND)


def of_each_kind() -> dict[str, ReportedFinding]:
    """New findings."""
    (entry, outcome), *_ = entries()
    wrong = finding(entry, outcome, explained=False)
    blocked = Outcome(outcome.values[-1:], Status.BLOCKED)
    assert wrong.entry.finding is not None
    stuck = replace(wrong.entry.finding, forbidden=((blocked, 3),))
    made = {str(kind): ended_finding(kind) for kind in FindingKind if kind not in _WITH_OUTCOME}
    return made | {
        "wrong value": wrong,
        "blocked": replace(wrong, entry=replace(wrong.entry, finding=stuck)),
        "torn": torn_finding(),
        "unsound": unsound_finding(),
    }


@pytest.mark.parametrize("kind", of_each_kind())
def test_a_finding_has_one_headline_in_every_output(kind: str) -> None:
    """The terminal while the campaign runs and at its end, the files, and what JSON says."""
    made = replace(of_each_kind()[kind], needs="only in one thread")
    report = replace(short_run(0), findings=(made,))
    line = made.headline
    assert re.fullmatch(rf"{kind}: [\w +]+, only in one thread", line)
    shown = outputs(report)
    assert set(shown) == {"terminal", "html", "markdown", "junit", "sarif", "json", "stats"}
    for as_said in (False, True):
        with LiveView(out := io.StringIO(), as_json=as_said) as view:
            view(report)
        shown[f"live, {as_said}"] = out.getvalue()
    for output, words in shown.items():
        assert line in words, output
    assert f"## {line}" in shown["markdown"]
    (found,) = as_json(report)["findings"]
    assert found["headline"] == line
    (result,) = sarif(report)["runs"][0]["results"]
    assert result["message"]["text"].startswith(f"{line} on ")
    case = ElementTree.fromstring(junit(report)).find("testsuite/testcase")  # noqa: S314 - we wrote it
    assert case.get("name").startswith(f"{line} (")
    assert case.find("failure").get("message").startswith(f"{line}: ")
    assert case.find("failure").text.startswith(f"{line}\n")


@pytest.mark.parametrize("kind", ["wrong value", "torn"])
def test_a_script_begins_with_the_headline(kind: str) -> None:
    made = of_each_kind()[kind]
    needs = needs_in_words("tf", configuration("tf", "plain"))
    text_of_it = " ".join(script_of(made.entry, "").split())
    assert text_of_it.startswith(f'"""{replace(made, needs=needs).headline}. ')


def test_a_hundred_findings_fit_into_a_megabyte() -> None:
    whole = page(nightly_run(100))
    assert len(whole.encode()) < 1_000_000
    parsed = Balanced(whole)
    # Nothing was left out for lack of space.
    assert sum(each.startswith("f") and each[1:].isdigit() for each in parsed.ids) == 102


def test_omitted_findings_are_counted() -> None:
    made = nightly_run(4)
    more = tuple(replace(made.findings[0], key=str(n)) for n in range(400))
    whole = page(replace(made, findings=more))
    assert len(whole.encode()) < 1_000_000
    parsed = Balanced(whole)
    cards = sum(each.startswith("f") and each[1:].isdigit() for each in parsed.ids)
    assert 50 < cards < 400
    assert f"{400 - cards} more findings: in the table" in whole


def test_text_from_files_is_text() -> None:
    made = with_evil_words(nightly_run(3))
    whole = page(made)
    parsed = Balanced(whole)
    assert "<script" not in whole.lower()
    assert '</style><script>alert("1")</script>' in " ".join(parsed.words)
    assert whole.count("</style>") == 1
    assert not CONTROL.search(whole + markdown(made) + junit(made) + summary(made))


def test_the_verdict_is_the_heading() -> None:
    made = nightly_run(4)
    assert "<h1>6 new findings</h1>" in page(replace(made, findings=torn_and_ended(6)))
    quiet = replace(made, findings=(), pending=(), unconfirmed=())
    shown = len(quiet.shown)
    assert shown
    assert f"<h1>nothing new; {shown} known cause{'s' * (shown > 1)} showed</h1>" in page(quiet)
    quiet = replace(quiet, known=())
    assert "<h1>nothing new</h1>" in page(quiet)
    silent = replace(quiet, canary=(5, 4))
    assert (
        "<h1>broken: the canary was reported in 4 of 5 runs: this campaign proves nothing</h1>"
        in page(silent)
    )
    missed = replace(quiet, kills=(Kill("m", "native", None, 9),))
    assert "<h1>broken: not reported: m</h1>" in page(missed)
    runs = replace(quiet, ended=None)
    assert "<h1>nothing new so far</h1>" in page(runs)
    unknown = replace(short_run(0), unknown_graphs=1)
    assert "<h1>nothing new, but not everything was decided</h1>" in page(unknown)
    assert "<h1>nothing new so far</h1>" in page(replace(unknown, ended=None))
    all_made = (made, quiet, silent, missed, runs, unknown)
    assert [each.exit_code() for each in all_made] == [1, 0, 2, 2, 0, 3]


def torn_and_ended(number: int) -> tuple[ReportedFinding, ...]:
    """New ones without a reason in edges."""
    kinds = [kind for kind in FindingKind if kind is not FindingKind.FORBIDDEN]
    ended = [ended_finding(kind) for kind in kinds]
    return (torn_finding(), replace(torn_finding(), key="2"), *ended)[:number]


def test_a_run_that_has_just_begun_has_a_page() -> None:
    made = nightly_run(1)
    begun = Report(
        folder="n",
        command="litmusfuzz nightly",
        seed=1,
        started=made.started,
        ended=None,
        spent_s=0.0,
        asked_s=60,
        findings=(),
        known=(),
        by_config=(),
        by_family=(),
        moments=made.moments[:1],
        workers=(),
        kills=(),
        canary=(0, 0),
        unconfirmed=(),
        pending=(),
        versions={},
        unattended=True,
    )
    for each in (begun, replace(begun, moments=())):
        Balanced(page(each))
        assert markdown(each)
        assert junit(each)
        assert together({"n": read(text(each))})
        assert summary(each)
        assert each.exit_code() == 3  # nothing has run yet


def test_markdown_names_the_configuration_that_most_graphs_showed_a_finding_in() -> None:
    made = short_run(1)
    for one_thread, most in ((3, "plain"), (10, "one_thread")):
        configs = {"plain": 9, "one_thread": one_thread}
        (found,) = (replace(each, configs=configs) for each in made.findings)
        output = html.unescape(markdown(replace(made, findings=(found,))))
        assert f"on <code>tf/{most}</code>" in output


def test_the_histogram_marks_what_differs() -> None:
    """MP: r0=1 r1=0 is forbidden; r0=0 r1=0 is one value away."""
    entry, outcome = next(each for each in entries() if each[0].test.name == "MP")
    made = finding(entry, outcome, explained=False)
    output = histogram(made)
    assert output.same == "X=1 Y=1"
    assert output.more == 0
    rows = [(row.cells, row.count, row.verdict, row.nearest) for row in output.rows]
    assert rows == [
        ((("r0=1", True), ("r1=0", False)), 3, "forbidden", False),
        ((("r0=0", True), ("r1=0", False)), 40_000, "allowed", True),
        ((("r0=0", False), ("r1=1", False)), 10_001, "allowed", False),
        ((("r0=1", False), ("r1=1", False)), 0, "allowed", False),
    ]
    assert output.rows[1].width == 100
    assert 0 < output.rows[0].width < 30


def test_a_blocked_outcome_says_so() -> None:
    entry, outcome = entries()[0]
    made = finding(entry, outcome, explained=False)
    blocked = Outcome(outcome.values[-1:], Status.BLOCKED)
    made = replace(made, histogram={blocked: (2, "forbidden")}, nearest=outcome, allowed=())
    first = histogram(made).rows[0]
    assert first.cells[0] == ("blocked", True)


def test_junit_has_a_failure_for_each_new_finding() -> None:
    made = with_evil_words(nightly_run(6))
    root = ElementTree.fromstring(junit(made))  # noqa: S314 - we wrote it
    assert root.tag == "testsuites"
    suites = root.findall("testsuite")
    assert [suite.get("name") for suite in suites] == ["findings", "configurations", "self-test"]
    for group in (root, *suites):
        cases = list(group.iter("testcase"))
        assert int(group.get("tests")) == len(cases)
        for counted, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(group.get(counted)) == sum(case.find(tag) is not None for case in cases)
        assert float(group.get("time")) >= 0
    for case in root.iter("testcase"):
        assert case.get("name")
        assert case.get("classname")
        assert len(case) <= 1
    assert int(suites[0].get("failures")) == len(made.new)
    open_ = {code: sum(each.exit_code == code for each in made.open_tests) for code in (0, 1, 3)}
    assert open_ == {0: 1, 1: 0, 3: 3}
    assert int(suites[0].get("skipped")) == len(made.findings) - len(made.new) + open_[0]
    assert int(suites[0].get("errors")) == open_[3]
    assert int(suites[2].get("failures")) == 1  # the mutant that nobody reported
    assert int(suites[2].get("errors")) == 1  # the problem of the run
    failure = suites[0].find("testcase/failure")
    assert "replay: " in failure.text


def test_junit_and_sarif_say_what_was_not_decided() -> None:
    """A campaign with another exit code than 0 is green in neither."""
    clean = replace(short_run(), findings=(), pending=(), unavailable={}, problem="")
    clean = replace(clean, unknown_graphs=0, unconfirmed=())
    for changes, words in (
        ({"pending": pending(1)}, "unreduced/unreduced-7-0.yaml"),
        ({"unknown_graphs": 2}, "2 graphs over the oracle's budget"),
        ({"unconfirmed": unconfirmed(1)}, "unconfirmed/unconfirmed-7-0.yaml"),
    ):
        for output in (junit, lambda report: json.dumps(sarif(report))):
            assert words not in output(clean)
            assert words in output(replace(clean, **changes))


def test_sarif_has_what_its_schema_requires() -> None:
    made = with_evil_words(nightly_run(6))
    log = json.loads(json.dumps(sarif(made)))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "LitmusFuzz"
    rules = [rule["id"] for rule in driver["rules"]]
    assert len(rules) == len(set(rules)) == len(FindingKind) + 1
    shown = [*made.findings, *made.open_tests]
    for result, each in zip(run["results"], shown, strict=True):
        kind = each.kind.replace(" ", "-") if isinstance(each, ReportedFinding) else "open"
        assert rules[result["ruleIndex"]] == result["ruleId"] == kind
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["baselineState"] in ("new", "unchanged", "updated", "absent")
        assert result["message"]["text"]
        assert result["occurrenceCount"] >= 1
        (place,) = result["locations"]
        uri = place["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"[A-Za-z0-9._~%/+:@&=-]+", uri)
        assert place["physicalLocation"]["region"]["startLine"] >= 1
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
        suppressed = [each["kind"] for each in result.get("suppressions", ())]
        known = isinstance(each, ReportedFinding) and each.known
        assert suppressed == (["external"] if known else [])
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["exitCode"] == 2
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", invocation["endTimeUtc"])


def test_markdown_escapes_and_keeps_its_tables_whole() -> None:
    output = markdown(with_evil_words(nightly_run(6)))
    columns = 0
    fenced = ""
    for line in output.splitlines():
        fence = re.match(r"`{3,}", line)
        if fence and fenced in ("", fence[0]):
            fenced = "" if fenced else fence[0]
        if fenced or not line.startswith("|"):
            columns = 0
            assert fenced or "<script" not in line
            continue
        cells = len(re.findall(r"(?<!\\)\|", line))
        assert columns in (0, cells), line
        columns = cells
    assert not fenced


def test_markdown_says_first_what_was_left_undecided() -> None:
    """A run with only known minimized findings may still have seen a new one."""
    made = nightly_run(2)
    for left in (0, 16):
        heading, head, *_ = markdown(replace(made, pending=pending(left))).split("\n\n")
        assert head.endswith("of them new.")
        # One of them may be known.
        assert ("15 graphs not minimized that may be new" in heading) is bool(left)


def test_markdown_stays_below_githubs_limit() -> None:
    made = nightly_run(4)
    more = tuple(replace(made.findings[0], key=str(n)) for n in range(2_000))
    many = replace(made, findings=more)
    output = markdown(many)
    assert len(output.encode()) < 1 << 20
    shown = output.count("\n## wrong value: ")
    assert 100 < shown < 2_000
    assert f"And {2_000 - shown} more new findings" in output
    small = markdown(many, 20_000)
    assert len(small.encode()) <= 20_000
    assert "## Configurations" in small


def test_everything_is_written_and_whole(tmp_path: Path) -> None:
    made = nightly_run(6)
    write_all(made, tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        *("report.html", "junit.xml", "summary.md", "findings.sarif", "report.json", "stats")
    }
    data = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert data == as_json(made)
    assert data["verdict"] == made.verdict
    assert len(data["findings"]) == len(made.findings)
    for plain_finding, each in zip(data["findings"], made.findings, strict=True):
        # The test is there as its file is.
        assert loads(plain_finding["entry"]) == each.entry
        assert len(plain_finding["histogram"]) == len(each.histogram)
    assert sum(each["graphs"] for each in data["by_config"]) == data["graphs"] == made.graphs
    assert sum(data["verdicts"].values()) == data["outcomes"] == made.outcomes


def test_the_files_of_an_open_folder_go_where_it_goes(tmp_path: Path) -> None:
    """Another campaign may have taken its path since."""
    folder, away = tmp_path / "campaign", tmp_path / "away"
    folder.mkdir()
    directory = os.open(folder, os.O_RDONLY)
    try:
        folder.rename(away)
        folder.mkdir()
        write_all(short_run(1), directory)
        assert not list(folder.iterdir())
        assert sorted(path.name for path in away.iterdir()) == sorted(FILES)
        shutil.rmtree(away)
        with pytest.raises(FileNotFoundError):
            write_all(short_run(1), directory)
    finally:
        os.close(directory)
    assert not list(folder.iterdir())


def test_a_file_that_cannot_be_written_costs_no_other(tmp_path: Path) -> None:
    (tmp_path / "report.json").mkdir()
    with pytest.raises(OSError, match=r"report\.json"):
        write_all(nightly_run(1), tmp_path)
    assert len([path for path in tmp_path.iterdir() if path.is_file()]) == 5


def test_stats_are_read_as_they_were_written() -> None:
    made = with_evil_words(nightly_run(6))
    stats = plain(made)
    again = read(text(made))
    assert again.keys() == stats.keys()
    assert again == {n: printable(" ".join(value.split())) for n, value in stats.items()}
    assert int(again["new_findings"]) == len(made.new)
    assert again["state"] == "broken"
    assert float(again["graphs_per_s"]) == pytest.approx(made.graphs / 7_202, abs=0.01)


def test_the_pause_of_an_interrupted_run_does_not_count() -> None:
    """Three hours from its beginning to its end, of which it ran two."""
    made = nightly_run(2)
    assert made.ended is not None
    assert (made.ended - made.started, made.spent_s) == (10_802, 7_202.4)
    assert plain(made)["run_time"] == "7202"
    assert 'time="7202.400"' in junit(made)
    for output in (markdown(made), page(made)):
        assert "UTC, 2 h 00 min" in output


def test_several_runs_in_one_table() -> None:
    made = nightly_run(2)
    quiet = replace(made, findings=(), ended=None, pending=(), unconfirmed=())
    output = together({"a": read(text(made)), "b": read(text(quiet)), "c": {}})
    lines = output.splitlines()
    assert lines[0].split()[:3] == ["state", "since", "for"]
    assert [line.split()[0] for line in lines[1:5]] == ["a", "b", "c", "total"]
    assert lines[1].split()[1] == "ended"
    assert lines[2].split()[1] == "runs"
    assert max(map(len, lines[:5])) <= 130
    assert "a:" in lines
    assert "b:" not in lines
    # One folder has no sum.
    assert "together" not in together({"a": read(text(made))})


def key_of_reported(found: ReportedFinding) -> str:
    """The key that a real campaign gives it: here the events' keys are made up."""
    if found.entry.finding:
        return key_of(found.entry)
    ops = {node.definition.kernel_class for node in found.entry.test.effects}
    return key_from_parts(found.kind, found.config_class, found.reason[0], ops)


def test_one_command_makes_all_findings_of_a_run_known(
    litmusfuzz_here: Command, tmp_path: Path
) -> None:
    """By the keys in its report.json, a crash as well; what was known is left out."""
    made = nightly_run(6)
    found = tuple(replace(each, key=key_of_reported(each)) for each in made.findings)
    write_all(replace(made, findings=found), tmp_path / "n")
    output = litmusfuzz_here("known", "add", "k.yaml", "n/report.json", "--why", "seen", "--json")
    assert output.returncode == 0, output.stderr
    new = [each for each in found if not each.known]
    assert 0 < len(new) < len(found)
    entries = known_findings(tmp_path / "k.yaml").entries
    assert [each.key for each in entries] == [each.key for each in new]
    assert entries[-1].name == death_cause(ENDED, "AssignAddVariableOp")
    assert entries[-2].name == new[-2].entry.test.name
    again = litmusfuzz_here("known", "add", "k.yaml", "n", "--why", "too")  # its folder
    assert f"0 added, {len(new)} known already" in again.stdout
    (tmp_path / "bad.json").write_text('{"findings": [{}]}')
    bad = litmusfuzz_here("known", "add", "k.yaml", "bad.json", "--why", "seen")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("litmusfuzz: bad.json: is not the report.json of a campaign: ")
    assert "missing required field `key`" in bad.stderr


def test_the_report_of_a_short_run_has_no_empty_section(tmp_path: Path) -> None:
    """One configuration, one process, no known findings, no self-test, one moment."""
    for made in (short_run(2), short_run(0)):
        write_all(made, tmp_path)
        whole = page(made)
        parsed = Balanced(whole)
        assert {link[1:] for link in parsed.links if link.startswith("#")} <= set(parsed.ids)
        bodies = re.findall(r'<section id="(\w+)">\s*<h2>.*?</h2>(.*?)</section>', whole, re.DOTALL)
        causes = ["causes"] if made.findings else []
        names = ["ran", "findings", "configurations", "families", *causes]
        names += ["tests", "coverage", "versions"]
        assert [name for name, _ in bodies] == names
        for name, body in bodies:
            assert re.sub(r"<[^>]*>", "", body).strip(), name
            assert "<tbody>\n</tbody>" not in body
        assert "LitmusFuzz · run" in whole
        assert 'class="charts"' not in whole
        output = markdown(made)
        assert not re.search(r"^## .*\n+(?=## |\Z)", output, re.MULTILINE)
        assert "nightly" not in output + junit(made) + summary(made) + json.dumps(sarif(made))
        assert "nightly" not in re.sub(r"<style>.*?</style>", "", whole, flags=re.DOTALL)
        assert [each.get("name") for each in ElementTree.fromstring(junit(made))] == [  # noqa: S314 - we wrote it
            "findings",
            "configurations",
            "self-test",
        ]
        data = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
        assert data["unattended"] is False
        assert data["exit_code"] == bool(made.findings)


def test_the_summary_the_page_and_the_markdown_have_the_same_sections() -> None:
    made = replace(nightly_run(3), findings=(*nightly_run(3).findings, unsound_finding()))
    words = " ".join(" ".join(Balanced(page(made)).words).split())
    flat = " ".join(summary(made).split())
    output = html.unescape(markdown(made)).replace("\\", "")
    names, commands = set(), []
    for section in sections(made):
        names.add(section.name)
        assert f"## {section.title}" in output
        assert section.title in words
        for row in section.rows:
            for shown in (words, flat):
                assert " ".join(row) in shown
            assert f"| {' | '.join([f'<code>{row[0]}</code>', *row[1:]])} |" in output
        for subject, note in section.notes:
            assert f"{subject} {note}" in words
            assert f"{subject}: {note}" in flat
            assert f"- {subject}: {note}" in output
        for shown in (words, flat, output):
            assert section.command in shown
        commands.append(section.command)
    assert names == {
        *("configurations", "families", "settings-tf", "causes", "comparison", "tests"),
    }
    assert [each for each in commands if each] == ["litmusfuzz nightly --resume nightly --time 5m"]


def test_a_long_table_is_collapsed() -> None:
    made = short_run(0)
    many = tuple(replace(made.by_config[0], name=f"tf/{n}") for n in range(13))
    assert "<summary>All 13, in a table</summary>" not in page(replace(made, by_config=many[1:]))
    assert "<summary>All 13, in a table</summary>" in page(replace(made, by_config=many))


def test_columns_of_zeros_are_left_out() -> None:
    made = short_run(0)
    (quiet,) = made.by_config
    first, *_ = sections(made)
    assert "refused" not in first.header
    assert {"graphs", "outcomes", "seconds"} <= set(first.header)
    first, *_ = sections(replace(made, by_config=(quiet, replace(quiet, refused=1))))
    assert [row[first.header.index("refused")] for row in first.rows] == ["0", "1"]


def test_a_finding_says_on_the_page_what_is_not_certain() -> None:
    made = short_run(1)
    (found,) = made.findings
    assert found.entry.finding is not None
    unsure = replace(found.entry, finding=replace(found.entry.finding, confirmed=False))
    made = replace(made, findings=(replace(found, entry=unsure, allowed_by=("executor",)),))
    for shown in (page(made), markdown(made), summary(made)):
        assert "nly the model rfc forbids it: executor allows it" in shown
        assert "ot yet confirmed in a fresh process: replay it" in shown


def test_a_list_of_reasons_has_an_end() -> None:
    """An executor may give another for each test, and count something else."""
    made = short_run(0)
    (share,) = made.by_config
    reasons = {f"reason {n}": 1 for n in range(25)}
    counters = {f"counter {n}": 1.0 for n in range(25)}
    first, *_ = sections(
        replace(made, by_config=(replace(share, refused_for=reasons, counters=counters),))
    )
    notes = " ".join(note for _, note in first.notes)
    assert (notes.count("reason "), notes.count("counter ")) == (20, 20)
    assert notes.count("and 5 more") == 2
