"""`litmusfuzz doctor`: executors, engines and tools that work on this machine."""

from __future__ import annotations

import sys

import click

from litmusfuzz.fuzz.cli.common import CLEAN, USAGE, json_option, print_report, progress_line


@click.command(epilog="Example: litmusfuzz doctor --json")
@json_option
def doctor(as_json: bool) -> None:
    """Check what works on this machine, and how to get the rest.

    Checks versions, machine, engines, executors and their configurations, XLA's flags,
    and tools. A check that may crash runs in a process of its own. Exits 0 if the basics
    work, else 2.
    """
    from litmusfuzz.fuzz.campaign.doctor import examine
    from litmusfuzz.reports.doctor import DoctorReport

    with progress_line() as progress:
        report = DoctorReport(tuple(examine(progress)))
    print_report(report, as_json=as_json)
    sys.exit(CLEAN if report.works else USAGE)
