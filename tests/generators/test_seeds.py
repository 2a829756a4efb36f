"""What a seed generates: the same tests in every version.

A finding names its graph by family, seed and index, so that a change of a generator that
moves one random choice makes old findings unreproducible. Each digest is of 72 tests.
"""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING

import msgspec
import pytest

from litmusfuzz.corpus.model import Node, Variable
from litmusfuzz.corpus.struct import Struct
from litmusfuzz.fuzz.generators import FAMILIES, generate
from litmusfuzz.fuzz.generators.family import Choices

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest

TESTS = 72
DIGESTS = {
    "dag": "e887d81bda38d40740769943f2c6987fea83fe02f2a87ef30fc29f1031a2f0b4",
    "sections": "a0a9b34a1a2f3f7e1a71eca8b1a95dacf71a308b07dfb66482dda5b65254feb8",
    "queues": "56bc697b338c50b3e6e297a34afd8463158011b679276d13b6971a45fe4dd6dc",
    "conditionals": "731868ee616872b1cb73cb130d391a87d8232481acdf509b2e4c03d29ae26f9c",
    "loops": "4b0a4e31d986c7f4f7126f68e13c93ae733b25fa8f96db67236ee81c555e30fc",
    "runs": "1e6a24fda291e28ea8b9c4419840cde25058795afa14f5e7e7de0bda1d368fda",
    "clusters": "c0e10224241ef1e76da46b106a09521b12283ee3d59569cffecd4a86d2f624a0",
    "mixed": "a7616133eba8919d967d3d1eb4f088761ffcbb22494761763a894043b2367050",
    "clusterable": "91f034cf6c674db9c926d81d38c764a56bd404895f541291fdcce110fde2fccd",
    "cycles": "6134770c901c9d7705461a44fac983295c4fddbcc9b33d61288b18182a1e8657",
    "sparse": "0a0c783bf017a6acea43b7a42246d4636c1c20d2f4e203c03215994975959ec1",
    "mutations": "7e63c8b335c609d084172dd065c72dce07f30b487bf6387e4c5e6c90605623a3",
    "keras": "43795a4d5ab25bfe09a88bf721ccc1a89fa3fb7058bb1b070e9d1729323eb17d",
    "dense": "a7224da4b6d0793adefc1c0ff0d2882c01a82912c759a5c86d840462cbbe0b9b",
    "calls": "517477cef5e78266c5c46e0fab9b8689d147f1924a53d35f8251b22311b6d450",
    "fetches": "b4c01f5faab9d975acef378e0ee25cbcd7e940390dd2f06abf457675e36d1ebf",
    "pure": "f8f0b003ec6ac50c932af671a294f167b314a3626d69a11a44b2613ebbdffa7e",
    "handles": "083982ba7287945adab75c7ff9fa2c253f8b93359489f438ae35006971d3a8bc",
    "uninitialized": "2ef2a43544564198ec5ae073ad8e05aae1d12da5f473c483e2ff24d36819ceb1",
    "computed": "b6f1d16d8259cb35bd42a900625a9260d227dbff75406ac46ed1da1cf914d6cb",
    "accumulators": "97e260c2f05b974f599537f35f1d76a0a567a8593ea139ff2888864caa2ae1ae",
    "constants": "40f043cb9429b341bf960bfc4bfab36214e569ff59ec23c3f5c76b1c46bf6722",
    "lookups": "6cfe6398be3ab592c02243102b9ac5dac835ed7f137e3c6501b1a5f20f5e82f3",
    "programs": "3fd084f46de1b55f2a0b0a6f461b04786ef51dfd36fba263f597ca699b49d4aa",
    "training": "e8f6ee664b7e51b1cac5e00a9e67ef9f5eb7d7e77f32cb03c7e6076421f62d2b",
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


def test_choices_are_those_of_the_standard_library() -> None:
    """They depend on the length of what there is to choose from, and leave the same state."""
    ours, theirs = Choices("seed"), random.Random("seed")
    for length in (1, 2, 3, 4, 5, 7, 8, 9, 64, 1000, 2**40):
        assert [ours.choice(range(length)) for _ in range(50)] == [
            theirs.choice(range(length)) for _ in range(50)
        ]
    assert ours.getstate() == theirs.getstate()
    with pytest.raises(IndexError):
        ours.choice(())
