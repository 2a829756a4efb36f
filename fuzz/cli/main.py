"""The command line: its commands, put together, and what their exit codes mean.

Exit codes: 0 clean, 1 a forbidden outcome, 2 usage or harness error, 3 only
unknown or timed out. Of `compare`: 0 the logs say the same, 1 they differ in a
forbidden outcome, 3 they differ in others, or it is not known in which.
"""

from __future__ import annotations

import sys
import traceback
from typing import NoReturn

import click

from litmusfuzz.fuzz.cli.bench import bench
from litmusfuzz.fuzz.cli.cmin import cmin
from litmusfuzz.fuzz.cli.common import CLEAN, UNKNOWN, USAGE
from litmusfuzz.fuzz.cli.compare import compare
from litmusfuzz.fuzz.cli.cover import cover
from litmusfuzz.fuzz.cli.doctor import doctor
from litmusfuzz.fuzz.cli.force import force
from litmusfuzz.fuzz.cli.herd import herd
from litmusfuzz.fuzz.cli.known import known
from litmusfuzz.fuzz.cli.minimize import minimize
from litmusfuzz.fuzz.cli.nightly import nightly, reproduce, status
from litmusfuzz.fuzz.cli.oracle import oracle
from litmusfuzz.fuzz.cli.page import page
from litmusfuzz.fuzz.cli.promote import promote
from litmusfuzz.fuzz.cli.replay import replay
from litmusfuzz.fuzz.cli.run import run
from litmusfuzz.fuzz.cli.script import script
from litmusfuzz.fuzz.cli.selftest import selftest
from litmusfuzz.fuzz.cli.show import show
from litmusfuzz.fuzz.cli.validate import validate


@click.group(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(package_name="litmusfuzz")
def main() -> None:
    """Litmus tests for the concurrency semantics of dataflow graphs.

    Draws random resource graphs, computes what TensorFlow's memory model
    allows, runs them on real executors, and reports every outcome outside.
    """


COMMANDS = (
    oracle,
    validate,
    show,
    script,
    run,
    replay,
    minimize,
    cmin,
    force,
    cover,
    herd,
    compare,
    promote,
    known,
    selftest,
    doctor,
    nightly,
    status,
    reproduce,
    page,
    bench,
)
"""In the order of the help."""
for each in COMMANDS:
    main.add_command(each)


def run_command() -> NoReturn:
    """The console script: whatever happens ends in one of our exit codes."""
    try:
        code = main.main(standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = USAGE
    except click.ClickException as error:
        click.echo(f"litmusfuzz: {' '.join(error.format_message().split())}", err=True)
        code = USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("litmusfuzz: interrupted", err=True)
        code = UNKNOWN
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"litmusfuzz: {where}{error.strerror or error}", err=True)
        code = USAGE
    except Exception:  # noqa: BLE001 - our own defect; Python's exit code 1 means a finding here
        traceback.print_exc()
        code = USAGE
    sys.exit(code if isinstance(code, int) else CLEAN)
