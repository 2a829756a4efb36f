"""Passes of the test-case reducer: each yields smaller variants of a litmus test.

A pass yields rewriters, some of which build no valid test. The reducer skips those, so that a pass
need not know every rule of the format. Every pass covers all graphs, and all bodies of loops,
branches and calls. `PASSES` has them from coarse to fine.

References
----------
Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input",
TSE 2002, section 3 (ddmin): halves are removed before single elements.
MacIver and Donaldson, "Test-Case Reduction via Test-Case Generation", ECOOP
2020, section 3: passes in an order from coarse to fine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.finding.graph_passes import (
    drop_carried,
    drop_effects,
    drop_interfaces,
    drop_members,
    drop_runs,
    fewer_iterations,
    inline,
    join_runs,
)
from litmusfuzz.fuzz.finding.resource_passes import (
    drop_devices,
    fewer_lanes,
    fewer_rows,
    give_values,
    merge_resources,
    narrower,
    simpler_dtype,
    smaller_queues,
    smaller_values,
)
from litmusfuzz.fuzz.finding.value_passes import (
    ask_less,
    bypass_pure,
    cut_data,
    differentiate_less,
    drop_edges,
    drop_handles,
    drop_pure,
    observe_less,
    plainer_ops,
)

if TYPE_CHECKING:
    from litmusfuzz.fuzz.finding.reduction_parts import Pass

PASSES: Final[tuple[Pass, ...]] = (
    narrower,  # first: an execution of a large test takes long
    drop_runs,
    drop_interfaces,  # early: what they bring in stays otherwise
    drop_effects,
    give_values,  # early: one that fails takes long too, and no cluster of it is validated
    inline,
    fewer_lanes,  # early: at `LANES` lanes a finding is frequent, and later passes are fast
    fewer_iterations,
    join_runs,
    drop_carried,
    drop_members,
    drop_handles,
    drop_pure,
    bypass_pure,
    cut_data,
    drop_edges,
    ask_less,
    drop_devices,
    merge_resources,
    smaller_queues,
    fewer_rows,
    plainer_ops,
    smaller_values,
    simpler_dtype,
    observe_less,
    differentiate_less,
)
"""All passes, from coarse to fine."""
