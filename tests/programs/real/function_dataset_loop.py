"""An epoch over a dataset inside a tf.function, as AutoGraph makes it.

Source: tensorflow.org/guide/function, "Looping over data"
Check: function_dataset_loop:train
"""

import tensorflow as tf

weight = tf.Variable(1.0, name="weight")
dataset = tf.data.Dataset.from_tensor_slices(tf.random.normal([32])).batch(4)


@tf.function
def train():
    loss = tf.constant(0.0)
    for batch in dataset:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(weight * batch - 1.0))
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
    return loss
