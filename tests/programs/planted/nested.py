"""Accesses inside of loops, calls and conditionals: only the iteration tells them apart."""

import tensorflow as tf

tf1 = tf.compat.v1

x = tf.Variable(1.0, name="x")
NUMBER = [tf.TensorSpec([], tf.float32)]


@tf.function
def bump(more):
    x.assign_add(more)


@tf.function(input_signature=NUMBER)
def deep(more):
    for i in tf.range(4):
        if i < 10:
            for _ in tf.range(2):
                bump(more)


@tf.function(input_signature=NUMBER)
def rare(value):
    if value > 100.0:
        x.assign(value)


@tf.function
def seen():
    return x.read_value()


@tf.function
def draw():
    return tf.random.normal([])


@tf.function
def noisy():
    return tf.random.uniform([]), draw(), x.read_value()


@tf.function
def halve():
    x.assign(x / 2.0)


with tf.Graph().as_default() as loops:
    tf1.disable_control_flow_v2()
    y = tf1.get_variable("y", initializer=1.0, use_resource=True)

    def inner(i, j):
        with tf.control_dependencies([y.assign_add(10.0**i, read_value=False)]):
            return i, j + 1.0

    def outer(i):
        _, j = tf1.while_loop(lambda _, j: j < 2.0, inner, [i, 0.0], name="inner")
        with tf.control_dependencies([j]):
            return [i + 1.0]

    end = tf1.while_loop(lambda i: i < 3.0, outer, [0.0], name="outer")
    tf.identity(end, name="step")
    tf.identity(y.read_value(), name="seen")
    tf1.enable_control_flow_v2()

with tf.Graph().as_default() as noise:
    z = tf1.get_variable("z", initializer=tf.random.normal([2]), use_resource=True)
    z.assign_add([1.0, 0.0], name="step", read_value=False)
    tf.identity(z.read_value() + tf.round(tf.random.uniform([2])), name="seen")
