"""Loading of litmus files with the settings of their findings checked.

All of `fuzz` loads files from outside here; `corpus.textfile` knows no executor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus import textfile
from litmusfuzz.corpus.ops import MalformedTest
from litmusfuzz.fuzz.executors.protocol import noise_from
from litmusfuzz.fuzz.executors.setting_types import HasSettings, check_scalars, check_table
from litmusfuzz.fuzz.executors.table import (
    UnknownExecutor,
    configuration,
    executor_class,
    is_ours,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from litmusfuzz.corpus.textfile import Entry, Finding, Setting


def load(path: str | os.PathLike[str]) -> Entry:
    """The entry in a file.

    Raises
    ------
    FileError
        For anything that is wrong with it, in one line.
    """
    return textfile.load(path, check_finding)


def loads(text: str, source: str = "<text>") -> Entry:
    """The entry in a text; `source` stands in errors for its name."""
    return textfile.loads(text, source, check_finding)


def check_finding(found: Finding) -> None:
    """Check the settings and the noise of a finding against the tables of its executor.

    Raises
    ------
    MalformedTest
        Naming the setting, below the finding.
    """
    if wrong := wrong_setting(found.executor, found.settings):
        name, problem = wrong
        raise MalformedTest(problem, ("settings", name))
    if other := _other_setting(found):
        name, there = other
        raise MalformedTest(f"the configuration has {there!r}", ("settings", name))
    for name, value in found.noise.items():
        try:
            noise_from({name: value})
        except ValueError as error:
            raise MalformedTest(str(error).partition(" - at ")[0], ("noise", name)) from None


def wrong_setting(executor: str, settings: Mapping[str, Setting]) -> tuple[str, str] | None:
    """The first setting that the executor does not have, or not with that value, and why.

    Executors of entry points are not imported for it: a file names them. They have scalars.
    """
    try:
        made = executor_class(executor) if is_ours(executor) else None
    except (UnknownExecutor, ImportError):
        made = None  # a control that does not exist, or a framework or module that is not there
    if isinstance(made, HasSettings):
        return check_table(settings, made.setting_types)
    return check_scalars(settings)


def _other_setting(found: Finding) -> tuple[str, Setting | None] | None:
    """The first setting of a finding that its configuration has not, and what that has.

    The configuration is what runs; the settings are what people, scripts and keys go by.
    """
    if not (found.settings and is_ours(found.executor)):
        return None
    try:
        there = dict(configuration(found.executor, found.configuration).settings)
    except (UnknownExecutor, ImportError):  # nothing runs
        return None
    for name, value in found.settings.items():
        if there.get(name) != value or type(there.get(name)) is not type(value):
            return name, there.get(name)
    return None
