"""Noise and dropout of several kinds, and a constrained layer.

Source: keras.io/api/layers/regularization_layers
Check: keras_noise:model
"""

import keras
from keras import layers

model = keras.Sequential(
    [
        layers.Input((16, 8)),
        layers.GaussianNoise(0.1),
        layers.SpatialDropout1D(0.2),
        layers.Conv1D(8, 3, activation="relu", kernel_constraint=keras.constraints.MaxNorm(3)),
        layers.GaussianDropout(0.2),
        layers.Flatten(),
        layers.AlphaDropout(0.1),
        layers.Dense(2, activity_regularizer="l1"),
    ]
)
model.compile(optimizer=keras.optimizers.Nadam(), loss="mse")
