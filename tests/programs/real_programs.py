"""Writes docs/real-programs.md: what `litmusfuzz check` says of each program in `real/`.

``python -m tests.programs.real_programs`` checks all of them with `--show` and writes the page;
``--reports FOLDER`` keeps the reports there, and takes those that are there already.
``python -m tests.programs.real_programs NAME...`` prints what it says of some, without `--show`,
as JSON. ``python -m tests.programs.real_programs --skeletons FOLDER`` writes the skeletons of all
anomalies, which seed campaigns. Each program is checked in a process of its own, which has imported
TensorFlow before.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import textwrap
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER: Final = Path(__file__).parent / "real"
PAGE: Final = Path(__file__).parents[2] / "docs" / "real-programs.md"
GROUPS: Final = {
    "function": "Programs with `tf.function`",
    "keras": "Keras models",
    "session": "Graphs of TensorFlow 1",
}
USELESS: Final = {
    (
        "session_decay",
        "stale read: train beside rate",
    ): "the rate is constant for 100,000 steps, and then it is off by one step",
    (
        "session_sync_replicas",
        "stale read: train beside itself",
    ): "the variable is the worker's own; here two workers of one process share it",
}
"""By program and anomaly: reports that are true and of no use, and why."""
FALSE: Final[dict[tuple[str, str], str]] = {}
"""By program and anomaly: reports of what TensorFlow does not do, and why it does not."""
TRUE: Final = {
    ("function_basic_loop", "torn snapshot: train beside report"): (
        "`report` returns the weight from before a step and the bias from after it"
    ),
    ("function_counter", "stale read: count beside itself"): (
        "`assign_add` adds in one op and reads in another: both calls can return 2"
    ),
    ("function_critical_section", "stale read: swap beside itself"): (
        "the section waits for `old`, which it returns, and not for the two writes"
    ),
    ("function_critical_section", "torn snapshot: swap beside both"): (
        "the same: `both` can read between the two writes"
    ),
    ("function_dcgan", "torn snapshot: train_step beside generate"): (
        "the image is made with weights, or statistics, of two steps"
    ),
    ("function_ddpg", "torn snapshot: update beside follow"): (
        "the target networks are used while they follow"
    ),
    ("function_ddpg", "stale read: update beside follow"): (
        "some targets follow weights from before the step, others those from after it"
    ),
    ("function_dqn", "torn snapshot: train_step beside update_target"): (
        "the target network is used while it is replaced"
    ),
    ("function_dqn", "stale read: train_step beside update_target"): (
        "a layer of the target network is copied before the step, another after it"
    ),
    ("function_dqn", "torn snapshot: train_step beside act"): (
        "the action is chosen with weights of two steps"
    ),
    ("function_ema", "torn snapshot: train_step beside evaluate"): (
        "averages of two steps are used together"
    ),
    ("function_generator", "order only: sample beside itself"): (
        "which call gets which numbers: no seed makes them the same in the next run"
    ),
    ("function_generator", "order only: sample beside reset"): (
        "the numbers are those from before the reset, or from after it"
    ),
    ("function_memo", "torn snapshot: update beside finalize"): (
        "the mean is that of one sample fewer than the sum of squares"
    ),
    ("function_module", "stale read: call beside mutate"): (
        "`call` uses the value from before `mutate` or from after it; a note says that this is all"
    ),
    ("function_quickstart", "torn snapshot: train_step beside test_step"): (
        "the test loss is that of weights of two steps"
    ),
    ("function_quickstart", "lost update: train_step beside epoch_end"): (
        "a step that began before the reset writes the old sum back"
    ),
    ("function_quickstart", "lost update: test_step beside epoch_end"): (
        "a step that began before the reset writes the old sum back"
    ),
    ("function_text_generation", "torn snapshot: train_step beside generate_one_step"): (
        "the text is made with weights of two steps"
    ),
    ("function_training_loop", "torn snapshot: train_step beside test_step"): (
        "the accuracy is that of weights of two steps"
    ),
    ("function_vocabulary", "lost update: count beside itself"): (
        "two calls with the same word can count it once"
    ),
    ("session_async_workers", "stale read: train beside itself"): (
        "gradients of weights that the other worker has changed since: meant so, and said so"
    ),
    ("session_batch_norm", "torn snapshot: train beside predict"): (
        "the prediction uses weights and statistics of two steps"
    ),
    ("session_ema_reference", "torn snapshot: train beside average"): (
        "averages of two steps are added"
    ),
    ("session_hogwild", "stale read: train"): (
        "the second tower's gradient is that of weights before or after the first one's step"
    ),
    ("session_metrics", "torn snapshot: evaluate"): (
        "`value`, fetched with `update`, is a total and a count of two batches"
    ),
    ("session_mnist", "torn snapshot: train beside test"): (
        "the accuracy is that of weights of two steps"
    ),
    ("session_moving_target", "stale read: train"): (
        "nothing orders the copy with the step, nor with the use of the target, in one run"
    ),
    ("session_new_rate", "stale read: train beside assign"): (
        "a step uses the old rate or the new one; a note says that this is all"
    ),
    ("session_partitioned", "torn snapshot: train beside predict"): (
        "parts of the table are from before the step, others from after it"
    ),
    ("session_restore", "stale read: init"): (
        "`v` is made of `w` before `w` is set: the initializer then fails"
    ),
    ("session_saver", "torn snapshot: train beside save"): (
        "the checkpoint has variables from before a step and from after it"
    ),
    ("session_summaries", "torn snapshot: train"): (
        "the summaries are of weights from before the step and biases from after it"
    ),
    ("session_sync_replicas", "stale read: train beside chief"): (
        "with gradients of other workers the chief can update before this one reads: its gradient "
        "is then dropped as stale, or not"
    ),
}
"""By program and anomaly: what goes wrong."""
KERAS: Final = {
    "lost update: train beside itself": (
        "Keras reads, adds and assigns: of two steps one is not counted, in metrics, in moving "
        "statistics and averages, in the optimizer's iterations, or one seed is used twice"
    ),
    "lost update: train beside eval": (
        "both add to the loss and the metrics by read, add and assign: one batch is not counted"
    ),
    "lost update: train beside reset_metrics": (
        "a step that began before the reset writes the old sums back"
    ),
    "lost update: eval beside itself": "of two batches one is not counted in the metrics",
    "lost update: eval beside reset_metrics": (
        "a batch that began before the reset writes the old sums back"
    ),
    "stale read: train beside itself": (
        "a step updates a slot and reads it again: the other step's update may come between"
    ),
    "torn snapshot: train beside itself": (
        "a step uses weights, slots or the number of iterations of which the other step has "
        "changed some"
    ),
    "torn snapshot: train beside eval": "the loss is that of weights of two steps",
    "torn snapshot: train beside predict": "the prediction is made with weights of two steps",
    "torn snapshot: train beside save": "the file has variables of two steps",
}
"""By anomaly of a Keras model: what goes wrong, mostly."""
SPARSE: Final = "a sparse update reads rows and writes them: what comes between is lost"
STATE: Final = "both carry the state of the recurrent layer on: one of them is lost"
WEIGHT: Final = (
    "the optimizer, a constraint or a layer reads a weight and assigns it: a step is lost"
)
METRIC: Final = "the result that `eval` returns is of a total and a count of two states"
HALF: Final = "each prediction of the untrained network is 1/2, and each loss the same"
FOURTH: Final = "gradients are applied in every fourth step, and the first one is tried"
WHY: Final = {
    ("function_dqn", "torn snapshot: train_step beside act"): (
        "only the index of the largest value is fetched, and it stays the same"
    ),
    ("function_memo", "torn snapshot: update beside finalize"): (
        "the first sample leaves the sum of squares at 0 in both orders"
    ),
    ("function_training_loop", "torn snapshot: train_step beside test_step"): (
        "only the accuracy is kept, and so small a step does not change it"
    ),
    ("function_vocabulary", "lost update: count beside itself"): (
        "the counts in the table differ; only its size is fetched"
    ),
    ("session_decay", "stale read: train beside rate"): (
        "the rate changes after 100,000 steps only"
    ),
    ("session_metrics", "torn snapshot: evaluate"): (
        "`value` is 0 in the first run, in both orders, as the count that is read is 0"
    ),
    ("session_partitioned", "torn snapshot: train beside predict"): (
        "the words that were tried, 0 and 1, are in one part of the table"
    ),
    ("session_restore", "stale read: init"): (
        "in the order in which `w` is used before it is set, TensorFlow fails: it has no value"
    ),
    ("session_saver", "torn snapshot: train beside save"): (
        "what differs is in the checkpoint, and nothing else is fetched"
    ),
    ("session_sync_replicas", "stale read: train beside itself"): (
        "a step waits for a token, which the chief's run gives"
    ),
    ("session_sync_replicas", "stale read: train beside chief"): (
        "the chief's run waits for two gradients, and a step for its token"
    ),
    ("keras_fine_tuning", "torn snapshot: train beside predict"): (
        "each prediction of the untrained network is 1/2, whatever these weights are"
    ),
    ("keras_gradient_accumulation", "torn snapshot: train beside itself"): FOURTH,
    ("keras_gradient_accumulation", "torn snapshot: train beside eval"): FOURTH,
    ("keras_gradient_accumulation", "torn snapshot: train beside predict"): FOURTH,
    ("keras_gradient_accumulation", "torn snapshot: train beside save"): FOURTH,
    ("keras_schedule", "torn snapshot: train beside predict"): (
        "the first step has a rate of 0 (`warmup_target`)"
    ),
    ("keras_spectral_norm", "lost update: train beside itself"): (
        "the read of the example runs only where all of the kernel is 0"
    ),
    ("keras_train_step", "torn snapshot: eval beside reset_metrics"): (
        "the metrics are 0 before and after: evaluation does not update them"
    ),
    ("keras_transfer", "lost update: train beside eval"): HALF,
    ("keras_transfer", "lost update: eval beside itself"): HALF,
}
"""By program and anomaly: why an anomaly is not shown, in more words than the report has."""
ROLES: Final = {
    "metric": r"(total|count|(true|false)_(positives|negatives))(#\d+)?$",
    "seed": r"seed_generator",
    "iteration": r"/iteration$",
    "statistics": r"moving_(mean|variance)",
    "state": r"/rnn_state$",
    "slot": r"^(adam|adamw|adagrad|ftrl|lamb|loss_scale_optimizer|nadam|rmsprop|sgd)/",
    "weight": r"",
}
"""Roles of a Keras model's variables, by their names: the first that fits."""
WIDTH: Final = 108


def programs() -> list[str]:
    """Names of the programs, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.py"))


def header(name: str) -> tuple[str, str, list[str]]:
    """A program's first line, its source, and the arguments of `litmusfuzz check`."""
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    match = re.match(r'"""(.+)\n\nSource: (.+)\nCheck: (.*(?:\n    .*)*)\n"""\n', text)
    assert match is not None, name
    return match[1], match[2], shlex.split(match[3])


def anomaly(each: dict[str, Any]) -> str:
    """An anomaly's kind and runs."""
    runs = list(each["runs"])
    where = f"{runs[0]} beside {'itself' if runs[0] == runs[-1] else runs[-1]}"
    return f"{each['kind']}: {where if len(runs) > 1 else runs[0]}"


def verdict(name: str, each: dict[str, Any]) -> tuple[str, str]:
    """What we say of a report, and why."""
    if each["kind"] == "undecided":
        return "undecided", "what the NumPy function touches is not known"
    key = name, anomaly(each)
    if key in FALSE:
        return "false", FALSE[key]
    if key in USELESS:
        return "of no use", USELESS[key]
    return "true", _keras(each) if name.startswith("keras_") else TRUE[key]


def _keras(each: dict[str, Any]) -> str:
    """What goes wrong in an anomaly of a Keras model."""
    lost = each["kind"] == "lost update"
    if lost and each["accesses"][0]["op"].startswith("ResourceScatter"):
        return SPARSE
    role = _role(each["accesses"][0]["variable"])
    if lost and role in ("state", "weight"):
        return STATE if role == "state" else WEIGHT
    if not lost and {_role(variable) for variable in each["variables"]} == {"metric"}:
        return METRIC
    return KERAS[anomaly(each)]


def pattern(each: dict[str, Any]) -> object:
    """An anomaly without names: who does what with a variable of which role."""
    accesses = tuple(
        (access["run"], access["access"], access["op"], _role(access["variable"]))
        for access in each["accesses"]
    )
    return anomaly(each), accesses, bool(each["conditions"]), bool(each["outcomes"])


def _role(variable: str) -> str:
    return next(role for role, name in ROLES.items() if re.search(name, variable))


def summary(report: dict[str, Any]) -> str:
    """Anomalies of a report, each with the number of its variables."""
    if not report["anomalies"]:
        return "no race"
    kinds: dict[str, list[str]] = {}
    for each in report["anomalies"]:
        kind, _, where = anomaly(each).partition(": ")
        kinds.setdefault(kind, []).append(f"{where} ({len(each['variables'])})")
    return "; ".join(f"{kind}: {', '.join(where)}" for kind, where in kinds.items())


def checked(name: str, *options: str) -> dict[str, Any]:
    """The report of a program, from a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            text = pipe.read()
        os.waitpid(child, 0)
        report: dict[str, Any] = json.loads(text or "{}")
        if "anomalies" not in report:
            raise SystemExit(f"{name}: {report.get('problem', 'the process died')}")
        return report
    status = 1
    try:
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(json.dumps(_report(name, options)).encode())
        status = 0
    finally:
        os._exit(status)


def _report(name: str, options: Sequence[str]) -> dict[str, Any]:
    from click.testing import CliRunner

    from litmusfuzz.fuzz.cli.main import main

    arguments = ["check", *header(name)[2], "--json", *options]
    result = CliRunner().invoke(main, arguments)
    if result.exit_code not in (0, 1, 3) or not result.stdout.startswith("{"):
        return {"problem": f"{result.output} {result.exception}"}
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def prepare() -> None:
    """Import TensorFlow, and execute nothing of it: processes are forked afterwards."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import keras
    import tensorflow as tf

    assert keras.backend.backend() == "tensorflow"
    tf.get_logger().setLevel("ERROR")


# --- the page --------------------------------------------------------------------------------


def page(reports: dict[str, dict[str, Any]]) -> str:
    """The page, from the reports with `--show`."""
    found = [(name, each) for name in reports for each in reports[name]["anomalies"]]
    decided = [(name, each) for name, each in found if each["kind"] != "undecided"]
    shown = [each for _, each in decided if not each["showing"]["why_not"]]
    verdicts = Counter(verdict(name, each)[0] for name, each in decided)
    wrong = verdicts["of no use"] + verdicts["false"]
    assert wrong == len(USELESS) + len(FALSE)
    share = 100 * wrong / len(decided)
    few = [name for name, _ in decided if not name.startswith("keras_")]
    patterns = {pattern(each) for name, each in decided if name.startswith("keras_")}
    other = 100 * sum(not name.startswith("keras_") for name, _ in (*USELESS, *FALSE)) / len(few)
    counted = [name for name, each in decided if _counts_iterations(each)]
    without = sum(not report["anomalies"] for report in reports.values())
    kinds = Counter(each["kind"] for _, each in decided)
    counts = ", ".join(f"{kind} {number}" for kind, number in kinds.most_common())
    lines = [
        "# Real programs",
        "",
        *_wrapped(
            f"What [`litmusfuzz check`](check.md) says of {len(reports)} programs that people "
            "wrote: tutorials, guides, examples and papers, shortened to the part that touches "
            "variables, with the sizes of layers reduced. They are in `tests/programs/real`, each "
            "with its source and with the command that is checked. "
            "`python -m tests.programs.real_programs` writes this page."
        ),
        "",
        *_wrapped(
            f"In {without} programs there is no race. In the others there are {len(decided)} "
            f"anomalies ({counts}), and {len(found) - len(decided)} that are undecided. "
            "We read each report beside the program's source; "
            f'["What we read"](#what-we-read) says of each what goes wrong. {len(decided) - wrong} '
            f"are true, {verdicts['of no use']} true and of no use, and {verdicts['false']} false: "
            f"{share:.1f} % are false or of no use, and without the Keras models {other:.1f} % of "
            f"{len(few)}. The {len(decided) - len(few)} anomalies of Keras models are "
            f"{len(patterns)} combinations of a kind, runs, the example's accesses with the roles "
            "of their variables (weight, optimizer's slot, statistics, metric, iteration, seed, "
            "state), and whether there is a condition. "
            f"`--show` shows {len(shown)} of them, both orders on TensorFlow with "
            f"different results; below it says why it does not show the other "
            f"{len(decided) - len(shown)}."
        ),
        "",
        *_wrapped(
            "A training step alone has no race, with few exceptions, which are those of their "
            "sources. Of a Keras model, `check` takes each two entry points as concurrent. That "
            "they race is true, and says what may not be called from two threads. Numbers in "
            "parentheses count variables."
        ),
        "",
        *_wrapped(
            "Keras counts an optimizer's iterations by read, add and assign. That two concurrent "
            f"steps can count as one, `check` says of {len(counted)} models: `iteration` is "
            "among the variables of the lost update."
        ),
    ]
    for group, title in GROUPS.items():
        lines += ["", f"## {title}", "", "| program | source | anomalies | shown |"]
        lines += ["|---|---|---|---|"]
        for name, report in reports.items():
            if name.startswith(f"{group}_"):
                lines.append(_row(name, report))
    lines += ["", "## Not shown", "", "| program | anomaly | why |", "|---|---|---|"]
    for name, each in found:
        if each["showing"]["why_not"]:
            why = WHY.get((name, anomaly(each))) or _reason(each["showing"]["why_not"])
            lines.append(f"| {name} | {anomaly(each)} | {why} |")
    lines += _seeded()
    lines += ["", "## What we read", ""]
    lines += ["| program | anomaly | verdict | what goes wrong |", "|---|---|---|---|"]
    for name, each in found:
        if not name.startswith("keras_"):
            lines.append(f"| {name} | {anomaly(each)} | {' | '.join(verdict(name, each))} |")
    lines += ["", "| Keras models | anomaly | verdict | what goes wrong |", "|---|---|---|---|"]
    keras: dict[tuple[str, str, str], set[str]] = {}
    for name, each in found:
        if name.startswith("keras_"):
            keras.setdefault((anomaly(each), *verdict(name, each)), set()).add(name)
    for key in sorted(keras):
        lines.append(f"| {len(keras[key])} | {' | '.join(key)} |")
    return "\n".join(lines) + "\n"


def _counts_iterations(each: dict[str, Any]) -> bool:
    """True for the lost update of an optimizer's iterations."""
    mine = any(re.search(ROLES["iteration"], variable) for variable in each["variables"])
    return mine and anomaly(each) == "lost update: train beside itself"


def _seeded() -> list[str]:
    """The section on seeded campaigns, as it is: `seed_coverage` measures it by hand."""
    text = PAGE.read_text(encoding="utf-8")
    start = text.index("## A seeded campaign\n")
    return ["", *text[start : text.index("\n## ", start + 1)].strip().splitlines()]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _row(name: str, report: dict[str, Any]) -> str:
    _, source, _ = header(name)
    anomalies = report["anomalies"]
    shown = sum(not each["showing"]["why_not"] for each in anomalies)
    cell = f"{shown} of {len(anomalies)}" if anomalies else ""
    return f"| {name} | {source} | {summary(report)} | {cell} |"


def _reason(text: str) -> str:
    """A reason without the inputs."""
    return re.sub(r" with .*", " with the inputs that were tried", text)


def said() -> dict[str, str]:
    """What the page says of each program."""
    text = PAGE.read_text(encoding="utf-8").partition("## Not shown\n")[0]
    rows = (line.split(" | ") for line in text.splitlines())
    return {
        row[0].removeprefix("| "): row[2]
        for row in rows
        if len(row) == 4 and row[0].removeprefix("| ").partition("_")[0] in GROUPS
    }


def main(names: Sequence[str]) -> None:
    """Write the page or the skeletons, or print what is said of some programs."""
    prepare()
    skeletons = Path(names[1]).absolute() if names[:1] == ["--skeletons"] else None
    kept = Path(names[1]).absolute() if names[:1] == ["--reports"] else None
    reports: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:  # for what the programs write
        os.chdir(shutil.copytree(FOLDER, Path(folder) / "real"))
        if skeletons is not None:
            for name in programs():
                checked(name, "--skeletons", str(skeletons / name))
                sys.stderr.write(f"{name}\n")
            return
        if names and kept is None:
            found = {name: summary(checked(name)) for name in names}
            sys.stdout.write(json.dumps(found) + "\n")
            return
        for name in programs():
            if kept is None or not (kept / f"{name}.json").exists():
                reports[name] = checked(name, "--show")
                if kept is not None:
                    text = json.dumps(reports[name])
                    (kept / f"{name}.json").write_text(text, encoding="utf-8")
            else:
                reports[name] = json.loads((kept / f"{name}.json").read_text(encoding="utf-8"))
            sys.stderr.write(f"{name}: {summary(reports[name])}\n")
    PAGE.write_text(page(reports), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
