"""Executors: systems under test, behind one protocol (`litmusfuzz.fuzz.executors.protocol`).

An executor reports outcomes and never judges them: nothing here imports the oracles. Each
runs in a worker process (`litmusfuzz.fuzz.executors.worker`), so that a crash or a hang
costs one test.
"""
