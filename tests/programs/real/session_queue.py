"""Batches that threads put into a queue, and a step that takes them.

Source: TensorFlow 1, "Threading and Queues"
Check: session_queue:graph --run enqueue=enqueue --run train=train_op --concurrent enqueue
    --concurrent enqueue,train
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    example = tf.random.normal([4])
    queue = tf1.RandomShuffleQueue(1000, 100, [tf.float32], [[4]])
    queue.enqueue(example, name="enqueue")
    w = tf1.get_variable("w", [4, 1], use_resource=True)
    inputs = queue.dequeue_many(8)
    loss = tf.reduce_mean(tf.square(tf.matmul(inputs, w) - 1.0))
    tf1.train.RMSPropOptimizer(0.01).minimize(loss, name="train_op")
