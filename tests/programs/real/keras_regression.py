"""Fuel efficiency: a Normalization layer adapted to data, and Dense layers.

Source: tensorflow.org/tutorials/keras/regression
Check: keras_regression:model
"""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

features = np.arange(36.0).reshape(4, 9)
normalizer = layers.Normalization(axis=-1)
normalizer.adapt(features)

model = tf.keras.Sequential(
    [
        layers.Input((9,)),
        normalizer,
        layers.Dense(64, activation="relu"),
        layers.Dense(64, activation="relu"),
        layers.Dense(1),
    ]
)
model.compile(loss="mean_absolute_error", optimizer=tf.keras.optimizers.Adam(0.001))
