"""The known-findings file: strict reading, matches by key or cause, appended entries."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from litmusfuzz import corpus
from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.document import FileError
from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.corpus.textfile import Entry, Finding, save
from litmusfuzz.corpus.textfile import load as load_entry
from litmusfuzz.fuzz.campaign.canonical import key_of
from litmusfuzz.fuzz.campaign.known_findings import HEADER, KnownFinding, added, load, loads

if TYPE_CHECKING:
    from conftest import Command

    from litmusfuzz.corpus.model import LitmusTest

TODAY = date(2026, 11, 22)
KEY, OTHER = "v3-0123456789abcdef", "v3-fedcba9876543210"
CAUSE = "{symptoms: [torn], kernels: [ResourceScatter], beside: [read], classes: [tf/executor]}"


def text(*entries: str) -> str:
    return HEADER + "".join(f"  - {{{entry}}}\n" for entry in entries)


@pytest.mark.parametrize(
    ("entries", "line", "message"),
    [
        (["why: w"], 5, "findings.0: an entry has a key or a cause, and not both"),
        ([f"key: {KEY}, cause: {CAUSE}, why: w"], 5, "has a key or a cause"),
        ([f"key: {KEY}"], 5, "findings.0.why: an entry says why, or has a link"),
        ([f"key: {KEY}, why: ' '"], 5, "says why"),
        (["key: v0-0123456789abcdef, why: w"], 5, "findings.0.key: a key is v3-"),
        ([f"key: {KEY}, why: w, wy: w"], 5, "findings.0.wy: unknown field"),
        ([f"key: {KEY}, why: 1"], 5, "findings.0.why: expected a string, got an int"),
        ([f"key: {KEY}, why: w, since: yesterday"], 5, "findings.0.since: a date is"),
        ([f"key: {KEY}, why: w, since: 2026-02-30"], 5, "findings.0.since: a date is"),
        (
            [f"key: {KEY}, why: w, since: 2026-02-03, expires: 2026-02-02"],
            5,
            "findings.0.expires: 2026-02-02 is before 2026-02-03",
        ),
        (
            [f"key: {KEY}, why: w", f"key: {OTHER}, why: w", f"key: {KEY}, why: other"],
            7,
            "findings.2.key: stands twice, first in line 5",
        ),
        (
            [f"name: tears, cause: {CAUSE}, why: w", f"name: tears, cause: {CAUSE}, why: v"],
            6,
            "findings.1.cause: stands",
        ),
        ([f"cause: {CAUSE}, why: w"], 5, "findings.0.name: a cause's name is lower-case words"),
        ([f"name: a tear, cause: {CAUSE}, why: w"], 5, "hyphens, got 'a tear'"),
        (
            [f"name: tears, cause: {CAUSE.replace('torn', 'odd')}, why: w"],
            5,
            "cause.symptoms.0: no 'odd'",
        ),
        (
            [f"name: tears, cause: {CAUSE.replace('read', 'Read')}, why: w"],
            5,
            "cause.beside.0: no 'Read'",
        ),
        (
            [f"name: tears, cause: {CAUSE.replace('tf/', 'tf')}, why: w"],
            5,
            "cause.classes.0: a class is",
        ),
        (
            [f"name: tears, cause: {CAUSE.replace('[torn]', '[]')}, why: w"],
            5,
            "symptoms: names at least one",
        ),
    ],
)
def test_a_wrong_file_is_reported_in_one_line(entries: list[str], line: int, message: str) -> None:
    with pytest.raises(FileError) as error:
        loads(text(*entries), "known.yaml")
    assert str(error.value).startswith(f"known.yaml:{line}: findings.")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            "litmusfuzz_known: 1\n",
            "k:1: litmusfuzz_known: is version 1 of the format, this program ",
        ),
        ("litmusfuzz_known: 3\n", "k:1: litmusfuzz_known: unknown version 3"),
        ("findings: []\n", "k:1: missing field `litmusfuzz_known`"),
        ("litmusfuzz_known: 2\nfindings: {}\n", "k:2: findings: "),
        ("", "k:1: is empty"),
    ],
)
def test_a_file_that_is_none(wrong: str, message: str) -> None:
    with pytest.raises(FileError) as error:
        loads(wrong, "k")
    assert str(error.value).startswith(message)


def found_in(
    known: str, test: LitmusTest, symptom: str = "torn", of: str = "tf/executor"
) -> KnownFinding | None:
    return loads(known).match(KEY, test, symptom, of, TODAY)


def test_a_finding_is_known_by_its_key() -> None:
    test = litmus("X=1")
    entry = found_in(text(f"key: {OTHER}, why: o", f"key: {KEY}, why: w, link: l"), test)
    assert entry is not None
    assert entry.why == "w; l"
    assert found_in(text(f"key: {OTHER}, why: o"), test) is None


def test_a_finding_is_known_by_its_cause() -> None:
    known = text(f"name: tears, cause: {CAUSE}, why: w")
    assert found_in(known, litmus("X=1 || r0=X")) is None
    torn = load_corpus("scatter-update-torn-rows")
    assert found_in(known, torn) is not None
    assert found_in(known, torn, symptom="wrong") is None
    assert found_in(known, torn, of="tf/xla") is None
    beside = load_corpus("dense-around-two-scatters")
    assert found_in(known, beside) is None  # has a kernel that is not named
    anything = text(f"name: tears, cause: {CAUSE.replace(', beside: [read]', '')}, why: w")
    assert found_in(anything, beside) is not None


def test_an_entry_expires_after_its_last_day() -> None:
    test = litmus("X=1")
    assert found_in(text(f"key: {KEY}, why: w, expires: {TODAY}"), test) is not None
    assert found_in(text(f"key: {KEY}, why: w, expires: 2026-11-21"), test) is None


def test_entries_that_nothing_showed_are_stale() -> None:
    known = loads(
        text(f"key: {OTHER}, why: o", f"key: {KEY}, why: w", f"name: tears, cause: {CAUSE}, why: c")
    )
    seen = known.match(KEY, litmus("X=1"), "torn", "tf/xla", TODAY)
    assert seen is not None
    assert [each.why for each in known.stale([seen])] == ["o", "c"]


def test_adding_keeps_what_is_there() -> None:
    before = "# ours\nlitmusfuzz_known: 2\nfindings:  # all\n"
    before += f"  - why: |\n      two\n      lines\n    key: {OTHER}\n  # last"
    more = added(before, [KnownFinding('a "b": #c', KEY, since=TODAY, name="é")])
    lines = (f"  - key: {KEY}", 'name: "é"', r'why: "a \"b\": #c"', "since: 2026-11-22\n")
    assert more == f"{before}\n" + "\n    ".join(lines)
    assert [each.key for each in loads(more).entries] == [OTHER, KEY]
    assert added("", []) == HEADER


@pytest.mark.parametrize(
    ("before", "message"),
    [
        ("litmusfuzz_known: 2\nfindings: []\n", "must be last"),
        ("findings:\nlitmusfuzz_known: 2\n", "must be last"),
        (text(f"key: {KEY}, why: w"), "is known already"),
    ],
)
def test_adding_refuses_what_it_cannot_keep(before: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        added(before, [KnownFinding("w", KEY)], "k")


def load_corpus(name: str) -> LitmusTest:
    return load_entry(Path(corpus.__file__).parent / "litmus" / f"{name}.yaml").test


def finding(folder: Path, notation: str) -> Path:
    """A finding's file, as a campaign writes it."""
    test = replace(litmus(notation), name=f"wrong-{len(list(folder.glob('*')))}")
    wrong = Outcome.of(test, dict.fromkeys(test.names, (7,)))
    found = Finding(
        executor="tf",
        configuration="plain",
        model="executor",
        forbidden=((wrong, 3),),
        executions=100,
        noise={},
        settings={"compiled": "", "front_end": "graph"},
        versions={},
        seed=1,
        index=2,
        family="dag",
        minimized=True,
        confirmed=True,
    )
    path = folder / f"{test.name}.yaml"
    save(Entry(test, {}, found), path)
    return path


def test_the_commands(litmusfuzz_here: Command, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    first, _ = finding(folder, "X=1 || r0=X"), finding(folder, "Y=1; r1=Y || Y=2")
    save(Entry(litmus("X=1")), folder / "no-finding.yaml")
    made = litmusfuzz_here("known", "add", "k.yaml", str(first), "--why", "seen", "--json")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["added"] == [
        {"key": key_of(load_entry(first)), "name": first.stem}
    ]
    again = litmusfuzz_here("known", "add", "k.yaml", str(folder), "--why", "too")
    assert "1 added, 1 known already" in again.stdout
    assert [each.why for each in load(tmp_path / "k.yaml").entries] == ["seen", "too"]
    listed = litmusfuzz_here("known", "list", "k.yaml", "--json")
    assert [row["why"] for row in json.loads(listed.stdout)] == ["seen", "too"]
    wrong = litmusfuzz_here("known", "add", "k.yaml", str(folder / "no-finding.yaml"), "--why", "w")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)


def test_an_entry_that_cannot_be_added_is_explained(
    litmusfuzz_here: Command, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "unreduced").mkdir()
    file = str(finding(tmp_path / "out", "X=1 || r0=X"))
    unreduced = finding(tmp_path / "unreduced", "X=1 || r0=X; Y=1")
    unreduced.write_text(unreduced.read_text().replace("minimized: true", "minimized: false"))
    nightly = {"known": "", "entry": Path(file).read_text(), "file": "f", "kind": "forbidden"}
    (tmp_path / "report.json").write_text(json.dumps({"findings": [nightly | {"key": "v3-nope"}]}))
    for arguments, message in (
        ((file, "--why", "w", "--expires", "2026-11-01"), "--expires: 2026-11-01 is before "),
        ((file, "--why", "bad\x7fchar"), "--why: has control characters"),
        (("unreduced", "--why", "w"), f"{unreduced.relative_to(tmp_path)}: is not minimized"),
        (
            ("report.json", "--why", "w"),
            "report.json: is not the report.json of a campaign: 'v3-nope' is no key",
        ),
    ):
        done = litmusfuzz_here("known", "add", "k.yaml", *arguments)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert message in done.stderr
        assert not (tmp_path / "k.yaml").exists()
    (tmp_path / "kept.yaml").write_text("litmusfuzz_known: 2\n")
    (tmp_path / "k.yaml").symlink_to("kept.yaml")
    assert litmusfuzz_here("known", "add", "k.yaml", file, "--why", "w").returncode == 0
    assert (tmp_path / "k.yaml").is_symlink()
    (entry,) = load(tmp_path / "kept.yaml").entries
    assert f": {entry.key} " in litmusfuzz_here("known", "list", "k.yaml").stdout


def test_our_own_file_is_right() -> None:
    known = load(Path(corpus.__file__).parent / "known.yaml")
    # What has no key, as a crash in pytest, is known by its cause alone.
    anything = load_corpus("SB")
    for symptom in ("crashed", "timed out", "out of memory", "blocked", "torn"):
        assert known.match("", anything, symptom, "jax/rfc", TODAY) is None
        assert known.match("", anything, symptom, "tf/executor", TODAY) is None
    assert len(known.entries) >= 3
    torn = load_corpus("scatter-update-torn-rows")
    assert known.match(KEY, torn, "torn", "tf/executor", TODAY) is not None
    assert known.match(KEY, torn, "torn", "native/executor", TODAY) is None
    section = load_corpus("section-held-by-cluster")
    assert known.match(KEY, section, "blocked", "tf/xla", TODAY) is not None
    assert known.match(KEY, section, "blocked", "tf/executor", TODAY) is None
