"""Oracles: the exact set of outcomes that a memory model allows for a litmus test.

Terms
-----
event
    One atomic step of an op instance: R(v), W(v), or both at once
    (`litmusfuzz.oracles.events`).
model
    Named axioms about the total order of events (`litmusfuzz.oracles.model`).
allowed set
    The outcomes of all total orders that satisfy the axioms, each with a
    *witness*: one total order that yields it (`litmusfuzz.oracles.allowed`).

An oracle is pure: no clock, no randomness, no I/O. It never sees an executor.
"""
