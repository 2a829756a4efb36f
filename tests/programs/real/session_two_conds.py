"""Every hundredth step writes a log line and resets the sum; the other steps add to it.

Source: stackoverflow.com/questions/37063952 on tf.cond, with a predicate and its negation
Check: session_two_conds:graph --run step=step
"""

import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_control_flow_v2()
graph = tf.Graph()
with graph.as_default():
    loss = tf1.placeholder(tf.float32, [])
    time = tf1.placeholder(tf.int32, [])
    total = tf1.get_variable("total", initializer=0.0, use_resource=True)
    is_report = tf.equal(time % 100, 0)
    reset = tf.cond(is_report, lambda: total.assign(loss, read_value=False), tf.no_op)
    add = tf.cond(
        tf.logical_not(is_report), lambda: total.assign_add(loss, read_value=False), tf.no_op
    )
    tf.group(reset, add, name="step")
