"""`litmusfuzz herd compare`: outcomes that only one of two logs has."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from litmusfuzz.corpus.document import read_text
from litmusfuzz.corpus.model import MalformedTest
from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.textfile import FileError, value_from_plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from litmusfuzz.corpus.herd import State
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Plain, Value
    from litmusfuzz.oracles.explorer import Explorer
    from litmusfuzz.oracles.model import Model
    from litmusfuzz.reports.comparison import Log

from litmusfuzz.fuzz.cli.common import (
    MAX_LOG_BYTES,
    SUFFIXES,
    budget_option,
    explorer_for,
    fail,
    json_option,
    load_or_fail,
    model_of,
    model_option,
    print_report,
)
from litmusfuzz.fuzz.cli.oracle import membership


@click.command(epilog="Example: litmusfuzz herd compare ours.log herd.log --tests corpus/litmus")
@click.argument("left", metavar="A", type=click.Path())
@click.argument("right", metavar="B", type=click.Path())
@click.option(
    "--tests",
    "places",
    multiple=True,
    type=click.Path(),
    help="A test of the logs, ours or herd's, or a folder of tests; may be given several times.",
)
@model_option
@budget_option
@json_option
def compare(
    left: str,
    right: str,
    places: tuple[str, ...],
    model_name: str | None,
    budget: int | None,
    as_json: bool,
) -> None:
    """Compare two logs: the outcomes that only A or only B has.

    A and B are logs of `herd log`, `replay --log`, herd7 or litmus7. With --tests
    the oracle judges each such outcome. Exits 0 if the logs agree, 1 if they differ
    in a forbidden outcome, 3 if they differ in others.
    """
    from litmusfuzz.reports.comparison import Incomparable
    from litmusfuzz.reports.comparison import compare as compared

    logs = (_load_log(left), _load_log(right))
    names = {name for log in logs for name in log.tests}
    model = model_of(model_name or "rfc")
    judge = _LogJudge(_named(places, names), logs, model, budget) if places else None
    try:
        why = "as --model asks" if model_name else "as logs name no configuration; see --model"
        report = compared(*logs, judge, model.name, why)
    except Incomparable as error:
        fail(str(error))
    print_report(report, as_json=as_json)
    sys.exit(report.exit_code)


def _load_log(path: str) -> Log:
    from litmusfuzz.corpus.herd import read_log
    from litmusfuzz.reports.comparison import Log

    try:
        text = read_text(path, MAX_LOG_BYTES)
        return Log(path, {each.name: each for each in read_log(text, path)})
    except FileError as error:
        fail(str(error))


def _named(places: tuple[str, ...], names: set[str]) -> dict[str, tuple[str, LitmusTest]]:
    """The tests of those names in files and folders, each with its file."""
    found: dict[str, tuple[str, LitmusTest]] = {}
    for place in places:
        files = [Path(place)]
        if files[0].is_dir():
            # A test's file has its name; a folder may hold hundreds of others.
            files = sorted(
                f
                for f in files[0].iterdir()
                if f.suffix in SUFFIXES and f.stem in names and f.is_file()
            )
        for file in files:
            path = str(file)
            test = load_or_fail(path).test
            other = found.setdefault(test.name, (path, test))
            if other[1] != test:
                fail(f"--tests: {other[0]} and {path} are two tests named {test.name}")
    return found


class _LogJudge:
    """The oracle's verdict on the states of a log."""

    def __init__(
        self,
        tests: Mapping[str, tuple[str, LitmusTest]],
        logs: Iterable[Log],
        model: Model,
        budget: int | None,
    ) -> None:
        self.tests = tests
        self.logs = tuple(logs)
        self.model = model
        self.budget = budget
        self.name = ""
        self.explorer: Explorer | None = None

    def __call__(self, name: str, state: State) -> str | None:
        """The verdict; None if no test of that name was given."""
        if name not in self.tests:
            return None
        from litmusfuzz.oracles.errors import NoAllowedSet

        path, test = self.tests[name]
        if name != self.name:  # one after the other: each is loaded once
            from litmusfuzz.corpus.herd import layout

            self.name, self.names = name, layout(test).names
            self.explorer = explorer_for(path, test, self.model, self.budget)
        assert self.explorer is not None
        values, status = self.read(test, state)
        try:
            return str(membership(self.explorer, values, status)[0])
        except NoAllowedSet as error:
            fail(f"{path}: {error}")

    def read(self, test: LitmusTest, state: State) -> tuple[dict[str, Value], Status]:
        """A state's values by our names, and how it ended."""
        from litmusfuzz.corpus.herd.log import STATUS

        values: dict[str, Value] = {}
        status = Status.COMPLETED
        for place, cell in state:
            if place == STATUS and cell in list(Status):
                status = Status(str(cell))
                continue
            if place not in self.names:
                known = ", ".join(self.names)
                self.fail(test, state, f"{place} is not a location of the test: {known}")
            name = self.names[place]
            plain: Plain = list(cell) if isinstance(cell, tuple) else cell
            queue = next((q for q in test.queues if q.name == name), None)
            try:
                if queue is not None and isinstance(cell, tuple):
                    size = test.size_of(queue.shape)
                    parts: list[int | list[int]] = []
                    parts += [list(cell[i : i + size]) for i in range(0, len(cell), size)]
                    plain = parts
                values[name] = value_from_plain(test, name, plain)
            except MalformedTest as error:
                self.fail(test, state, str(error))
        return values, status

    def fail(self, test: LitmusTest, state: State, message: str) -> NoReturn:
        file, logged = next(
            (log.file, log.tests[test.name])
            for log in self.logs
            if test.name in log.tests and state in log.tests[test.name].states
        )
        fail(f"{file}:{logged.line}: {test.name}: {message}")
