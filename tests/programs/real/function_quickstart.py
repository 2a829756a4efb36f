"""Steps that keep mean losses in metrics, and the report at the end of an epoch.

Source: tensorflow.org/tutorials/quickstart/advanced
Check: function_quickstart:train_step function_quickstart:test_step function_quickstart:epoch_end
"""

import tensorflow as tf
from tensorflow.keras import Model
from tensorflow.keras.layers import Conv2D, Dense, Flatten


class MyModel(Model):
    def __init__(self):
        super().__init__()
        self.conv1 = Conv2D(8, 3, activation="relu")
        self.flatten = Flatten()
        self.d1 = Dense(16, activation="relu")
        self.d2 = Dense(10)

    def call(self, x):
        x = self.conv1(x)
        x = self.flatten(x)
        x = self.d1(x)
        return self.d2(x)


model = MyModel()
model(tf.zeros([1, 28, 28, 1]))
loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam()
optimizer.build(model.trainable_variables)
train_loss = tf.keras.metrics.Mean(name="train_loss")
train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")
test_loss = tf.keras.metrics.Mean(name="test_loss")
test_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="test_accuracy")
BATCH = [tf.TensorSpec([8, 28, 28, 1]), tf.TensorSpec([8], tf.int32)]


@tf.function(input_signature=BATCH)
def train_step(images, labels):
    with tf.GradientTape() as tape:
        predictions = model(images, training=True)
        loss = loss_object(labels, predictions)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    train_loss(loss)
    train_accuracy(labels, predictions)


@tf.function(input_signature=BATCH)
def test_step(images, labels):
    predictions = model(images, training=False)
    t_loss = loss_object(labels, predictions)
    test_loss(t_loss)
    test_accuracy(labels, predictions)


@tf.function
def epoch_end():
    found = (train_loss.result(), train_accuracy.result(), test_loss.result())
    for metric in (train_loss, train_accuracy, test_loss, test_accuracy):
        metric.reset_state()
    return found
