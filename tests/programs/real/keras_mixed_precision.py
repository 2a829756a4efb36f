"""Mixed precision: float16 layers, and an optimizer that scales the loss.

Source: tensorflow.org/guide/mixed_precision
Check: keras_mixed_precision:model
"""

import tensorflow as tf
from tensorflow.keras import layers

half = tf.keras.mixed_precision.Policy("mixed_float16")
inputs = tf.keras.Input(shape=(784,), name="digits")
x = layers.Dense(64, activation="relu", name="dense_1", dtype=half)(inputs)
x = layers.Dense(64, activation="relu", name="dense_2", dtype=half)(x)
x = layers.Dense(10, name="dense_logits", dtype=half)(x)
outputs = layers.Activation("softmax", dtype="float32", name="predictions")(x)
model = tf.keras.Model(inputs=inputs, outputs=outputs)
optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.RMSprop())
model.compile(loss="sparse_categorical_crossentropy", optimizer=optimizer, metrics=["accuracy"])
