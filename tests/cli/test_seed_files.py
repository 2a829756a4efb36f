"""`--seeds` of `run` and `nightly`: tests of the user, and skeletons, that are mutated."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Graph, LitmusTest, Node, Variable
from litmusfuzz.corpus.ops import PureAttrs
from litmusfuzz.corpus.textfile import Entry, save
from litmusfuzz.fuzz.nightly.shard_settings import base_settings
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports.events import Executed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    Command = Callable[..., CompletedProcess[str]]

NATIVE = ("--executors", "native:controlled", "--count", "8", "--time", "5m", "--seed", "3")
OPAQUE = LitmusTest(
    "opaque",
    (Variable("v", "int32", (), 1),),
    (
        Graph(
            "main",
            (
                Node("r", "ReadVariableOp", (), ("v",)),
                Node("t", "Opaque", ("r",), attrs=PureAttrs((("label", 1), ("salt", 0)))),
                Node("w", "AssignVariableOp", ("t",), ("v",)),
            ),
        ),
    ),
    ("r",),
)
"""It would need FloorMod, which this executor lacks."""


def folder(path: Path) -> Path:
    """Two seeds, one of them in a folder below."""
    (path / "mine/deep").mkdir(parents=True)
    for name, short in (("mine/one", "X=1; Y=2 || r0=Y; r1=X"), ("mine/deep/one", "X=1 || X+=2")):
        save(Entry(litmus(short)), path / f"{name}.yaml")
    return path / "mine"


def test_half_of_the_mutations_are_of_seeds_and_all_are_reproduced(
    litmusfuzz_here: Command, tmp_path: Path
) -> None:
    """Also without the files: the campaign's folder has the seeds."""
    seeds = folder(tmp_path)
    asked = ("run", *NATIVE, "--families", "mutations", "--tests", "60", "--out", "out")
    done = litmusfuzz_here(*asked, "--seeds", str(seeds))
    assert done.returncode in (0, 3), done.stderr
    (seeds / "one.yaml").unlink()
    with Store(tmp_path / "out", write=False) as store:
        parents = [event.parent for _, event in store.events_of(Executed)]
        given = base_settings(store, 1).seeds  # of a shard of a nightly run, too
    assert given is not None
    assert {*given.tests} == {"one", "deep/one"}
    # About 30 of 60; fewer than 8 with a probability below 1e-9.
    assert sum(parent.startswith("seeds/") for parent in parents) >= 8
    assert {"seeds/one", "seeds/deep/one"} <= {*parents}
    done = litmusfuzz_here("reproduce", "out", "--json")
    tests = len(parents)
    again = {"tests": tests, "equal": tests, "different": [], "interruption": ""}
    assert json.loads(done.stdout) == again
    done = litmusfuzz_here("run", "--resume", "out", "--tests", "6")
    assert done.returncode in (0, 3), done.stderr
    with Store(tmp_path / "out", write=False) as store:
        assert len([*store.events_of(Executed)]) > tests


@pytest.mark.parametrize("command", ["run", "nightly"])
@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--seeds", "none"), "none: no such file"),
        (("--seeds", "empty"), "--seeds: empty: has no test (*.yaml)"),
        (("--seeds", "bad.yaml"), "bad.yaml:1: "),
        (("--seeds", "mine", "--seeds", "mine"), "--seeds: two files are named deep/one"),
        (
            ("--seeds", "mine", "--families", "dag"),
            "--seeds: only the family mutations uses them, and --families does not name it",
        ),
        (
            ("--seeds", "opaque.yaml"),
            "--seeds: none of these tests is within the support of an executor",
        ),
    ],
)
def test_what_is_no_seed_is_one_line(
    litmusfuzz_here: Command, tmp_path: Path, command: str, options: tuple[str, ...], why: str
) -> None:
    folder(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.yaml").write_text("nonsense: 1\n", encoding="utf-8")
    save(Entry(OPAQUE), tmp_path / "opaque.yaml")
    asked = (command, "--executors", "native:controlled", "--time", "1s", "--out", "out")
    done = litmusfuzz_here(*asked, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"litmusfuzz: {why}")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()
