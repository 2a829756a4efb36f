"""Random numbers of a tf.random.Generator, beside themselves and beside a reset.

Source: tensorflow.org/guide/random_numbers, "Interacting with tf.function"
Check: function_generator:sample function_generator:reset --concurrent sample
    --concurrent sample,reset
"""

import tensorflow as tf

g = tf.random.Generator.from_seed(1)


@tf.function
def sample():
    return g.normal([4]) + g.uniform([4])


@tf.function
def reset():
    g.reset_from_seed(2)
