"""The executor jax_refs: the corpus in the forms of its presets, and what it refuses."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS, corpus_entry, differentiated, share_of

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.fuzz.executors.jax_refs.executor import JaxRefsExecutor
from litmusfuzz.fuzz.executors.jax_refs.space import SPACE, configuration_at
from litmusfuzz.fuzz.executors.protocol import Noise, Refused, Unavailable
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.traced.failures import SystemFailed
from litmusfuzz.fuzz.finding.configuration_reducer import PutBack, simpler_configurations
from litmusfuzz.fuzz.generators.gradients import in_floats
from litmusfuzz.oracles import sequential

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.protocol import Config

EXECUTOR = JaxRefsExecutor()
FINDINGS = LITMUS[0].parents[1] / "findings" / "jax"
PROGRAMS = [path for path in LITMUS if not EXECUTOR.support.lacking(corpus_entry(path).test)]
FORMS = ("eager", "jit", "scan", "switch")
CONFIGS = (*FORMS, *(c.name for c in EXECUTOR.configurations() if c.name not in FORMS))
STALE = {
    "h-condition-sees-its-own-body": "loop.i=3 seen=1 X=1",
    "h-if-in-a-condition": "loop.i=2 see=1 X=1",
}
"""A compiled `lax.while_loop`, whose condition does not see what the body wrote."""
UNMOVED = "failed: ValueError at jax/_src/state/primitives.py:_swap_abstract_eval"
"""A write of a batched value whose axis of the batch is not the first."""
BROKEN = {
    **{("jit", name): line for name, line in STALE.items()},
    **{("aot", name): line for name, line in STALE.items()},
    ("vmap", "matmul-two-steps"): UNMOVED,
}
"""By preset and test: what JAX does instead; see docs/jax-findings.md."""


def named(name: str):
    """A test of the corpus."""
    return corpus_entry(next(path for path in LITMUS if path.stem == name)).test


def shown(name: str, config: str) -> str:
    """What a test shows in a configuration, in a line."""
    test = named(name)
    try:
        found = EXECUTOR.prepare(test, configuration("jax_refs", config)).run(2, Noise(), 1)
    except SystemFailed as failure:
        return f"failed: {failure}"
    return " or ".join(map(str, found))


def differences(config: str, paths) -> dict[tuple[str, str], str]:
    """What does not show its single outcome in a configuration."""
    found = {}
    for path in paths:
        test = corpus_entry(path).test
        try:
            line = shown(path.stem, config)
        except Refused:
            continue
        if line != str(sequential.outcome(test)):
            found[config, path.stem] = line
    return found


@pytest.mark.parametrize("config", CONFIGS)
def test_the_corpus_gives_its_single_outcome(config: str) -> None:
    """Or else the difference is a known finding, as BROKEN has it.

    Each form runs another quarter of the corpus, and each of the other presets a small share.
    """
    try:
        EXECUTOR.check(configuration("jax_refs", config))
    except Unavailable as missing:
        pytest.skip(str(missing))
    place = CONFIGS.index(config)
    every = len(FORMS) if config in FORMS else 4 * len(CONFIGS)
    known = {name for _, name in BROKEN}
    paths = [path for path in share_of(PROGRAMS[place % every :], every) if path.stem not in known]
    assert not differences(config, paths)


@pytest.mark.parametrize("config", sorted({config for config, _ in BROKEN}))
def test_known_findings_show(config: str) -> None:
    expected = {name: line for (where, name), line in BROKEN.items() if where == config}
    assert {name: shown(name, config) for name in expected} == expected


DIFFERENTIABLE = ("MP", "momentum-nesterov-values", "loop-sum-carried", "matmul-rectangular")
"""Their floats have gradients: none takes a maximum of equals."""


@pytest.mark.parametrize("how", ["vjp", "accumulated", "grad", "jvp", "linearize", "jacrev"])
def test_gradients_are_those_of_dual_integers(how: str) -> None:
    """In each way of JAX's but `jacfwd`, which differentiates no function with references."""
    config = "compiled=jit;references=inside;loops=scan;writes=linked"
    config += f";derivative={how}" if how != "vjp" else ""
    for name in DIFFERENTIABLE:
        test = differentiated(in_floats(named(name)))
        found = EXECUTOR.prepare(test, configuration("jax_refs", config)).run(1, Noise(), 1)
        assert set(found) == {sequential.outcome(test)}, name


@pytest.mark.parametrize(
    ("config", "place"),
    [
        ("eager", "AttributeError at jax/_src/state/primitives.py:_swap_transpose_fancy"),
        ("derivative=jacfwd", "ValueError at jax/_src/api.py:vmap_f"),
    ],
)
def test_known_findings_about_gradients_show(config: str, place: str) -> None:
    """A constant is written in reverse mode; a function with references has no `jacfwd`."""
    test = differentiated(in_floats(named("MP")))
    with pytest.raises(SystemFailed, match=re.escape(place)):
        EXECUTOR.prepare(test, configuration("jax_refs", config)).run(1, Noise(), 1)


INTEGERS = ("integer-addupdate", "integer-addupdate-of-rows", "integer-addupdate-under-jit")


@pytest.mark.parametrize("name", INTEGERS)
def test_the_place_of_a_failure_is_where_the_value_was_asked(name: str) -> None:
    """Integers have no derivative: three places in JAX ask for the sum of none."""
    test = corpus_entry(FINDINGS / f"{name}.yaml").test
    on, place = test.description.removeprefix("jax_refs/").split(": ")
    with pytest.raises(SystemFailed, match=re.escape(place)):
        EXECUTOR.prepare(test, configuration("jax_refs", on)).run(1, Noise(), 1)


READS_IN_A_BRANCH = litmus("r0=Y; if r0==0 { } else { r1=X }", dtype="float32")


@pytest.mark.parametrize("config", ["batch=vmap", "compiled=jit;batch=vmap"])
@pytest.mark.parametrize("test", [READS_IN_A_BRANCH, differentiated(READS_IN_A_BRANCH)])
def test_vmap_over_the_predicate_of_a_conditional_is_refused(test: LitmusTest, config: str) -> None:
    """Differentiated too: nobody uses the read, and JAX does not see its effect."""
    with pytest.raises(Refused, match=r"^not implemented"):
        EXECUTOR.prepare(test, configuration("jax_refs", config)).run(1, Noise(), 1)


@pytest.mark.parametrize(
    "name", ["compiled=aot;parts=nested", "compiled=export;references=inside", "parts=pieces"]
)
def test_what_shows_in_any_trace_is_reduced_to_jit(name: str) -> None:
    """A finding keeps the simplest of transformations of which one contains the other."""
    found = SPACE.parsed(name)
    asked = simpler_configurations("jax_refs", configuration_at(found), PutBack())
    config: Config | None = next(asked)
    while config is not None:
        made = dict(config.settings)
        if shows := bool(made["compiled"] or made["parts"]):
            found = made
        with suppress(StopIteration):
            config = asked.send(shows)
            continue
        config = None
    assert SPACE.name(found) == "compiled=jit"


def test_what_is_no_program_is_refused_by_name() -> None:
    test = litmus("Q!1 || r0=Q?", queues={"Q": 1})
    with pytest.raises(Refused, match=r"^queues$"):
        EXECUTOR.prepare(test, configuration("jax_refs"))
    wide = litmus("X=1; r0=X", dtype="int64")
    with pytest.raises(Refused, match=r"^int64 without x64$"):
        EXECUTOR.prepare(wide, configuration("jax_refs", "x32"))
