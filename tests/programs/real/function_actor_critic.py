"""An actor and a critic: an episode in a loop, in an environment of NumPy, then a step.

Source: tensorflow.org/tutorials/reinforcement_learning/actor_critic
Check: function_actor_critic:train_step
"""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

common = layers.Dense(16, activation="relu")
actor = layers.Dense(2)
critic = layers.Dense(1)
for layer, width in ((common, 4), (actor, 16), (critic, 16)):
    layer.build((None, width))
weights = [*common.variables, *actor.variables, *critic.variables]
optimizer = tf.keras.optimizers.Adam(learning_rate=0.01)
optimizer.build(weights)


def env_step(action):
    return np.zeros(4, np.float32), np.array(1, np.int32), np.array(action > 0, np.int32)


@tf.numpy_function(Tout=[tf.float32, tf.int32, tf.int32])
def tf_env_step(action):
    return env_step(action)


def run_episode(initial_state, max_steps):
    action_probs = tf.TensorArray(dtype=tf.float32, size=0, dynamic_size=True)
    values = tf.TensorArray(dtype=tf.float32, size=0, dynamic_size=True)
    rewards = tf.TensorArray(dtype=tf.int32, size=0, dynamic_size=True)
    state = initial_state
    for t in tf.range(max_steps):
        hidden = common(tf.expand_dims(state, 0))
        logits, value = actor(hidden), critic(hidden)
        action = tf.random.categorical(logits, 1)[0, 0]
        values = values.write(t, tf.squeeze(value))
        action_probs = action_probs.write(t, tf.nn.softmax(logits)[0, action])
        state, reward, done = tf_env_step(action)
        state.set_shape([4])
        rewards = rewards.write(t, tf.reshape(reward, []))
        if tf.cast(tf.reshape(done, []), tf.bool):
            break
    return action_probs.stack(), values.stack(), rewards.stack()


@tf.function(input_signature=[tf.TensorSpec([4])])
def train_step(initial_state):
    with tf.GradientTape() as tape:
        action_probs, values, rewards = run_episode(initial_state, 20)
        returns = tf.cumsum(tf.cast(rewards, tf.float32), reverse=True)
        loss = -tf.reduce_sum(tf.math.log(action_probs) * (returns - values))
        loss += tf.reduce_sum(tf.square(returns - values))
    grads = tape.gradient(loss, weights)
    optimizer.apply_gradients(zip(grads, weights))
    return tf.math.reduce_sum(rewards)
