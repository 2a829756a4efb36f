"""A dynamic loss scale: halved after an overflow, doubled after enough good steps.

Source: Micikevicius et al., "Mixed Precision Training", ICLR 2018, with tf.cond
Check: session_loss_scale:graph --run train=train_op
"""

import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_control_flow_v2()
graph = tf.Graph()
with graph.as_default():
    x = tf1.placeholder(tf.float32, [8, 4])
    w = tf1.get_variable("w", [4, 1], use_resource=True)
    scale = tf1.get_variable("scale", initializer=1024.0, trainable=False, use_resource=True)
    good = tf1.get_variable("good", initializer=0, trainable=False, use_resource=True)
    opt = tf1.train.GradientDescentOptimizer(0.1)
    old_scale = scale.read_value()
    old_good = good.read_value()
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w))) * old_scale
    ((gradient, _),) = opt.compute_gradients(loss, [w])
    is_finite = tf.reduce_all(tf.math.is_finite(gradient))
    with tf.control_dependencies([old_scale, old_good]):
        train = tf.cond(
            is_finite, lambda: opt.apply_gradients([(gradient / old_scale, w)]), tf.no_op
        )
        more = tf.cond(
            is_finite,
            lambda: tf.group(
                good.assign((old_good + 1) % 2000),
                scale.assign(tf.where(old_good >= 1999, old_scale * 2.0, old_scale)),
            ),
            lambda: tf.group(good.assign(0), scale.assign(old_scale / 2.0)),
        )
    tf.group(train, more, name="train_op")
