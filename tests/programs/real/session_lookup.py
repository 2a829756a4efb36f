"""Words looked up in a table beside a trained embedding.

Source: tensorflow.org/api_docs/python/tf/compat/v1/tables_initializer
Check: session_lookup:graph --run init=init_all_tables --run train=train_op --concurrent none
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    words = tf1.placeholder(tf.string, [8])
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 1], tf.int64)), 4
    )
    tf1.tables_initializer()
    embeddings = tf1.get_variable("embeddings", [6, 4], use_resource=True)
    embed = tf.nn.embedding_lookup(embeddings, table.lookup(words))
    tf1.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(embed), name="train_op")
