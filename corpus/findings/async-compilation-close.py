"""Closing a session while XLA compiles in the background: the process ends, signal 6 or 11.

Needs TensorFlow only. Each try is a process of its own, since it ends it: five, or as many
as the first argument says.
"""

import os
import subprocess
import sys

FLAGS = (
    "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=1 "
    "--tf_xla_enable_lazy_compilation=true --tf_xla_async_compilation=true"
)
ONE = "one"


def one() -> None:
    import tensorflow as tf

    graph = tf.Graph()
    with graph.as_default():
        given = tf.compat.v1.placeholder(tf.float32, [4])
        result = tf.raw_ops.Relu(features=given * 2.0 + 1.0)
    with tf.compat.v1.Session(graph=graph) as session:
        for _ in range(4):
            session.run(result, {given: [1.0, 2.0, 3.0, 4.0]})


if __name__ == "__main__":
    if ONE in sys.argv:
        one()
        sys.exit()
    tries = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    ended = []
    for _ in range(tries):
        environment = {**os.environ, "TF_XLA_FLAGS": FLAGS, "TF_CPP_MIN_LOG_LEVEL": "3"}
        command = [sys.executable, __file__, ONE]
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        ended.append(done.returncode)
    print(f"exit codes of {tries} processes (expected 0; -6 and -11 are crashes): {ended}")
