"""A vocabulary that is looked up, and a table of counts that grows.

Source: tensorflow.org/api_docs/python/tf/lookup/experimental/MutableHashTable
Check: function_vocabulary:encode function_vocabulary:count --concurrent count
    --concurrent count,encode
"""

import tensorflow as tf

keys = tf.constant(["a", "b", "c"])
vocabulary = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer(keys, tf.constant([0, 1, 2], tf.int64)), default_value=-1
)
seen = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, default_value=0)


@tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
def encode(words):
    return vocabulary.lookup(words)


@tf.function(input_signature=[tf.TensorSpec([1], tf.string)])
def count(word):
    seen.insert(word, seen.lookup(word) + 1)
    return seen.size()
