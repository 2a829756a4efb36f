"""Momentum, and a moving average of the weights kept by the optimizer.

Source: keras.io/api/optimizers, `use_ema`
Check: keras_ema:model
"""

import tensorflow as tf

model = tf.keras.Sequential(
    [
        tf.keras.layers.Input((16,)),
        tf.keras.layers.Dense(32, activation="relu"),
        tf.keras.layers.Dense(1),
    ]
)
optimizer = tf.keras.optimizers.SGD(
    0.01, momentum=0.9, nesterov=True, use_ema=True, ema_momentum=0.99, ema_overwrite_frequency=100
)
model.compile(optimizer=optimizer, loss="mse", metrics=["mae"])
