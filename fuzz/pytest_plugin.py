"""Litmus files as pytest's items: ``pytest --litmus-executors tf,native FOLDER``.

Every project's pytest loads this module where our package is installed. It imports
nothing of ours, and collects nothing, unless it is asked to; what does the work is
`litmusfuzz.fuzz.pytest_items`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.fuzz.pytest_items import Litmus, LitmusFile

_LITMUS: Final[pytest.StashKey[Litmus]] = pytest.StashKey()
_OURS: Final = re.compile(rb"^(?:\xef\xbb\xbf)?[\"']?litmusfuzz[\"']?[ \t]*:", re.MULTILINE)


def pytest_addoption(parser: pytest.Parser) -> None:
    """What can be asked for."""
    group = parser.getgroup("litmusfuzz", "litmus files")
    group.addoption(
        "--litmus-executors",
        metavar="NAMES",
        help="collect litmus files, and run them on these: tf,native:controlled,...",
    )
    group.addoption(
        "--litmus-model",
        choices=["rfc", "executor", "acd"],
        help="memory model to judge by; what each executor promises if not given",
    )
    group.addoption(
        "--litmus-count", type=int, default=1000, help="executions of each file (default: 1000)"
    )
    group.addoption(
        "--litmus-time", default="20s", help="for each file, at most: 500ms, 20s, 2m (default: 20s)"
    )
    group.addoption(
        "--litmus-budget", type=int, help="states to look at before an answer is 'unknown'"
    )
    group.addoption(
        "--litmus-known", metavar="FILE", help="known findings: what they explain is an xfail"
    )
    parser.addini("litmus_executors", "as --litmus-executors; tf if only litmus_files is set")
    parser.addini(
        "litmus_files",
        "patterns, as litmus/*.yaml: which litmus files are collected; all if not set",
        type="args",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Check what was asked for, before anything is collected."""
    patterns = config.getini("litmus_files")
    named = config.getoption("--litmus-executors") or config.getini("litmus_executors")
    if not (named or patterns):
        return
    from litmusfuzz.fuzz.pytest_items import Litmus

    config.stash[_LITMUS] = Litmus.asked(
        named or "tf",
        patterns,
        model=config.getoption("--litmus-model"),
        count=config.getoption("--litmus-count"),
        time=config.getoption("--litmus-time"),
        budget=config.getoption("--litmus-budget"),
        known=config.getoption("--litmus-known"),
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> LitmusFile | None:
    """A file of ours, where it is asked for."""
    litmus = parent.config.stash.get(_LITMUS, None)
    if litmus is None or file_path.suffix != ".yaml" or not litmus.wants(file_path):
        return None
    try:
        if not _OURS.search(file_path.read_bytes()):
            return None
    except OSError:
        return None  # whoever it belongs to tells
    from litmusfuzz.fuzz.pytest_items import LitmusFile

    return LitmusFile.of(parent, file_path, litmus)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Notes on tests that passed, as of known findings that did not show."""
    if terminalreporter.config.stash.get(_LITMUS, None) is None:
        return
    from litmusfuzz.fuzz.pytest_items import NOTE

    noted = [
        f"{report.nodeid}: {text}"
        for report in terminalreporter.getreports("passed")
        if report.when == "call"
        for name, text in report.user_properties
        if name == NOTE
    ]
    if noted:
        terminalreporter.section("litmus: notes")
        terminalreporter.write("\n".join(noted) + "\n")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the executors' processes."""
    litmus = config.stash.get(_LITMUS, None)
    if litmus is not None:
        litmus.close()
