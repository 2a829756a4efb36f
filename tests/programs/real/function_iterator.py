"""Several steps in one call, over an iterator that is given.

Source: tensorflow.org/tutorials/distribute/custom_training, "Iterating inside a tf.function"
Check: function_iterator:train_steps
"""

import tensorflow as tf

weight = tf.Variable(1.0, name="weight")
step = tf.Variable(0, dtype=tf.int64, name="step")
iterator = iter(tf.data.Dataset.from_tensor_slices(tf.random.normal([32])).repeat().batch(4))


@tf.function
def train_steps():
    for _ in tf.range(10):
        batch = next(iterator)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(weight * batch - 1.0))
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        step.assign_add(1)
    return weight.read_value()
