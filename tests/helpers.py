"""What several test files need."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from helpers_orders import count_orders

from litmusfuzz import corpus
from litmusfuzz.corpus.model import LitmusTest
from litmusfuzz.corpus.ops import FLOATS
from litmusfuzz.corpus.rewriter import Rewriter
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, load
from litmusfuzz.fuzz.campaign.script_runner import ScriptRunner
from litmusfuzz.fuzz.campaign.tuning import MAX_REDUCTION_S
from litmusfuzz.oracles.events import unfold
from litmusfuzz.oracles.model import RFC
from litmusfuzz.oracles.reference import allowed_outcomes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from litmusfuzz.oracles.model import Model

PATIENCE_S = 120.0
"""Seconds that tests wait for what comes at once where a core is free. Beside a dozen busy
processes it takes ten times as long; nothing that passes needs all of it."""
SMALL_ORDERS = 2_000
"""Total orders that the reference oracle looks at in a fraction of a second."""
BY_FEATURE = ("dag", "sections", "queues", "conditionals", "loops", "runs", "mixed")
"""Families whose tests have the features that they are about, and few others."""
LITMUS = sorted((Path(corpus.__file__).parent / "litmus").glob("*.yaml"))
CLUSTERED = [path for path in LITMUS if "\nclusters:\n" in path.read_text(encoding="utf-8")]
"""Corpus tests with clusters of their own, which only the JAX executor runs."""
UNCLUSTERED = [path for path in LITMUS if path not in CLUSTERED]
ALIASES = """\
litmusfuzz: 2
name: aliases
variables:
  X: {dtype: int32, shape: [], init: 0}
graphs:
  main:
    h0: {op: VarHandleOp, variable: X}
    h1: {op: Identity, inputs: [h0]}
    h2: {op: Identity, inputs: [h1]}
    c0: {op: Const, dtype: int32, shape: [], value: 1}
    w0: {op: AssignVariableOp, resources: [X], handle: h1, inputs: [c0]}
    r0: {op: ReadVariableOp, resources: [X], handle: h2}
observe: [r0]
"""
"""Three names of one handle."""
LOCKED_OUT = """\
litmusfuzz: 2
name: locked-out
variables:
  X: {dtype: int32, shape: [], init: 0}
mutexes:
  M: {}
  N: {}
graphs:
  main:
    c3: {op: Const, dtype: int32, shape: [], value: 1}
    w4: {op: AssignVariableOp, resources: [X], inputs: [c3]}
    s5: {op: CriticalSection, resources: [N], members: [w4]}
    r6: {op: ReadVariableOp, resources: [X]}
    r7: {op: ReadVariableOp, resources: [X]}
    s8: {op: CriticalSection, resources: [N], members: [r7]}
    s9: {op: CriticalSection, resources: [M], members: [w4, r7]}
    w11: {op: AssignVariableOp, resources: [X], inputs: [r7]}
    s12: {op: CriticalSection, resources: [N], members: [w11]}
observe: [r6]
"""
"""If s12 takes the lock before s8, w11 waits for ever for r7, which is in s8."""


WHOLE = "LITMUSFUZZ_WHOLE"
"""Set by ``make nightly``: tests that take a share of the corpus then take all of it."""


def share_of(values: Sequence[Any], every: int) -> Sequence[Any]:
    """Every so many-th value; all in ``make nightly``.

    For tests that look at one more system through the whole corpus, whose sets other tests have
    compared already. ``make test`` must end in ten minutes.
    """
    return values if os.environ.get(WHOLE) else values[::every]


nightly = pytest.mark.skipif(not os.environ.get(WHOLE), reason="runs in `make nightly`")
"""Of tests that look for seconds whether a defect of TensorFlow is still there."""


@cache
def corpus_entry(path: Path) -> Entry:
    """A file of the corpus, read once for all tests of this process."""
    return load(path)


def compiled(output: Path, *arguments: str | Path) -> Path:
    """Build a shared library with the compiler of the package."""
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]
    include = Path(__file__).parents[1] / "fuzz/native/include"
    subprocess.run([*compiler, *flags, f"-I{include}", *arguments, "-o", output], check=True)
    return output


def check_as_if_made_anew(test: LitmusTest) -> None:
    """All that is derived in it is as in a test that is made of the same parts, and checked."""
    again = replace(test)
    assert again == test
    for each in fields(LitmusTest):
        found, wanted = getattr(test, each.name), getattr(again, each.name)
        assert found == wanted, each.name
        assert type(found) is type(wanted), each.name
        if isinstance(wanted, Mapping) and each.name != "bounds":
            assert list(found) == list(wanted), each.name
    assert Rewriter.of(test).build() == test  # the client is written in one way


def shows_it(path: Path, *, seconds: float = MAX_REDUCTION_S, error: str = "") -> bool:
    """Whether a script shows what it is to show, in an interpreter of its own."""

    async def run() -> bool:
        runner = ScriptRunner(imported=())
        try:
            return await runner.shows_it(path, seconds, error)
        finally:
            await runner.close()

    return asyncio.run(run())


def is_small(test: LitmusTest) -> bool:
    """Whether the reference oracle can look at all total orders within a test."""
    return count_orders(unfold(test, RFC), SMALL_ORDERS) < SMALL_ORDERS


def differentiated(test: LitmusTest) -> LitmusTest:
    """The test with the gradients of all floats that its variables hold at first."""
    variables = (
        replace(v, gradient=v.dtype in FLOATS and v.init is not None) for v in test.variables
    )
    return replace(test, variables=tuple(variables))


def allowed_values(test: LitmusTest, model: Model, *names: str) -> set[tuple[object, ...]]:
    """The allowed set, on some of its names; all of it if none is given."""
    allowed = allowed_outcomes(test, model)
    assert allowed.complete
    chosen = names or test.names
    return {
        tuple(tuple(v) if isinstance(v := o.plain[name], list) else v for name in chosen)
        for o in allowed.witnesses
    }


def for_each(
    argument: str,
    values: Sequence[Any],
    groups: int = 12,
    every: int = 1,
    where: Callable[[Any], bool] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Parametrize a test by many values, in a few items of which each tests a share of them.

    An item costs pytest about 8 ms under xdist, and the check of one value often less. All values
    are tested even if some fail; each failure names its value. `every` is that of `share_of`.
    Values for which `where` is false are left out: most are not.
    """
    values = share_of(values, every)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def check(*arguments: Any, **named: Any) -> None:
            failures = []
            group = named.pop("group")
            chosen = [value for value in group if where is None or where(value)]
            assert 2 * len(chosen) > len(group)
            for value in chosen:
                try:
                    test(*arguments, **named, **{argument: value})
                except Exception as error:  # noqa: BLE001 - all are raised below
                    error.add_note(f"{argument}: {getattr(value, 'name', value)}")
                    failures.append(error)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {argument}", failures)

        signature = inspect.signature(test)
        others = [each for each in signature.parameters.values() if each.name != argument]
        group = inspect.Parameter("group", inspect.Parameter.KEYWORD_ONLY)
        check.__signature__ = signature.replace(parameters=[*others, group])  # type: ignore[attr-defined]
        shares = [share for n in range(groups) if (share := values[n::groups])]
        return pytest.mark.parametrize("group", shares, ids=map(str, range(len(shares))))(check)

    return decorate
