"""Tables of the C words that the reader knows: types, functions, keywords."""

from __future__ import annotations

from typing import Final

TYPES: Final = {
    **dict.fromkeys(("int", "int32_t", "atomic_int", "atomic_t"), "int32"),
    **dict.fromkeys(
        ("long", "int64_t", "intptr_t", "atomic_long", "atomic_llong", "atomic_long_t"), "int64"
    ),
    "atomic64_t": "int64",
}
QUALIFIERS: Final = frozenset({"const", "volatile", "_Atomic", "signed", "static", "register"})
REFUSED_TYPES: Final = (
    frozenset({"unsigned", "char", "short", "bool", "_Bool", "float", "double", "void"})
    | frozenset({"struct", "union", "enum", "spinlock_t", "mtx_t", "srcu_struct", "size_t"})
    | frozenset({"uint8_t", "uint16_t", "uint32_t", "uint64_t", "uintptr_t"})
    | frozenset({"int8_t", "int16_t", "__int128_t", "__uint128_t"})
    | frozenset({"atomic_bool", "atomic_flag", "atomic_uint", "atomic_ulong"})
)
ORDERS: Final = frozenset(
    f"memory_order_{each}" for each in ("relaxed", "consume", "acquire", "release", "acq_rel")
) | {"memory_order_seq_cst"}

# How a function's variable is written, and whether a memory order comes last.
LOADS: Final = {
    "atomic_load": ("x", False),
    "atomic_load_explicit": ("x", True),
    "READ_ONCE": ("*x", False),
    "smp_load_acquire": ("x", False),
    "atomic_read": ("x", False),
    "atomic_read_acquire": ("x", False),
}
STORES: Final = {
    "atomic_store": ("x", False),
    "atomic_store_explicit": ("x", True),
    "WRITE_ONCE": ("*x", False),
    "smp_store_release": ("x", False),
    "smp_store_mb": ("*x", False),
    "atomic_set": ("x", False),
    "atomic_set_release": ("x", False),
}
FETCHES: Final = {
    "atomic_fetch_add": ("add", False),
    "atomic_fetch_add_explicit": ("add", True),
    "atomic_fetch_sub": ("sub", False),
    "atomic_fetch_sub_explicit": ("sub", True),
}
KERNEL_ADDS: Final = {"atomic_add": "add", "atomic_sub": "sub"}
KERNEL_STEPS: Final = {"atomic_inc": "add", "atomic_dec": "sub"}
STRONG: Final = frozenset(
    {"memory_order_seq_cst", "atomic_load", "atomic_store", "smp_store_mb"}
    | {"atomic_fetch_add", "atomic_fetch_sub"}
)
"""Orders, and functions without one, that are sequentially consistent in C11 or the kernel."""
FENCES: Final = frozenset({"atomic_thread_fence", "atomic_signal_fence", "barrier"}) | frozenset(
    {"smp_mb", "smp_rmb", "smp_wmb", "smp_mb__before_atomic", "smp_mb__after_atomic"}
)
BRANCHES: Final = frozenset({"if", "else", "switch", "goto", "return", "break", "continue"})
LOOPS: Final = frozenset({"while", "for", "do"})

RESERVED: Final = (
    frozenset(TYPES).union(LOADS, STORES, FETCHES, KERNEL_ADDS, KERNEL_STEPS)
    | QUALIFIERS.union(REFUSED_TYPES, BRANCHES, LOOPS, FENCES, ORDERS)
    | frozenset({"exists", "forall", "final", "locations", "filter", "observed", "Observed"})
    | frozenset({"cases", "with", "not", "true", "false", "and", "or", "fault", "Fault"})
    | frozenset({"lock", "unlock", "SCAS", "WCAS", "constvar", "codevar", "instr", "label"})
    | frozenset({"auto", "case", "default", "extern", "inline", "restrict", "sizeof", "typedef"})
    | frozenset({"ATOMIC_INIT", "NULL", "NOP", "PTE", "PA", "tag"})
)
"""Words that herd reserves, and that are therefore no names."""
