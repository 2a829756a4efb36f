"""Two variables that change together, in a CriticalSection whose results wait for the writes.

Source: tensorflow.org/api_docs/python/tf/CriticalSection
Check: function_section_repaired:swap function_section_repaired:both --concurrent swap
    --concurrent swap,both
"""

import tensorflow as tf

cs = tf.CriticalSection(name="section")
a = tf.Variable(1.0, name="a")
b = tf.Variable(2.0, name="b")


@tf.function
def swap():
    def body():
        old = a.read_value()
        writes = [a.assign(b.read_value()), b.assign(old)]
        with tf.control_dependencies(writes):
            return tf.identity(old)

    return cs.execute(body)


@tf.function
def both():
    return cs.execute(lambda: (a.read_value(), b.read_value()))
