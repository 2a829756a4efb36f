"""Functions whose results are texts."""

import tensorflow as tf

name = tf.Variable("old", name="name")


@tf.function
def rename():
    name.assign("new")


@tf.function
def current():
    return name.read_value()


@tf.function
def end_with_zero_byte():
    name.assign("old\0")
