"""The command line, parsed but not executed."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click
import pytest

from litmusfuzz.fuzz.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _leaves(command: click.Command) -> Iterator[click.Command]:
    if isinstance(command, click.Group):
        for each in command.commands.values():
            yield from _leaves(each)
    else:
        yield command


@pytest.fixture
def mistake(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Parse a command line, and return the error message; "" if there is none.

    A missing argument is no error here: a page may name a command or an option alone.
    """
    for command in _leaves(main):
        monkeypatch.setattr(command, "callback", None)

    def refused(command: str) -> str:
        try:
            main.main(shlex.split(command)[1:], standalone_mode=False)
        except (click.MissingParameter, click.BadOptionUsage, click.exceptions.NoArgsIsHelpError):
            return ""
        except click.ClickException as error:
            return error.format_message()
        return ""

    return refused
