"""Actor and critic with slowly following targets.

Source: keras.io/examples/rl/ddpg_pendulum
Check: function_ddpg:update function_ddpg:follow
"""

import keras
import tensorflow as tf


def network(width):
    model = keras.Sequential([keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])
    model.build((None, width))
    return model


actor_model, target_actor = network(3), network(3)
critic_model, target_critic = network(4), network(4)
critic_optimizer = keras.optimizers.Adam(0.002)
actor_optimizer = keras.optimizers.Adam(0.001)
critic_optimizer.build(critic_model.trainable_variables)
actor_optimizer.build(actor_model.trainable_variables)
ONE = tf.TensorSpec([64, 1])
THREE = tf.TensorSpec([64, 3])


@tf.function(input_signature=[THREE, ONE, ONE, THREE])
def update(state_batch, action_batch, reward_batch, next_state_batch):
    with tf.GradientTape() as tape:
        target_actions = target_actor(next_state_batch, training=True)
        joined = tf.concat([next_state_batch, target_actions], 1)
        y = reward_batch + 0.99 * target_critic(joined, training=True)
        critic_value = critic_model(tf.concat([state_batch, action_batch], 1), training=True)
        critic_loss = tf.reduce_mean(tf.square(y - critic_value))
    critic_grad = tape.gradient(critic_loss, critic_model.trainable_variables)
    critic_optimizer.apply_gradients(zip(critic_grad, critic_model.trainable_variables))
    with tf.GradientTape() as tape:
        actions = actor_model(state_batch, training=True)
        critic_value = critic_model(tf.concat([state_batch, actions], 1), training=True)
        actor_loss = -tf.reduce_mean(critic_value)
    actor_grad = tape.gradient(actor_loss, actor_model.trainable_variables)
    actor_optimizer.apply_gradients(zip(actor_grad, actor_model.trainable_variables))


@tf.function
def follow():
    tau = 0.005
    for target, original in ((target_actor, actor_model), (target_critic, critic_model)):
        for a, b in zip(target.variables, original.variables):
            a.assign(b * tau + a * (1 - tau))
