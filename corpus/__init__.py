"""Litmus tests: the model of a test, its file formats, and the tests that we keep.

Terms
-----
litmus test
    Resources with initial contents, graphs over them, the runs of these graphs, and the
    nodes whose values are observed (`litmusfuzz.corpus.model`). Frozen, and validated once,
    when it is made.
op table
    Every op that a node may have, with all that code asks about it, except what it computes
    (`litmusfuzz.corpus.ops`).
outcome
    The observed values and the final contents of one execution (`litmusfuzz.corpus.outcome`).
entry
    A litmus test with its exact allowed sets, or with a finding on it; one YAML file each
    (`litmusfuzz.corpus.textfile`). Short notation (`litmusfuzz.corpus.builder`) and the C of
    herdtools7 (`litmusfuzz.corpus.herd`) are other ways to write a test.

To add an op: a row of the op table, its meaning in each oracle, and its lowering in each
executor. This package imports no other: it knows neither how an outcome is judged nor how
it is produced.
"""
