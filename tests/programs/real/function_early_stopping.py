"""Early stopping inside a tf.function: the best loss, and patience, as variables.

Source: tensorflow.org/guide/keras/writing_your_own_callbacks, as a tf.function
Check: function_early_stopping:on_epoch_end
"""

import tensorflow as tf

best = tf.Variable(float("inf"), name="best")
wait = tf.Variable(0, name="wait")
weight = tf.Variable(tf.ones([4]), name="weight")
best_weight = tf.Variable(tf.zeros([4]), name="best_weight")


@tf.function(input_signature=[tf.TensorSpec([])])
def on_epoch_end(current):
    if current < best:
        best.assign(current)
        wait.assign(0)
        best_weight.assign(weight)
    else:
        wait.assign_add(1)
        if wait >= 3:
            weight.assign(best_weight)
    return wait.read_value()
