"""What a seed generates: the same tests in every version.

A finding names its graph by family, seed and index, so that a change of a generator that
moves one random choice makes old findings unreproducible. Each digest is of 72 tests.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec
import pytest

from litmusfuzz.corpus.model import Node, Variable
from litmusfuzz.corpus.struct import Struct
from litmusfuzz.fuzz.generators import FAMILIES, generate

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest

TESTS = 72
DIGESTS = {
    "dag": "6e58758a2a29042c7dfd503ade344b7c3ebd34c22082d1b62bea165667a2959a",
    "sections": "21a8fee099496973a51fac814686a09f85ef49656fb100f0ac83927dc7b95ee9",
    "queues": "d9437721cfff8c0a99ef0795819d542e01c4000ad33086508f248a2ece62ea85",
    "conditionals": "e1e58086c0a17e5ce1baac7376e4eb248dc41fb995ff5bf7dcb3584b7ffa71db",
    "loops": "c467a2a8cb831c16b4f7ffcf43b5622c1180ddbe3dc9be072a0d15d9c7f29a03",
    "runs": "f48747b2b18c606b867da52373f5dc90f327d451e7af2e39ce07190caf6e957b",
    "clusters": "755af773a5cface89eb59bfe778296b17539bb7e8ab1485eeb3f9ec55a127229",
    "mixed": "9d8cd7e67e1a6458952899ed536eaa9c0f004e1aaf7461eafe0386515d37c512",
    "clusterable": "26c016cfa7d5909d97facb1f1c27ca9594b7ca44dc4f3722d14e178df44bb28d",
    "cycles": "6134770c901c9d7705461a44fac983295c4fddbcc9b33d61288b18182a1e8657",
    "sparse": "0a0c783bf017a6acea43b7a42246d4636c1c20d2f4e203c03215994975959ec1",
    "mutations": "8485789ee732c466a26c6af31e26e9b5bd370b284985bd6002eb66e7221137ea",
    "keras": "43795a4d5ab25bfe09a88bf721ccc1a89fa3fb7058bb1b070e9d1729323eb17d",
    "dense": "46c0517a94085ba039a7d99237f42c6a5a187b23b54fbdb3cb924ace36583726",
    "calls": "4c90729a5d2f6ee24b23884e6ca0f6a29f3b8f5c678bad69bc2636f5730cbe70",
    "fetches": "5461ef44507e2ffa8f3e5b21a16ecd437d93ca987db071c24a93c7d009abc145",
    "pure": "f8f0b003ec6ac50c932af671a294f167b314a3626d69a11a44b2613ebbdffa7e",
    "handles": "e21281152ad22351ef370bad2799c164a1b18daa9ea5ccf7c6a863f00cd3e88e",
    "uninitialized": "c971099859a8d4c3f87e6869e768b1416802b91df8a3d6a37693ffdd711a255a",
    "computed": "b6f1d16d8259cb35bd42a900625a9260d227dbff75406ac46ed1da1cf914d6cb",
    "accumulators": "97e260c2f05b974f599537f35f1d76a0a567a8593ea139ff2888864caa2ae1ae",
    "programs": "3fd084f46de1b55f2a0b0a6f461b04786ef51dfd36fba263f597ca699b49d4aa",
    "training": "91bc44919a29817f511a2430960a8f2706a2d96f83b965436955763bab4ee4b2",
}


def canonical(value: object) -> object:
    """The value without the names of classes and fields, which may change."""
    newest = {Node: "handle", Variable: "gradient"}.get(type(value))
    if newest and not getattr(value, newest):  # as before there was such a field
        return canonical(msgspec.structs.astuple(value)[:-1])
    if isinstance(value, Struct):
        return [canonical(each) for each in msgspec.structs.astuple(value)]
    if isinstance(value, (tuple, list)):
        return [canonical(each) for each in value]
    return value


def content(test: LitmusTest) -> str:
    """All that a test is but for its name and description."""
    parts = (
        *(test.variables, test.mutexes, test.queues),
        *((test.accumulators,) if test.accumulators else ()),
        *(test.graphs, test.client, test.observe, test.clusters),
    )
    listed = [canonical(part) for part in parts]
    # A run that asks for nothing is written as before runs could ask.
    listed[4 + bool(test.accumulators)] = [
        list(msgspec.structs.astuple(run))[: 6 if run.wanted or run.feeds else 3]
        for run in test.client
    ]
    return repr([canonical(part) for part in listed])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_seed_generates_what_it_always_did(family: str) -> None:
    digest = hashlib.sha256()
    for index in range(TESTS):
        digest.update(content(generate(family, 1 + index % 6, index)).encode())
    assert digest.hexdigest() == DIGESTS[family]
