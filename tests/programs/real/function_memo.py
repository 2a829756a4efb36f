"""A running mean and variance, one sample at a time (Welford).

Source: en.wikipedia.org/wiki/Algorithms_for_calculating_variance, "Welford's online algorithm"
Check: function_memo:update function_memo:finalize
"""

import tensorflow as tf

count = tf.Variable(0.0, name="count")
mean = tf.Variable(0.0, name="mean")
m2 = tf.Variable(0.0, name="m2")


@tf.function(input_signature=[tf.TensorSpec([])])
def update(new_value):
    count.assign_add(1.0)
    delta = new_value - mean
    mean.assign_add(delta / count)
    m2.assign_add(delta * (new_value - mean))


@tf.function
def finalize():
    return mean.read_value(), m2 / count
