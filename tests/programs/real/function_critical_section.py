"""Two variables that change together, in a CriticalSection that does not return what it writes.

Source: tensorflow.org/api_docs/python/tf/CriticalSection
Check: function_critical_section:swap function_critical_section:both --concurrent swap
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
        a.assign(b.read_value())
        b.assign(old)
        return old

    return cs.execute(body)


@tf.function
def both():
    return cs.execute(lambda: (a.read_value(), b.read_value()))
