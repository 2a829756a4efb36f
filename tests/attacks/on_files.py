"""Attacks by files that somebody sends: tests, findings, known findings, herd's files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from tests.attacks.attack import PROGRAM, ROOT, Place, attack


@attack("to read a file that the victim can read, and see it in an error")
def a_test_that_is_a_link_to_a_private_file(place: Place) -> str:
    secret = place.write("secret", "correct horse battery staple\n")
    (place.folder / "test.yaml").symlink_to(secret)
    ended = place.run("oracle", place.folder / "test.yaml")
    assert ended.code == 2
    assert "battery" not in ended.err + ended.out
    return ended.error.replace(str(place.folder), ".")


@attack("to make a name of a test a path")
def a_test_named_like_a_path(place: Place) -> str:
    text = (ROOT / "corpus/litmus/SB.yaml").read_text()
    path = place.write("test.yaml", text.replace("name: SB", "name: ../outside/precious"))
    ended = place.run("replay", path, "--executors", "native", "--count", "64")
    assert ended.code == 2
    return ended.error.replace(str(place.folder), ".")


FINDING = ROOT / "corpus/findings/scatter-beside-scatter.yaml"
NAME = FINDING.name
ABOUT = "  Two sparse updates of the same rows: the final value is a mixture of both orders."


def _herd(place: Place, more: str = "forall (true)") -> str:
    """A test of herd's; its name is SB."""
    text = "C SB\n{}\nP0 (atomic_int* X, atomic_int* Y) {\n"
    text += "  atomic_store_explicit(X, 1, memory_order_seq_cst);\n"
    text += "  int r0 = atomic_load_explicit(Y, memory_order_seq_cst);\n}\n"
    return str(place.write("SB.litmus", f"{text}{more}\n"))


@attack("to read a private file: it is shown as the old version of a test")
def promote_over_a_link_to_a_private_file(place: Place) -> str:
    secret = place.write("secret", "correct horse battery staple\n")
    (place.folder / "out").mkdir()
    (place.folder / "out" / NAME).symlink_to(secret)
    ended = place.run("promote", FINDING, "--out", "out", codes=(2,))
    assert "battery" not in ended.out + ended.err
    return ended.error


@attack("to hang: a pipe where the old version of a test would be")
def promote_over_a_pipe(place: Place) -> str:
    (place.folder / "out").mkdir()
    os.mkfifo(place.folder / "out" / NAME)
    ended = place.run("promote", FINDING, "--out", "out", "--write", codes=(2,), within_s=10)
    return ended.error


@attack("to hang: a diff of two texts of which every second line differs")
def promote_with_a_diff_in_quadratic_time(place: Place) -> str:
    lines = [f"  line {n}" for n in range(60_000)]
    others = [f"{line}\n  other {n}" for n, line in enumerate(lines)]
    text = FINDING.read_text()
    new = place.write("new.yaml", text.replace(ABOUT, "\n".join(lines)))
    place.write(f"out/{NAME}", text.replace(ABOUT, "\n".join(others)))
    ended = place.run("promote", new, "--out", "out", codes=(0,), within_s=20)
    assert sum(line.startswith("-  other") for line in ended.out.splitlines()) == 60_000
    return f"a diff in {ended.seconds:.1f} s"


@attack("to have an allowed outcome enter the corpus as a finding")
def promote_a_finding_that_is_none(place: Place) -> str:
    lie = place.write(NAME, FINDING.read_text().replace("outcome: {X: torn}", "outcome: {X: 1}"))
    ended = place.run("promote", lie, "--out", "out", "--write")
    assert ended.code == 2
    assert not (place.folder / "out").exists()
    return ended.error


@attack("to have the reader publish a script that calls an allowed outcome forbidden")
def a_script_of_a_finding_that_is_none(place: Place) -> str:
    text = FINDING.read_text().replace("  - {X: 1}\n", "")
    lie = place.write("a.yaml", text.replace("outcome: {X: torn}", "outcome: {X: 1}"))
    assert place.run("show", "--format", "script", lie).code == 2
    short = place.write("b.yaml", text)  # forbidden outcomes are, but an allowed one is missing
    ended = place.run("show", "--format", "script", short)
    assert ended.code == 2
    return ended.error


@attack("to have a finding that is none hidden, or counted, as known")
def known_add_of_a_finding_that_is_none(place: Place) -> str:
    lie = place.write("a.yaml", FINDING.read_text().replace("{X: torn}", "{X: 1}"))
    ended = place.run("known", "add", "known.yaml", lie, "--why", "x")
    assert ended.code == 2
    assert not (place.folder / "known.yaml").exists()
    return ended.error


@attack("to have another finding suppressed: the report names its key beside a harmless test")
def a_report_with_the_key_of_another_finding(place: Place) -> str:
    found = {"known": "", "entry": FINDING.read_text(), "kind": "forbidden", "cause": "x"}
    found |= {"key": "v3-abababababababab", "file": "f"}
    place.write("report.json", json.dumps({"findings": [found]}))
    ended = place.run("known", "add", "known.yaml", "report.json", "--why", "harmless")
    assert ended.code == 2
    assert not (place.folder / "known.yaml").exists()
    return ended.error


@attack("to forge lines of a list: a name of several lines")
def an_entry_whose_name_is_three_lines(place: Place) -> str:
    forged = '"a\\nv3-1111111111111111 [since ever]\\n    reviewed by the owner"'
    entry = f"  - key: v3-0000000000000000\n    why: x\n    name: {forged}\n"
    place.write("known.yaml", f"litmusfuzz_known: 3\nfindings:\n{entry}")
    ended = place.run("known", "list", "known.yaml")
    assert not any(line.startswith("v3-1111") for line in ended.out.splitlines())
    return ended.error


@attack("to forge lines of a script: a version of several lines")
def a_version_that_withdraws_the_finding(place: Place) -> str:
    version = '"2.21.0\\n\\nWithdrawn: this is no defect.\\n"'
    text = FINDING.read_text().replace("tensorflow: 2.21.0", f"tensorflow: {version}")
    ended = place.run("show", "--format", "script", place.write("a.yaml", text))
    assert not any(line.startswith("Withdrawn") for line in ended.out.splitlines())
    return ended.error


@attack("to show other settings than those that run: a script, a key and a replay disagree")
def a_finding_whose_settings_are_not_its_configuration(place: Place) -> str:
    text = FINDING.read_text()
    wrong = text.replace("compiled: ''", "compiled: clusters")
    path = place.write("a.yaml", wrong)
    assert place.run("show", "--format", "script", path).code == 2
    ended = place.run("known", "add", "known.yaml", path, "--why", "x")
    assert ended.code == 2
    return ended.error


@attack("to write outside of the folder: a link to a file that is not there yet")
def herd_import_through_a_link(place: Place) -> str:
    (place.folder / "out").mkdir()
    (place.folder / "out/SB.yaml").symlink_to(place.outside / "new")
    ended = place.run("herd", "import", _herd(place), "--out", "out")
    assert not (place.outside / "new").exists()
    return ended.error


@attack("to hang: a pipe where the test will be written")
def herd_import_over_a_pipe(place: Place) -> str:
    (place.folder / "out").mkdir()
    os.mkfifo(place.folder / "out/SB.yaml")
    ended = place.run("herd", "import", _herd(place), "--out", "out", within_s=10)
    assert ended.code == 2
    return ended.error


@attack("to take all memory: a link to a file without end where the test will be written")
def herd_export_over_a_file_without_end(place: Place) -> str:
    (place.folder / "out").mkdir()
    (place.folder / "out/SB.litmus").symlink_to("/dev/zero")
    limited = ("--as=3000000000", PROGRAM, "herd", "export", "SB", "--out", "out")
    ended = place.run(*limited, within_s=10, program=Path("/usr/bin/prlimit"))
    assert ended.code == 2
    return ended.error


@attack("to hang: each final state is compared with 400,000 comparisons")
def a_condition_of_two_megabytes(place: Place) -> str:
    condition = "exists (X=9" + " \\/ X=9" * 400_000 + ")"
    ended = place.run("herd", "log", _herd(place, condition), within_s=8)
    assert ended.code == 2
    return ended.error


@attack("to get a traceback: a folder a thousand folders deep")
def cmin_of_a_deep_folder(place: Place) -> str:
    (place.folder / "deep").mkdir()
    here = os.open(place.folder / "deep", os.O_RDONLY)
    for _ in range(1_500):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    try:
        ended = place.run("cmin", "deep", "--out", "kept", "--no-kills", codes=(2,))
    finally:  # `shutil.rmtree` recurses as well
        subprocess.run(["/bin/rm", "-rf", place.folder / "deep"], check=True)
    return ended.error[-60:]


@attack("to have the command read his files in place of a folder's: links that go around")
def cmin_of_a_folder_that_holds_itself(place: Place) -> str:
    shutil.copytree(ROOT / "corpus/litmus", place.folder / "a", ignore=lambda _, f: sorted(f)[3:])
    (place.folder / "a/again").symlink_to(place.folder / "a")
    ended = place.run("cmin", "a", "--out", "kept", "--no-kills", codes=(0,))
    return ended.out.strip().splitlines()[-1]


@attack("to have a file destroyed: it has the name of the finding that minimize writes")
def minimize_over_a_finding_that_somebody_has_worked_on(place: Place) -> str:
    test = ROOT / "corpus/litmus/SB.yaml"
    options = ("--executors", "mutant/canary", "--time", "6s", "--out", "out")
    place.run("minimize", test, *options, codes=(1,))
    (first,) = (place.folder / "out").glob("*.yaml")
    mine = "# what I found out in a week\n" + first.read_text()
    first.write_text(mine)
    place.run("minimize", test, *options, codes=(1,))
    assert first.read_text() == mine
    return f"{len(list((place.folder / 'out').glob('*.yaml')))} files"


@attack("to hang: a test of whose vertices none differs from another")
def a_finding_with_64_equal_nodes(place: Place) -> str:
    text = FINDING.read_text()
    begin, end = text.index("    c1:"), text.index("finding:")
    node = "{op: ResourceScatterSub, resources: [X], inputs: [c0], indices: [0]}"
    nodes = "".join(f"    w{n}: {node}\n" for n in range(64))
    place.write("a.yaml", text[:begin] + nodes + text[end:])
    ended = place.run("known", "add", "known.yaml", "a.yaml", "--why", "x", within_s=10)
    return (ended.out or ended.error).strip().splitlines()[-1]


@attack("to get a traceback, or an overflow: counts and seeds at the edge of 64 bits")
def a_finding_with_the_largest_numbers(place: Place) -> str:
    most = str((1 << 63) - 1)
    lines = FINDING.read_text().replace("executor: tf\n", "executor: native\n").splitlines()
    lines = ["  settings: {}" if line.startswith("  settings:") else line for line in lines]
    text = "\n".join(lines).replace("run_seed: 1274537719", f"run_seed: {most}")
    place.write("a.yaml", text.replace("executions: 1024", f"executions: {most}") + "\n")
    ended = place.run("replay", "a.yaml", "--time", "2s", codes=(3,))
    return ended.out.strip().splitlines()[-1]
