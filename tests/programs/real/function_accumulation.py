"""Gradients, accumulated by hand in variables, and applied in every fourth step.

Source: stackoverflow.com/questions/46772685, for TensorFlow 2
Check: function_accumulation:train_step
"""

import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
model.build((None, 4))
optimizer = tf.keras.optimizers.SGD(0.1)
optimizer.build(model.trainable_variables)
accumulated = [tf.Variable(tf.zeros_like(v), trainable=False) for v in model.trainable_variables]
n_acum_step = tf.Variable(0, trainable=False, name="n_acum_step")


def apply_accumulated():
    optimizer.apply_gradients(zip(accumulated, model.trainable_variables))
    n_acum_step.assign(0)
    for each in accumulated:
        each.assign(tf.zeros_like(each))


@tf.function(input_signature=[tf.TensorSpec([8, 4]), tf.TensorSpec([8, 1])])
def train_step(x, y):
    n_acum_step.assign_add(1)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    for each, gradient in zip(accumulated, gradients):
        each.assign_add(gradient / 4)
    if tf.equal(n_acum_step, 4):
        apply_accumulated()
    return loss
