"""`litmusfuzz check`: races of a program that somebody wrote for TensorFlow."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.cli.common import complain, fail, json_option, print_report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litmusfuzz.fuzz.programs.checking import CheckedAnomaly

UNKNOWN_OPS = {"everything": True, "nothing": False, "undecided": None}


@click.command(epilog="Example: litmusfuzz check steps:train_step --concurrent train_step")
@click.argument("targets", metavar="TARGET...", nargs=-1, required=True)
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="NAME=FETCH,...",
    help="A run of a graph: its name, and the operations that the client fetches.",
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="TYPE",
    help="Type of an example input, in the order of the arguments: float32[8,4] or int32.",
)
@click.option(
    "--value",
    "values",
    multiple=True,
    metavar="NAME=VALUES",
    help="Value of an input for --show: x=1.5,2, train.x=0 or x=FILE.npy; LitmusFuzz picks others.",
)
@click.option(
    "--concurrent",
    multiple=True,
    metavar="RUN,...",
    help="Runs that may be concurrent; one name alone is beside itself; `none` for each run alone.",
)
@click.option(
    "--unknown-ops",
    type=click.Choice(list(UNKNOWN_OPS)),
    default="undecided",
    help="What an op that LitmusFuzz does not know may touch.",
)
@click.option("--sarif", "sarif_file", default=None, metavar="FILE", help="Write a SARIF log.")
@click.option(
    "--html",
    "html_file",
    default=None,
    metavar="FILE",
    help="Write a page with each anomaly and a drawing of the accesses around it.",
)
@click.option(
    "--skeletons",
    "folder",
    default=None,
    metavar="FOLDER",
    help="Write the skeleton of each anomaly as a litmus test.",
)
@click.option(
    "--show",
    is_flag=True,
    help="Force both orders of each anomaly in TensorFlow, which executes the program.",
)
@json_option
def check(
    targets: tuple[str, ...],
    runs: tuple[str, ...],
    inputs: tuple[str, ...],
    values: tuple[str, ...],
    concurrent: tuple[str, ...],
    unknown_ops: str,
    sarif_file: str | None,
    html_file: str | None,
    folder: str | None,
    show: bool,
    as_json: bool,
) -> None:
    """Find the races of a TensorFlow program.

    TARGET is the file of a GraphDef or FunctionDef, binary or text, a .keras file, the folder of a
    SavedModel, or MODULE:NAME: a tf.function, a Keras model or a tf.Graph of a Python module. Files
    are read as data; a module is imported, and so executed. Several functions may be named. With
    --show, the runs of each anomaly are executed.

    Of several runs, each is checked alone and beside the others; those of a SavedModel or a
    Keras model also beside themselves. Exits 1 if there is an anomaly, 3 if an op of which nothing
    is known leaves it undecided.
    """
    from litmusfuzz.fuzz.programs.checking import check as check_program
    from litmusfuzz.fuzz.programs.checking import concurrent_runs
    from litmusfuzz.fuzz.programs.program import ProgramError

    if values and not show:
        fail("--value: is for --show, which executes the program")
    given = _values(values)
    try:
        live = _read(targets, inputs, _runs(runs))
        program = live.program
        names = {each.name: each for each in program.entries}
        pairs = concurrent_runs(program, concurrent, names)
        report, found = check_program(program, pairs, unknown=UNKNOWN_OPS[unknown_ops])
        if show and found:
            from litmusfuzz.fuzz.programs.tensorflow.hosts import with_showings

            report = with_showings(report, found, live, given)
    except ProgramError as error:
        fail(str(error))
    command = shlex.join(["litmusfuzz", *sys.argv[1:]])
    if sarif_file is not None:
        log = report.sarif(command)
        _write("--sarif", sarif_file, json.dumps(log, indent=1) + "\n")
    if html_file is not None:
        from litmusfuzz.reports.html.check_page import check_page

        _write("--html", html_file, check_page(report, command))
    if folder is not None:
        _write_skeletons(folder, found)
    print_report(report, as_json=as_json)
    if report.interrupted:
        complain(report.interrupted)
    sys.exit(report.exit_code)


def _runs(given: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in given:
        name, equals, fetches = text.partition("=")
        listed = [each.strip() for each in fetches.split(",") if each.strip()]
        if not equals or not name.isidentifier() or not listed:
            fail(f"--run: cannot read {text!r:.80}; write --run NAME=FETCH,FETCH")
        if name in found:
            fail(f"--run: {name} stands twice")
        found[name] = listed
    return found


def _values(given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            fail(f"--value: cannot read {text!r:.80}; write --value NAME=VALUES")
        if name in found:
            fail(f"--value: {name} stands twice")
        found[name] = value
    return found


def _read(targets: Sequence[str], inputs: Sequence[str], runs: Mapping[str, Sequence[str]]) -> Any:
    import os

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    paths = [Path(target) for target in targets]
    if any(path.exists() for path in paths):
        if len(targets) > 1:
            fail("several targets have to be functions, MODULE:NAME")
        from litmusfuzz.fuzz.programs.tensorflow.keras_files import is_keras_file

        if paths[0].is_file() and is_keras_file(targets[0]):
            from litmusfuzz.fuzz.programs.tensorflow.modules import read_keras_file

            return read_keras_file(targets[0], inputs, runs)
        if inputs:
            fail("--input: is for functions and Keras models")
        from litmusfuzz.fuzz.programs.tensorflow.modules import Live
        from litmusfuzz.fuzz.programs.tensorflow.reading import read_file

        return Live(read_file(targets[0], runs), {}, file=targets[0])
    from litmusfuzz.fuzz.programs.tensorflow.modules import MODULE, read_modules

    for target in targets:
        if not MODULE.fullmatch(target):
            fail(f"{target}: no such file, and it is not MODULE:NAME")
    return read_modules(targets, inputs, runs)


def _write(option: str, file: str, text: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"{option}: {file}: {error.strerror}")


def _write_skeletons(folder: str, found: Sequence[CheckedAnomaly]) -> None:
    """Write a file for each anomaly that a litmus test can have."""
    from litmusfuzz.corpus.textfile import Entry, save

    for number, each in enumerate(found, 1):
        if each.skeleton is not None:
            test = replace(each.skeleton.test, name=f"anomaly-{number}")
            save(Entry(test), Path(folder) / f"{test.name}.yaml")
