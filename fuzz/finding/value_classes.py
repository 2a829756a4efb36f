"""Value classes of a test: values that may be renamed, one to one, without changing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import LoopAttrs, NestAttrs, bodies
from litmusfuzz.corpus.ops import BOOL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node


Place = tuple[str, str]
"""A part of a test that holds a value: its kind, "value" or "resource", and its name."""


class ValueClasses:
    """Value classes: places between which values are copied, and whether the values may be renamed.

    The values of a class may be renamed, one to one, if no op computes with them: every execution
    then shows the same outcome, renamed.
    """

    def __init__(self, test: LitmusTest) -> None:
        self.parent: dict[Place, Place] = {}
        self.computed: list[Place] = []
        for node in test.nodes:
            self._node(node)
        # Predicates decide which ops run.
        self.computed += [
            ("value", name) for name, kind in test.types.items() if kind and kind.dtype == BOOL
        ]
        self.fixed = {self.value_class(place) for place in self.computed}

    def value_class(self, place: Place) -> Place:
        """The place that represents the class."""
        while (above := self.parent.get(place, place)) != place:
            place = above
        return place

    def _join(self, places: Sequence[Place]) -> None:
        for other in places[1:]:
            first, second = self.value_class(places[0]), self.value_class(other)
            if first != second:
                self.parent[second] = first

    def _node(self, node: Node) -> None:
        attrs, name = node.attrs, node.name
        if isinstance(attrs, NestAttrs):
            flows = list(attrs.captures)
            if isinstance(attrs, LoopAttrs):
                flows += zip(attrs.carried, node.inputs, strict=True)
                flows += zip(attrs.carried, attrs.body.results, strict=True)
                flows += ((each, f"{name}.{each}") for each in attrs.carried)
            else:
                for _, body in bodies(node):
                    outer = (f"{name}.{result}" for result in attrs.results)
                    flows += zip(outer, body.results, strict=True)
            for pair in flows:
                self._join([("value", each) for each in pair])
            return
        inputs = [("value", each) for each in node.inputs]
        places = [*inputs, *(("resource", each) for each in node.resources), ("value", name)]
        if node.op == "Equal":
            self._join(inputs)
        elif node.op == "Select":
            self._join(places[1:])
        elif node.definition.computed:  # what selects rows keeps its values
            self.computed += places
        elif node.definition.copies:
            self._join(places)
        elif node.definition.sizes or node.definition.fed:
            self.computed.append(("value", name))
        elif node.definition.operands:
            self.computed += places
