"""One step of a character model, with its state handed on, beside a training step.

Source: tensorflow.org/text/tutorials/text_generation
Check: function_text_generation:train_step function_text_generation:generate_one_step
"""

import tensorflow as tf

embedding = tf.keras.layers.Embedding(66, 8)
gru = tf.keras.layers.GRU(16, return_sequences=True, return_state=True)
dense = tf.keras.layers.Dense(66)
embedding.build((None, None))
gru.build((None, None, 8))
dense.build((None, None, 16))
weights = [*embedding.variables, *gru.trainable_variables, *dense.variables]
optimizer = tf.keras.optimizers.Adam()
optimizer.build(weights)
loss_fn = tf.losses.SparseCategoricalCrossentropy(from_logits=True)
mean = tf.metrics.Mean(name="mean")
IDS = tf.TensorSpec([4, 10], tf.int32)


@tf.function(input_signature=[IDS, IDS])
def train_step(inputs, labels):
    with tf.GradientTape() as tape:
        x, _ = gru(embedding(inputs))
        loss = loss_fn(labels, dense(x))
    grads = tape.gradient(loss, weights)
    optimizer.apply_gradients(zip(grads, weights))
    mean.update_state(loss)
    return {"loss": mean.result()}


@tf.function(input_signature=[tf.TensorSpec([4, 1], tf.int32), tf.TensorSpec([4, 16])])
def generate_one_step(ids, states):
    x, states = gru(embedding(ids), initial_state=states)
    predicted_logits = dense(x)[:, -1, :] / 0.5
    predicted_ids = tf.random.categorical(predicted_logits, num_samples=1)
    return tf.squeeze(predicted_ids, axis=-1), states
