"""Training, and a thread that saves checkpoints.

Source: TensorFlow 1, "Supervisor: Training Helper for Days-Long Trainings"
Check: session_saver:graph --run train=train_op --run save=save/control_dependency
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    x = tf1.placeholder(tf.float32, [8, 4])
    w = tf1.get_variable("w", [4, 1], use_resource=True)
    b = tf1.get_variable("b", [1], use_resource=True)
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b))
    global_step = tf1.train.get_or_create_global_step()
    tf1.train.AdamOptimizer(0.1).minimize(loss, global_step=global_step, name="train_op")
    saver = tf1.train.Saver()
