"""Exit codes, arguments, options and error messages that several commands share."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, TextIO

import click
from click.shell_completion import CompletionItem

from litmusfuzz.corpus.near import did_you_mean
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, FileError, read_text
from litmusfuzz.fuzz.executors.entries import load, loads
from litmusfuzz.reports.tables import one_line, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from litmusfuzz.corpus.herd import Imported
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.words import NotationError
    from litmusfuzz.oracles.allowed import AllowedSet
    from litmusfuzz.oracles.explorer import Explorer
    from litmusfuzz.oracles.model import Model


CLEAN, FORBIDDEN, USAGE, UNKNOWN = 0, 1, 2, 3
MAX_SEED = (1 << 63) - 1  # of a finding's file
MAX_NUMBER = 10**15
"""Of executions, tests or states: more than any run has, and still more takes no 64 bits."""
MAX_COMPLAINT = 2_000
"""Characters of a line on standard error: a name in it may be as long as arguments may be."""
MAX_LOG_BYTES = 12 << 20
HERD_SUFFIX: Final = ".litmus"
SUFFIXES: Final = (".yaml", HERD_SUFFIX)
STDIN: Final = "-"
NOTATION: Final = "notation"
"""Name of a test in the short notation."""


class NamedChoice(click.Choice[str]):
    """One of a few names, which `litmusfuzz list` describes.

    Parameters
    ----------
    names : sequence of str
    kind : str
        What `litmusfuzz list` calls them.
    """

    def __init__(self, names: Sequence[str], kind: str) -> None:
        super().__init__(names)
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name itself; click reports the message."""
        if value not in self.choices:
            hint = did_you_mean(str(value), map(str, self.choices), self.kind)
            self.fail(f"no {self.kind.removesuffix('s')} {str(value)[:80]!r}; {hint}", param, ctx)
        return str(value)


MODEL: Final = NamedChoice(
    ["rfc", "executor", "acd", "program", "sequential", "one_cluster"], "models"
)


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


class TestName(click.ParamType[str]):
    """A test: a file, the name of a test of the corpus, or the short notation.

    The command resolves it (`resolve_test`), so that all mistakes are reported alike.
    """

    name = "test"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Names of tests of the corpus, and the shell's own completion of paths."""
        from litmusfuzz.corpus.library import paths

        return [
            *(CompletionItem(name) for name in paths() if name.startswith(incomplete)),
            CompletionItem(incomplete, type="file"),
        ]


class Names(click.ParamType[str]):
    """Names, separated by commas; the command checks them.

    Parameters
    ----------
    known : callable
        Gives the names that the shell completes, from the options before.
    with_configurations : bool
        True if a name may be that of an executor with a configuration, ``tf:grappler``.
    """

    name = "names"

    def __init__(
        self,
        known: Callable[[click.Context], Iterable[str]],
        *,
        with_configurations: bool = False,
    ) -> None:
        self.known = known
        self.with_configurations = with_configurations

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The last of the names, with those before it."""
        before, comma, last = incomplete.rpartition(",")
        known = list(self.known(ctx))
        executor, colon, _ = last.partition(":")
        if self.with_configurations and colon:
            known = [f"{executor}:{name}" for name in _configurations_of(executor)]
        return [CompletionItem(f"{before}{comma}{name}") for name in known if name.startswith(last)]


def _executors(_ctx: click.Context) -> Iterable[str]:
    from litmusfuzz.fuzz.executors.table import names

    return names()


def _configurations(ctx: click.Context) -> Iterable[str]:
    return _configurations_of(str(ctx.params.get("executors") or "tf"))


def _configurations_of(name: str) -> Iterable[str]:
    from litmusfuzz.fuzz.executors.table import UnknownExecutor, executor_class

    try:
        executor = executor_class(name)
    except UnknownExecutor:
        return ()
    return (config.name for config in executor.configurations())


def _families(_ctx: click.Context) -> Iterable[str]:
    from litmusfuzz.fuzz.generators import FAMILIES

    return FAMILIES


def _mutants(_ctx: click.Context) -> Iterable[str]:
    from litmusfuzz.fuzz.executors.table import MUTANT

    return (name for name in _executors(_ctx) if name.startswith(MUTANT))


EXECUTORS = Names(_executors, with_configurations=True)
CONFIGURATION = Names(_configurations)
FAMILIES = Names(_families)
MUTANTS = Names(_mutants)

_COMMAND: Final = re.compile(r"##(?=\w*\[)")


def harmless(text: str) -> str:
    """Text as a terminal, or the log of a CI system, shows it and does nothing else.

    GitHub takes lines that begin with ``::`` for commands, and it, Azure Pipelines and TeamCity
    ``##[``, ``##vso[`` and ``##teamcity[`` anywhere.
    """
    text = _COMMAND.sub("## ", printable(text))
    if os.environ.get("GITHUB_ACTIONS"):
        text = re.sub(r"(?m)^(\s*)::", r"\1: :", text)
    return text


def unescaped(stream: TextIO) -> TextIO:
    """A stream that takes colours and moves of the cursor: `harmless` is up to the caller."""
    found: TextIO = getattr(stream, "unescaped", stream)
    return found


def complain(message: str) -> None:
    """One line on standard error, whatever the names in it."""
    line = one_line(message)
    cut = line if len(line) <= MAX_COMPLAINT else f"{line[:MAX_COMPLAINT]} [...]"
    click.echo(f"litmusfuzz: {cut}", err=True)


def fail_at(error: NotationError, argument: str) -> NoReturn:
    """Say what is wrong with a text that was typed, with a caret under the place; exit 2."""
    complain(f"{argument}, {error}")
    for line in error.picture:
        click.echo(f"  {harmless(line)}", err=True)
    sys.exit(USAGE)


def fail(message: str) -> NoReturn:
    """One line on standard error, exit 2."""
    complain(message)
    sys.exit(USAGE)


def resolve_test(argument: str) -> str:
    """Path of a test that is given as a path or by name; an existing path wins."""
    from litmusfuzz.corpus.library import paths, script_of

    if argument == STDIN or is_notation(argument):
        fail(f"{argument}: is a test without a file; this takes the path of a file, or a name")
    # What looks like a path is one: `load` says what is wrong with it.
    if os.path.lexists(argument) or Path(argument).suffix in SUFFIXES or os.sep in argument:
        return argument
    names = paths()
    if argument in names:
        return str(names[argument])
    if (script := script_of(argument)) is not None:
        command = shlex.join(["python", str(script)])
        fail(f"{argument}: is a known finding without a test: its script shows it: {command}")
    hint = did_you_mean(argument, names, "tests")
    fail(f"{argument}: no such file, and no test of the corpus has that name; {hint}")


def is_notation(argument: str) -> bool:
    """True if an argument is a test in the short notation; a file of that name wins."""
    if os.path.lexists(argument) or Path(argument).suffix in SUFFIXES:
        return False
    if os.sep in argument and not re.search(r"[\s;|{}!?]|/=|/\\|\\/", argument):
        return False  # a path with an equals sign in it
    return bool(re.search(r"[=!?<>;|{}\n]", argument))


def load_or_fail(argument: str, name: str = NOTATION) -> Entry:
    """A test from an argument; its first mistake and exit 2.

    Parameters
    ----------
    argument : str
        The path of a file of ours or (``.litmus``) of herd's, the name of a test of the corpus, a
        test in the short notation, or ``-`` for standard input, which holds any of these texts.
    name : str
        Of a test in the notation.
    """
    from litmusfuzz.corpus.builder import litmus
    from litmusfuzz.corpus.document import read_stream
    from litmusfuzz.corpus.model import MalformedTest
    from litmusfuzz.corpus.words import NotationError

    try:
        if argument != STDIN and not is_notation(argument):
            path = resolve_test(argument)
            return Entry(herd_or_fail(path).test) if path.endswith(HERD_SUFFIX) else load(path)
        text = argument
        if argument == STDIN:
            text = read_stream(sys.stdin.buffer, "<stdin>")
            if re.search(r"^litmusfuzz:", text, re.MULTILINE):
                return loads(text, "<stdin>")
        return Entry(litmus(text, name=name, description=text))
    except FileError as error:
        fail(str(error))
    except NotationError as error:
        fail_at(error, NOTATION if argument != STDIN else "<stdin>")
    except MalformedTest as error:
        fail(f"{NOTATION}: {error}")


def load_tests(arguments: Iterable[str]) -> list[tuple[str, Entry]]:
    """The tests of several arguments, each with its argument.

    Of several in the short notation each has a name of its own: results differ by it.
    """
    arguments = list(arguments)
    several = sum(each == STDIN or is_notation(each) for each in arguments) > 1
    if arguments.count(STDIN) > 1:
        fail("-: standard input holds one test")
    return [
        (each, load_or_fail(each, f"{NOTATION}-{number}" if several else NOTATION))
        for number, each in enumerate(arguments, 1)
    ]


def herd_or_fail(path: str) -> Imported:
    """A test in herd's format; says where it means something else than the file does."""
    from litmusfuzz.corpus.herd import parse

    try:
        imported = parse(read_text(path), path)
    except FileError as error:
        fail(str(error))
    for change in imported.changes:
        complain(f"{path}: {change}")
    return imported


def tests_below(folder: Path) -> Iterator[Path]:
    """Files of tests in a folder and those below it, however deep; links to folders are left out.

    `Path.rglob` recurses, and a folder from a stranger may be a thousand deep.
    """
    folders = [folder]
    while folders:
        for path in folders.pop().iterdir():
            if path.is_dir() and not path.is_symlink():
                folders.append(path)
            elif path.suffix == ".yaml" and path.is_file():  # no link to a terminal, no pipe
                yield path


def model_of(name: str) -> Model:
    """A memory model, by its name."""
    from litmusfuzz.oracles.model import GUARANTEES

    return GUARANTEES[name]


def explore_or_fail(
    path: str,
    test: LitmusTest,
    model: Model,
    budget: int | None,
    progress: Callable[[int], object] | None = None,
) -> tuple[Explorer, AllowedSet]:
    """The explorer of a test and its allowed set, within the budget.

    `progress` gets the number of states so far.
    """
    from litmusfuzz.oracles.errors import NoAllowedSet

    explorer = explorer_for(path, test, model, budget)
    try:
        return explorer, explorer.allowed_outcomes(progress=progress)
    except NoAllowedSet as error:
        fail(f"{path}: {error}")


def explorer_for(path: str, test: LitmusTest, model: Model, budget: int | None) -> Explorer:
    """The explorer of a test."""
    from litmusfuzz.oracles.errors import NoAllowedSet

    try:
        return explorer_of(test, model, budget)
    except NoAllowedSet as error:
        fail(f"{path}: {error}")


def explorer_of(test: LitmusTest, model: Model, budget: int | None) -> Explorer:
    """The explorer of a test; raises `NoAllowedSet` if the model does not apply to it."""
    from litmusfuzz.oracles.explorer import DEFAULT_BUDGET, Explorer

    chosen = DEFAULT_BUDGET if budget is None else replace(DEFAULT_BUDGET, states=budget)
    return Explorer(test, model, chosen)


def refuse_allowed(file: str, entry: Entry, budget: int | None = None) -> None:
    """Refuse a finding that shows only what its model allows; a file may say anything."""
    found = entry.finding
    if found is None:
        return
    from litmusfuzz.corpus.outcome import Verdict
    from litmusfuzz.oracles.errors import NoAllowedSet

    try:
        explorer = explorer_for(file, entry.test, model_of(found.model), budget)
        wrong = [o for o, _ in found.forbidden if explorer.judge(o) is Verdict.ALLOWED]
    except NoAllowedSet as error:
        fail(f"{file}: {error}")
    if wrong:
        fail(f"{file}: is no finding: {found.model} allows {wrong[0]}, which it calls forbidden")


def print_json(data: Any) -> None:
    """Print what ``--json`` asks for."""
    click.echo(json.dumps(data, indent=2))


def print_text(text: str) -> None:
    """Print a report; on a terminal FORBIDDEN is red, unless NO_COLOR is set."""
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        red = click.style("FORBIDDEN", fg="red", bold=True)
        text = re.sub(r"\bFORBIDDEN\b", red, harmless(text))
        click.echo(text, file=unescaped(sys.stdout))
    else:
        click.echo(text)


class Printable(Protocol):
    """A report of a command."""

    def text(self) -> str:
        """The report in words."""

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `text` has."""


def print_report(report: Printable, *, as_json: bool) -> None:
    """Print a report in words, or what ``--json`` asks for."""
    if as_json:
        print_json(report.as_json())
    else:
        print_text(report.text())


file_argument = click.argument("file", type=click.Path())
test_argument = click.argument("file", type=TestName(), metavar="TEST")
tests_argument = click.argument(
    "files", type=TestName(), metavar="TEST...", nargs=-1, required=True
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
configuration_option = click.option(
    "--configuration",
    "config_name",
    type=CONFIGURATION,
    default=None,
    help="Configuration of the one executor that is named.",
)
log_option = click.option(
    "--log",
    "log_file",
    type=click.Path(),
    default=None,
    help="Also write a log of what was observed, as litmus7 does.",
)
model_option = click.option(
    "--model",
    "model_name",
    type=MODEL,
    default=None,
    help="Memory model; rfc if not given.",
)
one_model_option = click.option(
    "--model",
    "model_name",
    type=MODEL,
    default=None,
    help="Memory model; rfc and executor if not given.",
)
engine_option = click.option(
    "--engine",
    default=None,
    help="Engine of executor native or tf: a name, the path of a shared library, or module:object "
    "in Python.",
)
threads_option = click.option(
    "--threads",
    type=click.IntRange(1, 256),
    default=None,
    help="Limit on the threads of the engine.",
)
noise_option = click.option(
    "--noise",
    default=None,
    help="Variation between executions, as copies=64,pinned,delay_us_max=20.",
)
python_option = click.option(
    "--python",
    default=None,
    help="Interpreter of another environment, in which the executors run.",
)
trust_option = click.option(
    "--trust",
    is_flag=True,
    help="Run what the file names: shared libraries, Python objects, an interpreter.",
)
budget_option = click.option(
    "--budget",
    type=click.IntRange(1, MAX_NUMBER),
    default=None,
    help="Limit on the states of the search; beyond it the verdict is unknown.",
)


def refuse_outside(where: str, wants: str, *options: str) -> NoReturn:
    """Say what a file wants to run, and how the user allows it; exit 2."""
    named = "".join(f"{option}, or " for option in options)
    fail(f"{where}: wants to run {wants}; if you trust it, add {named}--trust")


def python_or_fail(path: str | None) -> str | None:
    """Another environment's interpreter, known to be able to run workers; None for ours."""
    from litmusfuzz.fuzz.executors.interpreter import interpreter
    from litmusfuzz.fuzz.executors.protocol import Unavailable

    try:
        return None if path is None else interpreter(path)
    except Unavailable as error:
        fail(f"--python: {error}")


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """A function that shows, on a terminal, the part that a command is at."""
    terminal = sys.stderr.isatty()

    def progress(part: str) -> None:
        if terminal:
            text = one_line(harmless(part))
            click.echo(f"\r\x1b[K{text} ...", file=unescaped(sys.stderr), nl=False)

    try:
        yield progress
    finally:
        if terminal:
            click.echo("\r\x1b[K", file=unescaped(sys.stderr), nl=False)


FIRST_S: Final = 2.0
"""Seconds after which a terminal shows how far a command is."""
FIRST_LINE_S: Final = 10.0
"""The same where standard error is no terminal; then a line each time the time has doubled."""


@contextmanager
def slow_progress() -> Iterator[Callable[[str], None]]:
    """A function that shows how far a command is, if it takes long.

    On a terminal one line that changes, gone at the end; elsewhere a line now and then.
    """
    terminal = sys.stderr.isatty()
    start = time.monotonic()
    due = start + (FIRST_S if terminal else FIRST_LINE_S)
    shown = False

    def progress(part: str) -> None:
        nonlocal due, shown
        now = time.monotonic()
        if now < due:
            return
        shown = True
        text = f"{one_line(harmless(part))} after {now - start:.0f} s"
        if terminal:
            click.echo(f"\r\x1b[K{text} ...", file=unescaped(sys.stderr), nl=False)
            due = now + 0.2
        else:
            click.echo(f"litmusfuzz: {text}", err=True)
            due = now + (now - start)

    try:
        yield progress
    finally:
        if shown and terminal:
            click.echo("\r\x1b[K", file=unescaped(sys.stderr), nl=False)
