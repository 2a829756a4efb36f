"""Passes: functions from a litmus test to a litmus test.

A pass keeps what is allowed, or makes it smaller; which of the two, it says. It
knows the litmus test (`corpus`) alone, no executor and no oracle: an oracle
decides whether a pass keeps its word. Beside them stands what they and compilers
need of a test: its unsafe pairs (`safety`), what it waits for (`waits`), a cluster
as a pure function (`ssa`) and as text (`listing`).
"""
