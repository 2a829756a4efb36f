"""A tf.Module with a bias that is created lazily, exported: its call and its change.

Source: tensorflow.org/guide/saved_model, "Saving a custom model"
Check: function_module:call function_module:mutate
"""

import tensorflow as tf


class CustomModule(tf.Module):
    def __init__(self):
        super().__init__()
        self.v = tf.Variable(1.0, name="v")

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def __call__(self, x):
        return x * self.v

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def mutate(self, new_v):
        self.v.assign(new_v)


module = CustomModule()
call = module.__call__
mutate = module.mutate
