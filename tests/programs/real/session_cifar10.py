"""CIFAR-10: a step, averages of losses and of variables, and a decayed rate.

Source: TensorFlow 1 models, tutorials/image/cifar10/cifar10.py
Check: session_cifar10:graph --run train=train_op,total_loss
"""

import tensorflow as tf

tf1 = tf.compat.v1


def variable(name, shape):
    return tf1.get_variable(name, shape, initializer=tf1.truncated_normal_initializer(stddev=0.05))


def add_loss_summaries(total_loss):
    loss_averages = tf1.train.ExponentialMovingAverage(0.9, name="avg")
    losses = tf1.get_collection("losses")
    return loss_averages.apply([*losses, total_loss])


graph = tf.Graph()
with graph.as_default():
    global_step = tf1.train.get_or_create_global_step()
    images = tf1.placeholder(tf.float32, [8, 24, 24, 3])
    labels = tf1.placeholder(tf.int64, [8])
    with tf1.variable_scope("conv1"):
        kernel = variable("weights", [5, 5, 3, 8])
        biases = variable("biases", [8])
        conv = tf.nn.conv2d(images, kernel, [1, 1, 1, 1], padding="SAME")
        conv1 = tf.nn.relu(tf.nn.bias_add(conv, biases))
    with tf1.variable_scope("softmax_linear"):
        weights = variable("weights", [24 * 24 * 8, 10])
        tf1.add_to_collection("losses", tf.nn.l2_loss(weights) * 0.004)
        logits = tf.matmul(tf.reshape(conv1, [8, -1]), weights)
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    tf1.add_to_collection("losses", tf.reduce_mean(entropy, name="cross_entropy"))
    total_loss = tf.add_n(tf1.get_collection("losses"), name="total_loss")

    lr = tf1.train.exponential_decay(0.1, global_step, 1000, 0.1, staircase=True)
    loss_averages_op = add_loss_summaries(total_loss)
    with tf.control_dependencies([loss_averages_op]):
        opt = tf1.train.GradientDescentOptimizer(lr)
        grads = opt.compute_gradients(total_loss)
    apply_gradient_op = opt.apply_gradients(grads, global_step=global_step)
    variable_averages = tf1.train.ExponentialMovingAverage(0.9999, global_step)
    with tf.control_dependencies([apply_gradient_op]):
        variables_averages_op = variable_averages.apply(tf1.trainable_variables())
    tf.group(variables_averages_op, name="train_op")
