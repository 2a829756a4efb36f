"""ResNet50 of Keras's applications, with batch normalization.

Source: keras.io/api/applications/resnet
Check: keras_resnet:model
"""

import tensorflow as tf

model = tf.keras.applications.ResNet50(weights=None, input_shape=(32, 32, 3), classes=10)
model.compile(optimizer=tf.keras.optimizers.SGD(0.1, momentum=0.9), loss="categorical_crossentropy")
