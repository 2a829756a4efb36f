"""Pets: numbers normalized, words looked up in a vocabulary.

Source: tensorflow.org/tutorials/structured_data/preprocessing_layers
Check: keras_structured:model
"""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

fee = tf.keras.Input(shape=(1,), name="Fee")
normalization = layers.Normalization(axis=None)
normalization.adapt(np.array([[0.0], [100.0], [50.0]]))
kind = tf.keras.Input(shape=(1,), name="Type", dtype="string")
index = layers.StringLookup(vocabulary=["Cat", "Dog"])
encoding = layers.CategoryEncoding(num_tokens=3, output_mode="multi_hot")
features = layers.concatenate([normalization(fee), encoding(index(kind))])
x = layers.Dense(32, activation="relu")(features)
x = layers.Dropout(0.5)(x)
model = tf.keras.Model([fee, kind], layers.Dense(1)(x))
model.compile(
    optimizer="adam",
    loss=tf.keras.losses.BinaryCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
