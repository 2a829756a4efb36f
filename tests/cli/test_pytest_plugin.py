"""The pytest plugin in a project outside this checkout."""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml
from guide import DOCS, example, installed, mutant
from helpers import LITMUS

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import TORN
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, Finding, load, save

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILES = {path.stem: path for path in LITMUS}
DIES = example().replace("    waiting = ", "    import os; os._exit(7)\n    waiting = ")
FIRST = """
    import os, pathlib
    mark = pathlib.Path("first")
    if not mark.exists():
        mark.write_text(str(os.getpid()))
    wrong = mark.read_text() == str(os.getpid())
"""
MOODY = (
    example()
    .replace("    while waiting:\n", f"{FIRST}    while waiting:\n")
    .replace("*n.after}", "*(() if wrong else n.after)}")
)
"""Wrong in the first process that runs it, and in no other."""
STALE = "mutant/stale-reads"
TEARS = "mutant/torn-scatter"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """With the guide's executor, one that is wrong, and one that dies."""
    modules = {"interleaver": example(), "careless": mutant(), "dies": DIES, "moody": MOODY}
    points = {name: f"{name}:Interleaver" for name in modules}
    return installed(tmp_path_factory.mktemp("theirs") / "theirs", modules, points)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Four litmus files, of which one needs queues, one of somebody else, and a test."""
    (tmp_path / "litmus").mkdir()
    for stem in ("SB", "MP", "lost-update", "backpressure-blocked"):
        shutil.copy(FILES[stem], tmp_path / "litmus")
    (tmp_path / "litmus" / "other.yaml").write_text("description: litmusfuzz\n")
    (tmp_path / "test_theirs.py").write_text("def test_theirs(): pass\n")
    return tmp_path


@pytest.fixture
def run(project: Path, environment: dict[str, str]) -> Callable[..., tuple[int, str]]:
    """Run pytest there."""

    def ran(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", *arguments],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    return ran


def results(output: str) -> list[str]:
    """The lines of `-rA`, which xdist gives in any order."""
    found = re.findall(r"^(?:PASSED|FAILED|SKIPPED|XFAIL|ERROR) .*", output, re.MULTILINE)
    return sorted(found)


def test_importing_it_imports_nothing_of_ours() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import litmusfuzz.fuzz.pytest_plugin\n"
        "new = {name for name in set(sys.modules) - before if name.startswith('litmusfuzz')}\n"
        "assert new == {'litmusfuzz', 'litmusfuzz.fuzz', 'litmusfuzz.fuzz.pytest_plugin'}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_project_that_does_not_ask_gets_nothing(run) -> None:
    code, output = run()
    assert code == 0
    assert results(output) == ["PASSED test_theirs.py::test_theirs"]


def test_files_are_items_and_a_failure_says_what_happened(run) -> None:
    """The same with and without xdist; `careless` is seen on SB in each run.

    Of its 1,000 executions one in six shows both reads 0.
    """
    on = ("--litmus-executors", f"interleaver,careless,{STALE}:plain")
    code, output = run("-n0", *on)
    assert code == 1
    reported = results(output)
    assert "PASSED litmus/SB.yaml::interleaver/plain" in reported
    assert f"PASSED litmus/MP.yaml::{STALE}/plain" in reported
    assert any(line.startswith("FAILED litmus/SB.yaml::careless/plain") for line in reported)
    assert any(line.endswith("interleaver refuses: queues") for line in reported)
    assert "other.yaml" not in output
    failure = output[output.index("SB.yaml::mutant/stale-reads/plain") :]
    for part in (
        "seen      r0=0 r1=0 X=1 Y=1   in 1000 of 1000 executions on mutant/stale-reads/plain",
        "is allowed under the model executor",
        "broken    no total order",
        "because   r0 waits for w0",
        f"replay    litmusfuzz replay litmus/SB.yaml --executors {STALE}:plain --model executor",
    ):
        assert part in failure
    distributed, output = run("-n2", *on)
    assert (distributed, results(output)) == (code, reported)


def found_on(executor: str) -> Finding:
    """SB with both reads 0, as one that `executor` once showed."""
    (forbidden,) = {
        outcome: 0 for outcome in load(FILES["SB"]).allowed["rfc"] if outcome.plain["r0"] == 0
    }
    values = tuple((name, (0,) if name == "r1" else value) for name, value in forbidden.values)
    seen = ((type(forbidden)(values), 7),)
    return Finding(
        executor, "plain", "rfc", seen, 10, {}, {}, {}, 1, 0, "dag", minimized=True, confirmed=True
    )


def test_a_known_finding_that_shows_is_an_xfail_and_one_that_hides_passes_with_a_note(
    run, project: Path
) -> None:
    shutil.rmtree(project / "litmus")
    test = load(FILES["SB"]).test
    save(Entry(test, finding=found_on(STALE)), project / "shows.yaml")
    save(Entry(test, finding=found_on("interleaver")), project / "hides.yaml")
    files = ("shows.yaml", "hides.yaml", "--litmus-time", "300ms", "-n0")
    code, output = run(*files, "--litmus-executors", STALE)
    # One of another executor is a test like any other.
    assert code == 1
    assert f"FAILED hides.yaml::{STALE}/plain" in output
    assert re.search(rf"^XFAIL shows.yaml::{STALE}/plain - known: r0=0 r1=0", output, re.MULTILINE)
    code, output = run(*files, "--litmus-executors", "interleaver")
    assert code == 0
    note = "hides.yaml::interleaver/plain: the finding did not show in"
    assert note in output[output.index("litmus: notes") :]
    code, output = run("shows.yaml", "--runxfail", "--litmus-executors", STALE)
    assert code == 1


def test_a_finding_that_shows_another_symptom_than_its_file_lists_is_a_failure(
    run, project: Path
) -> None:
    """A finding of a wrong value may list torn ones."""
    shutil.rmtree(project / "litmus")
    entry = load(FILES["SB"].parents[1] / "findings" / "scatter-beside-read.yaml")
    assert entry.finding is not None
    test = entry.test
    torn = entry.finding.forbidden[0][0]
    assert torn.torn
    # A value that nothing writes.
    wrong = replace(torn, values=tuple((n, (7,) if v is TORN else v) for n, v in torn.values))
    found = replace(found_on(TEARS), model="executor")
    for stem, forbidden in (("both", ((wrong, 2), (torn, 3))), ("one", ((wrong, 2),))):
        finding = replace(found, forbidden=forbidden, executions=9)
        save(Entry(test.titled(stem), finding=finding), project / f"{stem}.yaml")
    code, output = run(".", "--litmus-executors", TEARS)
    assert code == 1
    assert re.search(rf"^XFAIL both.yaml::{TEARS}/plain - known: r0=torn", output, re.MULTILINE)
    assert f"FAILED one.yaml::{TEARS}/plain" in output


def write_known(project: Path, executor: str, form: str) -> None:
    """A file that knows SB on an executor by a minimized finding, or crashes by their kernel."""
    found = replace(found_on(executor), model="executor")
    save(Entry(load(FILES["SB"]).test, finding=found), project / "cause.yaml")
    crash = f"{{symptoms: [crashed], kernels: [AssignVariableOp], classes: [{executor}/executor]}}"
    what = {"finding": "finding: cause.yaml", "crash": f"pattern: {crash}"}[form]
    entry = f"{{name: stale-reads, why: they are stale, {what}}}"
    (project / "known.yaml").write_text(f"litmusfuzz_known: 3\nfindings:\n  - {entry}\n")


@pytest.mark.parametrize(
    ("python", "status"), [(platform.python_version(), "XFAIL"), ("2.7", "FAILED")]
)
def test_an_entry_holds_for_the_versions_that_the_worker_has(
    run, project: Path, python: str, status: str
) -> None:
    """It has Python's, as the guide's executor says; nobody has 2.7."""
    write_known(project, "careless", "finding")
    known = project / "known.yaml"
    stated = f'versions: {{python: "{python}"}}, why:'
    known.write_text(known.read_text().replace("why:", stated))
    on = ("-n0", "litmus/SB.yaml", "--litmus-executors", "careless")
    code, output = run(*on, "--litmus-known", "known.yaml")
    (line,) = results(output)
    assert line.startswith(f"{status} litmus/SB.yaml::careless/plain - "), output
    assert code == (status == "FAILED")


@pytest.mark.parametrize(
    ("executor", "form", "shown"), [(STALE, "finding", "r0=0 r1=0"), ("dies", "crash", "exit 7")]
)
def test_a_known_finding_is_an_xfail(
    run, project: Path, executor: str, form: str, shown: str
) -> None:
    write_known(project, executor, form)
    on = ("-n0", "litmus/SB.yaml", "--litmus-executors", executor)
    code, output = run(*on, "--litmus-known", "known.yaml")
    assert code == 0, output
    (line,) = results(output)
    assert line.startswith(f"XFAIL litmus/SB.yaml::{executor}/plain - known: {shown}")
    assert line.endswith("they are stale")
    assert run(*on)[0] == 1


def test_a_crash_is_not_known_by_the_cause_of_something_else(run, project: Path) -> None:
    write_known(project, "dies", "finding")
    on = ("-n0", "litmus/SB.yaml", "--litmus-executors", "dies", "--litmus-known", "known.yaml")
    assert run(*on)[0] == 1


def test_a_file_of_ours_is_known_in_braces_and_indented(run, project: Path) -> None:
    (project / "odd").mkdir()
    text = (project / "litmus/SB.yaml").read_text()
    (project / "odd/SB.yaml").write_text("".join(f"  {line}\n" for line in text.splitlines()))
    data = yaml.safe_load((project / "litmus/MP.yaml").read_text())
    (project / "odd/MP.yaml").write_text(json.dumps(data))
    (project / "odd/job.yaml").write_text("jobs: {a: {litmusfuzz: 2}}\n")
    (project / "odd/broken.yaml").write_text("{litmusfuzz: [\n")
    _, output = run("-n0", "odd", "--litmus-executors", "interleaver")
    for stem in ("SB", "MP"):
        assert f"PASSED odd/{stem}.yaml::interleaver/plain" in output
    assert "job.yaml::" not in output
    assert "broken.yaml::" not in output


@pytest.mark.parametrize("head", ["\ufefflitmusfuzz:", '"litmusfuzz":'])
def test_a_file_of_ours_is_known_however_its_first_field_is_written(
    run, project: Path, head: str
) -> None:
    text = (project / "litmus" / "SB.yaml").read_text()
    (project / "litmus" / "SB.yaml").write_text(text.replace("litmusfuzz:", head, 1))
    code, output = run("-n0", "litmus/SB.yaml", "--litmus-executors", "interleaver")
    assert code == 0, output
    assert "PASSED litmus/SB.yaml::interleaver/plain" in output


def test_the_pages_test_with_hypothesis_passes_as_it_stands(run, project: Path) -> None:
    page = (DOCS / "pytest.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(from hypothesis.*?)```", page, re.DOTALL)
    (project / "test_mine.py").write_text(block)
    few = "from hypothesis import settings\nsettings.register_profile('few', max_examples=20)\n"
    (project / "conftest.py").write_text(f"{few}settings.load_profile('few')\n")
    code, output = run("-n0", "test_mine.py", "--hypothesis-seed=1")
    assert code == 0, output
    # And it can fail.
    wrong = block.replace("from interleaver import", "from careless import")
    (project / "test_mine.py").write_text(wrong)
    code, output = run("-n0", "test_mine.py", "--hypothesis-seed=1")
    assert code == 1
    assert "ForbiddenOutcome" in output


def test_an_unconfirmed_outcome_is_no_failure_and_a_known_one_no_gap(run, project: Path) -> None:
    """In 1,000 executions, of which one in six is wrong."""
    write_known(project, "moody", "finding")
    on = ("-n0", "litmus/SB.yaml", "--litmus-executors", "moody")
    code, output = run(*on)
    assert code == 0, output
    assert re.search("^SKIPPED .* unconfirmed: r0=0 r1=0 .* is forbidden", output, re.MULTILINE)
    (project / "first").unlink()
    code, output = run(*on, "--litmus-known", "known.yaml")
    assert results(output) == ["PASSED litmus/SB.yaml::moody/plain"]
    note = "litmus/SB.yaml::moody/plain: known: r0=0 r1=0"
    assert note in output[output.index("litmus: notes") :]


def test_a_process_that_dies_is_a_failure_and_unknown_is_no_pass(run, project: Path) -> None:
    code, output = run("-n0", "litmus/SB.yaml", "--litmus-executors", "dies")
    assert code == 1
    assert "dies/plain: exit 7" in output
    # A sum needs a search, unlike values of which each has one write.
    save(Entry(litmus("X+=1 || X+=2 || X+=4; r0=X")), project / "sum.yaml")
    code, output = run(
        *("-n0", "sum.yaml", "--litmus-executors", "interleaver", "--litmus-budget", "1")
    )
    assert code == 0
    assert re.search("^SKIPPED .* unknown: .* are over the oracle's budget", output, re.MULTILINE)


def test_a_test_outside_the_model_is_skipped(run, project: Path) -> None:
    save(Entry(litmus("cluster {X=1; r0=X} || Y=1")), project / "clustered.yaml")
    arguments = ("-n0", "clustered.yaml", "--litmus-executors", "jax", "--litmus-model", "acd")
    code, output = run(*arguments)
    assert code == 1  # nothing ran
    assert "jax/plain: 0 of 1 litmus files ran, at least 1 has to" in output
    code, output = run(*arguments, "--litmus-min-tests", "0")
    assert code == 0
    assert re.search("^SKIPPED .* not judged: clusters.k0: no program has", output, re.MULTILINE)


def test_a_projects_settings_choose(run, project: Path) -> None:
    (project / "pyproject.toml").write_text(
        "[tool.pytest.ini_options]\n"
        'litmus_executors = "interleaver"\nlitmus_files = ["litmus/[MS]*.yaml"]\n'
    )
    code, output = run("-n0")
    assert code == 0
    assert results(output) == [
        "PASSED litmus/MP.yaml::interleaver/plain",
        "PASSED litmus/SB.yaml::interleaver/plain",
        "PASSED test_theirs.py::test_theirs",
    ]


MISTAKES = """
import sys, pytest
for number in range(int(sys.argv[1])):
    print("code", int(pytest.main(sys.argv[2 + 2 * number : 4 + 2 * number])), flush=True)
"""
"""Runs pytest once for each two arguments, in one process: each would import all of it."""


def test_a_test_in_the_short_notation_is_an_item(run, project: Path) -> None:
    """Beside files, and beside a test of theirs whose id looks like one; nothing else is run."""
    (project / "test_more.py").write_text(
        "import pytest\n\n@pytest.mark.parametrize('text', ['X=1'])\ndef test_more(text): pass\n"
    )
    sb, forbidden = "X=1; r0=Y || Y=1; r1=X", "X=1; r0=Y\nX=2; r1=Y || Y=1; r2=X"
    named = ("litmus/MP.yaml", "test_more.py::test_more[X=1]", sb, forbidden, sb)
    for workers in ("-n0", "-n2"):
        code, output = run(workers, "--litmus-executors", f"native,{STALE}", *named)
        assert code == 1
        shown = " ".join(forbidden.splitlines())
        assert [line.partition(" - ")[0] for line in results(output)] == sorted(
            [
                f"FAILED {sb}::{STALE}/plain",
                f"FAILED {shown}::{STALE}/plain",
                "PASSED litmus/MP.yaml::native/plain",
                f"PASSED litmus/MP.yaml::{STALE}/plain",
                f"PASSED {sb}::native/plain",
                f"PASSED {shown}::native/plain",
                "PASSED test_more.py::test_more[X=1]",
            ]
        )
        assert f"  replay    litmusfuzz replay '{sb}' --executors {STALE}:plain --model" in output


def test_mistakes_are_reported_in_one_line(run, project: Path, environment: dict[str, str]) -> None:
    mistakes = (
        (
            ("--litmus-executors=absent", "-q"),
            "no executor 'absent'; `litmusfuzz list executors` prints all",
        ),
        (("--litmus-executors=native,native", "-q"), "native stands twice"),
        (("--litmus-executors=native", "--litmus-count=0"), "at least 1, got 0"),
        (("--litmus-executors=native", "--litmus-time=soon"), "'soon' is no duration"),
        (("--litmus-executors=native", "--litmus-known=no.yaml"), "no.yaml: "),
        (
            ("--litmus-executors=native", "--litmus-model=executr"),
            "--litmus-model: no model 'executr'; is it 'executor'? `litmusfuzz list models` prints",
        ),
        (("--litmus-executors=native", "X=1 || Y=!"), "notation, column 10: expected a number or"),
        (("--litmus-executors=native", "r0=1 || r1=2"), "a test has at least one resource"),
    )
    arguments = [each for pair, _ in mistakes for each in pair]
    done = subprocess.run(
        [sys.executable, "-c", MISTAKES, str(len(mistakes)), *arguments],
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    *outputs, rest = done.stdout.split("code 4\n")
    assert rest == ""
    for output, (_, said) in zip(outputs, mistakes, strict=True):
        (line,) = (line for line in output.splitlines() if line.startswith("ERROR: "))
        assert said in line
    (project / "litmus" / "wrong.yaml").write_text("litmusfuzz: 2\nname: x\ngraphs: 3\n")
    code, output = run("-n0", "litmus/wrong.yaml", "--litmus-executors", "interleaver")
    assert code == 2
    assert re.search(r"wrong\.yaml:3: graphs: ", output)


def test_a_project_alone_names_no_code_that_runs(
    run: Callable[..., tuple[int, str]], project: Path
) -> None:
    """A cloned project's settings may name a library: it is loaded if the user names it too."""
    on = "native:engine=concurrent.futures:ThreadPoolExecutor;threads=2"
    wants = "want to run the Python object concurrent.futures:ThreadPoolExecutor; if you trust"
    for setting in ("litmus_executors =", "addopts = --litmus-executors"):
        (project / "pytest.ini").write_text(f"[pytest]\n{setting} {on}\n")
        code, output = run("-n0", "litmus/SB.yaml")
        assert code == pytest.ExitCode.USAGE_ERROR
        assert wants in output
    code, output = run("-n2", "litmus/SB.yaml", "--litmus-executors", on)
    assert code == 0, output


@pytest.mark.parametrize("module", ["msgspec", "yaml"])
def test_a_module_that_shadows_a_library_is_named_in_one_line(
    run: Callable[..., tuple[int, str]], project: Path, module: str
) -> None:
    own = project / f"{module}.py"
    own.write_text("VERSION = 1\n")
    code, output = run("--litmus-executors", "native:controlled")
    assert code == pytest.ExitCode.USAGE_ERROR
    (line,) = (line for line in output.splitlines() if line.strip())
    assert line.startswith(f"ERROR: litmusfuzz: {own} shadows the library {module!r}")
    code, output = run()  # not asked for, the plugin imports nothing
    assert code == 0, output
