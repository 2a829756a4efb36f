"""The first AssignVariableOp of a variable writes twice, and an update in between is lost.

Its kernel makes the variable, with the value in it, and only then locks it and assigns the value
again (AssignVariableOp::Compute, tensorflow/core/kernels/resource_variable_ops.cc). An addition
that finds the new variable in between is lost. Here, one thread assigns 1, and another one tries to
add 1 until the variable is there, once. Whatever comes first, it has to be 2 in the end.

Needs TensorFlow only. Ends when it is 1 (exit code 1), or after a minute, or as many seconds as the
first argument says (exit code 0): the two have to meet, so that chance has a part.
"""

import sys
import threading
import time
from collections import Counter

import tensorflow as tf

raw = tf.raw_ops
VARIABLES = 50  # of one graph


def build(number):
    """For each new variable: its assignment, an addition, and a read."""
    with tf.Graph().as_default() as graph:
        one = tf.constant(1.0)
        rows = []
        for i in range(VARIABLES):
            x = raw.VarHandleOp(dtype=tf.float32, shape=[], shared_name=f"x{number}.{i}")
            assign = raw.AssignVariableOp(resource=x, value=one)
            add = raw.AssignAddVariableOp(resource=x, value=one)
            rows.append((assign, add, raw.ReadVariableOp(resource=x, dtype=tf.float32)))
    return graph, rows


def add_once(add, ready):
    """Add as soon as there is a variable."""
    ready.set()
    while True:
        try:
            return add()
        except (tf.errors.FailedPreconditionError, tf.errors.NotFoundError):
            pass


def main():
    """Run until an addition is lost, or the time is up; then tell."""
    end = time.monotonic() + (float(sys.argv[1]) if len(sys.argv) > 1 else 60)
    counts, number = Counter(), 0
    while time.monotonic() < end and 1.0 not in counts:
        graph, rows = build(number)
        number += 1
        with tf.compat.v1.Session(graph=graph) as session:
            for row in rows:
                assign, add, read = map(session.make_callable, row)
                ready = threading.Event()
                adding = threading.Thread(target=add_once, args=(add, ready))
                adding.start()
                ready.wait()
                assign()
                adding.join()
                counts[float(read())] += 1
    print(f"TensorFlow {tf.__version__}: 1, then one added; the variable holds")
    for value, count in counts.most_common():
        print(f"{value:4g}  {count:8}  {'allowed' if value == 2 else 'FORBIDDEN'}")
    sys.exit(1 if counts[1.0] else 0)


main()
