"""A recurrent network as a while loop that reads its weights, and its gradient.

Source: TensorFlow 1, tf.nn.raw_rnn, written with tf.while_loop
Check: session_rnn:graph --run train=train_op
"""

import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_control_flow_v2()
graph = tf.Graph()
with graph.as_default():
    inputs = tf1.placeholder(tf.float32, [10, 8, 4])
    w = tf1.get_variable("w", [12, 8], use_resource=True)
    b = tf1.get_variable("b", [8], use_resource=True)

    def body(time, state, total):
        state = tf.tanh(tf.matmul(tf.concat([inputs[time], state], 1), w) + b)
        return time + 1, state, total + tf.reduce_sum(state)

    _, _, loss = tf.while_loop(
        lambda time, *_: time < 10, body, [tf.constant(0), tf.zeros([8, 8]), tf.constant(0.0)]
    )
    optimizer = tf1.train.AdamOptimizer(0.01)
    grads, variables = zip(*optimizer.compute_gradients(loss))
    grads, _ = tf.clip_by_global_norm(grads, 5.0)
    optimizer.apply_gradients(zip(grads, variables), name="train_op")
