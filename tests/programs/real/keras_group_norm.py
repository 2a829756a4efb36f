"""Group normalization and a large-batch optimizer, with weights of exponential averages.

Source: keras.io/api/optimizers/lamb
Check: keras_group_norm:model
"""

import keras
from keras import layers

model = keras.Sequential(
    [
        layers.Input((16, 16, 3)),
        layers.SeparableConv2D(8, 3),
        layers.GroupNormalization(4),
        layers.ReLU(),
        layers.GlobalMaxPooling2D(),
        layers.Dense(2),
    ]
)
model.compile(optimizer=keras.optimizers.Lamb(1e-3, use_ema=True), loss="mse", metrics=["mse"])
