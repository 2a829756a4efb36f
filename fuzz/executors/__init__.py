"""Systems under test, behind one protocol (`litmusfuzz.fuzz.executors.protocol`).

An executor reports what it saw and never judges: nothing here imports
`oracles`. Each runs in a worker process of its own
(`litmusfuzz.fuzz.executors.worker`), so that a crash or a hang costs one test.
"""
