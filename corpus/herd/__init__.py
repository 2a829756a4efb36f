"""Litmus tests in C, as herd of herdtools7 reads and writes them.

`loads` reads a test, `dumps` writes one; `read_log` reads a log of herd's results, and `log`
writes our results in the same format, for mcompare7.

The reader accepts ``C NAME``, a quoted comment, the block of initial values,
threads ``P0 (int *x) { ... }`` of stores, loads, fetch-and-adds whose result is
dropped, and sums, differences and products of registers; ``locations`` and a
condition. Accesses may be those of C11, of the Linux kernel, or plain. It refuses
everything else, with the line.

**Every access counts as sequentially consistent**, whatever memory order it
names: our memory model is interleaving, so that ``memory_order_relaxed``,
``READ_ONCE`` and a plain ``*x`` mean one atomic access each, in program order.
Fences that only order (``atomic_thread_fence``, ``smp_mb``) are hence read and
dropped; what waits for other threads (locks, RCU) is refused. A fetch-and-add
becomes an AssignAdd: indivisible, as C has it, under the model `executor` only.

References
----------
Alglave, Maranget, Tautschnig, "Herding Cats", TOPLAS 2014, section 8.2 (the
format); herdtools7, `lib/splitter.mll`, `lib/CParser.mly`, `lib/stateParser.mly`.
"""

from litmusfuzz.corpus.herd.log import LoggedTest, State, log, read_log
from litmusfuzz.corpus.herd.reader import Imported, loads, parse
from litmusfuzz.corpus.herd.writer import DoesNotFit, Layout, condition_of, dumps, layout

__all__ = [
    "DoesNotFit",
    "Imported",
    "Layout",
    "LoggedTest",
    "State",
    "condition_of",
    "dumps",
    "layout",
    "loads",
    "log",
    "parse",
    "read_log",
]
