"""A cluster that XLA compiles takes ops of two critical sections, and waits for ever.

Needs TensorFlow only (auto-clustering on the CPU, with its safety checks on). One
graph, X = Y = Z = 0 at first, two critical sections on one mutex M:

    lock M, then Z = 1, then b = X, then unlock M
    lock M, then Y = b, then unlock M

If the second section enters first, it waits for b, which waits for M: for ever, and Z
is 0. If the first enters first, it sets Z, reads X, and frees M: all comes to its end.
So a run that waits for ever with Z = 1 is forbidden. Exits 1 if there is one.

TensorFlow puts "b = X" and "Y = b" into one cluster. The cluster waits for both locks,
and the first is not freed before the cluster is done. Without clusters (say "off") no
run waits with Z = 1.

A run is called waiting when it is not over after two seconds; it takes milliseconds.
"""

import contextlib
import os
import sys
import threading

if "off" not in sys.argv:
    os.environ["TF_XLA_FLAGS"] = (
        "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=1"
    )

import tensorflow as tf

RUNS = 12
raw = tf.raw_ops


def section(handle, members):
    """Lock, then the members, then unlock: as tf.CriticalSection makes it."""
    lock = raw.MutexLock(mutex=handle)
    with tf.control_dependencies([lock]):
        done = members()
    with tf.control_dependencies(done):
        return done, raw.ConsumeMutexLock(mutex_lock=lock)


def one_run(run):
    with tf.Graph().as_default():
        x, y, z = (
            raw.VarHandleOp(dtype=tf.int32, shape=[], shared_name=f"{name}{run}") for name in "XYZ"
        )
        mutex = raw.MutexV2(shared_name=f"M{run}")
        clear = [raw.AssignVariableOp(resource=each, value=0) for each in (x, y, z)]

        def first():
            set_z = raw.AssignVariableOp(resource=z, value=1)
            with tf.control_dependencies([set_z]):
                return [raw.ReadVariableOp(resource=x, dtype=tf.int32)]

        (b,), unlocked = section(mutex, first)
        _, also = section(mutex, lambda: [raw.AssignVariableOp(resource=y, value=b)])
        see_z = raw.ReadVariableOp(resource=z, dtype=tf.int32)
        session = tf.compat.v1.Session()
        session.run(clear)

        def go():
            with contextlib.suppress(tf.errors.CancelledError):  # we have seen enough
                session.run([unlocked, also])

        thread = threading.Thread(target=go)
        thread.start()
        thread.join(2.0)
        waits = thread.is_alive()
        seen = session.run(see_z)
        session.close()
        thread.join()
        return ("waits" if waits else "ends", int(seen))


counts = {}
for run in range(RUNS):
    outcome = one_run(run)
    counts[outcome] = counts.get(outcome, 0) + 1
for (how, seen), count in sorted(counts.items()):
    note = "  FORBIDDEN" if (how, seen) == ("waits", 1) else ""
    print(f"{count:3} of {RUNS}: {how}, Z={seen}{note}")
sys.exit(("waits", 1) in counts)
