"""Systems under test, behind one protocol (`fuzz.executors.protocol`).

An executor reports what it saw and never judges: nothing here imports
`oracles`. Each runs in a worker process of its own
(`fuzz.executors.process`), so that a crash or a hang costs one test.
"""
