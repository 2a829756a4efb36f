"""The seconds and shares of time by which a campaign divides its work, each with its reason."""

from __future__ import annotations

from typing import Final

POLL_S: Final = 0.25
"""Seconds after which a waiting task looks again: what it waits for may be a matter of time."""

# --- shares of the workers' time ---------------------------------------------------------

ROUNDS_SHARE: Final = 0.2
"""Share of the time for further executions of tests that have earned them.

In three campaigns of an hour with a quarter of the time for these, 20 of 21 new causes showed in
first executions. A second of further ones showed something forbidden four times as often, nearly
always a known cause.
"""
MINIMIZING_SHARE: Final = 0.2
"""Share of the time in which findings are minimized while new graphs run."""
KNOWN_SHARE: Final = 0.05
"""Share of the time for what is known: checks, reductions that end with a known cause, and whether
each cause still shows."""
BEGUN_SHARE: Final = 0.5 * KNOWN_SHARE
"""Share within which a check, or a full reduction of a look-alike, may begin. The rest is left for
findings that looked new until they were reduced, and then turned out to be known: reducing one that
is compiled takes 40 to 160 s, and `KNOWN_SHARE` of a worker's hour is 180 s."""
TRYING_AGAIN_SHARE: Final = 0.1
"""Share of the time for what a fresh process has not shown, while nothing waits to be minimized."""
COST_OF_NEW: Final = 0.25
COST_OF_ANOTHER: Final = 0.5
"""Part of a reduction's expected seconds that must be left of its share before it begins. One that
looks new may exceed the share more."""

TRIAL_SHARE: Final = 0.25
"""Part of a reduction's time that one trial of a minimized finding may take."""

# --- time of a configuration -------------------------------------------------------------

MAX_SLICE: Final = 25.0
"""Seconds, or tests, for which one environment is kept at most."""
MIN_SLICE: Final = 3.0
"""The same at least, for each of its configurations: to start it costs half a second."""
SLICES_OF_EACH: Final = 2
"""How often each configuration has a slice in a campaign, if these are long enough."""
GENERATED_SLICE: Final = 5.0
"""Seconds, or tests, for which a generated configuration is kept."""
GENERATED_SHARE: Final = 1 / 4
"""Share of the time that generated configurations get, if others are listed. Some fifty of them
cover all pairs of values on TensorFlow, so that an hour has several rounds."""
MIN_COST_S: Final = 0.05
"""Cost of a test at least, generating it included: a configuration that refuses every test gets no
more tests than the others."""
MAX_COST_S: Final = 4.0
"""Cost of a test that is reckoned with at most: a configuration whose tests hang gets no more time
for that. The slowest presets of TensorFlow take 1 s on busy cores."""

# --- seconds of one piece of work --------------------------------------------------------

MAX_REDUCTION_S: Final = 20.0
"""Seconds in which a finding is made smaller, in a short campaign (`Settings.max_reduction_s`)."""
RUN_S: Final = 0.05
"""Seconds of one run of a smaller test, roughly."""
CONFIRM_S: Final = 6.0
"""Seconds in which a fresh process must show a minimized finding again. While the machine's other
core is busy, racing ops seldom meet for seconds."""
STEP_S: Final = 20.0
"""Seconds of a step of slow executions: between two steps the campaign can stop."""
SETTING_S: Final = 1.0
"""Seconds to see whether a finding needs a setting, roughly."""
CRASH_S: Final = 10.0
"""Rough estimate of the seconds that the reduction of a crash takes."""
CRASH_SHARE: Final = 3
"""Times `max_reduction_s`, at most, that the reduction of a crash takes, all steps together."""
EXPERIMENT_S: Final = 6.0
"""Seconds that an experiment on what is known takes at most, with the start of a process."""
ASKED_AT_END_S: Final = 5.0
"""Seconds for which a campaign of so many tests asks at its end whether known causes still show.
There are 50 of TensorFlow, for which it asks for twenty seconds."""
ENVIRONMENT_SWITCH_S: Final = 0.5
"""Seconds to begin in another environment, and later again in this one."""
CHECK_S: Final = 5.0
"""Seconds for the experiments on what is not minimized: there are many of these."""
GIVEN_CLUSTERS_S: Final = 2.0
"""Seconds to reduce one unsound clustering when its test is generated. The campaign waits
meanwhile."""
CLUSTERS_S: Final = 10.0
"""Seconds to reduce one unsound clustering. A framework needs some tens of milliseconds to say
which clusters a smaller test has."""
SHOWN_CLUSTERS_S: Final = 20.0
"""Seconds to look for an execution that shows an unsound clustering."""
RECORD_S: Final = 2.0
"""Seconds of the processor's time to look for an execution that shows a finding, to record it."""
ROUND_COST: Final = 4.0
"""Seconds of a first round, relative to the shallow executions, before any was timed."""
MIN_ROUND_S: Final = 0.001
"""Seconds of a round that are reckoned with at least."""

# --- how long one waits ------------------------------------------------------------------

PATIENCE_S: Final = 5.0
"""Seconds that the others wait for an executor that takes nothing from a full queue because it
minimizes or hangs. A campaign limited by a number of tests waits without limit."""
JOB_TIMEOUT_S: Final = 60.0
"""Limit of a job. One that is late hangs, or is slow (`fuzz.campaign.slot_process`, "Hangs")."""
HANG_TIMEOUT_S: Final = 300.0
"""Limit of each further try, in a fresh process. Even a test with a million lanes is executed
hundreds of times in a minute."""

# --- numbers -----------------------------------------------------------------------------

LEAST_ATTEMPTS: Final = 2
"""Fresh processes that have tried a candidate before a campaign of so many tests ends."""
CLUSTERINGS: Final = 8
"""Graphs of a minimized test that are built to see which clusters it has: TensorFlow clusters ops
by their order in the graph, in which they are shuffled."""
MAX_BEHIND: Final = 3
"""Defects of one test that are uncovered one behind another."""
