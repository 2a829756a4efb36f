"""Litmus files, `check` and Hypothesis on TensorFlow under control, in a project of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.library import FOLDERS
from litmusfuzz.corpus.textfile import Entry, save
from tests.executors.control_tests import two_pages

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., tuple[int, str]]

SB: Final = litmus("X=1; r0=Y || Y=1; r1=X")
KNOWN: Final = FOLDERS[1]
COPIES: Final = 5
"""Of a torn read: each is run twice, in a process of its own each time."""
MARKS: Final = {
    "torn": "'pages'",
    "SB": "'ops', schedules=3",
    "cut": "'pages', schedules=2",
    "bounded": "'pages', preemptions=0",
    "off": "'off'",
}
"""By the begin of a file's name, the arguments of its marker."""
CONFTEST: Final = f"""
import sys
import pytest

MARKS = {{{", ".join(f"{name!r}: pytest.mark.litmus_control({x})" for name, x in MARKS.items())}}}


def pytest_collection_modifyitems(items):
    for item in items:
        for name in MARKS:
            if item.nodeid.startswith(name):
                item.add_marker(MARKS[name])


def pytest_sessionfinish():
    assert "tensorflow" not in sys.modules
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with torn reads, of two pages each, and other tests; its plugin marks them."""
    folder = tmp_path_factory.mktemp("project")
    torn = two_pages("scatter-beside-read")
    for stem in (*(f"torn-{number}" for number in range(COPIES)), "cut", "bounded"):
        save(Entry(torn), folder / f"{stem}.yaml")
    for stem in ("SB", "off"):
        save(Entry(SB), folder / f"{stem}.yaml")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    return folder


@pytest.fixture(scope="module")
def run(project: Path) -> Run:
    """Run pytest there, on `tf`."""

    def ran(*arguments: str, **variables: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "-v"]
        done = subprocess.run(
            [*command, "--litmus-executors", "tf", *arguments],
            cwd=project,
            env=os.environ | variables,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    return ran


@pytest.fixture(scope="module")
def alone(run: Run, project: Path) -> str:
    """The output of a session on all marked files."""
    return session(run, project, "-n0")


def session(run: Run, project: Path, *options: str) -> str:
    """The output of a session on all marked files, whose torn reads fail."""
    files = [each.name for each in sorted(project.glob("*.yaml"))]
    code, output = run(*options, "--litmus-known", "none", *files)
    assert code == 1, output
    return output


def failures(output: str) -> dict[str, str]:
    """What pytest prints of each failure."""
    after = re.split(r"^=+ ", output.partition("= FAILURES =")[2], flags=re.MULTILINE)[0]
    after = re.sub(r"^\[gw\d\] .*\n", "", after, flags=re.MULTILINE)  # of xdist
    parts = re.split(r"^_+ (\S*) _+\n", after.partition("\n")[2], flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def section(output: str, title: str) -> dict[str, str]:
    """The lines of a section of pytest's summary, by what they begin with."""
    _, _, after = output.partition(f" litmus: {title} ")
    lines = after.partition("\n")[2].partition("\n=")[0].splitlines() if after else []
    return {first: rest for first, _, rest in (line.partition(": ") for line in lines)}


# --- litmus files ------------------------------------------------------------------------


def test_a_torn_read_fails_each_time_with_the_same_schedule(
    alone: str, run: Run, project: Path
) -> None:
    """In two sessions, of which one has two processes; in processes of TensorFlow of their own."""
    distributed = session(run, project, "-n2")
    texts = [failures(output) for output in (alone, distributed)]
    files = [f"torn-{number}.yaml" for number in range(COPIES)]
    for each in texts:
        assert sorted(each) == [f"{file}::tf/plain" for file in files]
    (text,) = {
        re.sub(r"torn-\d", "torn", each).strip() for found in texts for each in found.values()
    }
    lines = text.splitlines()
    need = "  schedule  needs a switch inside ReadVariableOp, between two pages"
    table = lines[lines.index(need) + 1 : -1]
    assert table[0].split() == ["chain", "0", "chain", "1"]
    (marked,) = (line for line in table if "<- switch inside" in line)
    shown = " ".join(marked.split())
    assert shown == "4 r0: read of page 0 of X <- switch inside ReadVariableOp"
    assert "in 3 of 13 executions on tf/controlled_pages" in text
    titles = ("under control", "executed without control")
    for title in titles:
        assert section(alone, title) == section(distributed, title)


def test_the_replay_line_shows_the_schedule_again(
    alone: str, litmusfuzz_here, project: Path
) -> None:
    text = failures(alone)["torn-0.yaml::tf/plain"]
    (command,) = re.findall(r"^  replay    litmusfuzz (.*)", text, re.MULTILINE)
    force, file, *options = command.split()
    again = litmusfuzz_here(force, str(project / file), *options)
    assert again.returncode == 1
    rows = text.partition("schedule  ")[2].partition("\n  replay")[0].splitlines()
    shown = [line.split() for line in again.stdout.splitlines()]
    assert [row.split() for row in rows] == shown[-len(rows) :]


def test_a_test_without_a_forbidden_schedule_passes_and_says_that_these_are_all(alone: str) -> None:
    assert "PASSED SB.yaml::tf/plain" in alone
    assert section(alone, "under control") == {
        "SB.yaml::tf/plain": "all 3 schedules, in 3 executions on tf/controlled",
        "bounded.yaml::tf/plain": "all 2 schedules with at most 0 preemptions, in 2 executions on "
        "tf/controlled_pages",
    }


def test_what_is_not_searched_to_its_end_is_unknown(alone: str) -> None:
    why = "2 schedules with at most 1 preemption, in 2 executions, after all with at most 0 pree"
    assert re.search(rf"^SKIPPED .* unknown: {why}", alone, re.MULTILINE)
    assert "PASSED cut.yaml" not in alone


def test_a_known_finding_is_an_xfail_and_a_file_says_at_which_level_it_shows(
    run: Run, litmusfuzz_here, project: Path
) -> None:
    """The level of the session is coarser than that of the file."""
    known = str(KNOWN / "first-assignment-writes-twice.yaml")
    on = ("--executors", "tf:controlled_locks", "--out", str(project / "findings"))
    assert litmusfuzz_here("force", known, *on).returncode == 1
    code, output = run("-n0", "torn-0.yaml", "findings")
    assert code == 0, output
    file, torn = (line for line in output.splitlines() if line.startswith("XFAIL "))
    if "torn" in file:
        file, torn = torn, file
    assert torn.startswith("XFAIL torn-0.yaml::tf/plain - known: r0=torn X=2, 3 times in 13: docs/")
    assert file.endswith("the file is a finding")


def test_a_mistake_is_named(run: Run) -> None:
    for option, said in (
        (
            "--litmus-control=op",
            "--litmus-control: one of ops, locks, pages, touches, off, got 'op",
        ),
        ("--litmus-schedules=0", "--litmus-schedules: at least 1, got 0"),
        ("--override-ini=litmus_preemptions=no", "litmus_preemptions: no number: 'no'"),
    ):
        code, output = run("SB.yaml", option)
        assert code == pytest.ExitCode.USAGE_ERROR
        assert said in output


def test_a_named_configuration_runs_as_it_is_too(run: Run, project: Path) -> None:
    """What control does not reach, and `off`, run without it; only the former says so."""
    on = ("--litmus-executors", "tf:grappler,tf:controlled,tf:eager_threads")
    options = ("-n0", "--litmus-count", "64", "--junit-xml", "out.xml")
    code, output = run(*options, *on, "SB.yaml", "off.yaml")
    assert code == 0, output
    cases = (project / "out.xml").read_text().split("<testcase ")[1:]
    kinds = ("litmus-schedules", "litmus-executions", "litmus-uncontrolled")
    assert [[case.count(f'"{kind}"') for kind in kinds] for case in cases] == [
        *([1, 2, 0], [1, 1, 0], [0, 1, 1]),
        *([0, 1, 0], [0, 1, 0], [0, 1, 0]),
    ]
    why = "front_end=eager excludes control=ops: it is a setting of graphs"
    assert section(output, "executed without control") == {
        "tf/eager_threads": f"{why}: SB.yaml::tf/eager_threads"
    }


def test_without_a_compiler_a_failure_says_so_too(run: Run, project: Path) -> None:
    """Under `one_cluster` both reads come first; without clusters TensorFlow never shows that."""
    cache = {"XDG_CACHE_HOME": str(project / "cache"), "CXX": "no-such-compiler"}
    options = ("-n0", "--litmus-known", "none", "--litmus-model", "one_cluster")
    code, output = run(*options, "SB.yaml", "torn-0.yaml", **cache)
    assert code == 1
    why = "control of TensorFlow: no C++ compiler (no-such-compiler)"
    text = failures(output)["SB.yaml::tf/plain"]
    assert f"  control   does not reach it: tf/plain: {why}" in text
    noted = section(output, "executed without control")
    assert noted.keys() == {"tf/plain"}
    assert noted["tf/plain"].startswith(f"{why}: ")
    assert noted["tf/plain"].endswith("::tf/plain and 1 more test")


# --- check and Hypothesis ----------------------------------------------------------------

CHECKS: Final = """
import pytest

from litmusfuzz import ForbiddenOutcome, NotControlled, Undecided, check, litmus, load

SB = litmus("X=1; r0=Y || Y=1; r1=X")


def test_all_schedules():
    assert set(check(SB, "tf").values()) == {1}


def test_the_schedule_is_in_the_text():
    with pytest.raises(ForbiddenOutcome) as info:
        check(load("torn-0.yaml").test, "tf", control="pages")
    lines = str(info.value).splitlines()
    need = "  schedule  needs a switch inside ReadVariableOp, between two pages"
    assert sum("<- switch inside" in line for line in lines[lines.index(need) :]) == 1
    assert "  replay    litmusfuzz force FILE --executors tf:controlled_pages" in str(info.value)


def test_a_search_that_is_cut_off_is_undecided():
    with pytest.raises(Undecided, match="2 schedules .* cut off"):
        check(load("torn-0.yaml").test, "tf", control="pages", schedules=2)


def test_without_control_a_warning_says_so():
    with pytest.warns(NotControlled, match="tf/eager_threads: executed without control: front_end"):
        check(SB, "tf:eager_threads")


def test_a_named_configuration_is_executed_as_it_is_too():
    assert sum(check(SB, "tf:grappler", count=10).values()) > 10
    assert sum(check(SB, "tf:controlled").values()) == 3


def test_a_wrong_level_is_a_mistake():
    with pytest.raises(ValueError, match="control: one of ops, locks, pages, touches, off"):
        check(SB, "tf", control="kernels")
"""


def test_check_runs_tf_under_control(run: Run, project: Path) -> None:
    (project / "test_checks.py").write_text(CHECKS)
    code, output = run("-n0", "test_checks.py")
    assert code == 0, output
    assert output.count("PASSED test_checks.py::") == CHECKS.count("\ndef test_")


HYPOTHESIS: Final = """
from pathlib import Path

from hypothesis import given, seed, settings
from hypothesis import strategies as st
from litmusfuzz import check, loads, resource_graphs

few = settings(deadline=None, database=None, max_examples=5)


@few
@seed(1)
@given(resource_graphs("dag"))
def test_random(graph):
    check(graph, "tf")


@few
@seed(1)
@given(st.integers(0, 3))
def test_torn(more):
    text = Path("torn-0.yaml").read_text().replace("[1, 2048]", f"[1, {2048 + 1024 * more}]")
    check(loads(text).test, "tf", control="pages", preemptions=1)
"""


def test_a_failing_example_is_shrunk_and_shows_its_schedule(run: Run, project: Path) -> None:
    """Every example of `test_torn` fails; the smallest has two pages."""
    (project / "test_examples.py").write_text(HYPOTHESIS)
    code, output = run("-n0", "test_examples.py")
    assert code == 1
    (text,) = failures(output).values()
    assert "schedule  needs a switch inside ReadVariableOp, between two pages" in text
    assert text.count("<- switch inside ReadVariableOp") == 1
    assert "test_torn(\n" in text
    assert "more=0," in text
    assert "Flaky" not in text
