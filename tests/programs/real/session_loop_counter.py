"""A loop that counts in a variable, one iteration after the other.

Source: tensorflow.org/api_docs/python/tf/while_loop, "parallel_iterations"
Check: session_loop_counter:graph --run count=total
"""

import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_control_flow_v2()
graph = tf.Graph()
with graph.as_default():
    counter = tf1.get_variable("counter", initializer=0, use_resource=True)

    def body(i):
        with tf.control_dependencies([counter.assign_add(i, read_value=False)]):
            return tf.identity(i) + 1

    (end,) = tf.while_loop(lambda i: i < 10, body, [tf.constant(0)])
    with tf.control_dependencies([end]):
        tf.identity(counter.read_value(), name="total")
