"""A step in which an op fails never ends, if another step waits for a lock that it holds.

Run A: a critical section reads a variable without a value, which fails; a second section of the same
run waits for the lock. Run B: a section that waits for the lock too, and waits first. A's second
section cannot be cancelled, because a mutex cancels one waiting op at a time, the first; and B's waits
for A to end. Runs both orders of waiting; the sleeps only make the orders likely. Needs TensorFlow only.
"""

import os
import subprocess
import sys
import threading
import time

WAIT_S, LIMIT_S = 1.0, 10.0


def one(order: str) -> None:
    import tensorflow as tf

    raw = tf.raw_ops
    with tf.Graph().as_default() as graph:
        mutex = raw.MutexV2(shared_name="m")
        variable = raw.VarHandleOp(dtype=tf.float32, shape=[], shared_name="x")
        queues = [
            raw.FIFOQueueV2(component_types=[tf.int32], shared_name=name) for name in ("q", "p")
        ]
        opened = [raw.QueueEnqueueV2(handle=queue, components=[1]) for queue in queues]
        # Run A: the first section fails once its gate opens, the second begins once its own does.
        lock = raw.MutexLock(mutex=mutex)
        with tf.control_dependencies([lock]):
            gate = raw.QueueDequeueV2(handle=queues[0], component_types=[tf.int32])
        with tf.control_dependencies(gate):
            read = raw.ReadVariableOp(resource=variable, dtype=tf.float32)
        with tf.control_dependencies([read]):
            first = raw.ConsumeMutexLock(mutex_lock=lock)
        with tf.control_dependencies(
            raw.QueueDequeueV2(handle=queues[1], component_types=[tf.int32])
        ):
            second = raw.ConsumeMutexLock(mutex_lock=raw.MutexLock(mutex=mutex))
        # Run B.
        other = raw.ConsumeMutexLock(mutex_lock=raw.MutexLock(mutex=mutex))
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        ended = []

        def run(name: str, *ops: tf.Operation) -> None:
            try:
                session.run(ops)
                ended.append(f"{name} completed")
            except tf.errors.OpError as error:
                ended.append(f"{name} {type(error).__name__}")

        def start(name: str, *ops: tf.Operation) -> None:
            threading.Thread(target=run, args=(name, *ops), daemon=True).start()
            time.sleep(WAIT_S)

        start("A", first, second)
        if order == "B":
            start("B", other)
        session.run(opened[1])
        time.sleep(WAIT_S)
        if order == "A":
            start("B", other)
        session.run(opened[0])
        end = time.monotonic() + LIMIT_S
        while len(ended) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        print(", ".join(sorted(ended)) or f"no run has ended after {LIMIT_S:.0f} s", flush=True)
        os._exit(len(ended) < 2)


if __name__ == "__main__":
    if sys.argv[1:]:
        one(sys.argv[1])
    codes = []
    for order in ("A", "B"):
        command = [sys.executable, __file__, order]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        codes.append(done.returncode)
        print(f"{order} waits first: {done.stdout.strip()}")
    print("expected: A FailedPreconditionError, B completed")
    sys.exit(any(codes))
