"""Training of the single neuron of DEVICES, on one device or on two workers.

A fractional learning rate would leave the integers (semantics.md, 1), and a rate of 1
overshoots. So each step has its own sample, with an error of 1 or -1: the weights stay
small, and each step's weights depend on all earlier steps.
"""

from __future__ import annotations

from dataclasses import dataclass

from litmusfuzz.corpus.model import Graph, LitmusTest, Node, Variable
from litmusfuzz.corpus.ops import ConstAttrs

STEPS = 20
W, B = 3, 1
"""Initial weights."""
WORKERS = ("cpu:0", "cpu:1")


@dataclass(frozen=True, slots=True)
class Sample:
    """A training sample: an input and its ground truth."""

    x: int
    y: int


def training() -> tuple[list[Sample], tuple[int, int]]:
    """Return the samples, and the resulting weights, computed without a graph."""
    w, b = W, B
    samples = []
    for step in range(STEPS):
        x = (1, 2, -1, 3)[step % 4]
        error = (1, -1, -1, 1, -1)[step % 5]
        line = w * x + b
        samples.append(Sample(x, max(line, 0) - error))
        gradient = 2 * error * (1 if line > 0 else 0)
        w, b = w - gradient * x, b - gradient
    return samples, (w, b)


def neuron(workers: tuple[str, str] | None) -> LitmusTest:
    """Return all steps as one graph, without devices, or on two workers as in DEVICES."""
    first, second = workers or ("", "")
    nodes: list[Node] = []

    def const(name: str, value: int, device: str) -> str:
        attrs = ConstAttrs("float32", (), value)
        nodes.append(Node(name, "Const", attrs=attrs, device=device))
        return name

    def op(name: str, kind: str, inputs: tuple[str, ...], device: str) -> str:
        nodes.append(Node(name, kind, inputs, device=device))
        return name

    def touch(name: str, kind: str, variable: str, inputs: tuple[str, ...], after: str) -> str:
        nodes.append(Node(name, kind, inputs, (variable,), (after,) if after else ()))
        return name

    samples, _ = training()
    # The learning rate is 1, and AssignAdd adds: gradients are taken negative.
    rate = [const(f"rate{n}", -1, device) for n, device in enumerate((first, second))]
    one, two = const("one", 1, second), const("two", 2, second)
    wa = ba = ""
    for k, sample in enumerate(samples):
        x, y = const(f"x{k}", sample.x, first), const(f"y{k}", sample.y, second)
        # The dashed edges: AssignAdd to the next iteration's Read.
        wr = touch(f"wr{k}", "ReadVariableOp", "w", (), wa)
        br = touch(f"br{k}", "ReadVariableOp", "b", (), ba)
        wx = op(f"wx{k}", "Mul", (wr, x), first)
        line = op(f"l{k}", "AddV2", (wx, br), second)
        z = op(f"z{k}", "Relu", (line,), second)
        error = op(f"error{k}", "Sub", (z, y), second)
        dedz = op(f"dedz{k}", "Mul", (error, two), second)
        dzdl = op(f"dzdl{k}", "ReluGrad", (one, line), second)
        dedb = op(f"dedb{k}", "Mul", (dedz, dzdl), second)
        dedw = op(f"dedw{k}", "Mul", (dedb, x), first)
        down_w = op(f"dw{k}", "Mul", (dedw, rate[0]), first)
        down_b = op(f"db{k}", "Mul", (dedb, rate[1]), second)
        wa = touch(f"wa{k}", "AssignAddVariableOp", "w", (down_w,), "")
        ba = touch(f"ba{k}", "AssignAddVariableOp", "b", (down_b,), "")
    variables = (Variable("w", "float32", (), W, first), Variable("b", "float32", (), B, second))
    observe = tuple(f"z{k}" for k in range(STEPS))
    return LitmusTest("neuron", variables, (Graph("train", tuple(nodes)),), observe)
