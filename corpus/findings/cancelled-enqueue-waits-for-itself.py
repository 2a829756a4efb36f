"""A cancelled step never ends, if a close waits behind an enqueue, and enqueues behind the close.

All are in one step, on a full queue. When the step is cancelled, here by a timeout, so is the first
enqueue. The close can then go on, and those behind it end, because the queue is closed: that waits until
the cancellation is over, which it is a part of. Where the first enqueue is the last to be cancelled, the
step ends: there are eight behind the close, and TensorFlow cancels in the order of a hash table. Runs the
step without the close too, which ends. The sleeps only make the order likely. Needs TensorFlow only.
"""

import os
import subprocess
import sys
import threading
import time

WAIT_S, LIMIT_S = 1.0, 10.0


def one(closes: bool) -> None:
    import tensorflow as tf

    raw = tf.raw_ops
    with tf.Graph().as_default() as graph:
        queue, *gates = (
            raw.FIFOQueueV2(component_types=[tf.int32], shapes=[[]], capacity=1, shared_name=name)
            for name in "qab"
        )
        fill, first, *opened = (
            raw.QueueEnqueueV2(handle=each, components=[1]) for each in (queue, queue, *gates)
        )
        waits = [raw.QueueDequeueV2(handle=each, component_types=[tf.int32]) for each in gates]
        with tf.control_dependencies(waits[0]):
            close = raw.QueueCloseV2(handle=queue) if closes else tf.no_op()
        with tf.control_dependencies(waits[1]):
            others = [raw.QueueEnqueueV2(handle=queue, components=[1]) for _ in range(8)]
    session = tf.compat.v1.Session(graph=graph)
    session.run(fill)
    ended = []

    def run() -> None:
        milliseconds = round(4000 * WAIT_S)
        try:
            session.run(
                [first, close, *others],
                options=tf.compat.v1.RunOptions(timeout_in_ms=milliseconds),
            )
        except tf.errors.OpError as error:
            ended.append(type(error).__name__)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    for gate in opened:
        time.sleep(WAIT_S)
        session.run(gate)
    thread.join(LIMIT_S)
    how = ended[0] if ended else f"the step has not ended after {LIMIT_S:.0f} s"
    print(f"{'with' if closes else 'without'} a close: {how}", flush=True)
    os._exit(not ended)


if __name__ == "__main__":
    if sys.argv[1:]:
        one(sys.argv[1] == "close")
    codes = []
    for how in ("no close", "close"):
        command = [sys.executable, __file__, how]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        codes.append(done.returncode)
        print(done.stdout.strip())
    print("expected: DeadlineExceededError")
    sys.exit(any(codes))
