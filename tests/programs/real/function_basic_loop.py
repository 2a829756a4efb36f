"""A linear model as a tf.Module, and its step by hand.

Source: tensorflow.org/guide/basic_training_loops
Check: function_basic_loop:train function_basic_loop:report
"""

import tensorflow as tf


class MyModel(tf.Module):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.w = tf.Variable(5.0, name="w")
        self.b = tf.Variable(0.0, name="b")

    def __call__(self, x):
        return self.w * x + self.b


model = MyModel()


def loss(target_y, predicted_y):
    return tf.reduce_mean(tf.square(target_y - predicted_y))


@tf.function(input_signature=[tf.TensorSpec([8]), tf.TensorSpec([8]), tf.TensorSpec([])])
def train(x, y, learning_rate):
    with tf.GradientTape() as t:
        current_loss = loss(y, model(x))
    dw, db = t.gradient(current_loss, [model.w, model.b])
    model.w.assign_sub(learning_rate * dw)
    model.b.assign_sub(learning_rate * db)


@tf.function(input_signature=[tf.TensorSpec([8]), tf.TensorSpec([8])])
def report(x, y):
    return model.w.read_value(), model.b.read_value(), loss(y, model(x))
