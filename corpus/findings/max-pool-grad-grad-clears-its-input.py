"""MaxPoolGradGrad returns zeros where its gradient has the shape of its result.

Its CPU kernel takes the buffer of its third input, the gradient, for its result if nothing else
needs that buffer (`forward_input_or_allocate_output({2}, 0, ...)` in MaxPoolingGradGradOp::Compute,
tensorflow/core/kernels/maxpooling_op.cc). It sets the result to zero first, and only then reads the
gradient. So windows with a stride of 1 that keep the shape have no second gradient: the gradient of
a gradient penalty is zero in a `tf.function`, with no message. Run eagerly, where the tape keeps
the buffer, or compiled by XLA, it is right.

Needs TensorFlow only, and no chance. Exits with 1 if a result is wrong, else with 0.
"""

import sys

import numpy as np
import tensorflow as tf

raw = tf.raw_ops
SHAPE = [1, 4, 4, 2]


def alone():
    """The op alone, in a graph: the largest element of each window of one element gets 1."""
    with tf.Graph().as_default() as graph:
        ones = tf.constant(1.0, shape=SHAPE)
        one = tf.compat.v1.placeholder(tf.float32, [])
        gradient = raw.BroadcastTo(input=one, shape=SHAPE)  # in a buffer that is free afterwards
        window = {"ksize": [1, 1, 1, 1], "strides": [1, 1, 1, 1], "padding": "SAME"}
        given = {"orig_input": ones, "orig_output": ones}
        kept = raw.MaxPoolGradGrad(**given, grad=ones, **window)
        reused = raw.MaxPoolGradGrad(**given, grad=gradient, **window)
    with tf.compat.v1.Session(graph=graph) as session:
        return session.run([kept, reused], {one: 1.0})


def penalty(x):
    """Gradient of a gradient penalty, with the pooling of a layer that keeps the shape."""
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            pooled = tf.nn.max_pool2d(x, 3, 1, "SAME")
            loss = tf.reduce_sum(pooled**3)
        gradient = inner.gradient(loss, x)
        squared = tf.reduce_sum(gradient**2)
    return outer.gradient(squared, x)


def main():
    """Show each result beside the right one."""
    x = tf.random.stateless_uniform(SHAPE, (1, 2))
    pairs = {
        "MaxPoolGradGrad alone": alone(),
        "gradient of a gradient penalty": (penalty(x).numpy(), tf.function(penalty)(x).numpy()),
    }
    print(f"TensorFlow {tf.__version__}")
    wrong = False
    for name, (right, seen) in pairs.items():
        differs = not np.allclose(right, seen)
        wrong |= differs
        verdict = "FORBIDDEN" if differs else "right"
        print(f"{verdict:10} {name}: sum {seen.sum():.6g}, expected {right.sum():.6g}")
    sys.exit(1 if wrong else 0)


main()
