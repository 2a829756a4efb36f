"""Accuracy as a streaming metric: update and value fetched together.

Source: tensorflow.org/api_docs/python/tf/compat/v1/metrics/accuracy
Check: session_metrics:graph --run evaluate=value,update
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    labels = tf1.placeholder(tf.int64, [8])
    predictions = tf1.placeholder(tf.int64, [8])
    value, update = tf1.metrics.accuracy(labels, predictions)
    tf.identity(value, name="value")
    tf.identity(update, name="update")
