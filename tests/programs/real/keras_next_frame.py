"""Frames of a video, predicted by ConvLSTM layers with batch normalization between them.

Source: keras.io/examples/vision/conv_lstm
Check: keras_next_frame:model
"""

import keras
from keras import layers

inp = layers.Input(shape=(4, 8, 8, 1))
x = layers.ConvLSTM2D(4, (3, 3), padding="same", return_sequences=True)(inp)
x = layers.BatchNormalization()(x)
x = layers.ConvLSTM2D(4, (1, 1), padding="same", return_sequences=True)(x)
x = layers.Conv3D(1, (3, 3, 3), activation="sigmoid", padding="same")(x)
model = keras.models.Model(inp, x)
model.compile(loss=keras.losses.binary_crossentropy, optimizer=keras.optimizers.Adam())
