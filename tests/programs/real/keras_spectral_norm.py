"""A critic with spectral normalization, which keeps a vector of its own in training.

Source: keras.io/api/layers/normalization_layers/spectral_normalization
Check: keras_spectral_norm:model
"""

import keras
from keras import layers

model = keras.Sequential(
    [
        layers.Input((16, 16, 1)),
        layers.SpectralNormalization(layers.Conv2D(8, 3, strides=2)),
        layers.LeakyReLU(0.2),
        layers.SpectralNormalization(layers.Conv2D(16, 3, strides=2)),
        layers.Flatten(),
        layers.Dense(1),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(1e-4, beta_1=0.0), loss="hinge")
