"""The first AssignVariableOp of a variable writes twice, and another one in between is lost.

Its kernel makes the variable, with the value in it, and only then locks it and assigns the value
again (AssignVariableOp::Compute, tensorflow/core/kernels/resource_variable_ops.cc). What another
op writes in between is lost, even if that comes after a read of the first value. Here, one thread
assigns 1. Another one tries to read the variable, and to assign minus what it has read, until that
succeeds once. The read comes after the first assignment, so that it has to be -1.

Needs TensorFlow only. Ends when it is 1 (exit code 1), or after a minute, or as many seconds as the
first argument says (exit code 0): the two have to meet, so that chance has a part.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import sys
import threading
import time
from collections import Counter

import tensorflow as tf

raw = tf.raw_ops
VARIABLES = 50  # of one graph


def build(number):
    """For each new variable: its assignment, one of minus its value, and a read."""
    with tf.Graph().as_default() as graph:
        one = tf.constant(1.0)
        rows = []
        for i in range(VARIABLES):
            x = raw.VarHandleOp(dtype=tf.float32, shape=[], shared_name=f"x{number}.{i}")
            assign = raw.AssignVariableOp(resource=x, value=one)
            value = raw.ReadVariableOp(resource=x, dtype=tf.float32)
            negate = raw.AssignVariableOp(resource=x, value=-value)
            rows.append((assign, negate, raw.ReadVariableOp(resource=x, dtype=tf.float32)))
    return graph, rows


def negate_once(negate, ready):
    """Negate as soon as there is a variable."""
    ready.set()
    while True:
        try:
            return negate()
        except (tf.errors.FailedPreconditionError, tf.errors.NotFoundError):
            pass


def main():
    """Run until an assignment is lost, or the time is up; then tell."""
    end = time.monotonic() + (float(sys.argv[1]) if len(sys.argv) > 1 else 60)
    counts, number = Counter(), 0
    while time.monotonic() < end and 1.0 not in counts:
        graph, rows = build(number)
        number += 1
        with tf.compat.v1.Session(graph=graph) as session:
            for row in rows:
                assign, negate, read = map(session.make_callable, row)
                ready = threading.Event()
                other = threading.Thread(target=negate_once, args=(negate, ready))
                other.start()
                ready.wait()
                assign()
                other.join()
                counts[float(read())] += 1
    print(f"TensorFlow {tf.__version__}: 1, then minus what was read; the variable holds")
    for value, count in counts.most_common():
        print(f"{value:4g}  {count:8}  {'allowed' if value == -1 else 'FORBIDDEN'}")
    sys.exit(1 if counts[1.0] else 0)


main()
