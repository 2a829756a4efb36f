"""Initialization, the report of what is not initialized, and restoring.

Source: TensorFlow 1, tf.train.Scaffold and MonitoredTrainingSession
Check: session_restore:graph --run init=init --run ready=report --run restore=save/restore_all
    --concurrent none
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    w = tf1.Variable(tf.random.normal([4, 1]), name="w", use_resource=False)
    v = tf1.Variable(w.initialized_value() * 2.0, name="v", use_resource=False)
    tf1.global_variables_initializer()
    tf.identity(tf1.report_uninitialized_variables(), name="report")
    saver = tf1.train.Saver()
