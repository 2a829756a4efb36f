"""The seconds and shares by which a campaign divides its work, each with its reason."""

from __future__ import annotations

from typing import Final

POLL_S: Final = 0.25
"""Seconds after which whoever waits looks again: what is waited for may be a matter of time."""

# --- shares of the workers' time, each at most --------------------------------------------

ROUNDS_SHARE: Final = 0.2
"""Share of the time for further executions of tests that have earned them.

In three campaigns of an hour with a quarter of the time for these, 20 of 21 new causes showed in
first executions. A second of further ones showed something forbidden four times as often, nearly
always a known cause.
"""
MINIMIZING_SHARE: Final = 0.2
"""Share of the time in which findings are minimized while new graphs run."""
KNOWN_SHARE: Final = 0.025
"""Share of the time in which work on what is known may begin: checks, full reductions of
look-alikes, and whether each cause still shows. Findings that looked new until they were reduced
take as much again: reducing one that is compiled takes 40 to 160 s, of 180 s in a worker's hour."""
TRYING_AGAIN_SHARE: Final = 0.1
"""Share of the time for what a fresh process has not shown, while nothing waits to be minimized."""

# --- parts of a reduction ----------------------------------------------------------------

TRIAL_SHARE: Final = 0.25
"""Part of a reduction's time that one trial may take. So much of the seconds that a reduction is
expected to take must be left of its share before it begins: it may end with its first trial."""
CONFIGURATION_SHARE: Final = 0.5
"""Part of a reduction's time for the configuration of the whole test, and for its names."""

# --- time of a configuration -------------------------------------------------------------

MAX_SLICE: Final = 25.0
"""Seconds, or tests, for which one environment is kept at most."""
MIN_SLICE: Final = 5.0
"""The same at least, for each of its configurations, and for a generated one: to start it costs
half a second."""
GENERATED_SHARE: Final = 1 / 4
"""Share of the time that generated configurations get, if others are listed. Some fifty of them
cover all pairs of values on TensorFlow, so that an hour has several rounds."""
MAX_COST_S: Final = 4.0
"""Cost of a test that is reckoned with at most: a configuration whose tests hang gets no more time
for that. The slowest presets of TensorFlow take 1 s on busy cores."""

# --- seconds of one piece of work --------------------------------------------------------

RUN_S: Final = 0.05
"""Seconds of one run of a small test, generating it included, roughly; at least so much is reckoned
with, so that a configuration that refuses every test gets no more tests than the others."""
ENVIRONMENT_SWITCH_S: Final = 0.5
"""Seconds to begin in another environment, and later again in this one."""
ATTEMPT_S: Final = 6.0
"""Seconds in which a process is to show something again: a minimized finding, a known cause, what a
test shows beside it, an execution to record. While the machine's other core is busy, racing ops
seldom meet for seconds."""
MAX_REDUCTION_S: Final = 20.0
"""Seconds of one piece of work in a short campaign, at most: to make a finding smaller
(`Settings.max_reduction_s`) or an unsound clustering, to show that, to run a script, or to take one
step of slow executions, between two of which the campaign can stop."""

# --- how long one waits ------------------------------------------------------------------

PATIENCE_S: Final = 5.0
"""Seconds that the others wait for an executor that takes nothing from a full queue because it
minimizes or hangs, or while a clustering is reduced where tests are generated. A campaign limited
by a number of tests waits without limit."""
JOB_TIMEOUT_S: Final = 60.0
"""Limit of a job. One that is late hangs, or is slow (`fuzz.campaign.slot_process`, "Hangs"). An
interpreter of scripts starts within it, and may idle as long."""
HANG_TIMEOUT_S: Final = 300.0
"""Limit of each further try, in a fresh process. Even a test with a million lanes is executed
hundreds of times in a minute."""

# --- families of tests -------------------------------------------------------------------

WEIGHT_SHARE: Final = 0.5
"""Share of the tests that is distributed by weight alone, and so the least part of its share by
weight that a family gets."""
PRIOR_S: Final = 10.0
"""Seconds in which one find is expected of a family that has not run."""
HALF_LIFE_S: Final = 120.0
"""Seconds of a family's own tests after which its earlier finds and seconds count half."""

# --- variation of tests ------------------------------------------------------------------

NAMES_SHARE: Final = 1 / 2
"""Share of runs under permuted names."""
ORDER_SHARE: Final = 1 / 4
"""Share of runs in another order; lower, as the noise shuffles the nodes of a graph anyway."""
LANES_SHARE: Final = 1 / 256
"""Share of runs with many lanes, if the test can have them.

A large test takes 0.28 s of processor time in plain TensorFlow (28 tests of five families). A run
of 16 executions takes 0.018 s, one of 3,072 takes 0.2 to 0.3 s. So large tests take 4 % of the time
where all other runs are short.
"""
