"""The native executor: a dataflow runtime of our own in C++ (``fuzz/native``).

Terms
-----
lowering
    A test as plain arrays: names become numbers, edges lead through slots.
slot
    What becomes ready once in each frame, and may then hold a value.
controlled
    One event at a time on one thread, in an order that a scheduler chooses.

It knows the litmus test (`corpus`) and the executor protocol. What is allowed
it must not know: it shares no code with an oracle.
"""
