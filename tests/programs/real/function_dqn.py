"""Q-learning: a step, and the copy of the weights to the target network.

Source: keras.io/examples/rl/deep_q_network_breakout
Check: function_dqn:train_step function_dqn:update_target function_dqn:act
"""

import keras
import tensorflow as tf


def create_q_model():
    return keras.Sequential([keras.layers.Dense(8, activation="relu"), keras.layers.Dense(4)])


model = create_q_model()
model_target = create_q_model()
model.build((None, 6))
model_target.build((None, 6))
optimizer = keras.optimizers.Adam(learning_rate=0.00025, clipnorm=1.0)
optimizer.build(model.trainable_variables)
loss_function = keras.losses.Huber()
STATES = tf.TensorSpec([32, 6])


@tf.function(input_signature=[STATES, tf.TensorSpec([32], tf.int32), tf.TensorSpec([32]), STATES])
def train_step(state, action, reward, state_next):
    future_rewards = model_target(state_next)
    updated_q_values = reward + 0.99 * tf.reduce_max(future_rewards, axis=1)
    masks = tf.one_hot(action, 4)
    with tf.GradientTape() as tape:
        q_values = model(state)
        q_action = tf.reduce_sum(tf.multiply(q_values, masks), axis=1)
        loss = loss_function(updated_q_values, q_action)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))


@tf.function
def update_target():
    for target, source in zip(model_target.variables, model.variables):
        target.assign(source)


@tf.function(input_signature=[tf.TensorSpec([6])])
def act(state):
    action_probs = model(tf.expand_dims(state, 0), training=False)
    return tf.argmax(action_probs[0])
