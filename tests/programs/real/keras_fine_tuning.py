"""MobileNetV2, its last layers trained, its statistics frozen.

Source: tensorflow.org/tutorials/images/transfer_learning, "Fine tuning"
Check: keras_fine_tuning:model
"""

import tensorflow as tf

base_model = tf.keras.applications.MobileNetV2(
    input_shape=(32, 32, 3), include_top=False, weights=None, alpha=0.35
)
for layer in base_model.layers[:100]:
    layer.trainable = False
inputs = tf.keras.Input(shape=(32, 32, 3))
x = base_model(inputs, training=False)
x = tf.keras.layers.GlobalAveragePooling2D()(x)
outputs = tf.keras.layers.Dense(1, activation="sigmoid")(x)
model = tf.keras.Model(inputs, outputs)
model.compile(
    loss=tf.keras.losses.BinaryCrossentropy(),
    optimizer=tf.keras.optimizers.RMSprop(learning_rate=0.00001),
    metrics=[tf.keras.metrics.BinaryAccuracy(threshold=0.5, name="accuracy")],
)
