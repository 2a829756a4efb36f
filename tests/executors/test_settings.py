"""Settings that a file names: typed, checked when it is loaded, and never code."""

from __future__ import annotations

import ast
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from helpers import LITMUS
from helpers_events import PLAIN, STARTED, added, shown, started
from test_tidy import SOURCES

from litmusfuzz.corpus import textfile
from litmusfuzz.corpus.document import FileError
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, dumps, save
from litmusfuzz.fuzz.executors.entries import load, loads, wrong_setting
from litmusfuzz.fuzz.executors.setting_types import HasSettings
from litmusfuzz.fuzz.executors.table import EXECUTORS, executor_class
from litmusfuzz.fuzz.executors.tensorflow.configurations import SETTING_TYPES, Settings
from litmusfuzz.fuzz.store.folder import StoreError
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports.events import ShardPlanned, encode
from litmusfuzz.reports.script import NoScript, script

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Command

FOUND = load(LITMUS[0].parents[1] / "findings" / "scatter-beside-read.yaml")
CODE = "1); __import__('os').system('touch hit') or (1"
REWRITE = "remapping=ON\n    __import__('os').system('touch hit')"
HOSTILE: list[tuple[str, str, Any]] = [
    ("tf", "intra_op_threads", CODE),
    ("tf", "inter_op_threads", CODE),
    ("tf", "inter_op_threads", True),
    ("tf", "inter_op_threads", 0),
    ("tf", "inter_op_threads", 1 << 40),
    ("tf", "rewrites", REWRITE),
    ("tf", "rewrites", "remapping=ON;import os"),
    ("tf", "rewrites", "remapping=ON,remapping=ON"),
    ("tf", "pool", "own\\"),
    ("tf", "compiled", True),
    ("tf", "front_end", '"""'),
    ("tf", "model_code", "yes"),
    ("tf", "workers", -1),
    ("tf", "__class__", 1),
    ("mutant/tf-torn-write", "intra_op_threads", CODE),
    ("control/tf-torn-write", "intra_op_threads", CODE),
    ("native", "threads", "2"),
    ("native", "threads", 257),
    ("native", "engine", "a;b"),
    ("native", "devices", "cpu:0 && x"),
    ("native", "processes", 3),
    ("jax", "clusters", "other"),
    ("a-strangers", "name", "$(touch hit)"),
    ("a-strangers", "name", "x" * 257),
    ("a-strangers", "no name", 1),
]
"""Executor, setting, and a value that it may not have."""


def with_settings(executor: str, settings: dict[str, Any]) -> Entry:
    assert FOUND.finding is not None
    return replace(FOUND, finding=replace(FOUND.finding, executor=executor, settings=settings))


@pytest.mark.parametrize("name", [n for n in EXECUTORS if n != "mutant/canary"])
def test_the_settings_of_each_configuration_are_in_its_executors_table(name: str) -> None:
    made = executor_class(name)
    for config in made.configurations():
        assert wrong_setting(name, dict(config.settings)) is None
        assert isinstance(made, HasSettings) or not config.settings


def test_the_table_of_tensorflow_has_each_field() -> None:
    assert list(SETTING_TYPES) == [each.name for each in fields(Settings)]
    for each in fields(Settings):
        assert not SETTING_TYPES[each.name].problem(each.default)


@pytest.mark.parametrize(("executor", "name", "value"), HOSTILE)
def test_a_setting_that_is_no_value_of_the_table_is_not_loaded(
    executor: str, name: str, value: object
) -> None:
    text = dumps(with_settings(executor, {name: value}))
    (line,) = (n for n, each in enumerate(text.splitlines(), 1) if "  settings: " in each)
    with pytest.raises(FileError) as error:
        loads(text, "x.yaml")
    assert str(error.value).startswith(f"x.yaml:{line}: finding.settings.{name}: ")
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 800


@pytest.mark.parametrize("noise", [{"copies": 0}, {"shuffle": 3}, {"copies": True}, {"bad": 1}])
def test_a_noise_that_does_not_exist_is_not_loaded(noise: dict[str, Any]) -> None:
    assert FOUND.finding is not None
    text = dumps(replace(FOUND, finding=replace(FOUND.finding, noise=noise)))
    with pytest.raises(FileError, match=rf"finding\.noise\.{next(iter(noise))}: "):
        loads(text)


def test_an_executor_that_is_unknown_here_has_plain_scalars() -> None:
    settings = {"engine": "lib/their-engine.so", "threads": 4, "fast": True}
    made = with_settings("a-strangers", settings)
    assert loads(dumps(made)).finding == made.finding


@pytest.mark.parametrize(
    "command",
    [["show"], ["replay"], ["minimize"], ["promote"], ["known", "add", "k.yaml", "--why=x"]],
)
def test_no_command_takes_a_finding_with_such_a_setting(
    command: list[str], tmp_path: Path, litmusfuzz_here: Command
) -> None:
    save(with_settings("tf", {"intra_op_threads": CODE}), tmp_path / "x.yaml")
    done = litmusfuzz_here(*command, "x.yaml")
    assert done.returncode == 2
    assert done.stderr.startswith("litmusfuzz: x.yaml:26: finding.settings.intra_op_threads: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("executor", "name", "value"), [h for h in HOSTILE if h[0] == "tf"])
def test_a_script_takes_no_code_from_settings_even_unchecked(
    executor: str, name: str, value: object
) -> None:
    """As if the check at load were missing."""
    assert FOUND.finding is not None
    made = with_settings(executor, {**FOUND.finding.settings, name: value})
    text = "pass"
    with suppress(NoScript):
        text = script(made, {"TF_X": '"\\\n'}, 'why """ \\')
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    names = {ast.unparse(each.func) for each in calls}
    assert "__import__" not in names
    assert not {each for each in names if each.startswith("os.")}


def test_a_script_quotes_the_other_text_of_a_finding() -> None:
    assert FOUND.finding is not None
    evil = '"""\n__import__("os")\n"""'
    versions = {"tensorflow": evil}
    finding = replace(FOUND.finding, versions=versions, family=evil, configuration=evil)
    test = replace(FOUND.test, description=evil)
    text = script(replace(FOUND, test=test, finding=finding), {"TF_X": evil}, evil)
    names = {ast.unparse(n.func) for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)}
    assert "__import__" not in names


def test_a_store_with_such_a_finding_is_refused(tmp_path: Path) -> None:
    entry = dumps(with_settings("native", {"threads": CODE}))
    first = shown(1, STARTED + 1)
    found = added(first, "v3-0000000000000001", "findings/a.yaml", at=STARTED + 2)
    planned = ShardPlanned(at=STARTED, configurations={"native": ("plain",)})
    events = [planned, first, msgspec.structs.replace(found, entry=entry)]
    with Store(tmp_path, write=True) as store:
        store.append(0, started(PLAIN))
        for number, event in enumerate(events, 2):
            row = (number, 1, number, encode(event).decode())
            store.db.execute("INSERT INTO events VALUES (?, ?, ?, ?)", row)
    with pytest.raises(
        StoreError, match=r"event 4: findings/a\.yaml:26: finding\.settings\.threads: "
    ):
        Store(tmp_path, write=False)


def test_fuzz_loads_entries_with_their_settings_checked() -> None:
    """Tests alone have no settings: those of the corpus, of a worker's requests, and seeds."""
    exempt = {
        *("fuzz.executors.entries", "fuzz.executors.worker_main", "fuzz.executors.native.peer"),
        "fuzz.executors.reply_check",
        *("fuzz.generators.mutations", "fuzz.generators.seeds"),
    }
    for module, path in SOURCES.items():
        if not module.startswith("fuzz") or module in exempt:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "litmusfuzz.corpus.textfile":
                assert not {"load", "loads"} & {each.name for each in node.names}, module
    assert textfile.load is not load
