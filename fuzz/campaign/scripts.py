"""The standalone scripts of findings, on TensorFlow and on JAX's references.

A script runs without LitmusFuzz (`fuzz.campaign.script_runner`). One on JAX's references stays as
it is found: it executes a program of one thread, which chance has no part in.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from litmusfuzz.fuzz.executors.jax_refs.script import script as references_script
from litmusfuzz.fuzz.executors.jax_refs.space import COPIES, FORBIDDEN, Settings
from litmusfuzz.fuzz.executors.protocol import Refused
from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration, executor_class
from litmusfuzz.fuzz.finding.configuration_reducer import needs_in_words
from litmusfuzz.oracles import sequential
from litmusfuzz.oracles.errors import NoGradient, NoProgramOrder, ValueTooLarge
from litmusfuzz.reports.events import FindingKind
from litmusfuzz.reports.headline import headline, symptom_of
from litmusfuzz.reports.script import NoScript, script

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.fuzz.executors.protocol import Config


def script_of(entry: Entry, reason: str) -> str:
    """The script for a finding, with the environment variables of its configuration.

    Raises
    ------
    NoScript
        Saying what a script cannot have.
    """
    found = entry.finding
    if found is None or found.executor not in ("jax_refs", "tf"):
        return script(entry, {}, reason, "")
    try:
        config = configuration(found.executor, found.configuration)
    except UnknownExecutor as error:
        raise NoScript(str(error)) from None
    needs = needs_in_words(found.executor, config, reduced=found.minimized)
    if found.executor == "tf":
        return script(entry, dict(config.environment), reason, needs)
    torn = any(outcome.torn for outcome, _ in found.forbidden)
    # What all executions show, the first one does.
    always = sum(count for _, count in found.forbidden) >= found.executions
    place = found.run_seed if always else None
    heading = headline(symptom_of(entry), entry.test, needs)
    version = found.versions.get("jax", "")
    return jax_script(entry.test, config, version, dtypes=torn, place=place, heading=heading)


def jax_script(
    test: LitmusTest,
    config: Config,
    version: str,
    *,
    dtypes: bool = False,
    place: int | None = None,
    error: str = "",
    heading: str = "",
) -> str:
    """The script of a test in a configuration of `jax_refs`.

    Parameters
    ----------
    test : LitmusTest
    config : Config
    version : str
        Of JAX.
    dtypes : bool
        Show the values' dtypes too.
    place : int, optional
        The seed of a run whose first execution shows it: the script executes that one alone.
    error : str
        Type and place of the exception that it shows; "" for an outcome.
    heading : str
        The finding's headline, the first line; "" for a test that is none.

    Raises
    ------
    NoScript
        If the test is no program over references.
    """
    plain = _plain(config.name)
    seen = " ".join(("JAX", *re.findall(r"^[\w.+-]+$", version)))
    settings = Settings.of(config)
    title = f"{seen}, {plain}: {error or 'not what program order gives, or it fails'}."
    if settings.forbidden:
        title = f"{seen}, forbidden: {FORBIDDEN[settings.forbidden]}. Not what program order gives."
    if heading:
        title = f"{_plain(heading)}. {title}"
    try:
        if lacking := executor_class("jax_refs").support.lacking(test):
            raise NoScript(f"a script cannot have {', '.join(lacking)}")
        return references_script(
            test,
            settings,
            sequential.outcome(test),
            title,
            dtypes=dtypes,
            place=None if place is None else place % COPIES,
            fails=bool(error),
        )
    except (Refused, NoProgramOrder, ValueTooLarge, NoGradient) as error:
        raise NoScript(str(error)) from None


def crash_script(
    test: LitmusTest,
    executor: str,
    config: Config,
    version: str,
    place: int | None,
    error: str,
    needs: str,
) -> str:
    """The script of a test on which an exception of JAX's ended a worker.

    Parameters
    ----------
    test : LitmusTest
    executor : str
    config : Config
    version, place, error
        As of `jax_script`.
    needs : str
        The settings that it needs, in words.

    Raises
    ------
    NoScript
        If the test is no program over references.
    """
    if executor != "jax_refs":
        raise NoScript(f"there are no scripts of what ends a process of {executor}")
    heading = headline(FindingKind.CRASHED, test, needs)
    return jax_script(test, config, version, place=place, error=error, heading=heading)


def _plain(text: str) -> str:
    """Text that can stand in a docstring."""
    return text.replace("\\", "").replace('"', "")
