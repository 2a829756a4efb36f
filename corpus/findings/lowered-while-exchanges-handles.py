"""A lowered While takes the handles that it carries for constants.

A loop of two iterations gets the handles of x and y, adds 1 to the first, and exchanges them. So each
of the two is 1 in the end. The kernel of While does that. Once TensorFlow lowers the While, as it does by
default, both iterations add to x. No race is needed. Needs TensorFlow only.
"""

import sys

import tensorflow as tf


def ends(*, lowered: bool) -> tuple[int, int]:
    """x and y after the loop."""
    graph = tf.Graph()
    with graph.as_default():
        handles = [
            tf.raw_ops.VarHandleOp(dtype=tf.int32, shape=[], shared_name=name) for name in "xy"
        ]
        begin = [tf.raw_ops.AssignVariableOp(resource=handle, value=0) for handle in handles]

        def body(i: tf.Tensor, a: tf.Tensor, b: tf.Tensor) -> list[tf.Tensor]:
            added = tf.raw_ops.AssignAddVariableOp(resource=a, value=1)
            with tf.control_dependencies([added]):
                return [i + 1, b, a]

        tf.compat.v1.enable_control_flow_v2()
        loop = tf.while_loop(lambda i, *_: i < 2, body, [tf.constant(0), *handles])
        (made,) = [op for op in graph.get_operations() if op.type in ("While", "StatelessWhile")]
        made._set_attr(
            "_lower_using_switch_merge", tf.compat.v1.AttrValue(b=lowered)
        )
        values = [tf.raw_ops.ReadVariableOp(resource=each, dtype=tf.int32) for each in handles]
    with tf.compat.v1.Session(graph=graph) as session:
        session.run(begin)
        session.run(loop[0])
        x, y = session.run(values)
    return int(x), int(y)


if __name__ == "__main__":
    kernel, lowered = ends(lowered=False), ends(lowered=True)
    print(f"TensorFlow {tf.version.VERSION}; expected: x, y = (1, 1)")
    print(f"by the kernel of While: {kernel}")
    print(f"lowered: {lowered}")
    sys.exit(lowered != (1, 1))
