"""`litmusfuzz doctor`: executors, engines and tools that work on this machine."""

from __future__ import annotations

import sys

import click

from litmusfuzz.fuzz.cli.common import (
    CLEAN,
    USAGE,
    json_option,
    print_report,
    progress_line,
    python_option,
    python_or_fail,
)


@click.command(epilog="Example: litmusfuzz doctor --json")
@python_option
@json_option
def doctor(python: str | None, as_json: bool) -> None:
    """Check what works on this machine, and how to get the rest.

    Checks versions, machine, engines, executors and their configurations, XLA's flags,
    and tools. A check that may crash runs in a process of its own. With --python, checks
    which executors work in that environment. Exits 0 if the basics work, else 2.
    """
    from litmusfuzz.fuzz.commands.doctor import examine, examine_there
    from litmusfuzz.reports.doctor import DoctorReport

    python = python_or_fail(python)
    with progress_line() as progress:
        checks = examine(progress) if python is None else examine_there(python, progress)
    report = DoctorReport(tuple(checks))
    print_report(report, as_json=as_json)
    sys.exit(CLEAN if report.works else USAGE)
