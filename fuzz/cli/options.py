"""The options of `litmusfuzz run` and `litmusfuzz nightly`, which fill an `Options`.

An option whose parameter is a field of `Options` takes what the type of the field says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, get_args, get_type_hints

import click

from litmusfuzz.fuzz.cli.campaigns import configured, deadly_ops, known_findings, seeds_from
from litmusfuzz.fuzz.cli.common import (
    EXECUTORS,
    FAMILIES,
    Duration,
    fail,
    model_of,
    python_or_fail,
)
from litmusfuzz.fuzz.cli.executors import families_of, systems_of
from litmusfuzz.reports.events import CampaignStarted, Options

if TYPE_CHECKING:
    from litmusfuzz.fuzz.cli.campaigns import KnownOption
    from litmusfuzz.fuzz.finding.known_findings import KnownFindings

Command = TypeVar("Command", bound=Callable[..., Any])


class Size(click.ParamType[int]):
    """Bytes, from ``500MB`` or ``2GB``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """From text; click reports the message."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(kB|MB|GB|TB)", str(value))
        if not match:
            self.fail(f"{value!r} is no size; write 500MB or 2GB", param, ctx)
        powers = {"kB": 3, "MB": 6, "GB": 9, "TB": 12}
        size = int(float(match[1]) * 10 ** powers[match[2]])
        if size >= 1 << 63:
            self.fail(f"{value!r} is more than there is", param, ctx)
        return size


class Option(NamedTuple):
    """An option of a command; `more` has what else click takes."""

    flag: str
    help: str
    default: Any = None
    more: Mapping[str, Any] = {}


BOTH: Final = {
    "seed": Option("--seed", "Random if not given."),
    "count": Option("--count", "Executions per graph, instead of few at first."),
    "seeds": Option(
        "--seeds",
        "Litmus file, or folder of litmus files: the family mutations edits them as well as the "
        "tests of the corpus. Skeletons of `check --skeletons` are such files.",
        (),
        {"multiple": True, "type": click.Path(), "metavar": "PATH"},
    ),
    "as_generated": Option(
        "--as-generated",
        "Do not vary the names, order and lanes of the generated tests.",
        default=False,
    ),
    "spawn": Option(
        "--spawn",
        "Start each worker as a new interpreter instead of forking it.",
        default=False,
    ),
    "min_graphs": Option(
        "--min-graphs",
        "Graphs that each configuration has to run, if it can run here; with fewer in one, and "
        "nothing new, the exit code is 3.",
        1,
    ),
}
RUN: Final = {
    "asked_s": Option(
        "--time",
        "Time to fuzz for; findings are then completed, in at most a fifth of it.",
        "60s",
    ),
    "tests": Option(
        "--tests",
        "Limit on the number of graphs; with --resume, on that of new ones: 0 only completes what "
        "is left.",
    ),
    "workers": Option("--workers", "Processes per executor.", 1, {"type": click.IntRange(1, 64)}),
    "executors": Option(
        "--executors",
        "Executors, separated by commas; NAME, NAME:CONFIGURATION, or a quoted pattern of "
        "configurations, 'tf:*' or 'tf:grappler*', which share the time, each graph in one of "
        "them. tf:product generates configurations; 'tf:*' does so besides running the named ones.",
        "tf",
        {"type": EXECUTORS},
    ),
    "families": Option(
        "--families",
        "Families of graphs, separated by commas, each with a weight if wanted: dag=3,cycles; "
        "without this option all that an executor can run. A family that still finds something is "
        "generated more often.",
        None,
        {"type": FAMILIES},
    ),
    **BOTH,
}
NIGHTLY: Final = {
    "asked_s": Option("--time", "Time to fuzz for.", "2h"),
    "workers": Option("--workers", "Processes; with --dask, threads of the cluster.", 2),
    "executors": Option(
        "--executors",
        "As for run; those that cannot run here are left out.",
        "tf:*,jax:*,native:*,jax_refs:*",
        {"type": EXECUTORS},
    ),
    "families": Option("--families", "As for run.", None, {"type": FAMILIES}),
    **BOTH,
    "shard_s": Option("--shard-time", "Length of a shard; 60s or less if not given."),
    "selftest_s": Option(
        "--selftest",
        "Limit on the self-test with mutants; 10m if --time is 1h or more, else no self-test.",
    ),
    "disk_bytes": Option("--disk", "Limit on the size of the folder.", "2GB", {"type": Size()}),
}
"""By parameter, the options of each command: here stands how they differ."""
_HINTS: Final = get_type_hints(Options, include_extras=True)


def options_of(table: dict[str, Option]) -> Callable[[Command], Command]:
    """The options of a table, as a decorator of a command."""

    def decorated(command: Command) -> Command:
        for name, each in reversed(table.items()):
            more = {**each.more} or _taken(name)
            made = click.option(each.flag, name, default=each.default, help=each.help, **more)
            command = made(command)
        return command

    return decorated


def _taken(name: str) -> dict[str, Any]:
    """How click takes a field: as its type says, with the same limits."""
    hint = _HINTS[name]
    if hint is bool:
        return {"is_flag": True}
    if name.endswith("_s"):
        return {"type": Duration()}
    meta = next(each for each in (hint, *get_args(hint)) if hasattr(each, "__metadata__"))
    (limits,) = meta.__metadata__
    return {"type": click.IntRange(limits.ge, limits.le)}


def asked(
    options: Mapping[str, Any], named: KnownOption, **own: Any
) -> tuple[CampaignStarted, KnownFindings]:
    """The first event of a new campaign, and what it knows.

    Parameters
    ----------
    options : mapping of str to Any
        The options of the command line, by parameter.
    named : KnownOption
    **own
        Fields of the event that the command itself decides on.
    """
    from random import SystemRandom

    from litmusfuzz.fuzz.campaign.configured import spaces

    chosen = systems_of(options["executors"], options.get("engine"), options.get("threads"))
    names = [name for name, *_ in chosen]
    families = families_of(options["families"], names)
    known = known_findings(named, set(names))
    judge_by = options.get("judge_by", "")
    configurations = configured(chosen, model_of(judge_by) if judge_by else None)
    fields = {name: value for name, value in options.items() if name in _HINTS}
    fields |= {
        "seed": SystemRandom().randrange(1 << 31) if options["seed"] is None else options["seed"],
        "configurations": configurations,
        "spaces": spaces(configurations),
        "families": families,
        "seeds": seeds_from(options["seeds"], names, families),
        "noise": _noise(options.get("noise")),
        "python": python_or_fail(options["python"]),
        "deadly_ops": deadly_ops(known, options["python"]),
        "known": None if named.file is None else str(Path(named.file).absolute()),
        "shipped_known": named.shipped,
    }
    return CampaignStarted(**fields | own), known


def _noise(noise: str | None) -> str:
    """The noise that was asked for, as events name it."""
    from litmusfuzz.fuzz.executors.protocol import Noise, noise_named, noise_text

    try:
        return noise_text(Noise() if noise is None else noise_named(noise, Noise()))
    except ValueError as error:
        fail(f"--noise: {error}")
