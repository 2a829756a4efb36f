"""The command line: all commands in groups, and the exit codes that they share.

Exit codes: 0 clean, 1 a forbidden outcome, 2 usage or harness error, 3 undecided (only
unknown, timed out, crashed or unconfirmed, or not run). A command with other exit codes says so in
its help.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
import traceback
from typing import TYPE_CHECKING, NoReturn, TextIO, cast

import click

from litmusfuzz.corpus.near import close, is_it
from litmusfuzz.fuzz.cli.bench import bench
from litmusfuzz.fuzz.cli.check import check
from litmusfuzz.fuzz.cli.cmin import cmin
from litmusfuzz.fuzz.cli.common import CLEAN, UNKNOWN, USAGE, complain, harmless
from litmusfuzz.fuzz.cli.compare import compare
from litmusfuzz.fuzz.cli.completion import ColonBashComplete as _  # noqa: F401 - for bash
from litmusfuzz.fuzz.cli.device import device
from litmusfuzz.fuzz.cli.doctor import doctor
from litmusfuzz.fuzz.cli.force import force
from litmusfuzz.fuzz.cli.herd import herd
from litmusfuzz.fuzz.cli.known import known
from litmusfuzz.fuzz.cli.list_ import list_
from litmusfuzz.fuzz.cli.minimize import minimize
from litmusfuzz.fuzz.cli.nightly import nightly, reproduce, status
from litmusfuzz.fuzz.cli.oracle import oracle
from litmusfuzz.fuzz.cli.promote import promote
from litmusfuzz.fuzz.cli.replay import replay
from litmusfuzz.fuzz.cli.run import run
from litmusfuzz.fuzz.cli.selftest import selftest
from litmusfuzz.fuzz.cli.show import show
from litmusfuzz.fuzz.cli.validate import validate

if TYPE_CHECKING:
    from typing import Any

GROUPS: dict[str, tuple[click.Command, ...]] = {
    "Ask what is allowed": (oracle, list_, show, validate),
    "Ask what a program can do": (check,),
    "Find violations": (run, nightly, status, reproduce),
    "Work with findings": (replay, minimize, cmin, promote, known),
    "Check an executor": (force, device, selftest, bench, doctor),
    "Exchange": (herd,),
}
"""Commands by what a person wants to do, in the order of the help."""


class GroupedCommands(click.Group):
    """The commands, printed in the groups of `GROUPS`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command; of a misspelt one the message has those like it."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            near = close(args[0], self.commands)
            hint = is_it(near) if near else "`litmusfuzz --help` lists all"
            ctx.fail(f"no command {args[0][:80]!r}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section for each group."""
        names = [command.name or "" for commands in GROUPS.values() for command in commands]
        width = max(map(len, names))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(f"{each.name:<{width}}", each.get_short_help_str(200)) for each in commands]
                )


@click.group(
    cls=GroupedCommands,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog="""\b
Exit codes: 0 clean, 1 a forbidden outcome, 2 usage or harness error,
3 undecided (only unknown, timed out, crashed or unconfirmed, or not run).

\b
Completion of commands, options and names of tests, executors, configurations,
families and models, for bash (for zsh, write zsh_source):
  eval "$(_LITMUSFUZZ_COMPLETE=bash_source litmusfuzz)"
and for fish:
  _LITMUSFUZZ_COMPLETE=fish_source litmusfuzz | source

\b
Example: litmusfuzz oracle SB""",
)
@click.version_option(package_name="litmusfuzz")
def main() -> None:
    """Litmus tests for the concurrency semantics of dataflow graphs.

    Generates random graphs over resources, computes the outcomes that TensorFlow's
    memory model allows, runs the graphs on real executors, and reports every
    outcome that the model forbids.

    TEST is a file, the name of a test of the corpus, or a test in the short notation:
    'X=1; r0=Y || Y=1; r1=X'. A single - reads it from standard input.
    """


for _command in (command for commands in GROUPS.values() for command in commands):
    main.add_command(_command)
herd.add_command(compare)


class _Output:
    """An output stream without control characters, that drops its text once nobody reads it.

    That is, once a pipe's reader has ended, or a terminal was closed.

    Whatever a command prints, names and messages from files included, moves no cursor and reverses
    no text. A command's exit code and files are the same with a reader as without.

    Attributes
    ----------
    unescaped : TextIO
        For those that escape text from outside themselves, and print colours.
    """

    def __init__(self, stream: TextIO, *, escapes: bool = True) -> None:
        self._stream = stream
        self._escapes = escapes
        self.unescaped = cast("TextIO", _Output(stream, escapes=False) if escapes else self)

    def write(self, text: str | bytes) -> int:
        if isinstance(text, bytes):  # click takes what accepts bytes for binary, and encodes
            text = text.decode(self._stream.encoding, errors="replace")
        try:
            return self._stream.write(harmless(text) if self._escapes else text)
        except OSError as error:
            self._drop_if_unread(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._drop_if_unread(error)

    def _drop_if_unread(self, error: OSError) -> None:
        if error.errno not in (errno.EPIPE, errno.EIO):
            raise error
        # The interpreter flushes once more when it exits: that goes to the null device.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self._stream.fileno())
        os.close(null)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # a way around `write`, which click takes where the encoding is ASCII
            raise AttributeError(name)
        return getattr(self._stream, name)


def _in_utf8(stream: TextIO) -> TextIO:
    """The stream, in UTF-8 if the locale says no more than ASCII.

    In another encoding ``?`` stands for a character that it lacks.
    """
    if isinstance(stream, io.TextIOWrapper):
        if codecs.lookup(stream.encoding).name == "ascii":
            stream.reconfigure(encoding="utf-8")
        elif stream.errors == "strict":
            stream.reconfigure(errors="replace")
    return stream


def _open_closed_streams() -> None:
    """Open the null device for each standard stream that is closed.

    Otherwise the next file takes its number, a campaign's database for example, and what somebody
    prints goes into that.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, number)
            if null != number:
                os.close(null)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))


def _refuse_files_as_options(arguments: list[str]) -> None:
    """Stop if an option is the name of a file here: a shell makes one of it for ``*``.

    In a folder from a stranger, ``replay *`` would be ``replay --trust x.yaml``.
    """
    for argument in arguments:
        if argument == "--":
            return
        if argument.startswith("-") and os.path.lexists(argument):
            message = f"{argument}: is an option, and a file here: write ./{argument} for the file"
            raise click.UsageError(f"{message}, or run this in another folder for the option")


def run_command() -> NoReturn:
    """Run the command line; every end of it is one of the exit codes."""
    _open_closed_streams()
    sys.stdout = cast("TextIO", _Output(_in_utf8(sys.stdout)))
    sys.stderr = cast("TextIO", _Output(_in_utf8(sys.stderr)))
    try:
        _refuse_files_as_options(sys.argv[1:])
        code = main.main(standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = USAGE
    except click.ClickException as error:
        complain(" ".join(error.format_message().split()))
        code = USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("litmusfuzz: interrupted", err=True)
        code = UNKNOWN
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        complain(f"{where}{error.strerror or error}")
        code = USAGE
    except Exception:  # noqa: BLE001 - our own defect; Python's exit code 1 means a finding here
        traceback.print_exc()
        code = USAGE
    sys.exit(code if isinstance(code, int) else CLEAN)
