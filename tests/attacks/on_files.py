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


def _test(body: str, variables: str = "  X: {dtype: int32}\n", more: str = "") -> str:
    return f"litmusfuzz: 2\nname: t\nvariables:\n{variables}{more}graphs:\n{body}"


def _reads(count: int, more: str = "") -> str:
    """Reads of X in one graph, each after the one before it."""
    read = "op: ReadVariableOp, resources: [X]"
    rest = "".join(f"    r{n}: {{{read}, after: [r{n - 1}]}}\n" for n in range(1, count))
    return f"  g:\n    r0: {{{read}}}\n{rest}{more}"


@attack("to hang: each name that a finding needs is looked for among those before it")
def a_finding_that_needs_60000_names(place: Place) -> str:
    nodes = "".join(f"    a{n}: {{op: NoOp}}\n" for n in range(60_000))
    names = ", ".join(f"a{n}" for n in range(60_000))
    finding = FINDING.read_text()
    finding = finding[finding.index("finding:") :] + f"  needs_names: [{names}]\n"
    graphs = [
        f"  g{n}:\n" + "".join(nodes.splitlines(keepends=True)[n * 2000 :][:2000])
        for n in range(30)
    ]
    path = place.write("t.yaml", _test("".join(graphs)) + finding)
    return place.run("oracle", path, within_s=10, codes=(2,)).error


@attack("to hang: the runs of a test are listed anew for each of its events")
def a_test_of_20000_graphs(place: Place) -> str:
    read = "{op: ReadVariableOp, resources: [X]}"
    graphs = "".join(f"  g{n}:\n    r{n}: {read}\n" for n in range(20_000))
    path = place.write("t.yaml", _test(graphs))
    place.run("replay", path, "--executors", "native", "--count", "1", within_s=10, codes=(2,))
    return place.run("oracle", path, within_s=10, codes=(2,)).error


@attack("to take all memory: the oracle keeps the earlier events of each of 128,000 events")
def a_graph_of_2000_nodes_that_runs_64_times(place: Place) -> str:
    client = "client:\n" + "".join(f"  a{n}: {{graph: g}}\n" for n in range(64))
    place.write("t.yaml", _test(_reads(2000)) + client)
    limited = ("--as=3000000000", PROGRAM)
    for command in (("oracle",), ("force",)):
        ended = place.run(
            *(*limited, *command, "t.yaml"),
            program=Path("/usr/bin/prlimit"),
            within_s=20,
            codes=(3,),
        )
    place.run("herd", "export", "t.yaml", within_s=15)
    return ended.out.strip().splitlines()[-1]


@attack("to hang: each thread looks at the initial value of each register")
def herd_import_of_60000_threads(place: Place) -> str:
    registers = "".join(f"{n % 10_000}:r{n}=1;" for n in range(60_000))
    threads = "".join(f"P{n}(int*x){{*x=1;}}\n" for n in range(60_000))
    place.write("t.litmus", f"C a\n{{{registers}}}\n{threads}")
    return place.run("herd", "import", "t.litmus", within_s=10, codes=(2,)).error


@attack("to hang: a new name is sought for each of 20,000 variables of one beginning")
def herd_import_of_variables_that_begin_alike(place: Place) -> str:
    variables = "".join(f"int {'a' * 66}{n};" for n in range(20_000))
    place.write("t.litmus", f"C a\n{{{variables}}}\nP0(int*x){{*x=1;}}\n")
    return place.run("herd", "import", "t.litmus", within_s=10, codes=(2,)).error


@attack("to have two logs agree: a state of a variable that begins like a verdict ends the states")
def a_log_with_a_variable_called_okay(place: Place) -> str:
    begin, end = "Test SB Allowed\nStates\n0:r0=0;\n", "Ok\nWitnesses\nCondition exists (true)\n"
    place.write("b.log", begin + end)
    for name in ("Okay", "No", "Ok ", "Undef", "Ok[0]"):
        place.write("a.log", f"{begin}{name}=7; 0:r0=7;\n0:r0=7;\n{end}")
        ended = place.run("herd", "compare", "a.log", "b.log")
        assert ended.code, name
    return ended.error or ended.out.strip().splitlines()[-1]


@attack("to get a traceback: critical sections 600 deep")
def sections_inside_each_other(place: Place) -> str:
    nodes = [f"    r{n}: {{op: ReadVariableOp, resources: [X]}}\n" for n in range(600)]
    for n in range(600):
        members = ", ".join(f"r{k}" for k in range(n + 1))
        nodes.append(f"    s{n}: {{op: CriticalSection, resources: [M], members: [{members}]}}\n")
    path = place.write("t.yaml", _test("  g:\n" + "".join(nodes), more="mutexes:\n  M: {}\n"))
    return place.run("show", path, within_s=10, codes=(2,)).error


@attack("to hang or take all memory: an expression that doubles 60 times")
def an_expression_of_2_to_the_60_terms(place: Place) -> str:
    nodes = "    t0: {op: ReadVariableOp, resources: [X]}\n"
    nodes += "".join(
        f"    t{n}: {{op: Maximum, inputs: [t{n - 1}, t{n - 1}]}}\n" for n in range(1, 61)
    )
    nodes += "    w: {op: AssignVariableOp, resources: [X], inputs: [t60]}\n"
    path = place.write("t.yaml", _test("  g:\n" + nodes))
    for command in (("show",), ("show", "--format", "dot"), ("herd", "export"), ("oracle",)):
        ended = place.run(*command, path, within_s=8)
        assert len(ended.out) < 100_000
    return f"{len(ended.out)} characters"


@attack("to hang: a pipe among a folder's tests that he keeps open")
def a_link_to_an_open_pipe_in_a_folder(place: Place) -> str:
    (place.folder / "a").mkdir()
    shutil.copyfile(ROOT / "corpus/litmus/SB.yaml", place.folder / "a/MP.yaml")
    shutil.copyfile(FINDING, place.folder / "a/f.yaml")
    os.mkfifo(place.folder / "pipe")
    held = os.open(place.folder / "pipe", os.O_RDWR)
    for name in ("SB", "x"):
        (place.folder / f"a/{name}.yaml").symlink_to(place.folder / "pipe")
    place.write("a.log", "Test SB Allowed\nStates 1\n0:r0=0;\nOk\nWitnesses\n")
    place.write("b.log", "Test SB Allowed\nStates 1\n0:r0=1;\nOk\nWitnesses\n")
    try:
        place.run("cmin", "a", "--out", "kept", "--no-kills", within_s=15, codes=(0,))
        place.run("known", "add", "known.yaml", "a", "--why", "x", within_s=10, codes=(0,))
        ended = place.run("herd", "compare", "a.log", "b.log", "--tests", "a", within_s=10)
    finally:
        os.close(held)
    return ended.out.strip().splitlines()[-1]


@attack("to hide a mark in a text: a sign that no terminal shows")
def a_description_with_a_byte_order_mark(place: Place) -> str:
    text = _test("  g:\n    r0: {op: ReadVariableOp, resources: [X]}\n")
    path = place.write(
        "t.yaml", text.replace("variables", 'description: "a\\uFEFFb"\nvariables', 1)
    )
    return place.run("show", path, codes=(2,)).error


@attack("to hang: each two ops of each outcome's order are compared")
def cmin_of_a_test_with_many_outcomes_and_ops(place: Place) -> str:
    nodes = "".join(f"    c{n}: {{op: Const, dtype: int32, value: {n}}}\n" for n in range(1, 6))
    for n in range(1, 6):
        nodes += f"    w{n}: {{op: AssignVariableOp, resources: [X], inputs: [c{n}]}}\n"
        nodes += f"    q{n}: {{op: ReadVariableOp, resources: [X], after: [w{n}]}}\n"
    reads = _reads(300).replace("[X]", "[Y]").removeprefix("  g:\n")
    variables = "  X: {dtype: int32}\n  Y: {dtype: int32}\n"
    text = _test(f"  g:\n{nodes}{reads}observe: [q1, q2, q3, q4, q5]\n", variables)
    place.write("a/t.yaml", text)
    ended = place.run("cmin", "a", "--out", "kept", "--no-kills", within_s=10, codes=(0,))
    return ended.out.strip().splitlines()[-1]


@attack("to forge a line of a report: a name of a file that is two lines, or no text")
def cmin_of_files_with_odd_names(place: Place) -> str:
    for name, source in (("a\nforged: all is well.yaml", "SB"), ("\udcff.yaml", "IRIW")):
        (place.folder / "a").mkdir(exist_ok=True)
        shutil.copyfile(ROOT / f"corpus/litmus/{source}.yaml", place.folder / "a" / name)
    ended = place.run("cmin", "a", "--out", "kept", "--no-kills", codes=(0,))
    assert not any(line.startswith("forged") for line in ended.out.splitlines())
    return ended.out.strip().splitlines()[-1]


def _reported(**fields: object) -> str:
    """A campaign's report of one finding."""
    from litmusfuzz.fuzz.executors.entries import load
    from litmusfuzz.fuzz.finding.canonical import key_of

    found: dict[str, object] = {"known": "", "entry": FINDING.read_text(), "kind": "forbidden"}
    found |= {"cause": "x", "file": "f", "key": key_of(load(FINDING))}
    return json.dumps({"findings": [found | fields]})


@attack("to have another finding suppressed: its key is a second one of a harmless finding")
def a_report_with_a_second_key(place: Place) -> str:
    place.write("report.json", _reported(also=["v3-abababababababab"]))
    ended = place.run("known", "add", "known.yaml", "report.json", "--why", "harmless", codes=(0,))
    assert "abababab" not in (place.folder / "known.yaml").read_text()  # nobody reads it
    place.write("report.json", _reported(also_on=[["assign"]]))
    ended = place.run("known", "add", "other.yaml", "report.json", "--why", "harmless")
    assert ended.code == 2
    assert not (place.folder / "other.yaml").exists()
    return ended.error


@attack("to have another crash suppressed: its ops are listed as those of crashes alike")
def a_report_of_a_crash_with_the_ops_of_another(place: Place) -> str:
    from litmusfuzz.fuzz.executors.entries import load
    from litmusfuzz.fuzz.finding.worker_deaths import key_from_parts, telling_ops

    kernels = {node.definition.kernel_class for node in load(FINDING).test.effects}
    op = min(telling_ops(kernels))
    crash = {"kind": "crashed", "config_class": "tf/executor", "reason": ["signal 6"]}
    crash["key"] = key_from_parts("crashed", "tf/executor", "signal 6", kernels)
    for cause, also_on in (
        (f"signal 6 + {op}", [["assign"]]),
        (f"signal 6 + {op}", [[op], []]),
        ("harmless", [[op, "assign"]]),
        ("signal 6 + assign", [["assign"]]),
    ):
        place.write("report.json", _reported(**crash, cause=cause, also_on=also_on))
        ended = place.run("known", "add", "known.yaml", "report.json", "--why", "harmless")
        assert ended.code == 2
        assert not (place.folder / "known.yaml").exists()
    return ended.error


@attack("to take all memory: millions of reasons, and of lists of ops, of one crash")
def a_report_of_millions_of_reasons(place: Place) -> str:
    for name, item in (("reason", '"a"'), ("also_on", "[]")):
        listed = ",".join([item] * 40_000_000)
        fields = json.loads(_reported(kind="crashed"))["findings"][0]
        text = json.dumps(fields)[:-1] + f', "{name}": [{listed}]}}'
        place.write("report.json", f'{{"findings": [{text}]}}')
        limited = ("--as=1000000000", PROGRAM, "known", "add", "k.yaml", "report.json", "--why=x")
        ended = place.run(*limited, program=Path("/usr/bin/prlimit"), within_s=10, codes=(2,))
    return ended.error


@attack("to have a finding suppressed: a crash is reported with its key")
def a_report_of_a_crash_with_the_key_of_a_finding(place: Place) -> str:
    for kind in ("crashed", "timed out", "out of memory", "unsound"):
        place.write("report.json", _reported(kind=kind, config_class="tf/executor", reason=["x"]))
        ended = place.run("known", "add", "known.yaml", "report.json", "--why", "harmless")
        assert ended.code == 2
        assert not (place.folder / "known.yaml").exists()
    return ended.error


@attack("to take all memory: lists in place of findings, three bytes each")
def a_report_of_20_million_empty_lists(place: Place) -> str:
    with (place.folder / "report.json").open("w") as file:
        file.write(f'{{"findings": [{",".join(["[]"] * 20_000_000)}]}}')
    limited = ("--as=1000000000", PROGRAM, "known", "add", "k.yaml", "report.json", "--why", "x")
    ended = place.run(*limited, program=Path("/usr/bin/prlimit"), within_s=10, codes=(2,))
    return ended.error


@attack("to hide how much an entry hides: a pattern that takes any op beside its own")
def a_pattern_that_hides_more_than_its_neighbour(place: Place) -> str:
    said = []
    for beside in ("", ", beside: [read]", ", beside: []"):
        pattern = "symptoms: [crashed], kernels: [AssignVariableOp], classes: [tf/executor]"
        entry = f"  - {{pattern: {{{pattern}{beside}}}, why: x, name: a}}\n"
        place.write("known.yaml", f"litmusfuzz_known: 3\nfindings:\n{entry}")
        said.append(place.run("known", "list", "known.yaml", codes=(0,)).out)
    assert len(set(said)) == 3
    return said[0].splitlines()[0]


@attack("to have a test of the corpus replaced: his finding has its name")
def promote_a_finding_named_like_a_test(place: Place) -> str:
    text = FINDING.read_text().replace("name: scatter-beside-scatter", "name: SB")
    return place.run("promote", place.write("SB.yaml", text), codes=(2,)).error


@attack("to forge the head of a diff: the name of its file is two lines")
def promote_of_a_file_whose_name_is_two_lines(place: Place) -> str:
    text = (ROOT / "corpus/litmus/SB.yaml").read_text().replace("X: 1", "X: 2", 1)
    path = place.write("x\n+++ corpus/litmus/SB.yaml (promoted)\n.yaml", text)
    ended = place.run("promote", path)
    assert not any(line.startswith("+++ corpus") for line in ended.out.splitlines())
    return (ended.out or ended.error).splitlines()[-1]


@attack("to have a record of 100,000 choices followed without end")
def a_schedule_that_never_fits(place: Place) -> str:
    choices = ", ".join(f"0/2:{n:016x}" for n in range(100_000))
    text = FINDING.read_text().replace("executor: tf\n", "executor: native\n")
    text = text.replace("configuration: plain", "configuration: controlled")
    lines = ["  settings: {}" if ln.startswith("  settings:") else ln for ln in text.splitlines()]
    schedule = f"  schedule:\n    outcome: {{X: torn}}\n    choices: [{choices}]\n"
    place.write("a.yaml", "\n".join(lines) + "\n" + schedule)
    ended = place.run("replay", "a.yaml", "--time", "2s", within_s=20)
    assert ended.code in (2, 3)
    return (ended.out or ended.error).strip().splitlines()[-1]


@attack("to have his module imported when a finding is only looked at")
def a_finding_on_an_engine_of_his(place: Place) -> str:
    place.write("evil.py", "open('hit', 'w')\nclass Engine: pass\n")
    text = FINDING.read_text().replace("executor: tf\n", "executor: native\n")
    text = text.replace("configuration: plain", "configuration: engine=evil:Engine;threads=2")
    settings = "  settings: {engine: 'evil:Engine', threads: 2, split_updates: false}"
    lines = [settings if ln.startswith("  settings:") else ln for ln in text.splitlines()]
    place.write("a.yaml", "\n".join(lines) + "\n")
    env = {"PYTHONPATH": str(place.folder)}
    for command in (("oracle",), ("show",), ("known", "add", "k.yaml", "--why", "x"), ("promote",)):
        ended = place.run(*command, "a.yaml", env=env)
    for command in (("replay",), ("known", "compare", "a.yaml")):
        ended = place.run(*command, "a.yaml", env=env, codes=(2,))
    place.write(
        "known.yaml", "litmusfuzz_known: 3\nfindings:\n  - {finding: a.yaml, why: x, name: a}\n"
    )
    place.run("known", "list", "known.yaml", env=env, codes=(2,))
    assert not (place.folder / "hit").exists()
    return ended.error
