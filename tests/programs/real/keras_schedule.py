"""AdamW with a cosine schedule, weight decay and clipped gradients.

Source: keras.io/api/optimizers/learning_rate_schedules
Check: keras_schedule:model
"""

import tensorflow as tf

model = tf.keras.Sequential(
    [
        tf.keras.layers.Input((16,)),
        tf.keras.layers.Dense(32, activation="gelu", kernel_regularizer="l2"),
        tf.keras.layers.Dense(4, activation="softmax"),
    ]
)
schedule = tf.keras.optimizers.schedules.CosineDecay(
    0.0, decay_steps=1000, warmup_target=1e-3, warmup_steps=100
)
model.compile(
    optimizer=tf.keras.optimizers.AdamW(schedule, weight_decay=0.004, clipnorm=1.0),
    loss="categorical_crossentropy",
    metrics=["accuracy", "top_k_categorical_accuracy"],
)
