"""What campaigns found and cost, as a page of Markdown, from the records that they saved.

Records of several campaigns are added up. Nothing is left out: what was not confirmed,
not minimized, refused, unknown, or ended a process is told beside the findings.
"""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from litmusfuzz.corpus.textfile import Script
from litmusfuzz.reports.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


@dataclass(slots=True)
class Cost:
    """What a configuration or a family had, and what came of it, over all campaigns."""

    numbers: Counter[str] = field(default_factory=Counter)
    shares: Counter[float] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    unavailable: str = ""
    model: str = ""

    @property
    def reached(self) -> str:
        """The share of allowed outcomes seen on the median graph, of those with several."""
        total = self.shares.total()
        so_far = 0
        for share, graphs in sorted(self.shares.items()):
            so_far += graphs
            if 2 * so_far >= total:
                return f"{share:.0%} of {total}"
        return "-"


@dataclass(slots=True)
class Found:
    """A finding, as often as it was seen in all campaigns."""

    data: Mapping[str, Any]
    script: str
    graphs: int = 0
    configs: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Collected:
    """Several records, added up."""

    campaigns: list[Mapping[str, Any]] = field(default_factory=list)
    findings: dict[tuple[str, str], Found] = field(default_factory=dict)
    configs: dict[str, Cost] = field(default_factory=dict)
    families: dict[str, Cost] = field(default_factory=dict)
    verdicts: Counter[str] = field(default_factory=Counter)
    deaths: list[Mapping[str, Any]] = field(default_factory=list)
    unsound: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, record: Mapping[str, Any], script_of: Callable[[str], str]) -> None:
        """Take one more; `script_of` names the script beside a finding's file, "" for none."""
        self.campaigns.append(record)
        self.verdicts.update(record["verdicts"])
        self.deaths += record["deaths"]
        self.unsound += record["unsound"]
        for data in record["findings"]:
            key = (data["executor"], data["name"])
            found = self.findings.setdefault(key, Found(data, script_of(data["file"])))
            if data["confirmed"] and not found.data["confirmed"]:
                found.data, found.script = data, script_of(data["file"])
            found.graphs += 1 + data["more_graphs"]
            found.configs.update(data["configs"])
        for state in record["executors"]:
            if state["name"] == "mutant/canary":
                continue
            cost = self.configs.setdefault(f"{state['name']}/{state['config']}", Cost())
            cost.model = state["model"]
            cost.unavailable = state["unavailable"]
            cost.refused.update(state["refused"])
            cost.numbers.update(
                {
                    name: state[name]
                    for name in (
                        *("tests", "fuzzing_s", "forbidden_graphs", "refused_graphs"),
                        *("not_run", "crashed", "timed_out"),
                    )
                }
            )
            cost.numbers["outcomes"] += state["outcomes"] - state["minimizing_outcomes"]
            cost.numbers["unknown"] += state["verdicts"].get("unknown", 0)
            for family, reached in state["reached"]["families"].items():
                shares = {float(share): n for share, n in reached["shares"].items()}
                cost.shares.update(shares)
                self.families.setdefault(family, Cost()).shares.update(shares)
        for family, numbers in record["families"].items():
            self.families.setdefault(family, Cost()).numbers.update(numbers)

    def total(self, name: str) -> int:
        """The sum of a number over all campaigns."""
        return sum(int(record[name]) for record in self.campaigns)

    def as_json(self) -> dict[str, Any]:
        """Plain data."""

        def plain(costs: Mapping[str, Cost]) -> dict[str, Any]:
            return {
                name: {
                    **cost.numbers,
                    "reached": cost.reached,
                    "refused": dict(cost.refused),
                    "unavailable": cost.unavailable,
                }
                for name, cost in costs.items()
            }

        return {
            "campaigns": [
                {name: record[name] for name in ("seed", "command", "elapsed_s", "versions")}
                for record in self.campaigns
            ],
            "verdicts": dict(self.verdicts),
            "findings": [
                {
                    **found.data,
                    "script_file": found.script,
                    "graphs": found.graphs,
                    "configs": dict(found.configs),
                }
                for found in self.findings.values()
            ],
            "configurations": plain(self.configs),
            "families": plain(self.families),
            "not_minimized": self.total("not_minimized"),
            "unconfirmed": self.total("unconfirmed"),
            "deaths": self.deaths,
            "unsound": self.unsound,
        }


def page(collected: Collected, title: str) -> str:
    """The whole page."""
    parts = [
        f"# {title}",
        *_campaigns(collected),
        *_findings(collected),
        *_rest(collected),
        *_costs(collected),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [list(header), ["---"] * len(header)]
    lines += [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _campaigns(collected: Collected) -> list[str]:
    versions = {
        f"{name} {version}"
        for record in collected.campaigns
        for each in record["versions"].values()
        for name, version in each.items()
    }
    judged = ", ".join(f"{n:,} {verdict}" for verdict, n in sorted(collected.verdicts.items()))
    reported, runs = (
        sum(record["canary"][name] for record in collected.campaigns)
        for name in ("reported", "runs")
    )
    rows = [
        (
            f"`{record['command']}`",
            record["seed"],
            f"{record['elapsed_s']:,.0f}",
            f"{record['graphs']:,}",
            record["problem"] or ("interrupted" if record["interrupted"] else _later(record)),
        )
        for record in collected.campaigns
    ]
    return [
        "Made by `litmusfuzz page` from what campaigns recorded; findings as they were seen.",
        _table(("command", "seed", "seconds", "graphs", ""), rows),
        f"Versions: {', '.join(sorted(versions))}. Executions judged: {judged or 'none'}. The"
        f" canary, which is always wrong, was reported in {reported} of {runs} runs.",
    ]


def _later(record: Mapping[str, Any]) -> str:
    seconds = record.get("finished_s", 0)
    return (
        f"and {seconds:,.0f} s later for what was left (`litmusfuzz minimize`)" if seconds else ""
    )


def _findings(collected: Collected) -> list[str]:
    groups: dict[tuple[str, str], list[Found]] = {}
    for (executor, _), found in collected.findings.items():
        groups.setdefault((executor, found.data["cause"]), []).append(found)
    ordered = sorted(groups.items(), key=lambda each: -sum(f.graphs for f in each[1]))
    parts = [
        "## Findings",
        f"{counted(len(collected.findings), 'finding')} of {counted(len(groups), 'likely cause')}.",
    ]
    for (executor, cause), group in ordered:
        parts.append(f"### {executor}: {cause}")
        parts += [_finding(each) for each in sorted(group, key=lambda each: -each.graphs)]
    return parts


def _finding(found: Found) -> str:
    data = found.data
    seen = data["forbidden"][0]
    outcome = " ".join(f"{name}={value}" for name, value in seen["outcome"].items())
    shown = ", ".join(f"{name} ({n})" for name, n in found.configs.most_common())
    model = data["model"]
    if data["allowed_by"]:
        model += f" only, not by {' or '.join(data['allowed_by'])}"
    state = [] if data["confirmed"] else ["**unconfirmed**: a fresh process has not shown it"]
    if not data["minimized"]:
        state.append("minimized in part")
    lines = [
        f"**{data['name']}**: {' + '.join(data['effects'])}",
        "",
        f"- seen: `{outcome}`, {seen['count']} times in {data['executions']:,} executions;"
        f" in {counted(found.graphs, 'graph')}",
        f"- configurations (graphs): {shown}",
        f"- forbidden by: {model}",
    ]
    if data["reason"]:
        lines.append(f"- because: {data['reason']}")
    lines += [f"- {each}" for each in state]
    if found.script:
        shows = "shows it" if data["script"] == Script.SHOWS_IT else "**unconfirmed** by it"
        lines.append(f"- script, without LitmusFuzz: `{found.script}`: {shows}")
    lines.append(f"- replay: `litmusfuzz replay {shlex.quote(data['file'])}`")
    return "\n".join(lines)


def _rest(collected: Collected) -> list[str]:
    lines = [
        f"- not minimized, for lack of time: {collected.total('not_minimized')} (`raw/`)",
        f"- not seen again in a fresh process: {collected.total('unconfirmed')} (`unconfirmed/`)",
        f"- over the oracle's budget: {counted(collected.total('unknown_graphs'), 'graph')}",
    ]
    for each in collected.unsound:
        lines.append(f"- clustered unsoundly by {each['executor']}: `{each['file']}`")
    deaths: dict[tuple[bool, str], list[str]] = {}
    for death in collected.deaths:
        deaths.setdefault((death["timed_out"], death["message"]), []).append(death["path"])
    for (timed_out, message), paths in sorted(deaths.items(), key=lambda each: -len(each[1])):
        what = "timed out" if timed_out else "crashed"
        names = ", ".join(f"`{PurePath(path).name}`" for path in paths[:3])
        more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
        lines.append(f"- {what} {counted(len(paths), 'time')}, {message}: {names}{more}")
    for name, cost in collected.configs.items():
        if cost.unavailable:
            lines.append(f"- {name} could not run: {cost.unavailable}")
        if cost.refused:
            why = ", ".join(f"{feature} {n}" for feature, n in cost.refused.most_common())
            lines.append(f"- {name} refused: {why}")
    return ["## What decides nothing", "\n".join(lines)]


def _costs(collected: Collected) -> list[str]:
    found = Counter(
        f"{data.data['executor']}/{config}"
        for data in collected.findings.values()
        for config in data.configs
    )
    by_config = [
        (
            name,
            cost.model,
            f"{cost.numbers['fuzzing_s']:,.0f}",
            f"{cost.numbers['tests']:,}",
            f"{cost.numbers['outcomes']:,}",
            cost.reached,
            *(cost.numbers[each] for each in ("forbidden_graphs",)),
            found[name],
            *(cost.numbers[each] for each in ("refused_graphs", "unknown", "crashed", "timed_out")),
        )
        for name, cost in collected.configs.items()
        if not cost.unavailable
    ]
    by_family = [
        (
            name,
            f"{cost.numbers['seconds']:,.0f}",
            f"{cost.numbers['graphs']:,}",
            cost.reached,
            *(cost.numbers[each] for each in ("forbidden_graphs", "findings", "unknown_graphs")),
        )
        for name, cost in sorted(collected.families.items())
    ]
    ran = ("seconds", "graphs")
    return [
        "## By configuration",
        "Reached: the share of its allowed outcomes that the median graph showed, of the graphs"
        " that have several and not over a thousand. Findings: those that it showed.",
        _table(
            (
                *("", "judged by", *ran, "outcomes", "reached", "graphs forbidden"),
                *("findings", "refused", "unknown executions", "crashed", "timed out"),
            ),
            by_config,
        ),
        "## By family",
        _table(("", *ran, "reached", "graphs forbidden", "findings", "unknown"), by_family),
    ]
