"""`litmusfuzz device`: a test whose chains of ops are work-items of an OpenCL device."""

from __future__ import annotations

import sys

import click

from litmusfuzz.fuzz.cli.common import (
    CLEAN,
    FORBIDDEN,
    UNKNOWN,
    explorer_for,
    fail,
    json_option,
    load_or_fail,
    model_of,
    print_json,
    print_text,
    test_argument,
)

_ORDERS = ("seq_cst", "fences", "acq_rel", "relaxed")


@click.command(epilog="Example: litmusfuzz device SB --order relaxed")
@test_argument
@click.option(
    "--order",
    type=click.Choice(_ORDERS),
    default="seq_cst",
    help="Memory order of reads and writes; with fences they are relaxed.",
)
@click.option(
    "--kernels",
    type=click.IntRange(1, 2),
    default=1,
    help="Kernels, each in a queue of its own, that share the chains.",
)
@click.option(
    "--executions",
    type=click.IntRange(1, 1 << 32),
    default=100_000,
    help="Executions, at least.",
)
@click.option("--number", type=click.IntRange(0, 999), default=0, help="The N of opencl:N.")
@click.option(
    "--seed", type=click.IntRange(0, (1 << 31) - 1), default=0, help="Seed of the launches."
)
@json_option
def device(
    file: str, order: str, kernels: int, executions: int, number: int, seed: int, as_json: bool
) -> None:
    """Race the chains of TEST inside an OpenCL device, as work-items.

    Prints how often each outcome shows, and whether it is sequentially consistent: whether the
    model `executor` allows it. Where OpenCL guarantees that of all outcomes, another one is
    forbidden, and the command exits with 1. Elsewhere outcomes are counted, not judged.
    """
    from litmusfuzz.corpus.outcome import Verdict
    from litmusfuzz.fuzz.executors.native.driver_process import devices_apart, race_apart
    from litmusfuzz.fuzz.executors.native.work_items import work_items
    from litmusfuzz.fuzz.executors.protocol import Refused, Unavailable
    from litmusfuzz.reports.device import DeviceReport, DeviceRow

    test = load_or_fail(file).test
    try:
        made = work_items(test, order, kernels)
    except Refused as refusal:
        fail(f"{file}: work-items do not take {refusal}")
    judge = explorer_for(file, test, model_of("executor"), None)
    try:
        names = devices_apart()
        if number >= len(names):
            raise Unavailable(f"number {number} of {len(names)}")
        seen = made.histogram(race_apart(made.request(executions, seed, number)))
    except Unavailable as error:
        fail(f"device opencl:{number} ({error})")
    rows = tuple(
        DeviceRow(outcome, count, judge.judge(outcome).value)
        for outcome, count in sorted(seen.items(), key=lambda item: (-item[1], str(item[0])))
    )
    report = DeviceReport(test, names[number], order, kernels, made.guaranteed, rows)
    if as_json:
        print_json(report.as_json())
    else:
        print_text(report.text())
    verdicts = {row.verdict for row in rows} if made.guaranteed else set()
    if Verdict.FORBIDDEN.value in verdicts:
        sys.exit(FORBIDDEN)
    sys.exit(UNKNOWN if Verdict.UNKNOWN.value in verdicts else CLEAN)
