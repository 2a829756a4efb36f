"""Programs of TensorFlow: read from files as data, or from a user's module by importing it.

`showing` executes a program, with `gates` around the accesses of an anomaly, on one of the `hosts`:
with `run_inputs`, under a `time_limit`, and it compares `tensor_values`.
"""
