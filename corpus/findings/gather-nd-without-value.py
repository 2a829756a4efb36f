"""`ResourceGatherNd` of a variable that has no value yet ends the process, signal 6.

`AssignVariableOp`, in a cluster that XLA compiles, makes the variable first and writes it later. An
op that reads it in between is to fail, as `ReadVariableOp` does. `ResourceGatherNd` ends the process:
"Check failed: dtype() == expected_dtype". Ops have to meet, so that chance has a part: ends after half
a minute at the latest. Each op runs in a process of its own. Needs TensorFlow only.
"""

import os
import subprocess
import sys
import time

COPIES, SECONDS = 16, 15
FLAGS = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=1"
FLAGS += " --tf_xla_enable_lazy_compilation=false"


def one(op: str) -> None:
    import tensorflow as tf

    raw = tf.raw_ops
    with tf.Graph().as_default() as graph:
        destroyed, raced = [], []
        for copy in range(COPIES):
            handle = raw.VarHandleOp(dtype=tf.float32, shape=[1], shared_name=f"x{copy}")
            destroyed.append(raw.DestroyResourceOp(resource=handle))
            raced.append(raw.AssignVariableOp(resource=handle, value=tf.constant([1.0]) * 2))
            with tf.control_dependencies([]):
                if op == "ReadVariableOp":
                    raced.append(raw.ReadVariableOp(resource=handle, dtype=tf.float32))
                else:
                    raced.append(
                        raw.ResourceGatherNd(resource=handle, indices=[[0]], dtype=tf.float32)
                    )
    with tf.compat.v1.Session(graph=graph) as session:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            session.run(destroyed)
            try:
                session.run(raced)
            except tf.errors.OpError:
                pass


if __name__ == "__main__":
    if sys.argv[1:]:
        one(sys.argv[1])
        sys.exit()
    codes = []
    for op in ("ReadVariableOp", "ResourceGatherNd"):
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "TF_XLA_FLAGS": FLAGS}
        command = [sys.executable, __file__, op]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        codes.append(done.returncode)
        said = next((s for s in done.stderr.splitlines() if "Check failed" in s), "")
        print(f"{op}: exit code {done.returncode} (expected 0) {said.strip()[-110:]}")
    sys.exit(any(codes))
