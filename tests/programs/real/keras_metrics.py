"""A classifier of imbalanced data, with many metrics.

Source: tensorflow.org/tutorials/structured_data/imbalanced_data
Check: keras_metrics:model
"""

import numpy as np
import tensorflow as tf

METRICS = [
    tf.keras.metrics.BinaryCrossentropy(name="cross entropy"),
    tf.keras.metrics.MeanSquaredError(name="Brier score"),
    tf.keras.metrics.TruePositives(name="tp"),
    tf.keras.metrics.FalsePositives(name="fp"),
    tf.keras.metrics.BinaryAccuracy(name="accuracy"),
    tf.keras.metrics.Precision(name="precision"),
    tf.keras.metrics.Recall(name="recall"),
    tf.keras.metrics.AUC(name="auc"),
    tf.keras.metrics.AUC(name="prc", curve="PR"),
]
output_bias = tf.keras.initializers.Constant(np.log(0.002))
model = tf.keras.Sequential(
    [
        tf.keras.layers.Input((29,)),
        tf.keras.layers.Dense(16, activation="relu"),
        tf.keras.layers.Dropout(0.5),
        tf.keras.layers.Dense(1, activation="sigmoid", bias_initializer=output_bias),
    ]
)
model.compile(
    optimizer=tf.keras.optimizers.Adam(learning_rate=1e-3),
    loss=tf.keras.losses.BinaryCrossentropy(),
    metrics=METRICS,
)
