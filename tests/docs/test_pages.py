"""Run the commands of the pages; check the files and links that they name."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from helpers import WHOLE
from pages import PAGES, ROOT, blocks, named_commands

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pages import Command

CUTS = (
    (r"(nightly .*--time) \d+m", r"\1 8s", {0, 1, 2, 3}),  # 3: too short on a slow machine
    (r"(run (?!.*--tests).*--time) \d+\w+", r"\1 5s --tests 2", {0, 1, 3}),
    (r"(run (?!.*--executors|.*--resume).*--time 5s)", r"\1 --executors native", set[int]()),
    (r"(pytest .*corpus/litmus)$", r"\1/SB.yaml", set[int]()),
)
"""Commands made shorter, and the exit codes that are then possible. (On a busy machine a nightly
run of seconds may end before its first test: exit code 2.) A `run` that names no executor would
start TensorFlow, as the `replay` of the same page does and the `run` of other pages."""
ONLY_NAMED = (
    *("make ", "litmusfuzz bench ", "litmusfuzz selftest"),
    *("litmusfuzz run --executors tf --", "litmusfuzz run --executors tf:"),
    *("litmusfuzz run --executors 'tf:", "litmusfuzz run --executors tf,jax,native "),
    *("litmusfuzz replay SB --executors tf --configuration ", "pytest --litmus-executors tf,"),
)
"""Commands of which only the names and options are checked. They take minutes and have tests of
their own, or start TensorFlow as commands of other pages do."""
NO_RUN = {
    "CONTRIBUTING.md": 1,  # tests/campaign/test_golden.py does what it says
    "README.md": 1,  # tests/cli/test_guarantee.py runs it
    "docs/commands.md": 1,
    "docs/control.md": 3,  # the middle of a program; a file of one's own; make releases
    "docs/engines.md": 3,  # need OpenCL
    "docs/executors.md": 2,  # tests/executors/test_entry_points.py and test_interpreter.py run them
    "docs/herd.md": 1,
    "docs/jax-references.md": 1,  # tests/executors/test_interpreter.py runs it
    "docs/nightly.md": 1,
    "docs/several-machines.md": 2,
    "docs/tensorflow.md": 1,
    "docs/tutorial.md": 2,
}
"""The number of blocks marked ``no-run``, so that a new one shows in a diff."""
END = "--- end of a command:"


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the checkout without build products."""
    copy = tmp_path / "litmusfuzz"
    made = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "findings*")
    shutil.copytree(ROOT, copy, ignore=made)
    shutil.copytree(ROOT / "corpus", copy / "corpus", dirs_exist_ok=True)
    return copy


def run_all(commands: Sequence[str], folder: Path) -> list[tuple[int, list[str]]]:
    """Run the commands in one shell; the exit code and the output of each."""
    script = "exec 2>&1\n" + "".join(
        f"{command}\nprintf '\\n{END} %d\\n' $?\n" for command in commands
    )
    shell = subprocess.Popen(
        ["/bin/bash", "-c", script],
        cwd=folder,
        env=os.environ | {"PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = shell.communicate()
    finally:
        if shell.poll() is None:
            os.killpg(shell.pid, signal.SIGKILL)
    parts = re.split(rf"\n{END} (\d+)\n", output)
    assert parts[-1] == "", f"the shell ended: {parts[-1]}"
    return [
        (int(code), text.strip("\n").splitlines())
        for text, code in zip(parts[:-1:2], parts[1::2], strict=True)
    ]


def shortened(command: Command) -> tuple[str, frozenset[int]]:
    text, exits = command.text, command.exits
    for long, short, ends in CUTS:
        if re.search(long, text):
            text, exits = re.sub(long, short, text), exits | ends
    return text, exits


def matches(printed: Sequence[str], expected: Sequence[str]) -> bool:
    """True if that was printed; an expected line ``...`` stands for any lines."""
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == "..." else re.escape(line.rstrip()) + r"\n"
        for line in expected
    )
    return bool(re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in printed)))


# --- commands ----------------------------------------------------------------------------


RUNNING = [page for page in PAGES if any(block.runs for block in blocks(page))]


LONG = {
    f"docs/{name}.md"
    for name in ("campaigns", "check", "control", "engines", "force", "nightly", "tensorflow")
}
"""Their commands run for more than five seconds, and have tests of their own: `make nightly`."""
IN_TIME = [page for page in RUNNING if os.environ.get(WHOLE) or name_of(page) not in LONG]


@pytest.mark.parametrize("page", IN_TIME, ids=name_of)
def test_the_commands_of_a_page_run(page: Path, folder: Path) -> None:
    """Run them in order, in one folder."""
    commands: list[Command] = []
    for block in blocks(page):
        if block.language not in ("sh", "console") and block.words:
            (folder / block.words[0]).write_text(block.text, encoding="utf-8")
        elif block.runs:
            commands += [c for c in block.commands() if not c.text.startswith(ONLY_NAMED)]
    results = run_all([shortened(command)[0] for command in commands], folder)
    for command, (code, printed) in zip(commands, results, strict=True):
        where = f"{name_of(page)}:{command.line}: {shortened(command)[0]}"
        exits = shortened(command)[1]
        assert code in exits, "\n".join([where, f"exit {code}", *printed])
        assert not any("Traceback" in line for line in printed), "\n".join([where, *printed])
        if command.prints:
            assert matches(printed, command.prints), "\n".join([where, *printed])


def test_blocks_that_do_not_run_are_counted() -> None:
    found = {
        name_of(page): sum("no-run" in block.words for block in blocks(page)) for page in PAGES
    }
    assert {page: count for page, count in found.items() if count} == NO_RUN


def test_no_command_is_an_indented_block() -> None:
    """An indented block would not be run."""
    for page in PAGES:
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            assert not re.match(r"    (\$ |litmusfuzz |make |python )", line), f"{page}:{number}"


def test_named_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    for page in PAGES:
        named = re.findall(r"(?:`|^|\$ )make ([a-z]+)", page.read_text("utf-8"), re.MULTILINE)
        assert set(named) <= targets, page


def quoted_or_given(part: re.Match[str]) -> str:
    """What stands in quotes as it is; an option without its brackets; nothing of the rest."""
    return part[0] if part[0].startswith("'") else part[1] or ""


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_named_command_and_option_exists(page: Path, mistake: Callable[[str], str]) -> None:
    for command in named_commands(page):
        # Optional parts of a synopsis count as given; redirections belong to the shell.
        plain = re.sub(r"'[^']*'|\[(-[^]|]*)[^]]*\]|\.\.\.|[<>|].*", quoted_or_given, command)
        assert not mistake(plain), f"{page.name}: {command}"


# --- files -------------------------------------------------------------------------------

_PATH = re.compile(r"`((?:corpus|oracles|fuzz|reports|tests|docs)/[^`\s]*?)`")
_LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
_PLACE = re.compile(r"\]\(([^)#:]*\.md)?#([^)]*)\)")
_HEADING = re.compile(r"(?m)^#+ (.*)$")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for path in _PATH.findall(text):
        file, _, test = path.partition("::")
        file = re.sub(r"[A-Z]{3,}", "*", file)  # pair-KIND-HOW.yaml
        found = list(ROOT.glob(file.rstrip("/")))
        assert found, f"{page.name}: {path}"
        assert not test or f"def {test}(" in found[0].read_text(encoding="utf-8"), path
    for link in _LINK.findall(re.sub(r"(?ms)^```.*?^```$", "", text)):
        assert (page.parent / link).exists(), f"{page.name}: {link}"


def places(page: Path) -> set[str]:
    """The names that its headings have in links."""
    text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in _HEADING.findall(text)}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_headings_that_a_page_links_to_exist(page: Path) -> None:
    for other, place in _PLACE.findall(page.read_text(encoding="utf-8")):
        assert place in places(page.parent / other if other else page), f"{other}#{place}"


def test_the_index_leads_to_every_page() -> None:
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / each).resolve() for each in _LINK.findall(index.read_text("utf-8"))}
    pages = set((ROOT / "docs").rglob("*.md")) - {index}
    assert {name_of(page) for page in pages - linked} == set()
    assert "docs/index.md" in _LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
