"""The neuron trains to the same weights on one device, on two, and in two processes.

References
----------
DEVICES, "Automatic differentiation" and "Heterogenous execution".
"""

from __future__ import annotations

import pytest
from native.helpers_native import CONFIGS
from native.neuron import STEPS, WORKERS, neuron, training

from litmusfuzz.corpus.outcome import Status
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.passes.placement import place
from litmusfuzz.oracles import explorer
from litmusfuzz.oracles.model import MODELS, RFC


def test_the_samples_train_both_weights_and_reach_both_sides_of_relu() -> None:
    samples, weights = training()
    assert len(samples) == STEPS
    slopes = {sample.y in (-1, 1) for sample in samples}  # z = 0 where relu is flat
    assert slopes == {True, False}
    assert weights not in [(3, 1), (0, 0)]


def test_one_outcome_is_allowed_on_one_device_and_on_two() -> None:
    _, (w, b) = training()
    for workers in (None, WORKERS):
        for model in MODELS.values():
            allowed = explorer.allowed_outcomes(neuron(workers), model)
            assert allowed.complete
            (outcome,) = allowed.witnesses
            assert (outcome.plain["w"], outcome.plain["b"]) == (w, b)


def test_transfers_are_those_in_the_figure_of_devices() -> None:
    """wx to the second worker, de/db to the first; nothing else in any step."""
    graph = place(neuron(WORKERS)).graph
    sent = {n.inputs[0]: n.device for n in graph.nodes if n.op == "Send"}
    assert sent == {f"wx{k}": "cpu:0" for k in range(STEPS)} | {
        f"dedb{k}": "cpu:1" for k in range(STEPS)
    }


@pytest.mark.parametrize("delay_us", [0, 300])
@pytest.mark.parametrize(
    ("config", "workers"),
    [
        ("plain", None),
        ("split", None),
        ("controlled", None),
        ("plain", WORKERS),
        ("two_devices", WORKERS),
        ("two_devices", None),
        ("two_processes", WORKERS),
        ("two_processes", None),
    ],
)
def test_twenty_steps_give_the_same_weights(native, config, workers, delay_us: int) -> None:
    test = neuron(workers)
    (expected,) = explorer.allowed_outcomes(neuron(None), RFC).witnesses
    prepared = native.prepare(test, CONFIGS[config])
    seen = prepared.run(64, Noise(copies=8, transfer_delay_us_max=delay_us), seed=1)
    prepared.close()
    assert seen == {expected: 64}
    assert expected.status is Status.COMPLETED
    _, weights = training()
    assert (expected.plain["w"], expected.plain["b"]) == weights
