"""Ftrl for the wide part, in one model with the deep one.

Source: keras.io/api/optimizers/ftrl
Check: keras_wide:model
"""

import keras
from keras import layers

inputs = keras.Input((20,))
deep = layers.Dense(16, activation="relu")(inputs)
deep = layers.UnitNormalization()(deep)
both = layers.add([layers.Dense(1)(inputs), layers.Dense(1)(deep)])
model = keras.Model(inputs, both)
model.compile(optimizer=keras.optimizers.Ftrl(0.01, l1_regularization_strength=0.1), loss="mse")
