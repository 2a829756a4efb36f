"""Skip-grams with sampled classes: sparse gradients of the embeddings.

Source: TensorFlow 1, "Vector Representations of Words" (word2vec_basic.py)
Check: session_word2vec:graph --run train=optimizer,loss
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    train_inputs = tf1.placeholder(tf.int32, [8])
    train_labels = tf1.placeholder(tf.int32, [8, 1])
    embeddings = tf1.get_variable("embeddings", [100, 16], use_resource=True)
    embed = tf.nn.embedding_lookup(embeddings, train_inputs)
    nce_weights = tf1.get_variable("nce_weights", [100, 16], use_resource=True)
    nce_biases = tf1.get_variable("nce_biases", [100], use_resource=True)
    loss = tf.reduce_mean(
        tf.nn.nce_loss(nce_weights, nce_biases, train_labels, embed, 4, 100), name="loss"
    )
    tf1.train.GradientDescentOptimizer(1.0).minimize(loss, name="optimizer")
    norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keepdims=True))
    normalized_embeddings = embeddings / norm
