"""`litmusfuzz list`: names that other commands take, one a line."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from litmusfuzz.corpus.near import did_you_mean
from litmusfuzz.fuzz.cli.common import (
    EXECUTORS,
    fail,
    json_option,
    print_json,
    python_option,
    python_or_fail,
)
from litmusfuzz.reports.tables import counted, table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.finding.defect import Defect

KINDS = ("tests", "executors", "configurations", "families", "mutants", "models", "findings")
Row = dict[str, Any]
"""At least ``name`` and ``description``."""


class _Kind(click.Choice[str]):
    """What `litmusfuzz list` lists."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The kind itself; click reports the message."""
        if value not in self.choices:
            hint = did_you_mean(str(value), self.choices, "--help")
            self.fail(f"nothing to list is called {str(value)[:80]!r}; {hint}", param, ctx)
        return str(value)


@click.command("list", epilog="Example: litmusfuzz list configurations --executors tf")
@click.argument(
    "kind",
    type=_Kind(KINDS),
    metavar="KIND",
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--executors",
    type=EXECUTORS,
    default=None,
    help="Executors whose configurations are listed, separated by commas.",
)
@python_option
@click.option("--short", is_flag=True, help="A line for each finding.")
@json_option
def list_(
    kind: str,
    names: tuple[str, ...],
    executors: str | None,
    python: str | None,
    *,
    short: bool,
    as_json: bool,
) -> None:
    """List names that other commands take, each with a short description.

    KIND is tests (of the corpus), executors, configurations, families, mutants, models or findings:
    what is known to be broken in the TensorFlow and JAX that are installed here, or in the
    environment of --python. `list findings` says what each does to a user, and what helps;
    `known list` by what a campaign recognizes it, of all versions. Only findings have a NAME: of a
    finding, or tensorflow or jax.
    """
    if names and kind != "findings":
        fail(f"{names[0]}: a name is of `list findings`, not of `list {kind}`")
    if executors is not None and kind != "configurations":
        fail(f"--executors: is of `list configurations`, not of `list {kind}`")
    if python is not None and kind != "findings":
        fail(f"--python: is of `list findings`, not of `list {kind}`")
    if short and kind != "findings":
        fail(f"--short: is of `list findings`, not of `list {kind}`")
    if kind == "findings":
        _print_findings(python_or_fail(python), names, short=short, as_json=as_json)
        return
    rows = list(_configurations(executors) if kind == "configurations" else LISTS[kind]())
    if as_json:
        print_json(rows)
        return
    columns = ["name", *(["executor"] if kind == "mutants" else []), "description"]
    if lines := [[row[each] for each in columns] for row in rows]:
        click.echo(table(lines[0], lines[1:]))
    if kind == "executors":  # not among the names, which scripts read
        click.echo(OWN_EXECUTOR, err=True)


def _print_findings(
    python: str | None, names: tuple[str, ...], *, short: bool, as_json: bool
) -> None:
    """What is broken in the frameworks of an environment, by their metadata: none is imported.

    With `names`, only the findings or frameworks that are named.
    """
    from litmusfuzz.fuzz.executors import installed
    from litmusfuzz.fuzz.finding.known_file import shipped, shipped_file

    versions = installed.installed(python)
    folder = shipped_file().parent
    known = [each for each in shipped().entries if each.defect is not None]
    for name in names:
        there = [*installed.FRAMEWORKS, *(each.name for each in known)]
        if name not in there:
            fail(f"no finding {name[:80]!r}; {did_you_mean(name, there, 'findings')}")
    rows = [
        {
            "name": each.name,
            "description": each.defect.what,
            "effect": each.defect.effect,
            "forbidden_by": _forbidden_by(folder / each.defect.test) if each.defect.test else "",
            "needs": each.defect.needs,
            "workaround": each.defect.workaround,
            "versions": str(each.versions),
            "file": str(folder / each.defect.test) if each.defect.test else "",
            "script": str(folder / each.defect.script) if each.defect.script else "",
            "script_command": _script_command(each.defect),
            "link": each.why,
        }
        for each in known
        if each.defect is not None
        and (not names or {each.name, _framework(str(each.versions))} & {*names})
    ]
    here = {each.name for each in shipped().of(versions).entries}
    listed = [row for row in rows if row["name"] in here]
    if as_json:
        print_json({"versions": versions, "findings": listed})
        return
    for name in installed.FRAMEWORKS:
        of_it = [row for row in rows if _framework(row["versions"]) == name]
        if names and not of_it and name not in names:
            continue
        if name not in versions:
            click.echo(f"{name}: not installed\n")
            continue
        found = [row for row in of_it if row["name"] in here]
        of = {release for row in of_it for release in row["versions"].split(", ")}
        other = f"; those that are known are of {', '.join(sorted(of))}" if of and not found else ""
        click.echo(f"{name} {versions[name]}: {_summary(found)}{other}\n")
        if short and found:
            columns = ["name", "effect", "needs"]
            rows_of = [[each[name] for name in columns] for each in found]
            click.echo(table(columns, rows_of) + "\n")
            continue
        for each in found:
            click.echo(f"{each['name']}: {each['effect']}\n    {each['description']}")
            if by := each["forbidden_by"]:
                click.echo(f"    forbidden   by {by}")
            click.echo(f"    needs       {each['needs']}\n    workaround  {each['workaround']}")
            if each["file"]:
                click.echo(f"    file        {each['file']}")
            click.echo(f"    script      {each['script'] or each['script_command']}")
            click.echo()


def _script_command(defect: Defect) -> str:
    """The command that writes the script of a finding; "" if its script is a file."""
    if defect.script:
        return ""
    name = PurePath(defect.test).stem
    return f"litmusfuzz show {name} --format script >{name}.py"


def _forbidden_by(file: Path) -> str:
    """What forbids a finding: the RFC, or only another model; "" if it has no outcome."""
    from litmusfuzz.corpus.outcome import Verdict
    from litmusfuzz.fuzz.executors.entries import load
    from litmusfuzz.oracles.explorer import Explorer
    from litmusfuzz.oracles.model import RFC

    entry = load(file)
    if entry.finding is None:
        return ""
    model, outcomes = entry.finding.model, [outcome for outcome, _ in entry.finding.forbidden]
    if model == "sequential":
        return "the order of the program"
    by_rfc = [Explorer(entry.test, RFC).judge(each) is Verdict.FORBIDDEN for each in outcomes]
    if any(by_rfc):
        return "the memory model" if all(by_rfc) else "the memory model, in part"
    return f"the model {model}, which its configuration guarantees; the memory model allows it"


def _framework(versions: str) -> str:
    """The framework whose versions have a known finding: ``tensorflow 2.21``."""
    return versions.partition(" ")[0]


def _summary(found: list[dict[str, str]]) -> str:
    """How many known findings there are, how many at default settings, and of which effects."""
    from litmusfuzz.fuzz.finding.defect import AT_DEFAULTS, EFFECTS

    line = counted(len(found), "known finding")
    if len(found) < 2:
        return line
    plain = sum(each["needs"] == AT_DEFAULTS for each in found)
    effects = [each["effect"] for each in found]
    shares = [f"{effects.count(each)} {each}" for each in EFFECTS if each in effects]
    return f"{line}: {', '.join(shares)}; {plain} of them at default settings"


def _tests() -> Iterator[Row]:
    from litmusfuzz.corpus.library import paths, title

    for name, path in paths().items():
        yield {"name": name, "description": title(path), "file": str(path)}


def _executors() -> Iterator[Row]:
    from litmusfuzz.fuzz.executors.table import MUTANT, names

    yield from map(_executor, (name for name in names() if not name.startswith(MUTANT)))


def _mutants() -> Iterator[Row]:
    from litmusfuzz.fuzz.executors.table import MUTANT, base_executor, names

    for name in names():
        if name.startswith(MUTANT):
            yield _executor(name) | {"executor": base_executor(name)}


def _executor(name: str) -> Row:
    from litmusfuzz.fuzz.executors.table import UnknownExecutor, executor_class

    try:
        description = _first_line(executor_class(name).__doc__)
    except UnknownExecutor as error:  # of somebody else, and broken
        description = str(error)
    return {"name": name, "description": _capital(description.removeprefix("Mutant: "))}


def _families() -> Iterator[Row]:
    from litmusfuzz.fuzz.generators import FAMILIES

    for family in FAMILIES.values():
        yield {
            "name": family.name,
            "description": _capital(family.about),
            "features": sorted(family.features),
            "weight": family.weight,
        }


def _models() -> Iterator[Row]:
    from litmusfuzz.oracles.model import GUARANTEES

    for model in GUARANTEES.values():
        yield {
            "name": model.name,
            "description": model.about,
            "axioms": sorted(map(str, model.axioms)),
        }


def _configurations(wanted: str | None) -> Iterator[Row]:
    """Each configuration as ``EXECUTOR:NAME``, with how it differs from the executor's first."""
    from litmusfuzz.fuzz.executors.table import UnknownExecutor, executor_class

    systems = [row["name"] for row in _executors()] if wanted is None else wanted.split(",")
    for executor in (name.strip() for name in systems):
        try:
            configs = executor_class(executor).configurations()
        except UnknownExecutor as error:
            fail(f"--executors: {error}")
        for config in configs:
            first = "runs where none is named" if config is configs[0] else "no settings"
            changed = ", ".join(_changed(config, configs[0])) or first
            yield {
                "name": f"{executor}:{config.name}",
                "description": f"guarantees {config.guarantees}; {changed}",
                "executor": executor,
                "configuration": config.name,
                "guarantees": config.guarantees,
                "settings": dict(config.settings),
                "environment": dict(config.environment),
            }


def _changed(config: Config, default: Config) -> Iterator[str]:
    for name, value in (*config.settings, *config.environment):
        if (name, value) not in (*default.settings, *default.environment):
            yield f"{name}={value}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _first_line(docstring: str | None) -> str:
    return (docstring or "").strip().partition("\n")[0]


OWN_EXECUTOR = (
    "\nOne of your own is a class and an entry point in the group litmusfuzz.executors:"
    " docs/executors.md."
)
LISTS = {
    "tests": _tests,
    "executors": _executors,
    "families": _families,
    "mutants": _mutants,
    "models": _models,
}
