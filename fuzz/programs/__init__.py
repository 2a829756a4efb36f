"""Programs that people wrote: their accesses to resources, what orders these, and what can differ.

A *program* is what TensorFlow executes, as data: a graph, functions, and the *runs* that a client
may start (`program`). Its functions, conditionals and loops are expanded (`expansion`), which
gives the *accesses* of each run, and the order that edges impose on them (`order`). Accesses that
conflict, and that nothing orders, are classified and grouped into *anomalies* (`anomalies`), for
which a total order that has them is looked for (`total_order`).

Nothing of a program is executed here. `litmusfuzz.fuzz.programs.tensorflow` reads programs from
files and from a user's module, and executes them if somebody wants an anomaly shown.

Terms
-----
access
    One op instance's effect on one resource: a read, a write or an update.
run
    A part of a program that a client starts as a whole.
anomaly
    A result that depends on the order of accesses that nothing orders.

References
----------
semantics.md, sections 2 and 3. The names of the anomalies are those of databases: Berenson et al.,
"A Critique of ANSI SQL Isolation Levels", SIGMOD 1995.
"""
