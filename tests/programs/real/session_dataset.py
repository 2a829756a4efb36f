"""A dataset's iterator that is initialized, and feeds the step.

Source: TensorFlow 1, "Importing Data", initializable iterators
Check: session_dataset:graph --run start=MakeIterator --run train=train_op,loss --concurrent none
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    dataset = tf1.data.Dataset.from_tensor_slices(tf.ones([32, 4])).repeat().batch(8)
    iterator = tf1.data.make_initializable_iterator(dataset)
    x = iterator.get_next()
    w = tf1.get_variable("w", [4, 1], use_resource=True)
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w)), name="loss")
    tf1.train.FtrlOptimizer(0.1).minimize(loss, name="train_op")
