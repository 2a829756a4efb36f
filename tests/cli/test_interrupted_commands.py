"""Commands that are interrupted say so, and exit with 3 unless something forbidden was seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from litmusfuzz.corpus.library import paths
from litmusfuzz.fuzz.cli import replay as command
from litmusfuzz.fuzz.cli.main import main
from litmusfuzz.fuzz.commands import replay
from litmusfuzz.fuzz.executors.worker import Worker

if TYPE_CHECKING:
    from click.testing import Result

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.oracles.explorer import Explorer
    from litmusfuzz.oracles.model import Model

Interrupt = Callable[[int], None]


@pytest.fixture
def after(monkeypatch: pytest.MonkeyPatch) -> Interrupt:
    """Let Ctrl-C come when a worker is asked once more than so often."""
    ask = Worker.ask

    def interrupt(most: int) -> None:
        asked = [0]

        def counting(self: Worker, *args: Any, **kwargs: Any) -> Any:
            asked[0] += 1
            if asked[0] > most:
                raise KeyboardInterrupt
            return ask(self, *args, **kwargs)

        monkeypatch.setattr(Worker, "ask", counting)

    return interrupt


def called(*arguments: str) -> Result:
    """The result of a command, in this process."""
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def test_a_replay_keeps_what_it_has_seen(after: Interrupt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "_BATCH", 64)
    after(3)  # the first lets the process start
    asked = ("replay", "SB", "MP", "--executors", "native:controlled", "--count", "1000", "--json")
    done = called(*asked)
    assert (done.exit_code, done.stderr) == (3, "litmusfuzz: interrupted after 0 of 2 tests\n")
    sb, mp = json.loads(done.stdout)
    assert (sb["test"], sb["executions"], sb["interrupted"], sb["exit_code"]) == (
        "SB",
        128,
        True,
        3,
    )
    assert mp == {"file": "MP", "interrupted": True}


@pytest.mark.parametrize(("first", "code"), [("mutant/stale-reads", 1), ("native:controlled", 3)])
def test_what_one_executor_has_shown_is_kept_when_another_is_kept_from_running(
    monkeypatch: pytest.MonkeyPatch, first: str, code: int
) -> None:
    """Ctrl-C comes while the oracle works on the model of the second one."""

    def of(test: LitmusTest, model: Model, budget: int | None) -> Explorer:
        if model.name == "rfc":
            raise KeyboardInterrupt
        return explorer_of(test, model, budget)

    explorer_of = command.explorer_of
    monkeypatch.setattr(command, "explorer_of", of)
    executors = f"{first},jax"
    done = called("replay", "SB", "--executors", executors, "--count", "64", "--json")
    assert done.exit_code == code
    assert done.stderr == "litmusfuzz: interrupted after 0 of 1 test\n"
    data = json.loads(done.stdout)
    (shown,) = data["replays"]
    assert (shown["executions"], data["interrupted"], data["exit_code"]) == (64, True, code)
    assert list(data["not_run"].values()) == ["interrupted"]


def test_a_replay_that_has_seen_something_forbidden_exits_with_1(
    after: Interrupt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "_BATCH", 64)
    after(2)
    done = called("replay", "SB", "--executors", "mutant/stale-reads", "--count", "1000")
    assert done.exit_code == 1
    assert "interrupted: more executions were asked for" in done.stdout
    assert done.stderr == "litmusfuzz: interrupted after 0 of 1 test\n"


def test_force_says_how_many_orders_it_forced(after: Interrupt) -> None:
    after(3)
    done = called("force", "SB", "MP", "--executors", "native", "--json")
    assert (done.exit_code, done.stderr) == (3, "litmusfuzz: interrupted after 0 of 2 tests\n")
    (sb,) = json.loads(done.stdout)
    assert (len(sb["reached"]), sb["interrupted"]) == (2, "interrupted after 2 of 3 orders")
    assert sb["exit_code"] == 3


def test_minimize_says_that_it_saw_nothing_forbidden_so_far(
    after: Interrupt, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "_BATCH", 64)
    after(2)
    asked = ("minimize", "SB", "--executors", "native:controlled", "--out", str(tmp_path))
    done = called(*asked, "--json")
    assert done.exit_code == 3
    assert done.stderr.startswith("litmusfuzz: interrupted after ")
    data = json.loads(done.stdout)
    assert data["finding"] is None
    assert data["interruption"] in done.stderr


def test_known_compare_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    async def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Worker, "run", interrupted)
    files = sorted(str(path) for name, path in paths().items() if name.startswith("cluster-"))[:2]
    done = called("known", "compare", *files)
    assert done.exit_code == 3
    assert done.stderr == "litmusfuzz: interrupted after 0 of 1 pair\n"
