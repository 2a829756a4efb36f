"""The command line, which reads its arguments here and does nothing."""

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
    """What a command line is refused for, "" if it is taken.

    That something is missing is no mistake: a text may name a command or an option alone.
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
