"""A step that XLA compiles.

Source: tensorflow.org/xla/tutorials/jit_compile
Check: function_compiled:train_mnist
"""

import tensorflow as tf

layer = tf.keras.layers.Dense(10)
layer.build((None, 784))
optimizer = tf.keras.optimizers.Adam()
optimizer.build(layer.trainable_variables)


@tf.function(
    jit_compile=True, input_signature=[tf.TensorSpec([8, 784]), tf.TensorSpec([8], tf.int32)]
)
def train_mnist(images, labels):
    with tf.GradientTape() as tape:
        predicted_labels = layer(images)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(logits=predicted_labels, labels=labels)
        )
    gradients = tape.gradient(loss, layer.trainable_variables)
    optimizer.apply_gradients(zip(gradients, layer.trainable_variables))
