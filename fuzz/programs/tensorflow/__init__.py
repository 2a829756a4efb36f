"""Programs of TensorFlow: read from files as data, or from a user's module by importing it."""
