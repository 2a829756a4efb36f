"""Devices in a file: who may be where, and that only transfers have to do with two."""

from __future__ import annotations

import pytest
from helpers import allowed_values

from litmusfuzz.corpus.ops import TensorType
from litmusfuzz.corpus.textfile import FileError, dumps, loads
from litmusfuzz.oracles.model import EXECUTOR, RFC

PLACED = """\
litmusfuzz: 2
name: placed
variables:
  X: {dtype: int32, shape: [], init: 0, device: 'cpu:0'}
  Y: {dtype: int32, shape: [], init: 0, device: 'cpu:1'}
mutexes:
  M: {device: 'cpu:1'}
queues:
  Q: {dtype: int32, shape: [], capacity: 1, init: [5], device: 'gpu:0'}
graphs:
  main:
    r0: {op: ReadVariableOp, resources: [X], device: 'cpu:0'}
    send: {op: Send, inputs: [r0], device: 'cpu:0'}
    recv: {op: Recv, inputs: [send], device: 'cpu:1'}
    w0: {op: AssignVariableOp, resources: [Y], inputs: [recv]}
    sec: {op: CriticalSection, resources: [M], device: 'cpu:1', members: [w0]}
    flag: {op: Less, inputs: [r0, r0], device: 'cpu:0'}
    pick:
      op: If
      inputs: [flag]
      device: cpu:0
      captures: {value: r0}
      results: [out]
      then:
        nodes:
          there: {op: Send, inputs: [value], device: 'cpu:0'}
          again: {op: Recv, inputs: [there], device: 'cpu:1'}
        results: [again]
      else:
        results: [value]
observe: [recv]
"""


def test_a_placed_file_is_saved_to_the_same_bytes() -> None:
    assert dumps(loads(PLACED)) == PLACED


def test_a_transfer_has_the_type_of_what_it_carries() -> None:
    types = loads(PLACED).test.types
    assert types["send"] == types["recv"] == types["again"] == TensorType("int32", ())


def test_transfers_are_a_feature_that_an_executor_may_refuse() -> None:
    assert "transfers" in loads(PLACED).test.features


@pytest.mark.parametrize(
    ("old", "new", "fields", "message"),
    [
        ("[X], device: 'cpu:0'}", "[X], device: 'cpu:1'}", "r0.resources.0", "lives on cpu:0"),
        ("device: 'gpu:0'", "device: 'gpu:00'", "queues.Q.device", "got 'gpu:00'"),
        ("M: {device: 'cpu:1'}", "M: {device: cpu}", "mutexes.M.device", "got 'cpu'"),
        ("[r0], device: 'cpu:0'}", "[r0], device: tpu}", "send.device", "got 'tpu'"),
        ("[send], device", "[r0], device", "recv.inputs.0", "'r0' is no Send beside"),
        ("op: Recv, inputs: [send]", "op: Neg, inputs: [send]", "recv.inputs.0", "a Recv takes it"),
        ("{op: Recv, inputs: [there]", "{op: Recv, inputs: [send]", "again.inputs.0", "no node"),
        ("[r0, r0], device", "[r0, send], device", "flag.inputs.1", "a Recv takes it"),
    ],
)
def test_a_file_with_a_wrong_device_or_transfer_is_refused(
    old: str, new: str, fields: str, message: str
) -> None:
    assert PLACED.count(old) == 1
    with pytest.raises(FileError) as caught:
        loads(PLACED.replace(old, new))
    assert ".".join(map(str, caught.value.fields)).endswith(fields)
    assert message in caught.value.message


def test_a_send_has_one_recv() -> None:
    twice = PLACED.replace(
        "    w0:", "    more: {op: Recv, inputs: [send], device: 'cpu:1'}\n    w0:"
    )
    with pytest.raises(FileError, match=r"main\.send: one Recv takes what a Send sends, not 2"):
        loads(twice)


def test_the_variables_of_one_op_are_on_one_device() -> None:
    text = """\
litmusfuzz: 2
name: momentum
variables:
  V: {dtype: float32, shape: [], init: 0, device: 'cpu:0'}
  A: {dtype: float32, shape: [], init: 0, device: 'cpu:1'}
graphs:
  main:
    c: {op: Const, dtype: float32, shape: [], value: 1}
    m: {op: ResourceApplyMomentum, resources: [V, A], inputs: [c, c, c]}
"""
    with pytest.raises(FileError, match=r"resources\.1: 'A' lives on cpu:1, and is worked on"):
        loads(text)


WINDOW = """\
litmusfuzz: 2
name: window
variables:
  X: {dtype: int32, shape: [], init: 0, device: 'cpu:0'}
  Y: {dtype: int32, shape: [], init: 0, device: 'DEVICE'}
graphs:
  main:
    zero: {op: Const, dtype: int32, shape: [], value: 0}
    one: {op: Const, dtype: int32, shape: [], value: 1}
    two: {op: Const, dtype: int32, shape: [], value: 2}
    loop:
      op: While
      inputs: [zero]
      carried: [i]
      captures: {step: one, limit: two}
      parallel_iterations: 1
      condition:
        nodes:
          more: {op: Less, inputs: [i, limit]}
        results: [more]
      body:
        nodes:
          next: {op: AddV2, inputs: [i, step]}
          write: {op: AssignVariableOp, resources: [X], inputs: [next]}
          other: {op: AssignVariableOp, resources: [Y], inputs: [next]}
        results: [next]
"""


def test_a_window_orders_iterations_on_one_device_alone() -> None:
    """semantics.md, 3: "Across devices that does not hold"."""
    one, two = (loads(WINDOW.replace("DEVICE", device)).test for device in ("cpu:0", "cpu:1"))
    assert allowed_values(one, EXECUTOR) == {(2, 2)}
    unordered = {(1, 1), (1, 2), (2, 1), (2, 2)}
    assert allowed_values(two, EXECUTOR) == unordered
    assert allowed_values(one, RFC) == allowed_values(two, RFC) == unordered
