"""A counter of calls, and a running sum over a loop.

Source: tensorflow.org/guide/function, "Creating tf.Variables" and "Loops"
Check: function_counter:count function_counter:running_sum --concurrent count
"""

import tensorflow as tf


class Count(tf.Module):
    def __init__(self):
        self.count = tf.Variable(0, name="count")

    @tf.function
    def __call__(self):
        return self.count.assign_add(1)


counter = Count()
total = tf.Variable(0.0, name="total")


@tf.function
def count():
    return counter()


@tf.function(input_signature=[tf.TensorSpec([10])])
def running_sum(values):
    for value in values:
        if value > 0.0:
            total.assign_add(value)
    return total.read_value()
