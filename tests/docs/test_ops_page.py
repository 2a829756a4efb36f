"""The page of ops is that of the op table, and of the installed TensorFlow."""

from __future__ import annotations

from registry import PAGE, reason, registry, text

from litmusfuzz.corpus.ops import ABSTRACT_OPS, DEFINED_OPS, OPS, Kind


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == text(), "run python -m tests.docs.registry"


def test_at_least_150_pure_ops_of_the_registry() -> None:
    ops, kernels = registry()
    pure = {name for name, op in OPS.items() if op.kind is Kind.PURE}
    assert pure - ABSTRACT_OPS <= ops.keys()
    assert len(pure) >= 150
    assert all(kernels.get(name) for name in DEFINED_OPS - ABSTRACT_OPS)


def test_operands_and_attributes_have_the_names_of_the_registry() -> None:
    ops, _ = registry()
    for name in sorted(DEFINED_OPS - ABSTRACT_OPS):
        row, op = OPS[name].meaning, ops[name]
        assert row is not None
        assert row.operands == tuple(arg.name for arg in op.input_arg), name
        several = {"result"} if row.results or row.count else set()
        assert {f.name for f in row.fields} - several <= {a.name for a in op.attr}, name
        outputs = tuple(arg.name for arg in op.output_arg)
        assert tuple(result for result, _ in row.results) == (outputs if row.results else ()), name
        assert row.results or len(outputs) == int(OPS[name].has_value), name
        assert bool(row.count) == any(arg.number_attr for arg in op.output_arg), name


def test_reasons() -> None:
    ops, kernels = registry()
    wanted = {
        "Sin": "not exact on integers",
        "SparseSplit": "several results",
        "StringJoin": "strings",
        "InplaceAdd": "written in place",
        "RandomUniform": "stateful",
        "QuantizeV2": "quantized",
    }
    assert {name: reason(ops[name], kernels.get(name, [])) for name in wanted} == wanted
