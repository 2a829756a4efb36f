"""Scripts on JAX's references compute what the executor computes, and fail where it fails."""

from __future__ import annotations

import ast
import re
import runpy
import sys
from random import Random
from typing import TYPE_CHECKING

import jax
import pytest
from helpers import LITMUS, corpus_entry, differentiated, shows_it

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, Finding, load
from litmusfuzz.fuzz.campaign.scripts import crash_script, jax_script, script_of
from litmusfuzz.fuzz.campaign.suite import Suite
from litmusfuzz.fuzz.executors.jax_refs.executor import JaxRefsExecutor
from litmusfuzz.fuzz.executors.jax_refs.inlining import inlined
from litmusfuzz.fuzz.executors.jax_refs.script import END, script
from litmusfuzz.fuzz.executors.jax_refs.space import (
    COPIES,
    FORBIDDEN,
    SPACE,
    Settings,
    configuration_at,
)
from litmusfuzz.fuzz.executors.protocol import Noise, Refused
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.traced.failures import SystemFailed
from litmusfuzz.fuzz.finding import known_file
from litmusfuzz.fuzz.generators.gradients import in_floats
from litmusfuzz.oracles import sequential
from litmusfuzz.reports.script import NoScript

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.textfile import Setting
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.finding.known_findings import KnownFinding

    Ended = Callable[[str], tuple[str, str, str]]

EXECUTOR = JaxRefsExecutor()
MAX_LINES = 25
FAILURES = (
    *(AssertionError, AttributeError, KeyError, NotImplementedError, TypeError, ValueError),
    jax.errors.TracerArrayConversionError,
)
WITH_BODIES = (
    litmus("r0=X; if r0==0 { X=1; r1=X } else { X=2 }"),
    litmus("X=1; call { X+=2; X+=3 }"),
)
FINDINGS = LITMUS[0].parents[1] / "findings" / "jax"
KNOWN = tuple(
    each
    for each in known_file.load(FINDINGS.parents[1] / "known.yaml").entries
    if each.name.startswith("jax-")
)
STALE = "h-condition-sees-its-own-body"


def named(name: str) -> LitmusTest:
    """A test of the corpus."""
    return corpus_entry(next(path for path in LITMUS if path.stem == name)).test


@pytest.fixture
def ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Ended]:
    """Executes a script here: "equal", "different" or a type; then expected and observed.

    The type is that of an exception in a script that is to show an outcome.
    """
    path = tmp_path / "script.py"

    def run(text: str) -> tuple[str, str, str]:
        assert "litmusfuzz" not in text
        # The devices of this process are there.
        path.write_text(re.sub(r".*jax_num_cpu_devices.*\n", "", text), encoding="utf-8")
        jax.config.update("jax_enable_x64", val=False)
        capsys.readouterr()
        code: object = 0
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as end:
            code = end.code
        except FAILURES as error:
            if "excepthook" not in text:
                return type(error).__name__, "", ""
            sys.excepthook(type(error), error, error.__traceback__)
            code = 1
        found = END.search(capsys.readouterr().out.strip())
        assert found is not None
        assert code == (found[1] != found[2])
        return "different" if code else "equal", found[1], found[2]

    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    yield run
    jax.config.update("jax_enable_x64", val=True)


def executed(test: LitmusTest, config: Config) -> str:
    """The same of the executor: "equal", "different", "refused", or a type of exception."""
    try:
        found = EXECUTOR.prepare(test, config).run(2, Noise(), 0)
    except Refused:
        return "refused"
    except SystemFailed as failure:
        return str(failure).split()[0]
    return "equal" if set(found) == {sequential.outcome(test)} else "different"


def near_plain(rng: Random, most: int) -> Config:
    """A random configuration with few settings that are not plain, as minimized findings have."""
    point: dict[str, Setting] = dict(SPACE.plain)
    for setting in rng.sample(sorted(SPACE.values), rng.randrange(most + 1)):
        changed = {**point, setting: rng.choice(SPACE.values[setting])}
        point = point if SPACE.problem(changed) else changed
    return configuration_at(point)


def test_scripts_of_random_programs_compute_what_the_executor_does(
    ended: Ended,
) -> None:
    """In eager, and in configurations near it; and each shows an expectation that is wrong.

    Those of every second test execute it once.
    """
    suite, rng = Suite(EXECUTOR.support, 3), Random(3)
    ends = []
    for index in range(1000, 1014):
        _, test = suite[index]
        config = near_plain(rng, 4 if index % 2 else 0)
        there = executed(test, config)
        if there == "refused":
            continue
        expected = sequential.outcome(test)
        place = (index // 2) % COPIES if index % 4 > 1 else None
        text = script(test, Settings.of(config), expected, "A script.", place=place)
        end, *_ = ended(text)
        assert end == there, (index, config.name)
        ends.append(end)
        if end == "equal":
            name, value = rng.choice(expected.values)
            wrong = Outcome.of(test, {**dict(expected.values), name: tuple(v + 1 for v in value)})
            if wrong == expected or test.type_of(name).dtype == "bool":
                continue
            text = script(test, Settings.of(config), wrong, "A script.", place=place)
            end, _, observed = ended(text)
            values = dict.fromkeys([name for name, _ in expected.values])
            assert end == "different"
            assert set(re.findall(r"'([^']+)':", observed)) == set(values)
    assert ends.count("equal") > 9


@pytest.mark.parametrize(
    "setting", ["parts", "references", "compiled", "batch", "loops", "devices"]
)
def test_scripts_have_every_value_of_a_setting(setting: str, ended: Ended) -> None:
    """On a program with a loop and a conditional, and on one with a call."""
    tests = [named(name) for name in ("h-branch-in-a-loop", "call-around-a-loop")]
    for number, value in enumerate(SPACE.values[setting]):
        changes: dict[str, Setting] = {setting: value}
        if value in ("export", "shard_map"):
            changes["references"] = "inside"
        if value in (2, "shard_map"):
            changes["compiled"] = "jit"
        config, test = configuration_at(changes), tests[number % 2]
        text = jax_script(test, config, "")
        assert ended(text)[0] == executed(test, config), value


@pytest.mark.parametrize("kind", FORBIDDEN)
def test_scripts_do_what_is_forbidden(kind: str, ended: Ended) -> None:
    config = configuration("jax_refs", f"forbidden_{kind}")
    for test in WITH_BODIES:
        text = jax_script(test, config, "")
        assert FORBIDDEN[kind] in text
        there = executed(test, config)
        assert ended(text)[0] == {"refused": "ValueError"}.get(there, there)


@pytest.mark.parametrize("how", ["jvp", "jacfwd", "grad", "accumulated"])
def test_scripts_have_gradients(how: str, ended: Ended) -> None:
    test = differentiated(in_floats(named("loop-sum-carried")))
    config = configuration_at({"derivative": how, "writes": "linked", "loops": "scan"})
    assert ended(jax_script(test, config, ""))[0] == executed(test, config)


def finding(test: LitmusTest, name: str) -> Entry:
    """The test with what a configuration of the executor shows."""
    config = configuration("jax_refs", name)
    shown = EXECUTOR.prepare(test, config).run(2, Noise(), 0)
    return Entry(
        replace(test, name="found"),
        {},
        Finding(
            executor="jax_refs",
            configuration=name,
            model="sequential",
            forbidden=tuple(shown.items()),
            executions=2,
            noise={},
            settings=dict(config.settings),
            versions={"jax": "0.10.2"},
            seed=0,
            index=0,
            family="corpus",
            minimized=True,
            confirmed=True,
        ),
    )


def test_a_script_of_a_finding_is_short_and_shows_it_alone(tmp_path: Path) -> None:
    """In an interpreter of its own, which cannot import LitmusFuzz."""
    entry = finding(named(STALE), "compiled=jit;loops=while")
    path = tmp_path / "found.py"
    path.write_text(script_of(entry, ""), encoding="utf-8")
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES
    assert shows_it(path)
    path.write_text(jax_script(named(STALE), configuration("jax_refs"), "0.10.2"), encoding="utf-8")
    assert not shows_it(path)


def test_a_script_of_a_failure_fails_alike(ended: Ended) -> None:
    """One that is to show an outcome, too; and the first execution, or the second."""
    test = differentiated(in_floats(named("MP")))
    config = configuration("jax_refs")
    for place in (None, 0):
        assert ended(jax_script(test, config, "", place=place))[0] == "AttributeError"
        text = jax_script(test, config, "", place=place, error="AttributeError at jax/x.py:f")
        assert ended(text)[::2] == ("different", "AttributeError")


def test_a_script_of_a_failure_shows_it_alone(tmp_path: Path) -> None:
    """In an interpreter of its own; and shows none where JAX raises none."""
    path = tmp_path / "found.py"
    config = configuration("jax_refs")
    write = differentiated(in_floats(litmus("X=1")))
    path.write_text(jax_script(write, config, "", place=0, error="AttributeError at jax/x.py:f"))
    assert shows_it(path, error="AttributeError")
    path.write_text(jax_script(litmus("X=1"), config, "", place=0, error="AttributeError at x"))
    assert not shows_it(path, error="AttributeError")


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_each_known_finding_has_a_short_script_that_shows_it(
    known: KnownFinding, ended: Ended
) -> None:
    """Generated, from the reduced test in `corpus/findings/jax`."""
    entry = load(FINDINGS / f"{known.name.removeprefix('jax-')}.yaml")
    if known.pattern is None:
        text, error = script_of(entry, ""), ""
    else:
        (on, raised) = entry.test.description.removeprefix("jax_refs/").split(": ")
        assert raised == known.pattern.message
        error = raised.split()[0]
        config = configuration("jax_refs", on)
        text = crash_script(entry.test, "jax_refs", config, "0.10.2", 0, raised, "")
    assert len(text.splitlines()) <= MAX_LINES
    end, expected, observed = ended(text)
    assert (end, observed) == ("different", error or observed)
    assert set(ast.literal_eval(expected)) == set(sequential.outcome(entry.test).plain)


INLINED = """\
def f(X):
    a = X[...]
    X[...] = 1
    b = X[...]
    c = b + a
    def more(x):
        return x < c
    d = step(X)
    e = -d
    X[...] = 2
    return {'e': e, 'X': X[...], 'more': more}
"""


def test_a_read_stays_before_the_write_that_follows_it() -> None:
    """And a call with effects before the read that follows it."""
    assert inlined(INLINED).splitlines() == [
        "def f(X):",
        "    a = X[...]",
        "    X[...] = 1",
        "    c = X[...] + a",
        "    e = -step(X)",
        "    X[...] = 2",
        "    return {'e': e, 'X': X[...], 'more': lambda x: x < c}",
    ]


def test_what_is_no_program_has_no_script() -> None:
    with pytest.raises(NoScript, match="queues"):
        jax_script(named("fifo-two-consumers"), configuration("jax_refs"), "0.10.2")
