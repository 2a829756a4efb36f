"""Gradients accumulated over runs: zero, accumulate, apply.

Source: stackoverflow.com/questions/46772685, "How to accumulate gradients in tensorflow?"
Check: session_accumulation:graph --run zero=zero --run accumulate=accumulate --run apply=apply
    --concurrent none
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    x = tf1.placeholder(tf.float32, [8, 4])
    w = tf1.get_variable("w", [4, 1], use_resource=True)
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
    opt = tf1.train.AdamOptimizer(0.1)
    tvs = tf1.trainable_variables()
    accum_vars = [tf1.Variable(tf.zeros(tv.shape), trainable=False) for tv in tvs]
    tf.group(*[tv.assign(tf.zeros_like(tv)) for tv in accum_vars], name="zero")
    gvs = opt.compute_gradients(loss, tvs)
    tf.group(*[accum_vars[i].assign_add(gv[0]) for i, gv in enumerate(gvs)], name="accumulate")
    opt.apply_gradients([(accum_vars[i], gv[1]) for i, gv in enumerate(gvs)], name="apply")
