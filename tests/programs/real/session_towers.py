"""Two towers, whose gradients are averaged before one update.

Source: TensorFlow 1 models, tutorials/image/cifar10/cifar10_multi_gpu_train.py
Check: session_towers:graph --run train=train_op,loss
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    global_step = tf1.train.get_or_create_global_step()
    opt = tf1.train.GradientDescentOptimizer(0.1)
    tower_grads = []
    losses = []
    for tower in range(2):
        with tf1.name_scope(f"tower_{tower}"), tf1.variable_scope("", reuse=tf1.AUTO_REUSE):
            x = tf1.placeholder(tf.float32, [8, 4])
            w = tf1.get_variable("w", [4, 1], use_resource=True)
            losses.append(tf.reduce_mean(tf.square(tf.matmul(x, w))))
            tower_grads.append(opt.compute_gradients(losses[-1], [w]))
    average = [
        (tf.reduce_mean(tf.stack([g for g, _ in pair]), 0), pair[0][1])
        for pair in zip(*tower_grads)
    ]
    apply_gradient_op = opt.apply_gradients(average, global_step=global_step)
    with tf.control_dependencies([apply_gradient_op]):
        ema = tf1.train.ExponentialMovingAverage(0.9999, global_step)
        averages = ema.apply(tf1.trainable_variables())
    tf.group(apply_gradient_op, averages, name="train_op")
    tf.add_n(losses, name="loss")
