"""`litmusfuzz doctor`: what works here."""

from __future__ import annotations

import sys

import click

from litmusfuzz.fuzz.cli.common import CLEAN, USAGE, json_option, parts_told, print_json


@click.command()
@json_option
def doctor(as_json: bool) -> None:
    """Tell what works here, what is missing, and how to get it.

    Versions, machine, engines, executors and their configurations, XLA's flags, tools.
    What may crash is tried in a process of its own. Exits 0 if the basics work, else 2.
    """
    from litmusfuzz.fuzz.campaign.doctor import examine
    from litmusfuzz.reports.doctor import doctor_json, doctor_text, works

    with parts_told() as progress:
        checks = examine(progress)
    if as_json:
        print_json(doctor_json(checks))
    else:
        click.echo(doctor_text(checks))
    sys.exit(CLEAN if works(checks) else USAGE)
