"""Report of a campaign as SARIF 2.1.0, for code scanning and editors.

References
----------
OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", 2020.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from litmusfuzz.reports import drawing
from litmusfuzz.reports.events import FindingKind
from litmusfuzz.reports.tables import printable
from litmusfuzz.reports.times import stamp

if TYPE_CHECKING:
    from litmusfuzz.reports.open_tests import OpenTest
    from litmusfuzz.reports.report import Report, ReportedFinding

_RULES: Final = {
    FindingKind.FORBIDDEN: "An executor showed an outcome that no total order of the events yields",
    FindingKind.UNSOUND: "Clusters add an outcome that the graph does not have without them",
    FindingKind.CRASHED: "A test ended the process that ran it",
    FindingKind.TIMED_OUT: "A test did not end",
    FindingKind.OUT_OF_MEMORY: "A test took more memory than it may",
}
MAX_DRAWING_LINES: Final = 60
OPEN: Final = "open"
"""Rule of a test with a forbidden outcome and no finding."""
_OPEN: Final = "A test showed a forbidden outcome and is not minimized, or not confirmed"


def sarif(report: Report) -> dict[str, Any]:
    """The whole log, as plain data."""
    invocation: dict[str, Any] = {
        "commandLine": report.command,
        "startTimeUtc": stamp(report.started),
        "exitCode": report.exit_code(),
        "executionSuccessful": report.exit_code() != 2 and not report.interrupted,
    }
    if report.ended is not None:
        invocation["endTimeUtc"] = stamp(report.ended)
    invocation["toolExecutionNotifications"] = _notifications(report)
    rules = [
        {"id": _id(kind), "shortDescription": {"text": f"{words}."}}
        for kind, words in (*_RULES.items(), (OPEN, _OPEN))
    ]
    driver = {"name": "LitmusFuzz", "version": version("litmusfuzz"), "rules": rules}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "invocations": [invocation],
                "results": [
                    *map(_result, report.findings),
                    *(_open(each, report.campaign) for each in report.open_tests),
                ],
            }
        ],
    }


def _notifications(report: Report) -> list[dict[str, Any]]:
    """What went wrong, what is not decided, and which configurations did not run."""
    found = [("error", report.complaint)] if report.complaint else []
    found += [("error", report.interruption)] if report.interrupted else []
    found += [("error", f"left out of trends and counts: {each}") for each in report.damaged]
    found += [("warning", f"not decided: {each}") for each in report.left_open]
    for each in report.ran:
        for names, level in ((each.not_reached, "warning"), (each.unavailable, "note")):
            for name, why in names.items():
                found.append((level, f"{each.executor}/{name} did not run: {why}"))
    return [{"level": level, "message": {"text": _unlinked(text)}} for level, text in found]


def _unlinked(text: str) -> str:
    """Text in which no ``[words](address)`` is a link (SARIF 2.1.0, 3.11.6)."""
    return re.sub(r"\](?=\()", r"]\\", printable(text))


def _id(kind: str) -> str:
    return kind.replace(" ", "-")


def _result(finding: ReportedFinding) -> dict[str, Any]:
    sentences = [f"{finding.headline} on {finding.where}."]
    sentences += [
        f"{what[0].upper()}{what[1:]}: {text}." for what, text in finding.evidence.items()
    ]
    sentences.append(f"Replay: {finding.replay}")
    result: dict[str, Any] = {
        "ruleId": _id(finding.kind),
        "ruleIndex": list(_RULES).index(finding.kind),
        "level": "note" if finding.known else "error",
        "message": {"text": _unlinked(" ".join(sentences))},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(finding.file)},
                    "region": {"startLine": 1},
                }
            }
        ],
        "partialFingerprints": {"litmusfuzz/v1": finding.key},
        "baselineState": "unchanged" if finding.known else "new",
        "occurrenceCount": max(1, finding.count),
        "properties": {
            "executor": finding.executor,
            "configurationClass": finding.config_class,
            "cause": finding.cause,
            "rules": list(finding.rules),
            "firstSeen": stamp(finding.first_seen),
            "lastSeen": stamp(finding.last_seen),
        },
    }
    if finding.traceback:
        result["properties"]["traceback"] = printable(finding.traceback)
    if finding.log:
        result["properties"]["log"] = printable(finding.log)
    if finding.known:
        result["suppressions"] = [{"kind": "external", "justification": finding.known}]
    return result


def _open(test: OpenTest, campaign: str) -> dict[str, Any]:
    """A test with a forbidden outcome and no finding. It has no key: each campaign has its own."""
    facts = [f"{what[0].upper()}{what[1:]}: {text}." for what, text in test.facts.items()]
    sentences = [f"{test.headline}.", *facts, f"Replay: {test.replay}"]
    properties: dict[str, Any] = {
        "executor": test.executor,
        "configuration": test.configuration,
        "state": str(test.state),
        "mayBeKnown": list(test.known),
    }
    if test.entry is not None:
        properties["picture"] = printable(drawing.shortened(test.entry.test, MAX_DRAWING_LINES))
    name = f"{test.index}/{test.executor}/{test.configuration}"
    return {
        "ruleId": OPEN,
        "ruleIndex": len(_RULES),
        "level": test.level,
        "message": {"text": _unlinked(" ".join(sentences))},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(test.file)},
                    "region": {"startLine": 1},
                }
            }
        ],
        "partialFingerprints": {"litmusfuzz-open/v1": f"{campaign}/{name}"},
        "baselineState": "new",
        "occurrenceCount": max(1, test.seen),
        "properties": properties,
    }
