"""A step on two virtual devices, each with its copy of the variables.

Source: tensorflow.org/tutorials/distribute/custom_training
Check: function_mirrored:distributed_train_step
"""

import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    weight = tf.Variable(tf.ones([4]), name="weight")
    bias = tf.Variable(0.0, name="bias")
    seen = tf.Variable(
        0.0,
        name="seen",
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )


def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.linalg.matvec(x, weight) + bias - y)) / 2
    gradients = tape.gradient(loss, [weight, bias])
    context = tf.distribute.get_replica_context()
    gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
    for variable, gradient in zip((weight, bias), gradients):
        variable.assign_sub(0.1 * gradient)
    seen.assign_add(8.0)
    return loss


@tf.function(input_signature=[tf.TensorSpec([8, 4]), tf.TensorSpec([8])])
def distributed_train_step(x, y):
    per_replica_losses = strategy.run(train_step, args=(x, y))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)
