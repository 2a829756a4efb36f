"""A GRU whose state stays from batch to batch.

Source: keras.io/guides/working_with_rnns, "Cross-batch statefulness"
Check: keras_stateful_rnn:model
"""

import tensorflow as tf

model = tf.keras.Sequential(
    [
        tf.keras.layers.Input(batch_shape=(4, 10, 8)),
        tf.keras.layers.GRU(16, stateful=True),
        tf.keras.layers.Dense(1),
    ]
)
model.compile(loss="mse", optimizer="rmsprop")
