"""Metrics as their documentation advises: updates in a loop, the value afterwards.

Source: tensorflow.org/api_docs/python/tf/compat/v1/metrics/mean, "sess.run(value)" at the end
Check: session_metrics_apart:graph --run update=update --run value=value --concurrent none
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    values = tf1.placeholder(tf.float32, [8])
    mean, update_mean = tf1.metrics.mean(values)
    auc, update_auc = tf1.metrics.auc(values > 0.5, tf.sigmoid(values), num_thresholds=10)
    tf.group(update_mean, update_auc, name="update")
    tf.add(mean, auc, name="value")
