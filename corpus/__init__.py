"""Ground floor: what a litmus test is, and the ones that we keep.

Terms
-----
litmus test
    Resources with initial contents, graphs over them, and what is observed
    (`litmusfuzz.corpus.model`). Frozen, and checked once, when it is made.
outcome
    The values one execution showed (`litmusfuzz.corpus.outcome`).
entry
    A litmus test with its exact allowed sets, or with what was found on it;
    one YAML file each (`litmusfuzz.corpus.textfile`).

This package knows nobody: neither how an outcome is judged, nor how one is
produced.
"""
