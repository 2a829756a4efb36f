"""Program of one TensorFlow gRPC server, which runs a part of a distributed graph.

Run as ``python -m`` with this module's name and the arguments ``NUMBER THREADS ADDRESS...``; a
forked server calls `serve`.

Its standard input is a pipe that carries no data. The pipe closes when the parent
process ends, for whatever reason, and the server then exits at once.
"""

from __future__ import annotations

import os
import sys

import tensorflow as tf


def serve(number: int, threads: int, addresses: list[str]) -> None:
    """Print "serving" once the server accepts sessions, and exit at the end of the input."""
    # TensorFlow prints to standard output: keep that for the answer alone.
    with os.fdopen(os.dup(1), "wb") as channel:
        os.dup2(2, 1)
        config = tf.compat.v1.ConfigProto(
            inter_op_parallelism_threads=threads, intra_op_parallelism_threads=1
        )
        config.device_count["GPU"] = 0
        spec = tf.train.ClusterSpec({"worker": addresses})
        server = tf.distribute.Server(spec, "worker", number, config=config)
        channel.write(b"serving")
    while os.read(0, 1):
        pass
    del server
    os._exit(0)


def main() -> None:
    """Run the server of the command line."""
    number, threads, *addresses = sys.argv[1:]
    serve(int(number), int(threads), addresses)


if __name__ == "__main__":
    main()
