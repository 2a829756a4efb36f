"""Grappler's memory optimizer ends the process, signal 6, on a loop in a branch.

Needs TensorFlow only. Each setting of the optimizer gets a process of its own, since it ends it.
"""

import os
import subprocess
import sys

SETTINGS = "NO_MEM_OPT", "DEFAULT_MEM_OPT", "HEURISTICS"


def one(setting: str) -> None:
    import tensorflow as tf
    from tensorflow.core.protobuf import rewriter_config_pb2

    tf.compat.v1.enable_control_flow_v2()
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.get_variable("x", [], tf.int32, use_resource=True)

        def loop() -> tf.Tensor:
            return tf.while_loop(lambda i: i < 1, lambda i: i + 1, [tf.constant(0)])[0]

        branch = tf.cond(tf.constant(True), lambda: tf.constant(1), loop)
        with tf.control_dependencies([branch]):
            written = x.assign(1, read_value=False)
    config = tf.compat.v1.ConfigProto()
    options = config.graph_options.rewrite_options
    options.min_graph_nodes = -1
    options.memory_optimization = getattr(rewriter_config_pb2.RewriterConfig, setting)
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        session.run(written)


if __name__ == "__main__":
    if sys.argv[1:]:
        one(sys.argv[1])
        sys.exit()
    ended = {}
    for each in SETTINGS:
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        command = [sys.executable, __file__, each]
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        ended[each] = done.returncode
        print(f"{each}: exit code {done.returncode} (expected 0; -6 is a crash)")
    sys.exit(any(ended.values()))
