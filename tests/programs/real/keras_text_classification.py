"""Sentiment of reviews: an Embedding, averaged.

Source: tensorflow.org/tutorials/keras/text_classification
Check: keras_text_classification:model
"""

import tensorflow as tf
from tensorflow.keras import layers, losses

max_features = 1000
embedding_dim = 16
model = tf.keras.Sequential(
    [
        layers.Input((20,), dtype="int64"),
        layers.Embedding(max_features, embedding_dim),
        layers.Dropout(0.2),
        layers.GlobalAveragePooling1D(),
        layers.Dropout(0.2),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(
    loss=losses.BinaryCrossentropy(),
    optimizer="adam",
    metrics=[tf.metrics.BinaryAccuracy(threshold=0.5)],
)
