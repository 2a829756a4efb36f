"""Options of campaigns: one type for the command line, the first event and every shard."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from litmusfuzz.fuzz.campaign.settings import Settings
from litmusfuzz.fuzz.cli.main import main
from litmusfuzz.fuzz.cli.nightly import nightly
from litmusfuzz.fuzz.cli.options import NIGHTLY, RUN
from litmusfuzz.fuzz.cli.run import run
from litmusfuzz.reports.events import CampaignStarted, Options, decode, encode

if TYPE_CHECKING:
    import click

STORED: dict[str, Any] = {
    "event": "CampaignStarted",
    "at": 1800000000.5,
    "command": "litmusfuzz nightly",
    "seed": 7,
    "asked_s": 7200.0,
    "tests": 60,
    "workers": 2,
    "configurations": [
        {
            "executor": "native",
            "name": "plain",
            "guarantees": "rfc",
            "model": "rfc",
            "executor_class": "native/rfc",
        }
    ],
    "families": {"dag": 3.0, "loops": 0.5},
    "seeds": {"one": "litmusfuzz: 2"},
    "count": 64,
    "noise": "copies=1",
    "as_generated": True,
    "judge_by": "rfc",
    "deadly_ops": ["QueueSizeV2"],
    "known": "/known.yaml",
    "shipped_known": True,
    "python": "/python",
    "spawn": True,
    "min_graphs": 2,
    "number": 3,
    "unattended": True,
    "shard_s": 30.0,
    "selftest_s": 600.0,
    "disk_bytes": 2000000000,
}
"""As campaigns have stored it since the first version of the event stream that is read."""


def test_a_campaign_that_was_stored_before_is_read() -> None:
    started = decode(json.dumps(STORED))
    assert isinstance(started, CampaignStarted)
    assert started.families == {"dag": 3.0, "loops": 0.5}
    assert json.loads(encode(started)) == STORED


def test_a_shard_s_settings_repeat_no_option() -> None:
    assert not {each.name for each in fields(Settings)} & {*Options.__struct_fields__}


@pytest.mark.parametrize("command", [run, nightly])
def test_each_option_that_fills_a_field_is_in_the_table(command: click.Command) -> None:
    """So the two tables show all that differs."""
    elsewhere = {"noise", "python", "judge_by"}
    filled = {each.name for each in command.params} & {*Options.__struct_fields__}
    table = RUN if command is run else NIGHTLY
    assert filled - elsewhere == table.keys() - {"executors"}


@pytest.mark.parametrize(
    ("command", "option", "value", "least", "most"),
    [
        ("run", "--seed", -1, 0, (1 << 63) - 1),
        ("nightly", "--count", 0, 1, 10**15),
        ("nightly", "--workers", 4097, 1, 4096),
        ("run", "--workers", 65, 1, 64),
    ],
)
def test_the_command_line_has_the_limits_of_the_type(
    command: str, option: str, value: int, least: int, most: int
) -> None:
    result = CliRunner().invoke(main, (command, option, str(value)))
    assert result.exit_code == 2
    assert f"{value} is not in the range {least}<=x<={most}" in result.output
