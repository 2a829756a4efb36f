"""`litmusfuzz run`: one campaign of random graphs on chosen executors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from litmusfuzz.fuzz.cli.campaigns import (
    begin,
    check_resume,
    check_trusted,
    command_line,
    finish,
    given,
    known_of,
    known_option,
    new_folder,
    new_store,
    reopened,
    resume_option,
    started_in,
)
from litmusfuzz.fuzz.cli.common import (
    MODEL,
    NamedChoice,
    engine_option,
    fail,
    json_option,
    noise_option,
    python_option,
    threads_option,
    trust_option,
)
from litmusfuzz.fuzz.cli.options import RUN, asked, options_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.fuzz.cli.campaigns import KnownOption
    from litmusfuzz.fuzz.store.store import Store
    from litmusfuzz.reports.events import CampaignStarted
    from litmusfuzz.reports.report import Report

GUARANTEED = "guaranteed"
MIN_LEFT_S = 1.0
"""A campaign with less time left is over."""


def _judge_by(_: click.Context, __: click.Parameter, name: str) -> str:
    return "" if name == GUARANTEED else name


@click.command(epilog="Example: litmusfuzz run --executors tf,native --time 10m --seed 1")
@options_of(RUN)
@click.option(
    "--model",
    "judge_by",
    type=NamedChoice([*MODEL.choices, GUARANTEED], "models"),
    default=GUARANTEED,
    callback=_judge_by,
    help="Memory model that judges all outcomes; `guaranteed`, the default, is the one that each "
    "configuration guarantees.",
)
@engine_option
@threads_option
@python_option
@trust_option
@noise_option
@click.option(
    "--out",
    type=click.Path(),
    default=None,
    help="Folder for the findings and reports; a new folder findings/run-SEED if not given.",
)
@resume_option
@known_option
@json_option
def run(
    *,
    trust: bool,
    out: str | None,
    resume: str | None,
    known_given: KnownOption,
    as_json: bool,
    **options: Any,
) -> None:
    """Run random graphs and judge their outcomes.

    Several executors run the same graphs, and their outcomes are compared. Findings and
    reports are written to --out. SIGTERM and Ctrl-C end the run with all that was found, a
    second one at once; --resume continues it: for the time left, or for --time more. Exits 1
    if there is a finding that --known does not name, crashes included; 2 if the canary went
    unreported; 3 if there is none, but it was interrupted, something was left undecided, or a
    configuration did not run --min-graphs graphs.
    """
    from litmusfuzz.fuzz.nightly.single import SingleShard
    from litmusfuzz.fuzz.store.folder import StoreError
    from litmusfuzz.reports.terminal import LiveView

    command, time_s = command_line(), options["asked_s"]
    if resume is not None:
        check_resume(resume, ("asked_s", "tests", "workers", "python", "engine", "trust"))
        started, report = started_in(resume, unattended=False)
        if not trust:
            check_trusted(resume, started, options["python"], options["engine"])
        known = known_of(resume, started, known_given)
        store, time_s = _resumed(resume, started, report, options)
    else:
        if options["tests"] == 0:
            fail("--tests 0: only with --resume")
        started, known = asked(options, known_given, command=command)
        folder = new_folder(Path("findings"), f"run-{started.seed}") if out is None else out
        store = new_store(str(folder))
        begin(store, started)
    try:
        with store, LiveView(sys.stderr if as_json else sys.stdout, as_json=as_json) as view:
            report = SingleShard(store, known, view, time_s=time_s, say=view.say).run()
    except StoreError as error:  # of a damaged campaign that is resumed
        fail(str(error))
    finish(report, as_json=as_json)


def _resumed(
    resume: str, started: CampaignStarted, report: Report, options: Mapping[str, Any]
) -> tuple[Store, float]:
    """The store of a run to continue, and for how long."""
    from litmusfuzz.reports.events import CampaignResumed

    time_s, tests = options["asked_s"], options["tests"]
    asked_s = report.spent_s + time_s if given("asked_s") else report.asked_s
    left_s = asked_s - report.spent_s
    if given("asked_s") or left_s >= MIN_LEFT_S:
        time_s = left_s
    elif tests is None:
        tests = 0  # findings and reports are completed
    if tests is not None:
        tests += report.generated
    elif started.tests is not None:
        assert report.tests is not None
        tests = max(report.tests, report.generated)
    store = reopened(resume, started)
    begin(
        store,
        CampaignResumed(
            asked_s=round(asked_s, 3),
            tests=tests,
            workers=options["workers"] if given("workers") else started.workers,
        ),
    )
    return store, time_s
