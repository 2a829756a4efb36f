"""What commands share: exit codes, arguments and options, errors in one line."""

from __future__ import annotations

import json
import re
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import click

from litmusfuzz.corpus.textfile import Entry, FileError, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.oracles.allowed import AllowedSet
    from litmusfuzz.oracles.explorer import Explorer
    from litmusfuzz.oracles.model import Model


CLEAN, FORBIDDEN, USAGE, UNKNOWN = 0, 1, 2, 3
MAX_SEED = (1 << 63) - 1  # what a file holds
MAX_LOG_BYTES = 1 << 28
SUFFIXES = (".yaml", ".litmus")


class Duration(click.ParamType[float]):
    """Seconds, from ``60s``, ``5m`` or ``2h``."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """From text; click reports the message."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|)", str(value))
        if not match:
            self.fail(f"{value!r} is no duration; write 60s, 5m or 2h", param, ctx)
        seconds = float(match[1]) * {"ms": 0.001, "m": 60.0, "h": 3600.0}.get(match[2], 1.0)
        if not 0 < seconds <= 30 * 86400:
            self.fail(f"{value!r} is not between 0 and 30 days", param, ctx)
        return seconds


def fail(message: str) -> NoReturn:
    """One line on standard error, exit 2."""
    click.echo(f"litmusfuzz: {message}", err=True)
    sys.exit(USAGE)


def load_or_fail(path: str) -> Entry:
    """A file, or its first mistake in one line and exit 2."""
    try:
        return load(path)
    except FileError as error:
        fail(str(error))


def model_of(name: str) -> Model:
    """A memory model by what it is called after ``--model``."""
    from litmusfuzz.oracles.model import GUARANTEES

    return GUARANTEES[name]


def explore_or_fail(
    path: str, test: LitmusTest, model: Model, budget: int | None
) -> tuple[Explorer, AllowedSet]:
    """The explorer of a file's test, and all that it allows, within the budget."""
    from litmusfuzz.oracles.allowed import NoAllowedSet

    explorer = explorer_for(path, test, model, budget)
    try:
        return explorer, explorer.allowed_outcomes()
    except NoAllowedSet as error:
        fail(f"{path}: {error}")


def explorer_for(path: str, test: LitmusTest, model: Model, budget: int | None) -> Explorer:
    """The explorer of a file's test."""
    from litmusfuzz.oracles.allowed import NoAllowedSet
    from litmusfuzz.oracles.explorer import DEFAULT_BUDGET, Explorer

    chosen = DEFAULT_BUDGET if budget is None else replace(DEFAULT_BUDGET, states=budget)
    try:
        return Explorer(test, model, chosen)
    except NoAllowedSet as error:
        fail(f"{path}: {error}")


def print_json(data: Any) -> None:
    """What ``--json`` prints."""
    click.echo(json.dumps(data, indent=2))


file_argument = click.argument("file", type=click.Path())
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
model_option = click.option(
    "--model",
    "model_name",
    type=click.Choice(["rfc", "executor", "acd"]),
    default=None,
    help="Memory model; rfc if not given.",
)
one_model_option = click.option(
    "--model",
    "model_name",
    type=click.Choice(["rfc", "executor", "acd"]),
    default=None,
    help="Only that memory model; all if not given.",
)
engine_option = click.option(
    "--engine",
    default=None,
    help="Of executor native: a name, a shared library's path, or module:object in Python.",
)
threads_option = click.option(
    "--threads", type=click.IntRange(1, 256), default=None, help="Of that engine: a hard limit."
)
noise_option = click.option(
    "--noise",
    default=None,
    help="What is varied between executions, as copies=64,pinned,delay_us_max=20.",
)
python_option = click.option(
    "--python",
    default=None,
    help="Run executors with another environment's interpreter, and what is installed there.",
)
budget_option = click.option(
    "--budget",
    type=click.IntRange(min=1),
    default=None,
    help="States to look at before an answer is 'unknown'.",
)


def python_or_fail(path: str | None) -> str | None:
    """Another environment's interpreter, known to be able to run workers; None for ours."""
    from litmusfuzz.fuzz.executors.interpreter import interpreter
    from litmusfuzz.fuzz.executors.protocol import Unavailable

    try:
        return None if path is None else interpreter(path)
    except Unavailable as error:
        fail(f"--python: {error}")


@contextmanager
def parts_told() -> Iterator[Callable[[str], None]]:
    """What is being measured, on a terminal."""
    terminal = sys.stderr.isatty()

    def progress(part: str) -> None:
        if terminal:
            click.echo(f"\r\x1b[K{part} ...", err=True, nl=False)

    try:
        yield progress
    finally:
        if terminal:
            click.echo("\r\x1b[K", err=True, nl=False)
