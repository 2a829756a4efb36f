"""SyncReplicasOptimizer: two workers' gradients, tokens, and the chief's update.

Source: tensorflow.org/api_docs/python/tf/compat/v1/train/SyncReplicasOptimizer
Check: session_sync_replicas:graph --run train=train_op --run chief=chief --concurrent train
    --concurrent train,chief
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    x = tf1.placeholder(tf.float32, [8, 4])
    w = tf1.get_variable("w", [4, 1], use_resource=False)
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
    global_step = tf1.train.get_or_create_global_step()
    opt = tf1.train.GradientDescentOptimizer(0.1)
    opt = tf1.train.SyncReplicasOptimizer(opt, replicas_to_aggregate=2, total_num_replicas=2)
    training_op = opt.minimize(loss, global_step=global_step)
    tf.group(training_op, name="train_op")
    tf.group(opt.get_chief_queue_runner().enqueue_ops[0], name="chief")
