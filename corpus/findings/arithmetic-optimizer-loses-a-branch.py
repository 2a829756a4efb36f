"""Grappler's arithmetic optimizer loses the branch of a `tf.cond` that is taken.

With control flow as TensorFlow 1 builds it, in a session with default options. The sum x + x becomes
the product of x and a constant, which is to wait for x. In the branch, x is an output of a Switch,
and the constant waits for the other output, so that it never runs. The run has no value to return.
No chance in it. Needs TensorFlow only.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import sys

import tensorflow as tf

tf.compat.v1.disable_control_flow_v2()
failed = False
for optimized in (False, True):
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = not optimized
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [])
        y = tf.compat.v1.cond(x > 0, lambda x=x: x + x, lambda x=x: tf.identity(x))
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        try:
            shown = str(session.run(y, {x: 1.0}))
        except tf.errors.OpError as error:
            failed = True
            shown = error.message.splitlines()[-1]
    print(f"{'default options' if optimized else 'as it is'} (expected 2.0): {shown}")
sys.exit(failed)
