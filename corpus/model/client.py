"""Runs of graphs by the client."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a graph by the client, after other runs have ended."""

    name: str
    graph: str
    after: tuple[str, ...] = ()
