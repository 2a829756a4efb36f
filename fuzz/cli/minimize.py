"""`litmusfuzz minimize`: the smallest test that shows a forbidden outcome, or ends its process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.cli.campaigns import known_findings, known_option
from litmusfuzz.fuzz.cli.common import (
    EXECUTORS,
    FORBIDDEN,
    MODEL,
    UNKNOWN,
    Duration,
    complain,
    configuration_option,
    engine_option,
    fail,
    json_option,
    load_or_fail,
    model_of,
    print_json,
    print_text,
    progress_line,
    test_argument,
    threads_option,
    trust_option,
)
from litmusfuzz.fuzz.cli.executors import executors_of
from litmusfuzz.fuzz.cli.replay import check_trusted, found_on
from litmusfuzz.reports.tables import one_line
from litmusfuzz.reports.times import seconds

if TYPE_CHECKING:
    from litmusfuzz.fuzz.cli.campaigns import KnownOption
    from litmusfuzz.fuzz.commands.minimize_crash import MinimizedCrash


@click.command(epilog="Example: litmusfuzz minimize findings/run-1/unreduced/NAME.yaml --time 5m")
@test_argument
@click.option(
    "--executors",
    type=EXECUTORS,
    default=None,
    help="One executor, NAME or NAME:CONFIGURATION; without this option the finding's, or tf.",
)
@configuration_option
@engine_option
@threads_option
@trust_option
@click.option(
    "--time", "time_s", type=Duration(), default="60s", help="Limit on the whole reduction."
)
@click.option(
    "--out",
    type=click.Path(),
    default=None,
    help="Folder for the finding; without it the working folder.",
)
@click.option(
    "--model",
    "model_name",
    type=MODEL,
    default=None,
    help="Memory model; without this option the finding's where it was found, elsewhere the one "
    "that the configuration guarantees.",
)
@known_option
@json_option
def minimize(
    file: str,
    executors: str | None,
    config_name: str | None,
    engine: str | None,
    threads: int | None,
    trust: bool,
    time_s: float,
    out: str | None,
    model_name: str | None,
    known_given: KnownOption,
    as_json: bool,
) -> None:
    """Reduce a test that shows a forbidden outcome to a smallest one.

    TEST is an unreduced finding of a campaign, or any test. It runs until it shows a
    forbidden outcome, is reduced while it still does, and is confirmed in a fresh
    process; the finding is written to --out. A test that ends each process in one way is
    reduced while it still does, with its settings. A known finding that explains it is named,
    as `run` finds it: by its key, or by experiments. Exits 1 if there is a finding, known or
    not, 3 if nothing showed.
    """
    if Path(file).is_dir() or file.endswith(".json"):
        fail(
            f"{file}: is no test; `litmusfuzz run --resume FOLDER --tests 0` minimizes what a"
            " campaign left"
        )
    from litmusfuzz.fuzz.commands.known_cause import KnownCause, known_cause, known_crash
    from litmusfuzz.fuzz.commands.minimize_crash import minimize_crash
    from litmusfuzz.fuzz.commands.minimize_file import minimize
    from litmusfuzz.fuzz.finding.judging_model import judging_model
    from litmusfuzz.reports.fold import reported
    from litmusfuzz.reports.outputs import plain
    from litmusfuzz.reports.text import finding

    entry = load_or_fail(file)
    on = found_on(entry, executors, config_name)
    if not (trust or config_name):
        check_trusted(file, entry, on, engine)
    chosen = executors_of(*on, engine, threads)
    if len(chosen) > 1:
        fail("--executors: minimize takes one")
    ((name, config),) = chosen
    asked = model_of(model_name) if model_name else None
    judging = judging_model(name, config, asked=asked, finding=entry.finding)
    known = known_findings(known_given, {name})
    folder = Path(out or ".")
    folder.mkdir(parents=True, exist_ok=True)

    with progress_line() as progress:
        progress("minimizing")
        end = clock.now() + time_s
        done = minimize(entry, name, config, judging.model, folder, time_s=time_s)
        crash: MinimizedCrash | None = None
        problem = done.problem
        if done.died:
            progress("minimizing what ends the process")
            left_s = end - clock.now()
            made = minimize_crash(entry.test, name, config, folder, time_s=left_s)
            crash = None if isinstance(made, str) else made
            problem = f"{problem}; {made}" if isinstance(made, str) else ""
        interrupted, cause = done.interrupted, KnownCause()
        if crash is not None:
            cause = known_crash(crash, known)
        elif done.found is not None and not interrupted:
            progress("comparing it with what is known")
            try:
                cause = known_cause(done.found, known, time_s=end - clock.now())
            except KeyboardInterrupt:  # the finding is there
                interrupted = True
    found = None
    if done.found is not None:
        shows_it = None if done.script is None else done.script.shows_it
        found = reported(done.found, str(folder), script_shows_it=shows_it)
    took_s = time_s - (end - clock.now())
    interruption = f"interrupted after {seconds(took_s)} of {seconds(time_s)} s"
    if as_json:
        data = found and plain(found) | {"file": str(folder / found.file)}
        crashed = crash and {**crash.as_json(), "file": str(folder / crash.file)}
        how_far = interruption if interrupted else ""
        result: dict[str, Any] = {"model": judging.model.name, "judged_by": str(judging)}
        result |= {"finding": data, "crash": crashed, "problem": problem, **cause.as_json()}
        print_json({**result, "interruption": how_far})
    else:
        lines = [f"{file}: {problem}"]
        if crash is not None:
            lines = list(crash.lines(str(folder)))
        elif found is not None:
            lines = finding(found, str(folder)).splitlines()
        print_text(str(judging))
        for line in (*lines[:-1], *cause.lines(), lines[-1]):  # the command that replays it is last
            print_text(one_line(line))
    if interrupted:
        complain(interruption)
    sys.exit(FORBIDDEN if found or crash or done.showed else UNKNOWN)
