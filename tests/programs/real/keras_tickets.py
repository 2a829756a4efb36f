"""Support tickets: three inputs, two outputs, a loss of each.

Source: tensorflow.org/guide/keras/functional_api, "Models with multiple inputs and outputs"
Check: keras_tickets:model
"""

import tensorflow as tf
from tensorflow.keras import layers

title_input = tf.keras.Input(shape=(10,), dtype="int32", name="title")
body_input = tf.keras.Input(shape=(20,), dtype="int32", name="body")
tags_input = tf.keras.Input(shape=(12,), name="tags")
title_features = layers.LSTM(8)(layers.Embedding(100, 8)(title_input))
body_features = layers.LSTM(4)(layers.Embedding(100, 8)(body_input))
x = layers.concatenate([title_features, body_features, tags_input])
priority_pred = layers.Dense(1, name="priority")(x)
department_pred = layers.Dense(4, name="department")(x)
model = tf.keras.Model(
    inputs=[title_input, body_input, tags_input], outputs=[priority_pred, department_pred]
)
model.compile(
    optimizer=tf.keras.optimizers.RMSprop(1e-3),
    loss=[
        tf.keras.losses.BinaryCrossentropy(from_logits=True),
        tf.keras.losses.CategoricalCrossentropy(from_logits=True),
    ],
    loss_weights=[1.0, 0.2],
)
