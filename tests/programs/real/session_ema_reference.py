"""The moving average of the documentation, over references.

Source: tensorflow.org/api_docs/python/tf/compat/v1/train/ExponentialMovingAverage
Check: session_ema_reference:graph --run train=train_op --run average=average
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    x = tf1.placeholder(tf.float32, [])
    var0 = tf1.Variable(1.0, name="var0", use_resource=False)
    var1 = tf1.Variable(2.0, name="var1", use_resource=False)
    loss = tf.square(var0 * x + var1)
    opt_op = tf1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    ema = tf1.train.ExponentialMovingAverage(decay=0.9999)
    with tf.control_dependencies([opt_op]):
        maintain = ema.apply([var0, var1])
    tf.group(maintain, name="train_op")
    tf.add(ema.average(var0), ema.average(var1), name="average")
