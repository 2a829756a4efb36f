"""A step and tf.train.ExponentialMovingAverage in one function; evaluation with the averages.

Source: tensorflow.org/api_docs/python/tf/train/ExponentialMovingAverage
Check: function_ema:train_step function_ema:evaluate
"""

import tensorflow as tf

var0 = tf.Variable(tf.ones([4]), name="var0")
var1 = tf.Variable(tf.ones([]), name="var1")
ema = tf.train.ExponentialMovingAverage(decay=0.9999)
ema.apply([var0, var1])


@tf.function(input_signature=[tf.TensorSpec([8, 4]), tf.TensorSpec([8])])
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.linalg.matvec(x, var0) + var1 - y))
    for variable, gradient in zip((var0, var1), tape.gradient(loss, [var0, var1])):
        variable.assign_sub(0.1 * gradient)
    ema.apply([var0, var1])
    return loss


@tf.function(input_signature=[tf.TensorSpec([8, 4])])
def evaluate(x):
    return tf.linalg.matvec(x, ema.average(var0)) + ema.average(var1)
