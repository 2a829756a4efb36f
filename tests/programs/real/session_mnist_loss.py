"""Softmax regression; the loss is fetched with the step.

Source: TensorFlow 1, "TensorFlow Mechanics 101" (fully_connected_feed.py)
Check: session_mnist_loss:graph --run train=train_step,loss
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    images = tf1.placeholder(tf.float32, [32, 784])
    labels = tf1.placeholder(tf.int32, [32])
    hidden = images
    for name, width, depth in (("hidden1", 784, 32), ("hidden2", 32, 32)):
        with tf1.name_scope(name):
            weights = tf1.Variable(tf.random.truncated_normal([width, depth]), name="weights")
            biases = tf1.Variable(tf.zeros([depth]), name="biases")
            hidden = tf.nn.relu(tf.matmul(hidden, weights) + biases)
    loss = tf1.losses.sparse_softmax_cross_entropy(labels, hidden, scope="xentropy")
    loss = tf.identity(loss, name="loss")
    global_step = tf1.Variable(0, name="global_step", trainable=False)
    optimizer = tf1.train.GradientDescentOptimizer(0.01)
    train_op = optimizer.minimize(loss, global_step=global_step, name="train_step")
