"""The known-findings file: strict reading, matches by key or cause, appended entries."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from litmusfuzz import corpus
from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.document import FileError
from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, Finding, save
from litmusfuzz.corpus.textfile import load as load_entry
from litmusfuzz.fuzz.cli.campaigns import known_named
from litmusfuzz.fuzz.finding.canonical import VERSION, key_of
from litmusfuzz.fuzz.finding.known_file import HEADER, added, load, loads, shipped
from litmusfuzz.fuzz.finding.known_findings import KnownFinding, KnownFindings

if TYPE_CHECKING:
    from conftest import Command

    from litmusfuzz.corpus.model import LitmusTest

TODAY = date(2026, 11, 22)
KEY, OTHER = f"{VERSION}-0123456789abcdef", f"{VERSION}-fedcba9876543210"
FINDINGS = Path(corpus.__file__).parent / "findings"
CAUSE = "finding: scatter-beside-read.yaml"
UNSOUND = "symptoms: [unsound], kernels: [While], classes: [tf/xla]"
CRASH = "{symptoms: [crashed], kernels: [ResourceStridedSliceAssign], classes: [tf/executor]}"


def text(*entries: str) -> str:
    return HEADER + "".join(f"  - {{{entry}}}\n" for entry in entries)


@pytest.mark.parametrize(
    ("entries", "line", "message"),
    [
        (["why: w"], 5, "findings.0: an entry has one of key, finding and pattern"),
        ([f"key: {KEY}, {CAUSE}, why: w"], 5, "has one of key, finding and pattern"),
        ([f"key: {KEY}"], 5, "findings.0.why: an entry says why, or has a link"),
        ([f"key: {KEY}, why: ' '"], 5, "says why"),
        (["key: v0-0123456789abcdef, why: w"], 5, f"findings.0.key: a key is {VERSION}-"),
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
            [f"name: tears, {CAUSE}, why: w", f"name: tears, {CAUSE}, why: v"],
            6,
            "findings.1.finding: stands twice, first in line 5",
        ),
        (
            [f"name: dies, pattern: {CRASH}, why: w", f"name: dies, pattern: {CRASH}, why: v"],
            6,
            "findings.1.pattern: stands twice, first in line 5",
        ),
        ([f"{CAUSE}, why: w"], 5, "findings.0.name: a cause's name is lower-case words"),
        ([f"name: a tear, {CAUSE}, why: w"], 5, "hyphens, got 'a tear'"),
        (["name: tears, finding: nope.yaml, why: w"], 5, "findings.0.finding: "),
        (
            ["name: tears, finding: ../litmus/SB.yaml, why: w"],
            5,
            "findings.0.finding: ../litmus/SB.yaml has no finding",
        ),
        (
            [f"name: dies, pattern: {CRASH.replace('crashed', 'torn')}, why: w"],
            5,
            "pattern.symptoms.0: no 'torn'",
        ),
        (
            [f"name: dies, pattern: {CRASH.replace('[Resource', '[')}, why: w"],
            5,
            "pattern.kernels.0: no 'StridedSliceAssign'",
        ),
        (
            [f"name: dies, pattern: {CRASH.replace('tf/', 'tf')}, why: w"],
            5,
            "pattern.classes.0: a class is",
        ),
        (
            [f"name: dies, pattern: {{{UNSOUND}, message: x}}, why: w"],
            5,
            "pattern.message: only crashed, timed out, out of memory have one",
        ),
        (
            [f"name: dies, pattern: {CRASH.replace('[crashed]', '[]')}, why: w"],
            5,
            "symptoms: names at least one",
        ),
        (
            [f"key: {KEY}, why: w, versions: {{tf: new}}"],
            5,
            "findings.0.versions.tf: a version is as in 2.21, a range as in 0.9.0 to 0.10.2",
        ),
        ([f"key: {KEY}, why: w, versions: {{tf: 2}}"], 5, "versions.tf: expected a string"),
        ([f"key: {KEY}, why: w, versions: {{tf: 2.2 to 2.1}}"], 5, "2.1 is before 2.2"),
        ([f"key: {KEY}, why: w, versions: {{a b: 2.2}}"], 5, "'a b' is no name of a package"),
        ([f"key: {KEY}, why: w, versions: 2.2"], 5, "findings.0.versions: expected a map"),
    ],
)
def test_a_wrong_file_is_reported_in_one_line(entries: list[str], line: int, message: str) -> None:
    with pytest.raises(FileError) as error:
        loads(text(*entries), "known.yaml", FINDINGS)
    assert str(error.value).startswith(f"known.yaml:{line}: findings.")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_finding_that_is_not_minimized_is_no_cause(tmp_path: Path) -> None:
    whole = (FINDINGS / "scatter-beside-read.yaml").read_text()
    (tmp_path / "whole.yaml").write_text(whole.replace("minimized: true", "minimized: false"))
    with pytest.raises(FileError, match=r"whole\.yaml is not minimized"):
        loads(text("name: tears, finding: whole.yaml, why: w"), "k", tmp_path)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            "litmusfuzz_known: 1\n",
            "k:1: litmusfuzz_known: is version 1 of the format, this program ",
        ),
        (
            "litmusfuzz_known: 2\nfindings: [{name: a, cause: {kernels: [b]}}]\n",
            "k:1: litmusfuzz_known: is version 2 of the format, this program reads version 3: name",
        ),
        ("litmusfuzz_known: 4\n", "k:1: litmusfuzz_known: unknown version 4"),
        ("findings: []\n", "k:1: missing field `litmusfuzz_known`"),
        ("litmusfuzz_known: 3\nfindings: {}\n", "k:2: findings: "),
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
    return loads(known, "k", FINDINGS).match(KEY, test, symptom, of, TODAY)


def test_a_finding_is_known_by_its_key() -> None:
    test = litmus("X=1")
    entry = found_in(text(f"key: {OTHER}, why: o", f"key: {KEY}, why: w, link: l"), test)
    assert entry is not None
    assert entry.why == "w; l"
    assert found_in(text(f"key: {OTHER}, why: o"), test) is None


def test_a_cause_has_the_settings_that_it_needs() -> None:
    late = "name: late, finding: cluster-writes-late.yaml, why: v"
    known = loads(text(f"name: tears, {CAUSE}, why: w", late), "k", FINDINGS)
    plain, clustered = (each.cause for each in known.causes(TODAY))
    assert plain is not None
    assert plain.case is not None
    assert plain.key == key_of(plain.entry)
    assert not plain.case.needs
    assert clustered is not None
    assert clustered.case is not None
    assert clustered.case.needs


def test_what_an_experiment_decides_is_not_matched_by_kernels() -> None:
    known = text(f"name: tears, {CAUSE}, why: w")
    assert found_in(known, load_corpus("scatter-update-torn-rows")) is None
    tears = load_entry(FINDINGS / "scatter-beside-read.yaml")
    entry = loads(known, "k", FINDINGS).match(key_of(tears), tears.test, "torn", "tf/x", TODAY)
    assert entry is not None


def test_unsound_clusters_are_known_by_their_kernels() -> None:
    pattern = "symptoms: [unsound], kernels: [CriticalSection], beside: [read], classes: [tf/xla]"
    known = text(f"name: spans, pattern: {{{pattern}}}, why: w")
    section = load_corpus("section-held-by-cluster")
    kernels = {node.definition.kernel_class for node in section.effects}
    wide = known.replace("[read]", f"[{', '.join(sorted(kernels))}]")
    assert found_in(known, section, symptom="unsound", of="tf/xla") is None
    assert found_in(wide, section, symptom="unsound", of="tf/xla") is not None
    assert found_in(wide, section, symptom="blocked", of="tf/xla") is None
    assert not loads(wide).deadly_ops(TODAY)


def test_a_crash_is_known_by_its_kernels() -> None:
    known = text(f"name: dies, pattern: {CRASH}, why: w")
    dies = load_entry(FINDINGS / "slice-assign-writes-freed-memory.yaml").test
    assert found_in(known, dies, symptom="crashed") is not None
    assert found_in(known, dies, symptom="timed out") is None
    assert found_in(known, dies, symptom="crashed", of="tf/xla") is None
    assert found_in(known, litmus("X=1 || r0=X"), symptom="crashed") is None
    entries = loads(known)
    assert entries.deadly_ops(TODAY) == {"ResourceStridedSliceAssign"}
    over = known.replace("why: w", "why: w, expires: 2026-11-21")
    assert not loads(over).deadly_ops(TODAY)


def test_a_crash_is_known_by_its_message_as_well() -> None:
    known = text(f"name: dies, pattern: {{{CRASH[1:-1]}, message: 'a.cc:'}}, why: w")
    dies = load_entry(FINDINGS / "slice-assign-writes-freed-memory.yaml").test
    entries = loads(known)
    for message, entry in (("signal 6: a.cc:4", entries.entries[0]), ("signal 11", None)):
        assert entries.match(KEY, dies, "crashed", "tf/executor", TODAY, message) == entry
    # It takes more than this op, so tests with it are not rare.
    assert not entries.deadly_ops(TODAY)


def test_an_entry_expires_after_its_last_day() -> None:
    test = litmus("X=1")
    assert found_in(text(f"key: {KEY}, why: w, expires: {TODAY}"), test) is not None
    assert found_in(text(f"key: {KEY}, why: w, expires: 2026-11-21"), test) is None


def test_adding_keeps_what_is_there() -> None:
    before = "# ours\nlitmusfuzz_known: 3\nfindings:  # all\n"
    before += f"  - why: |\n      two\n      lines\n    key: {OTHER}\n  # last"
    more = added(before, [KnownFinding('a "b": #c', KEY, since=TODAY, name="é")])
    lines = (f"  - key: {KEY}", 'name: "é"', r'why: "a \"b\": #c"', "since: 2026-11-22\n")
    assert more == f"{before}\n" + "\n    ".join(lines)
    assert [each.key for each in loads(more).entries] == [OTHER, KEY]
    assert added("", []) == HEADER


@pytest.mark.parametrize(
    ("before", "message"),
    [
        ("litmusfuzz_known: 3\nfindings: []\n", "must be last"),
        ("findings:\nlitmusfuzz_known: 3\n", "must be last"),
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
    listed = litmusfuzz_here("known", "list", "none", "k.yaml", "--json")
    assert [row["why"] for row in json.loads(listed.stdout)] == ["seen", "too"]
    ours = json.loads(litmusfuzz_here("known", "list", "--json").stdout)
    assert len(ours) == len(shipped().entries)
    assert {row["name"]: row["versions"] for row in ours}["scatter-beside-read"] == {
        "tensorflow": ["2.21", "2.21"]
    }
    both = json.loads(litmusfuzz_here("known", "list", "k.yaml", "--json").stdout)
    assert both == [*ours, *json.loads(listed.stdout)]
    assert [row["shipped"] for row in both] == [True] * len(ours) + [False] * 2
    wrong = litmusfuzz_here("known", "add", "k.yaml", str(folder / "no-finding.yaml"), "--why", "w")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)


def test_what_is_shipped_is_not_added(litmusfuzz_here: Command, tmp_path: Path) -> None:
    """In the versions that the shipped entry holds for: in others it explains nothing."""
    cause = next(each.cause for each in shipped(frozenset(("tf",))).entries if each.cause)
    assert cause is not None
    name = Path(cause.path).stem
    save(cause.entry, tmp_path / "again.yaml")
    here = ("known", "add", "k.yaml", "again.yaml", "--why", "seen")
    known = litmusfuzz_here(*here)
    assert known.stdout.splitlines() == [
        f"again.yaml: known already as {name}, which comes with LitmusFuzz",
        "k.yaml: 0 added, 1 known already",
    ]
    assert not (tmp_path / "k.yaml").exists()
    as_data = json.loads(litmusfuzz_here(*here, "--json").stdout)
    assert as_data["known_already"] == ["again.yaml"]
    assert as_data["shipped_as"] == {"again.yaml": name}
    newer = replace(cause.finding, versions={**cause.finding.versions, "tensorflow": "9.0.0"})
    save(replace(cause.entry, finding=newer), tmp_path / "again.yaml")
    assert "k.yaml: 1 added, 0 known already" in litmusfuzz_here(*here).stdout


def test_an_entry_that_cannot_be_added_is_explained(
    litmusfuzz_here: Command, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "unreduced").mkdir()
    file = str(finding(tmp_path / "out", "X=1 || r0=X"))
    unreduced = finding(tmp_path / "unreduced", "X=1 || r0=X; Y=1")
    unreduced.write_text(unreduced.read_text().replace("minimized: true", "minimized: false"))
    nightly = {"known": "", "entry": Path(file).read_text(), "file": "f", "kind": "forbidden"}
    (tmp_path / "report.json").write_text(json.dumps({"findings": [nightly | {"key": "nope"}]}))
    for arguments, message in (
        ((file, "--why", "w", "--expires", "2026-11-01"), "--expires: 2026-11-01 is before "),
        ((file, "--why", "bad\x7fchar"), "--why: has control characters"),
        (("unreduced", "--why", "w"), f"{unreduced.relative_to(tmp_path)}: is not minimized"),
        (
            ("report.json", "--why", "w"),
            "report.json: is not the report.json of a campaign: 'nope' is no key",
        ),
    ):
        done = litmusfuzz_here("known", "add", "k.yaml", *arguments)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert message in done.stderr
        assert not (tmp_path / "k.yaml").exists()
    (tmp_path / "kept.yaml").write_text("litmusfuzz_known: 3\n")
    (tmp_path / "k.yaml").symlink_to("kept.yaml")
    assert litmusfuzz_here("known", "add", "k.yaml", file, "--why", "w").returncode == 0
    assert (tmp_path / "k.yaml").is_symlink()
    (entry,) = load(tmp_path / "kept.yaml").entries
    assert f": {entry.key} " in litmusfuzz_here("known", "list", "k.yaml").stdout


@pytest.mark.parametrize(
    ("given", "inside", "outside"),
    [
        ("2.21", ["2.21", "2.21.0", "2.21.7", "2.21.0-rc1"], ["2.2", "2.20.9", "2.22.0", "3", "x"]),
        ("0.10.2", ["0.10.2"], ["0.10.1", "0.10.3", "0.10.20", "0.9.2"]),
        ("0.9.0 to 0.10", ["0.9.0", "0.9", "0.10.9"], ["0.8.9", "0.11.0", "1.0"]),
    ],
)
def test_an_entry_holds_for_its_versions_only(
    given: str, inside: list[str], outside: list[str]
) -> None:
    """Also that of a cause, and that of a pattern; without the package none holds."""
    rows = (
        f"key: {KEY}, why: w",
        f"name: a, {CAUSE}, why: w",
        f"name: b, pattern: {CRASH}, why: w",
    )
    known = loads(text(*(f"{row}, versions: {{jax: {given}}}" for row in rows)), "k", FINDINGS)
    for version in inside:
        assert known.of({"jax": version, "numpy": "2.4"}) == known, version
    for version in outside:
        assert not known.of({"jax": version}).entries, version
    assert not known.of({"tensorflow": inside[0]}).entries
    everywhere = loads(text(f"key: {KEY}, why: w"))
    assert everywhere.of({}) == everywhere


def test_what_is_shipped_is_known_without_a_file() -> None:
    everything = shipped()
    assert everything.entries == load(Path(corpus.__file__).parent / "known.yaml").entries
    assert all(each.versions.ranges for each in everything.entries)
    assert shipped(frozenset({"native"})).entries == ()
    jax = shipped(frozenset({"jax_refs", "native"}))
    assert {each.name.partition("-")[0] for each in jax.entries} == {"jax"}
    assert jax == everything.about({"jax_refs"})


def test_a_file_is_added_to_what_is_shipped(tmp_path: Path) -> None:
    """An entry for the same cause takes the place of ours: it may say when it expires."""
    (tmp_path / "mine.yaml").write_text(
        text(
            f"key: {KEY}, why: mine",
            f"name: ours, finding: {FINDINGS}/scatter-beside-read.yaml, why: w, "
            "expires: 2026-11-01",
        )
    )
    option = known_named((str(tmp_path / "mine.yaml"),))
    assert (option.shipped, option.file) == (True, str(tmp_path / "mine.yaml"))
    both = option.load({"tf"})
    assert {each.name for each in shipped(frozenset({"tf"})).entries} - {
        each.name for each in both.entries
    } == {"scatter-beside-read"}
    assert [each.why for each in both.entries][-2:] == ["mine", "w"]
    assert not [each for each in both.causes(TODAY) if each.name == "ours"]
    alone = known_named(("none", str(tmp_path / "mine.yaml"))).load({"tf"})
    assert [each.why for each in alone.entries] == ["mine", "w"]
    assert known_named(("none",)).load({"tf"}) == KnownFindings()
    with pytest.raises(ValueError, match="--known: one file at most, got a, b"):
        known_named(("a", "none", "b"))


def test_our_own_file_is_right() -> None:
    known = load(Path(corpus.__file__).parent / "known.yaml")
    # What has no key, as a crash in pytest, is known by its kernels alone.
    anything = load_corpus("SB")
    for symptom in ("crashed", "timed out", "out of memory", "blocked", "torn"):
        for of in ("jax/rfc", "tf/executor"):
            assert known.match("", anything, symptom, of, TODAY) is None
    causes = known.causes(TODAY)
    assert len(causes) >= 10
    assert all(each.cause and each.cause.case for each in causes)
    assert known.deadly_ops(TODAY) == {"ResourceStridedSliceAssign"}
