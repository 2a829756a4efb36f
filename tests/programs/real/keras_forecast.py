"""Weather: an LSTM over windows of a series.

Source: tensorflow.org/tutorials/structured_data/time_series
Check: keras_forecast:model
"""

import tensorflow as tf

model = tf.keras.models.Sequential(
    [
        tf.keras.layers.Input((24, 19)),
        tf.keras.layers.LSTM(32, return_sequences=True),
        tf.keras.layers.Dense(units=1),
    ]
)
model.compile(
    loss=tf.keras.losses.MeanSquaredError(),
    optimizer=tf.keras.optimizers.Adam(),
    metrics=[tf.keras.metrics.MeanAbsoluteError()],
)
