"""One gRPC worker.

Run as ``python -m litmusfuzz.fuzz.executors.tensorflow.task NUMBER THREADS ADDRESS...``.

Its standard input is a pipe that nobody writes to: it ends when the process that
started this one has ended, however it did, and this one then ends at once.
"""

from __future__ import annotations

import os
import sys

import tensorflow as tf


def main() -> None:
    """Serve until the input ends; says so when it does."""
    number, threads, *addresses = sys.argv[1:]
    # TensorFlow prints; the answer needs a channel of its own.
    with os.fdopen(os.dup(1), "wb") as channel:
        os.dup2(2, 1)
        config = tf.compat.v1.ConfigProto(
            inter_op_parallelism_threads=int(threads), intra_op_parallelism_threads=1
        )
        config.device_count["GPU"] = 0
        spec = tf.train.ClusterSpec({"worker": addresses})
        server = tf.distribute.Server(spec, "worker", int(number), config=config)
        channel.write(b"serving")
    sys.stdin.buffer.read()
    del server
    os._exit(0)


if __name__ == "__main__":
    main()
