"""String input producer, reader threads and shuffled batches, then a step.

Source: TensorFlow 1, "Reading data"
Check: session_input_pipeline:graph --run read=shuffle_batch/random_shuffle_queue_enqueue
    --run train=train_op
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    numbers = tf1.train.range_input_producer(1000, num_epochs=2).dequeue()
    feature = tf.cast(tf.stack([numbers, numbers + 1]), tf.float32)
    batch = tf1.train.shuffle_batch(
        [feature], batch_size=8, capacity=100, min_after_dequeue=10, name="shuffle_batch"
    )
    w = tf1.get_variable("w", [2, 1], use_resource=True)
    loss = tf.reduce_mean(tf.square(tf.matmul(batch, w)))
    global_step = tf1.train.get_or_create_global_step()
    tf1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step, name="train_op")
