"""Gradients of four batches, accumulated by the optimizer.

Source: keras.io/api/optimizers, `gradient_accumulation_steps`
Check: keras_gradient_accumulation:model
"""

import tensorflow as tf

model = tf.keras.Sequential(
    [
        tf.keras.layers.Input((16,)),
        tf.keras.layers.Dense(32, activation="relu"),
        tf.keras.layers.Dense(1),
    ]
)
optimizer = tf.keras.optimizers.Adam(1e-3, gradient_accumulation_steps=4)
model.compile(optimizer=optimizer, loss="mse")
