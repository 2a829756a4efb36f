"""Training and evaluation steps of a loop from scratch.

Source: tensorflow.org/guide/keras/writing_a_training_loop_from_scratch
Check: function_training_loop:train_step function_training_loop:test_step
"""

import keras
import tensorflow as tf

inputs = keras.Input(shape=(784,), name="digits")
x = keras.layers.Dense(64, activation="relu", name="dense_1")(inputs)
outputs = keras.layers.Dense(10, name="predictions")(x)
model = keras.Model(inputs=inputs, outputs=outputs)
optimizer = keras.optimizers.Adam(learning_rate=1e-3)
optimizer.build(model.trainable_weights)
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
train_acc_metric = keras.metrics.SparseCategoricalAccuracy(name="train_acc")
val_acc_metric = keras.metrics.SparseCategoricalAccuracy(name="val_acc")
BATCH = [tf.TensorSpec([8, 784]), tf.TensorSpec([8], tf.int32)]


@tf.function(input_signature=BATCH)
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss_value = loss_fn(y, logits)
    grads = tape.gradient(loss_value, model.trainable_weights)
    optimizer.apply(grads, model.trainable_weights)
    train_acc_metric.update_state(y, logits)
    return loss_value


@tf.function(input_signature=BATCH)
def test_step(x, y):
    val_logits = model(x, training=False)
    val_acc_metric.update_state(y, val_logits)
