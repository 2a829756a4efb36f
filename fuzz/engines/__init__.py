"""Concurrency engines: by name, their settings, and those written in Python.

Terms
-----
engine
    Decides which thread runs which closure when (``fuzz/native/include/litmusfuzz/
    engine.h``). It knows no graph and no variable.
plug-in
    An engine in a shared library; ours over oneTBB and OpenMP are such, too.

The engines in C++ are in ``fuzz/native``. Nothing here knows an executor.
"""
