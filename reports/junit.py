"""A night as JUnit XML, for whatever shows test results.

Each configuration, each mutant and the canary is a test case that passes or fails; so
is each finding: a new one failed, a known one skipped, with what is known of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

from litmusfuzz.reports.text import printable
from litmusfuzz.reports.times import stamp

if TYPE_CHECKING:
    from litmusfuzz.reports.nightly_report import NightlyFinding, NightlyReport

Case = tuple[dict[str, str], str, str, str]
"""Attributes of a test case; the element in it ("" if it passed), its message, its text."""


def junit(night: NightlyReport) -> str:
    """The whole file."""
    shown = [_finding(each) for each in night.findings]
    ran = [_case(each.name, "litmusfuzz.configurations", each.seconds) for each in night.by_config]
    ran += [
        (_case(name, "litmusfuzz.configurations")[0], "skipped", why, "")
        for name, why in night.unavailable.items()
    ]
    tested = [_case("canary", "litmusfuzz.selftest")]
    for kill in night.kills:
        case = _case(kill.mutant, f"litmusfuzz.selftest.{kill.executor}", kill.seconds or 0)
        if kill.seconds is None:
            case = (case[0], "failure", f"not reported in {kill.graphs} graphs", "")
        tested.append(case)
    runs, reported = night.canary
    if reported < runs or (night.ended is not None and not runs):
        tested[0] = (tested[0][0], "failure", f"reported in {reported} of {runs} runs", "")
    if night.undecided:
        shown.append(
            (
                _case("not minimized", "litmusfuzz.findings")[0],
                "failure",
                f"{night.undecided} graphs that may be new: no time was left",
                "",
            )
        )
    if night.problem:
        tested.append((_case("the night", "litmusfuzz")[0], "error", night.problem, ""))
    top = ElementTree.Element("testsuites", name="litmusfuzz nightly")
    started = stamp(night.started)
    lasted = {"findings": night.spent_s}
    for name, cases in (("findings", shown), ("configurations", ran), ("self-test", tested)):
        suite = ElementTree.SubElement(top, "testsuite", name=name, timestamp=started)
        suite.attrib |= _counts(cases) | {"time": f"{lasted.get(name, 0):.3f}"}
        for attributes, element, message, text in cases:
            told = ElementTree.SubElement(suite, "testcase", attributes)
            if element:
                ElementTree.SubElement(told, element, message=printable(message)).text = printable(
                    text
                )
    top.attrib |= _counts([*shown, *ran, *tested]) | {"time": f"{lasted['findings']:.3f}"}
    ElementTree.indent(top)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(top, "unicode")}\n'


def _case(name: str, group: str, seconds: float = 0) -> Case:
    told = {"name": printable(name), "classname": printable(group), "time": f"{seconds:.3f}"}
    return told, "", "", ""


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
    return attributes, "failure", f"{finding.sort}: {finding.seen}", "\n".join(lines)


def _counts(cases: list[Case]) -> dict[str, str]:
    counted = {"tests": len(cases)}
    for word, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        counted[word] = sum(each == element for _, each, _, _ in cases)
    return {name: str(number) for name, number in counted.items()}
