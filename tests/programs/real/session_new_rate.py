"""A language model's learning rate, assigned through a placeholder between epochs.

Source: TensorFlow 1 models, tutorials/rnn/ptb/ptb_word_lm.py
Check: session_new_rate:graph --run train=train_op --run assign=lr_update
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    x = tf1.placeholder(tf.float32, [8, 4])
    w = tf1.get_variable("w", [4, 1], use_resource=True)
    cost = tf.reduce_mean(tf.square(tf.matmul(x, w)))
    lr = tf1.get_variable("lr", initializer=0.0, trainable=False, use_resource=True)
    tvars = tf1.trainable_variables()
    grads, _ = tf.clip_by_global_norm(tf.gradients(cost, tvars), 5.0)
    optimizer = tf1.train.GradientDescentOptimizer(lr)
    step = tf1.train.get_or_create_global_step()
    optimizer.apply_gradients(zip(grads, tvars), global_step=step, name="train_op")
    new_lr = tf1.placeholder(tf.float32, [])
    tf.group(lr.assign(new_lr), name="lr_update")
