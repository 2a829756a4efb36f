"""A toy residual network, with batch normalization.

Source: tensorflow.org/guide/keras/functional_api, "A toy ResNet model"
Check: keras_residual:model
"""

import tensorflow as tf
from tensorflow.keras import layers

inputs = tf.keras.Input(shape=(32, 32, 3), name="img")
x = layers.Conv2D(32, 3)(inputs)
x = layers.BatchNormalization()(x)
x = layers.ReLU()(x)
block_1_output = layers.MaxPooling2D(3)(x)
x = layers.Conv2D(32, 3, padding="same")(block_1_output)
x = layers.BatchNormalization(momentum=0.9)(x)
x = layers.ReLU()(x)
block_2_output = layers.add([x, block_1_output])
x = layers.GlobalAveragePooling2D()(block_2_output)
x = layers.Dense(64, activation="relu")(x)
x = layers.Dropout(0.5)(x)
outputs = layers.Dense(10)(x)
model = tf.keras.Model(inputs, outputs, name="toy_resnet")
model.compile(
    optimizer=tf.keras.optimizers.RMSprop(1e-3),
    loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["acc"],
)
