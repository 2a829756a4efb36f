"""The native executor: a dataflow runtime of our own in C++ (``fuzz/native``).

Terms
-----
lowering
    Translation of a test to plain arrays: numbers in place of names, edges through slots.
slot
    Holder of one result in a frame; it becomes ready once, and may then hold a value.
controlled
    Execution of one event at a time on one thread, in an order that a scheduler chooses.

The package knows the litmus test (`corpus`) and the executor protocol. It must not know
which outcomes are allowed: it shares no code with an oracle.
"""
