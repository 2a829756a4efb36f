"""Two bidirectional LSTM layers over masked embeddings.

Source: tensorflow.org/text/tutorials/text_classification_rnn
Check: keras_text_rnn:model
"""

import tensorflow as tf

model = tf.keras.Sequential(
    [
        tf.keras.layers.Input((12,), dtype="int64"),
        tf.keras.layers.Embedding(1000, 16, mask_zero=True),
        tf.keras.layers.Bidirectional(tf.keras.layers.LSTM(16, return_sequences=True)),
        tf.keras.layers.Bidirectional(tf.keras.layers.LSTM(8)),
        tf.keras.layers.Dense(16, activation="relu"),
        tf.keras.layers.Dropout(0.5),
        tf.keras.layers.Dense(1),
    ]
)
model.compile(
    loss=tf.keras.losses.BinaryCrossentropy(from_logits=True),
    optimizer=tf.keras.optimizers.Adam(1e-4),
    metrics=["accuracy"],
)
