"""Concurrency engines: names, settings, and engines written in Python.

Terms
-----
engine
    Decides which thread runs which closure when (``fuzz/native/include/litmusfuzz/
    engine.h``). It knows no graph and no variable.
plug-in
    An engine in a shared library, such as ours over oneTBB and OpenMP.

The C++ engines are in ``fuzz/native``. This package knows no executor.
"""
