"""MobileNetV2, frozen, under a new classifier.

Source: tensorflow.org/tutorials/images/transfer_learning
Check: keras_transfer:model
"""

import tensorflow as tf

base_model = tf.keras.applications.MobileNetV2(
    input_shape=(32, 32, 3), include_top=False, weights=None, alpha=0.35
)
base_model.trainable = False
inputs = tf.keras.Input(shape=(32, 32, 3))
x = tf.keras.applications.mobilenet_v2.preprocess_input(inputs)
x = base_model(x, training=False)
x = tf.keras.layers.GlobalAveragePooling2D()(x)
x = tf.keras.layers.Dropout(0.2)(x)
outputs = tf.keras.layers.Dense(1, activation="sigmoid")(x)
model = tf.keras.Model(inputs, outputs)
model.compile(
    optimizer=tf.keras.optimizers.Adam(learning_rate=0.0001),
    loss=tf.keras.losses.BinaryCrossentropy(),
    metrics=[tf.keras.metrics.BinaryAccuracy(threshold=0.5, name="accuracy")],
)
