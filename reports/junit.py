"""Report of a campaign as JUnit XML, for tools that show test results.

It has a failure or an error just if the exit code is not 0. Each configuration, each mutant and the
canary is a test case; a configuration that cannot run here is skipped, with the reason. So is each
finding a case: a new one is a failure, a known one is skipped. A test with a forbidden outcome and
no finding is a failure, an error or skipped, as the exit code says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree

from litmusfuzz.reports import drawing
from litmusfuzz.reports.tables import printable
from litmusfuzz.reports.times import stamp

if TYPE_CHECKING:
    from litmusfuzz.reports.open_tests import OpenTest
    from litmusfuzz.reports.report import Ran, Report, ReportedFinding, Share

MAX_DRAWING_LINES: Final = 60
"""A longer drawing is cut; the HTML page and the file have all of it."""
Case = tuple[dict[str, str], str, str, str]
"""Attributes of a test case; its inner element ("" if it passed), message and text."""


def junit(report: Report) -> str:
    """The whole file."""
    shown = [_finding(each) for each in report.findings]
    parts = {each.executor: each for each in report.ran}
    ran = [_configuration(parts[each.executor], each) for each in report.by_config]
    runs, reported = report.canary
    missed = f"reported in {reported} of {runs} runs" if report.canary_failed else ""
    tested = [_failure("canary", "litmusfuzz.selftest", missed)]
    for kill in report.kills:
        missed = f"not reported in {kill.graphs} graphs" if kill.seconds is None else ""
        group = f"litmusfuzz.selftest.{kill.executor}"
        tested.append(_failure(kill.mutant, group, missed, kill.seconds or 0))
    shown += [_open(each) for each in report.open_tests]
    # An unattended campaign always leaves some; they do not count.
    left = "skipped" if report.unattended else "error"
    tested += [
        _case("undecided", "litmusfuzz", element=left, message=each) for each in report.left_open
    ]
    tested += [
        _case("reports beside this one", "litmusfuzz", element="error", message=each)
        for each in report.damaged
    ]
    if wrong := "; ".join(filter(None, (report.problem, report.interruption))):
        tested.append(_case("campaign", "litmusfuzz", element="error", message=wrong))
    is_red = any(element in ("failure", "error") for _, element, *_ in (*shown, *ran, *tested))
    if report.exit_code() and not is_red:
        tested.append(_case("campaign", "litmusfuzz", element="error", message=report.verdict))
    top = ElementTree.Element("testsuites", name="litmusfuzz")
    started = stamp(report.started)
    lasted = {"findings": report.spent_s}
    for name, cases in (("findings", shown), ("configurations", ran), ("self-test", tested)):
        suite = ElementTree.SubElement(top, "testsuite", name=name, timestamp=started)
        suite.attrib |= _counts(cases) | {"time": f"{lasted.get(name, 0):.3f}"}
        for attributes, element, message, text in cases:
            made = ElementTree.SubElement(suite, "testcase", attributes)
            if element:
                inner = ElementTree.SubElement(made, element, message=printable(message))
                inner.text = printable(text)
    top.attrib |= _counts([*shown, *ran, *tested]) | {"time": f"{lasted['findings']:.3f}"}
    ElementTree.indent(top)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(top, "unicode")}\n'


def _case(
    name: str, group: str, seconds: float = 0, element: str = "", message: str = "", text: str = ""
) -> Case:
    attributes = {"name": printable(name), "classname": printable(group), "time": f"{seconds:.3f}"}
    return attributes, element, message, text


def _failure(name: str, group: str, message: str, seconds: float = 0) -> Case:
    """A case that passed if there is no message."""
    return _case(name, group, seconds, "failure" if message else "", message)


def _configuration(ran: Ran, share: Share) -> Case:
    """A configuration: it passed if it ran what it has to."""
    group = "litmusfuzz.configurations"
    if reason := ran.not_reached.get(share.configuration):
        return _case(share.name, group, share.seconds, "error", f"not reached: {reason}")
    why = ran.unavailable.get(share.configuration, "")
    return _case(share.name, group, share.seconds, "skipped" if why else "", why)


def _finding(finding: ReportedFinding) -> Case:
    group = f"litmusfuzz.findings.{finding.where.replace('/', '.')}"
    name = f"{finding.headline} ({finding.entry.test.name})"
    if finding.known:
        return _case(name, group, element="skipped", message=f"known: {finding.known}")
    facts = {"kind": str(finding.kind)} | dict(finding.evidence)
    facts |= {"graphs": str(finding.count), "file": finding.file, "replay": finding.replay}
    text = "\n".join([finding.headline, *(f"{what}: {text}" for what, text in facts.items())])
    text += f"\n\n{finding.traceback}" if finding.traceback else ""
    shown = "; ".join(finding.reason) if finding.no_histogram else finding.seen
    return _case(name, group, 0, "failure", f"{finding.headline}: {shown}", text)


_ELEMENTS: Final = {1: "failure", 3: "error", 0: "skipped"}


def _open(test: OpenTest) -> Case:
    """A test with a forbidden outcome and no finding."""
    group = f"litmusfuzz.open.{test.executor}.{test.configuration}".replace("/", ".")
    lines = [test.headline, *(f"{what}: {text}" for what, text in test.facts.items())]
    if test.entry is not None:
        lines += ["", drawing.shortened(test.entry.test, MAX_DRAWING_LINES), ""]
    lines.append(f"replay: {test.replay}")
    message = f"{test.headline}: {test.why}"
    return _case(test.name, group, 0, _ELEMENTS[test.exit_code], message, "\n".join(lines))


def _counts(cases: list[Case]) -> dict[str, str]:
    counted = {"tests": len(cases)}
    for word, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        counted[word] = sum(each == element for _, each, _, _ in cases)
    return {name: str(number) for name, number in counted.items()}
