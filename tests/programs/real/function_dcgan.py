"""A generator and a discriminator, trained in one step.

Source: tensorflow.org/tutorials/generative/dcgan
Check: function_dcgan:train_step function_dcgan:generate
"""

import tensorflow as tf
from tensorflow.keras import layers

noise_dim = 10
generator = tf.keras.Sequential(
    [
        layers.Input((noise_dim,)),
        layers.Dense(7 * 7 * 16, use_bias=False),
        layers.BatchNormalization(),
        layers.LeakyReLU(),
        layers.Reshape((7, 7, 16)),
        layers.Conv2DTranspose(1, (5, 5), strides=(4, 4), padding="same", activation="tanh"),
    ]
)
discriminator = tf.keras.Sequential(
    [
        layers.Input((28, 28, 1)),
        layers.Conv2D(16, (5, 5), strides=(2, 2), padding="same"),
        layers.LeakyReLU(),
        layers.Dropout(0.3),
        layers.Flatten(),
        layers.Dense(1),
    ]
)
cross_entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True)
generator_optimizer = tf.keras.optimizers.Adam(1e-4)
discriminator_optimizer = tf.keras.optimizers.Adam(1e-4)
generator_optimizer.build(generator.trainable_variables)
discriminator_optimizer.build(discriminator.trainable_variables)


@tf.function(input_signature=[tf.TensorSpec([8, 28, 28, 1])])
def train_step(images):
    noise = tf.random.normal([8, noise_dim])
    with tf.GradientTape() as gen_tape, tf.GradientTape() as disc_tape:
        generated_images = generator(noise, training=True)
        real = discriminator(images, training=True)
        fake = discriminator(generated_images, training=True)
        gen_loss = cross_entropy(tf.ones_like(fake), fake)
        disc_loss = cross_entropy(tf.ones_like(real), real)
        disc_loss += cross_entropy(tf.zeros_like(fake), fake)
    gen_gradients = gen_tape.gradient(gen_loss, generator.trainable_variables)
    disc_gradients = disc_tape.gradient(disc_loss, discriminator.trainable_variables)
    generator_optimizer.apply_gradients(zip(gen_gradients, generator.trainable_variables))
    discriminator_optimizer.apply_gradients(zip(disc_gradients, discriminator.trainable_variables))


@tf.function(input_signature=[tf.TensorSpec([16, noise_dim])])
def generate(noise):
    return generator(noise, training=False)
