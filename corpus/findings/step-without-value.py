"""An optimizer step beside the first assignment of its variable ends the process, signal 6.

A step of a variable that has no value is to fail with NOT_FOUND or FAILED_PRECONDITION. If the variable
is made while the step looks it up, the step releases a lock that it never took. Ops have to meet,
so that chance has a part: ends after a minute at the latest. Needs TensorFlow only.
"""

import os
import subprocess
import sys
import threading
import time

SECONDS = 60


def race() -> None:
    import tensorflow as tf

    raw = tf.raw_ops
    with tf.Graph().as_default() as graph:
        handle = raw.VarHandleOp(dtype=tf.float32, shape=[], shared_name="x")
        destroyed = raw.DestroyResourceOp(resource=handle)
        assigned = raw.AssignVariableOp(resource=handle, value=24.0)
        step = raw.ResourceApplyGradientDescent(var=handle, alpha=1.0, delta=11.0)
    with tf.compat.v1.Session(graph=graph) as session:

        def run(op: tf.Operation) -> None:
            try:
                session.run(op)
            except tf.errors.OpError:
                pass

        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            run(destroyed)
            threads = [threading.Thread(target=run, args=(op,)) for op in (assigned, step)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()


if __name__ == "__main__":
    if sys.argv[1:]:
        race()
        sys.exit()
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    command = [sys.executable, __file__, "race"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    said = next((s for s in done.stderr.splitlines() if "mutex.cc" in s), "")
    print(f"exit code {done.returncode} (expected 0) {said.strip()[-110:]}")
    sys.exit(done.returncode != 0)
