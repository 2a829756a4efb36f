"""Report of a nightly run as JUnit XML, for tools that show test results.

Each configuration, each mutant and the canary is a test case. So is each finding: a new
one is a failure, a known one is skipped, with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

from litmusfuzz.reports.tables import printable
from litmusfuzz.reports.times import stamp

if TYPE_CHECKING:
    from litmusfuzz.reports.nightly_report import NightlyFinding, NightlyReport

Case = tuple[dict[str, str], str, str, str]
"""Attributes of a test case; its inner element ("" if it passed), message and text."""


def junit(report: NightlyReport) -> str:
    """The whole file."""
    shown = [_finding(each) for each in report.findings]
    ran = [_case(each.name, "litmusfuzz.configurations", each.seconds) for each in report.by_config]
    ran += [
        (_case(name, "litmusfuzz.configurations")[0], "skipped", why, "")
        for name, why in report.unavailable.items()
    ]
    tested = [_case("canary", "litmusfuzz.selftest")]
    for kill in report.kills:
        case = _case(kill.mutant, f"litmusfuzz.selftest.{kill.executor}", kill.seconds or 0)
        if kill.seconds is None:
            case = (case[0], "failure", f"not reported in {kill.graphs} graphs", "")
        tested.append(case)
    runs, reported = report.canary
    if reported < runs or (report.ended is not None and not runs):
        tested[0] = (tested[0][0], "failure", f"reported in {reported} of {runs} runs", "")
    if report.undecided:
        shown.append(
            (
                _case("not minimized", "litmusfuzz.findings")[0],
                "failure",
                f"{report.undecided} graphs that may be new: not minimized for lack of time",
                "",
            )
        )
    if report.problem:
        tested.append((_case("nightly run", "litmusfuzz")[0], "error", report.problem, ""))
    top = ElementTree.Element("testsuites", name="litmusfuzz nightly")
    started = stamp(report.started)
    lasted = {"findings": report.spent_s}
    for name, cases in (("findings", shown), ("configurations", ran), ("self-test", tested)):
        suite = ElementTree.SubElement(top, "testsuite", name=name, timestamp=started)
        suite.attrib |= _counts(cases) | {"time": f"{lasted.get(name, 0):.3f}"}
        for attributes, element, message, text in cases:
            made = ElementTree.SubElement(suite, "testcase", attributes)
            if element:
                ElementTree.SubElement(made, element, message=printable(message)).text = printable(
                    text
                )
    top.attrib |= _counts([*shown, *ran, *tested]) | {"time": f"{lasted['findings']:.3f}"}
    ElementTree.indent(top)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(top, "unicode")}\n'


def _case(name: str, group: str, seconds: float = 0) -> Case:
    attributes = {"name": printable(name), "classname": printable(group), "time": f"{seconds:.3f}"}
    return attributes, "", "", ""


def _finding(finding: NightlyFinding) -> Case:
    group = f"litmusfuzz.findings.{finding.where.replace('/', '.')}"
    attributes = _case(finding.entry.test.name, group)[0]
    if finding.known:
        return attributes, "skipped", f"known: {finding.known}", ""
    lines = [finding.title, f"seen: {finding.seen}"]
    if finding.nearest is not None:
        lines.append(f"nearest allowed under {finding.model}: {finding.nearest}")
    lines += [f"because: {each}" for each in finding.reason]
    lines += [f"rules: {', '.join(finding.rules)}"] if finding.rules else []
    lines += [f"graphs: {finding.count}", f"replay: {finding.replay}"]
    return attributes, "failure", f"{finding.kind}: {finding.seen}", "\n".join(lines)


def _counts(cases: list[Case]) -> dict[str, str]:
    counted = {"tests": len(cases)}
    for word, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        counted[word] = sum(each == element for _, each, _, _ in cases)
    return {name: str(number) for name, number in counted.items()}
