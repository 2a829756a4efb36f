"""The single-threaded executor waits for ever where another op could go on.

Needs TensorFlow only. One graph, an empty queue Q, two ops with no edge between them:

    t = dequeue Q        enqueue 1 to Q

Some order lets both end, so that a run that waits for ever is forbidden. The default
executor ends all runs. ``SINGLE_THREADED_EXECUTOR`` takes the dequeue first, which holds
the only thread: the enqueue never runs. Exits 1 if a run waits.

A run is called waiting when it is not over after two seconds; it takes milliseconds.
"""

import contextlib
import sys
import threading

import tensorflow as tf

RUNS = 2
raw = tf.raw_ops


def one_run(executor):
    with tf.Graph().as_default():
        queue = raw.FIFOQueueV2(component_types=[tf.int32], capacity=1)
        (taken,) = raw.QueueDequeueV2(handle=queue, component_types=[tf.int32])
        put = raw.QueueEnqueueV2(handle=queue, components=[1])
        config = tf.compat.v1.ConfigProto()
        config.experimental.executor_type = executor
        session = tf.compat.v1.Session(config=config)

        def go():
            with contextlib.suppress(tf.errors.CancelledError):  # we have seen enough
                session.run([taken.op, put])

        thread = threading.Thread(target=go)
        thread.start()
        thread.join(2.0)
        waits = thread.is_alive()
        session.close()
        thread.join()
        return waits


waited = 0
for executor in ("", "SINGLE_THREADED_EXECUTOR"):
    waits = sum(one_run(executor) for _ in range(RUNS))
    note = "  FORBIDDEN" if waits else ""
    print(f"{executor or 'default executor'}: {waits} of {RUNS} runs wait for ever{note}")
    waited += waits
sys.exit(waited > 0)
