"""A convolutional autoencoder that removes noise, as a subclass of Model.

Source: tensorflow.org/tutorials/generative/autoencoder
Check: keras_autoencoder:model --input float32[8,28,28,1] --input float32[8,28,28,1]
"""

import tensorflow as tf
from tensorflow.keras import layers, losses
from tensorflow.keras.models import Model


class Denoise(Model):
    def __init__(self):
        super().__init__()
        self.encoder = tf.keras.Sequential(
            [
                layers.Input(shape=(28, 28, 1)),
                layers.Conv2D(16, (3, 3), activation="relu", padding="same", strides=2),
                layers.Conv2D(8, (3, 3), activation="relu", padding="same", strides=2),
            ]
        )
        self.decoder = tf.keras.Sequential(
            [
                layers.Conv2DTranspose(8, 3, strides=2, activation="relu", padding="same"),
                layers.Conv2DTranspose(16, 3, strides=2, activation="relu", padding="same"),
                layers.Conv2D(1, kernel_size=(3, 3), activation="sigmoid", padding="same"),
            ]
        )

    def call(self, x):
        return self.decoder(self.encoder(x))


model = Denoise()
model(tf.zeros([1, 28, 28, 1]))
model.compile(optimizer="adam", loss=losses.MeanSquaredError())
