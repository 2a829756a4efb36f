"""Grappler's arithmetic optimizer makes a graph that cannot run out of one that can.

A ConjugateTranspose with the identity permutation becomes Conj, also of real numbers, which Conj
does not take. Seen where neither constant folding nor the TFG passes remove the op first. No chance
in it. Needs TensorFlow only.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import sys

import tensorflow as tf

with tf.Graph().as_default() as graph:
    x = tf.compat.v1.placeholder(tf.float64, [2])
    y = tf.raw_ops.Max(input=tf.raw_ops.ConjugateTranspose(x=x, perm=[0]), axis=[0])
failed = False
for optimized in (False, True):
    config = tf.compat.v1.ConfigProto()
    options = config.graph_options.rewrite_options
    options.disable_meta_optimizer = not optimized
    options.min_graph_nodes = -1
    options.disable_tfg_optimizer = True
    options.constant_folding = options.OFF
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        try:
            shown = str(session.run(y, {x: [1.0, 2.0]}))
        except tf.errors.OpError as error:
            failed = True
            shown = next(s for s in error.message.splitlines() if "attr" in s)[:100]
    print(f"{'optimized' if optimized else 'as it is'} (expected 2.0): {shown}")
sys.exit(failed)
