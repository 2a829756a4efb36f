"""Pytest plugin that runs litmus tests: ``pytest --litmus-executors tf,native FOLDER``.

Beside folders and files it takes tests in the short notation, ``'X=1; r0=Y || Y=1; r1=X'``.

Every project's pytest loads this module where LitmusFuzz is installed. Unless asked for, it
imports nothing else of LitmusFuzz and collects nothing. `litmusfuzz.fuzz.pytest_items` does the
work.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shlex
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from litmusfuzz.fuzz.pytest_items import Litmus, LitmusFile

_LITMUS: Final[pytest.StashKey[Litmus]] = pytest.StashKey()
_LACKING: Final[pytest.StashKey[list[str]]] = pytest.StashKey()
"""Executors that ran too little, a line each."""
_LITMUS_HEADER: Final = re.compile(
    rb"^(?:\xef\xbb\xbf)?[\"']?litmusfuzz[\"']?[ \t]*:", re.MULTILINE
)
_NAMED: Final = re.compile(
    r"(?:--litmus-executors[=\0]|(?:-o|--override-ini)[=\0]?litmus_executors=)([^\0]*)"
)
"""An argument, and the one after it, that name executors: an option, or a project's setting."""
_CONTROL: Final = ("control", "schedules", "preemptions")
"""Options, and settings of a project, that say how tests are executed under control."""
_MARKER: Final = (
    "litmus_control(level, schedules, preemptions): how a litmus file is executed under control, "
    "in place of --litmus-control, --litmus-schedules and --litmus-preemptions"
)
_MOST_BYTES: Final = 4 << 20
"""Of a litmus file (`litmusfuzz.corpus.document.MAX_BYTES`)."""

_DEPENDENCIES: Final = MappingProxyType(
    {
        "click": "click",
        "hypothesis": "hypothesis",
        "msgspec": "msgspec",
        "numpy": "numpy",
        "psutil": "psutil",
        "rich": "rich",
        "yaml": "PyYAML",
        "z3": "z3-solver",
    }
)
"""Modules that the plugin may import in pytest's own process, and their distributions."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and settings."""
    group = parser.getgroup("litmusfuzz", "litmus files")
    group.addoption(
        "--litmus-executors",
        metavar="NAMES",
        help="collect litmus files, and run them on these: tf,native:controlled,...",
    )
    group.addoption(
        "--litmus-model",
        metavar="MODEL",
        help="memory model to judge by; if not given, the one that each executor guarantees",
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
        "--litmus-known",
        action="append",
        default=[],
        metavar="FILE",
        help="known findings, besides those that come with LitmusFuzz: what they explain is an "
        "xfail; `none` leaves those out",
    )
    group.addoption(
        "--litmus-min-tests",
        type=int,
        default=1,
        metavar="N",
        help="litmus files that each executor has to run, if it is given any; with fewer, as it "
        "refuses the others, the session fails (default: 1)",
    )
    group.addoption(
        "--litmus-control",
        metavar="LEVEL",
        help="level at which tf is executed under control, where that is possible: ops (the "
        "default), locks, pages, touches; off for executions without control",
    )
    group.addoption(
        "--litmus-schedules",
        type=int,
        metavar="N",
        help="under control: executions of each search, at most (default: 10000)",
    )
    group.addoption(
        "--litmus-preemptions",
        type=int,
        metavar="N",
        help="under control: only schedules with so few switches away from an op that could go on",
    )
    for name in _CONTROL:
        parser.addini(f"litmus_{name}", f"as --litmus-{name}")
    parser.addini("litmus_executors", "as --litmus-executors; tf if only litmus_files is set")
    parser.addini(
        "litmus_files",
        "patterns, as litmus/*.yaml: which litmus files are collected; all if not set",
        type="args",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Check the options before anything is collected."""
    config.addinivalue_line("markers", _MARKER)
    patterns = config.getini("litmus_files")
    named = config.getoption("--litmus-executors") or config.getini("litmus_executors")
    if not (named or patterns):
        return
    if (least := config.getoption("--litmus-min-tests")) < 0:
        raise pytest.UsageError(f"--litmus-min-tests: at least 0, got {least}")
    _refuse_shadowed_dependencies()
    from litmusfuzz.fuzz.pytest_items import Litmus

    config.stash[_LITMUS] = Litmus.from_options(
        named or "tf",
        patterns,
        model=config.getoption("--litmus-model"),
        count=config.getoption("--litmus-count"),
        time=config.getoption("--litmus-time"),
        budget=config.getoption("--litmus-budget"),
        known=config.getoption("--litmus-known"),
        control={each: _given(config, each) for each in _CONTROL},
        notations=_take_notations(config),
        typed=None if hasattr(config, "workerinput") else _typed(config),
    )


def _given(config: pytest.Config, name: str) -> str | int | None:
    """What an option says, or else a setting of the project; None if neither does."""
    option: str | int | None = config.getoption(f"--litmus-{name}")
    return option if option is not None else config.getini(f"litmus_{name}") or None


def _take_notations(config: pytest.Config) -> list[str]:
    """Take the tests in the short notation out of what is to be collected.

    Workers of pytest-xdist get the arguments of the command line, and do the same.
    """
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        return []  # a project's `testpaths`
    from litmusfuzz.fuzz.cli.common import is_notation

    # A test's id may have an equals sign in it: `test_file.py::test[x=1]`.
    found = {
        each: None
        for each in config.args
        if is_notation(each) and not os.path.lexists(each.partition("::")[0])
    }
    config.args = [each for each in config.args if each not in found]
    return [*found]


def _typed(config: pytest.Config) -> frozenset[str]:
    """The executors that the user has named, not the options and settings of a project's files."""
    arguments = [*map(str, config.invocation_params.args)]
    return named_executors([*arguments, *shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))])


def named_executors(arguments: list[str]) -> frozenset[str]:
    """The executors, each with its configuration, that a command line names."""
    named: list[str] = []
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if match := _NAMED.match(f"{argument}\0{following}"):
            named += match[1].split(",")
    return frozenset(part.strip() for part in named)


def _refuse_shadowed_dependencies() -> None:
    """Stop if a module of the project hides a library that LitmusFuzz imports here.

    ``python -m pytest`` and the folders of test files are on the import path before the
    installed libraries. Without this check such a module ends in a traceback somewhere else.

    Raises
    ------
    pytest.UsageError
        Naming the file and the library.
    """
    for module, distribution in _DEPENDENCIES.items():
        try:
            spec = importlib.util.find_spec(module)
            folder = importlib.metadata.distribution(distribution).locate_file("")
        except (ImportError, ValueError, importlib.metadata.PackageNotFoundError):
            continue  # the import itself says what is missing
        if spec is None or spec.origin is None:
            continue
        file = Path(spec.origin).resolve()
        if not file.is_relative_to(Path(str(folder)).resolve()):
            raise pytest.UsageError(
                f"litmusfuzz: {file} shadows the library {module!r}, which LitmusFuzz needs: "
                "rename the file, or take its folder off the import path"
            )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> LitmusFile | None:
    """Collect a litmus file if the options ask for it."""
    litmus = parent.config.stash.get(_LITMUS, None)
    if litmus is None or file_path.suffix != ".yaml" or not litmus.wants(file_path):
        return None
    try:
        with file_path.open("rb") as file:
            if not _is_litmus(file.read(_MOST_BYTES)):
                return None
    except OSError:
        return None  # the file's own plugin reports it
    from litmusfuzz.fuzz.pytest_items import LitmusFile

    return LitmusFile.of(parent, file_path, litmus)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Collect the tests in the short notation, after files and folders."""
    report = yield
    litmus = collector.config.stash.get(_LITMUS, None)
    if litmus is not None and isinstance(collector, pytest.Session) and report.passed:
        from litmusfuzz.fuzz.pytest_items import LitmusNotation

        report.result += [
            LitmusNotation.of(collector, text, entry, litmus) for text, entry in litmus.notations
        ]
    return report


def _is_litmus(raw: bytes) -> bool:
    """True for a file whose top level has the field of litmus files, however it is written."""
    if _LITMUS_HEADER.search(raw):
        return True
    if b"litmusfuzz" not in raw:
        return False
    from litmusfuzz.corpus.document import Document, FileError

    try:  # in braces or indented, for example
        data = Document(raw.decode(), "").data
    except (UnicodeDecodeError, FileError):
        return False
    return isinstance(data, dict) and "litmusfuzz" in data


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a session in which an executor ran nothing: it says nothing about that executor."""
    litmus = session.config.stash.get(_LITMUS, None)
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if litmus is None or reporter is None or hasattr(session.config, "workerinput"):
        return
    from litmusfuzz.fuzz.pytest_items import EXECUTOR, RAN

    given: dict[str, list[bool]] = {}
    for category in ("passed", "failed", "xfailed", "xpassed", "skipped"):
        for report in reporter.stats.get(category, ()):
            properties = dict(getattr(report, "user_properties", ()))
            if EXECUTOR in properties:
                ran = category != "skipped" or RAN in properties
                given.setdefault(properties[EXECUTOR], []).append(ran)
    wanted = session.config.getoption("--litmus-min-tests")
    lacking = [
        f"{executor}: {sum(ran)} of {len(ran)} litmus files ran, at least {wanted} has to"
        for executor, ran in given.items()
        if sum(ran) < wanted
    ]
    session.config.stash[_LACKING] = lacking
    if lacking and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print which executors ran too little, and what tests have to say beside their result.

    What ran without control, though it was to run under control; notes on tests that passed, such
    as known findings that did not show; with ``-v``, how many schedules each had.
    """
    if terminalreporter.config.stash.get(_LITMUS, None) is None:
        return
    from litmusfuzz.fuzz.pytest_items import NOTE, SCHEDULES, UNCONTROLLED, grouped

    def section(title: str, lines: list[str]) -> None:
        if lines:
            terminalreporter.section(title)
            terminalreporter.write("\n".join(lines) + "\n")

    def noted(name: str, *categories: str) -> list[tuple[str, str]]:
        return [
            (report.nodeid, text)
            for category in categories
            for report in terminalreporter.getreports(category)
            if report.when == "call"
            for key, text in report.user_properties
            if key == name
        ]

    lacking = terminalreporter.config.stash.get(_LACKING, [])
    section("litmus: too little ran (--litmus-min-tests)", lacking)
    without = noted(UNCONTROLLED, "passed", "failed", "skipped", "xfailed", "xpassed")
    section("litmus: executed without control", grouped(without))
    if terminalreporter.config.get_verbosity() > 0:
        schedules = [f"{test}: {text}" for test, text in noted(SCHEDULES, "passed")]
        section("litmus: under control", schedules)
    section("litmus: notes", [f"{test}: {text}" for test, text in noted(NOTE, "passed")])


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the executors' processes."""
    litmus = config.stash.get(_LITMUS, None)
    if litmus is not None:
        litmus.close()
