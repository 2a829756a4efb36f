"""The table of mutants: every class is in it, and pages count them."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections import Counter
from pathlib import Path

from helpers import for_each

from litmusfuzz.fuzz import mutants
from litmusfuzz.fuzz.executors.table import EXECUTORS, MUTANT

ROOT = Path(__file__).parent.parent.parent
MODULES = [each.name for each in pkgutil.iter_modules(mutants.__path__) if each.name[0] != "_"]
LISTED = {
    name: entry.removeprefix(f"{mutants.__name__}.").partition(":")[0]
    for name, entry in EXECUTORS.items()
    if name.startswith(MUTANT)
}
"""By mutant, the module that its entry names."""
PARTS = {
    "of `native`": ("native",),
    "of OpenCL devices": ("opencl",),
    "of TensorFlow": ("tensorflow",),
    "of JAX": ("jax",),
    "of JAX's references": ("jax_refs",),
    "in\nPython": ("canary", "stale_reads", "scatter"),
}
"""What the page on the self-test counts, and the modules that have those."""


@for_each("module", MODULES)
def test_every_mutant_of_a_module_is_in_the_table(module: str) -> None:
    """A class that has a mutant's name, and no line in the table, would never be killed."""
    name = f"{mutants.__name__}.{module}"
    classes = inspect.getmembers(importlib.import_module(name), inspect.isclass)
    own = {str(vars(each).get("name", "")) for _, each in classes if each.__module__ == name}
    named = {name for name in own if name.startswith(MUTANT)}
    listed = {name for name, of in LISTED.items() if of == module}
    assert named == listed, "add a line to EXECUTORS in fuzz/executors/table.py"


def test_the_package_says_what_each_module_has() -> None:
    assert mutants.__doc__ is not None
    assert not [name for name in MODULES if f"`{name}`" not in mutants.__doc__]


def test_pages_count_the_mutants() -> None:
    page = (ROOT / "docs" / "selftest.md").read_text(encoding="utf-8")
    by_module = Counter(LISTED.values())
    assert sum(len(modules) for modules in PARTS.values()) == len(by_module)
    for words, modules in PARTS.items():
        assert f"{sum(by_module[each] for each in modules)} {words}" in page
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(rf"\b{len(LISTED)} \*mutants\*", page)
    assert f"{len(LISTED)} executors that are wrong on purpose" in readme
