"""Skip-grams: two Embedding layers and their product, as a subclass of Model.

Source: tensorflow.org/text/tutorials/word2vec
Check: keras_word2vec:model
"""

import keras
from keras import layers, ops

target = keras.Input((), dtype="int64", name="target")
context = keras.Input((5,), dtype="int64", name="context")
word = layers.Embedding(200, 16, name="w2v_embedding")(target)
contexts = layers.Embedding(200, 16, name="context_embedding")(context)
dots = ops.einsum("be,bce->bc", word, contexts)
model = keras.Model([target, context], dots)
model.compile(
    optimizer="adagrad",
    loss=keras.losses.CategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
