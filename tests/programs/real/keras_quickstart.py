"""The classifier of the quickstart for beginners.

Source: tensorflow.org/tutorials/quickstart/beginner
Check: keras_quickstart:model
"""

import tensorflow as tf

model = tf.keras.models.Sequential(
    [
        tf.keras.layers.Input((28, 28)),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(128, activation="relu"),
        tf.keras.layers.Dropout(0.2),
        tf.keras.layers.Dense(10),
    ]
)
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer="adam", loss=loss_fn, metrics=["accuracy"])
