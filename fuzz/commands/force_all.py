"""Forces an executor to show each allowed outcome of a test.

For each outcome, the executor is made to follow the total order of the oracle's witness, and must
show exactly that outcome. If it follows the order and shows another outcome, the executor or the
oracle is wrong. The result does not depend on chance.

An order can only separate ops, not the steps inside one op. So an order splits no update
(`litmusfuzz.oracles.model.unsplit`), and the elements of a many-op come as early as possible.
Allowed outcomes that need more are not forced; they are listed with the reason.

References
----------
semantics.md, section 3.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import map_nodes
from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.commands.replay import force
from litmusfuzz.fuzz.finding.judging_model import guaranteed
from litmusfuzz.oracles.errors import NoAllowedSet
from litmusfuzz.oracles.events import Access, unfold
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import RFC, unsplit
from litmusfuzz.oracles.reference import at_once, orders_of
from litmusfuzz.reports.tables import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.executors.worker import Worker
    from litmusfuzz.oracles.allowed import Witness
    from litmusfuzz.oracles.events import Event
    from litmusfuzz.oracles.model import Model

_ORDERS: Final = 2_000
"""Further total orders that are tried for a test with many-ops, after the oracle's witnesses."""

# Why an allowed outcome is not forced:
FAILS: Final = "an op fails: nothing is specified"
STRICTER: Final = "blocks only where an executor is stricter with a loop or conditional"
ITERATIONS: Final = "needs more iterations at once than parallel_iterations"
ELEMENTS: Final = "needs elements of a many-op split"
SPLIT: Final = "needs an update split in two"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a test (events, allowed outcomes), and the timeout of each forced order."""

    events: int = 40
    outcomes: int = 10_000
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """A total order for each outcome to force, and for each other outcome the reason for none."""

    orders: Mapping[Outcome, Witness]
    apart: Mapping[Outcome, str]


@dataclass(slots=True)
class Covered:
    """Result of forcing the outcomes of one test on one executor.

    Parameters
    ----------
    left_out : str
        The reason why the test was not run; "" if it was.
    apart : mapping of Outcome to str
        Allowed outcomes that are not forced, each with the reason.
    reached : list of Outcome
        Outcomes that the executor showed under their order.
    wrong : list of (Outcome, Witness, Outcome)
        The expected outcome, the order, and the outcome that the executor showed instead.
    not_followed : list of (Outcome, str)
        Outcomes whose order the executor did not follow, each with the reason.
    interrupted : str
        How far it came until Ctrl-C; "" if it was not interrupted.
    """

    left_out: str = ""
    apart: Mapping[Outcome, str] = field(default_factory=dict)
    reached: list[Outcome] = field(default_factory=list)
    wrong: list[tuple[Outcome, Witness, Outcome]] = field(default_factory=list)
    not_followed: list[tuple[Outcome, str]] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: str = ""

    @property
    def complete(self) -> bool:
        """True if every outcome that has an order was reached."""
        return not (self.left_out or self.wrong or self.not_followed or self.interrupted)


class LeftOut(Exception):
    """A test is beyond the limits; the message is the reason."""


def plan(test: LitmusTest, keeps: Model, limits: Limits) -> Plan:
    """Orders of the outcomes to force, and the reasons for the other outcomes that `rfc` allows.

    Outcomes are forced that `keeps`, the model that is guaranteed, allows without a split update.

    Raises
    ------
    LeftOut
        If the test is beyond the limits.
    """
    model = unsplit(keeps)
    events = len(unfold(test, model).events)
    if events > limits.events:
        raise LeftOut(f"{events} events, more than {limits.events}")

    def allowed(explorer: Explorer) -> Mapping[Outcome, Witness]:
        found = explorer.allowed_outcomes()
        if not found.complete:
            raise LeftOut(f"over the oracle's budget under {found.model}")
        if len(found.witnesses) > limits.outcomes:
            raise LeftOut(f"{len(found.witnesses)} outcomes, more than {limits.outcomes}")
        return found.witnesses

    # A loop across devices has no window in the model, but each device keeps one. So orders are
    # made without devices.
    orders = dict(allowed(Explorer(_nowhere(test), model, loosest=True)))
    stricter = allowed(Explorer(test, model)).keys() - allowed(Explorer(test, model, loosest=True))
    unlimited = allowed(Explorer(test, unsplit(RFC)))
    apart: dict[Outcome, str] = {}
    for outcome in allowed(Explorer(test, RFC)):
        if outcome.status is Status.FAILED:
            apart[outcome] = FAILS
            orders.pop(outcome, None)
        elif outcome in stricter:
            apart[outcome] = STRICTER
        elif outcome not in orders:
            apart[outcome] = ITERATIONS if outcome in unlimited else SPLIT
    if any(node.definition.several for node in test.nodes):
        together = _together(test, model, orders)
        apart |= dict.fromkeys(orders.keys() - together.keys(), ELEMENTS)
        orders = together
    return Plan(orders, apart)


def _nowhere(test: LitmusTest) -> LitmusTest:
    """The test without devices."""
    return replace(
        test,
        variables=tuple(replace(each, device="") for each in test.variables),
        mutexes=tuple(replace(each, device="") for each in test.mutexes),
        queues=tuple(replace(each, device="") for each in test.queues),
        graphs=map_nodes(test.graphs, lambda node: replace(node, device="")),
    )


def _together(
    test: LitmusTest, model: Model, orders: Mapping[Outcome, Witness]
) -> dict[Outcome, Witness]:
    """Orders, of those tried, in which the elements of many-ops come as early as possible."""
    found: dict[Outcome, Witness] = {}
    more = (order for _, order in islice(orders_of(test, model), _ORDERS))
    for order in (*orders.values(), *more):
        if len(found) == len(orders):
            break
        made = at_once(test, model, order)
        if made is not None and made[1] in orders:
            found.setdefault(made[1], made[0])
    return found


def cover(
    test: LitmusTest,
    worker: Worker,
    config: Config,
    limits: Limits,
    progress: Callable[[str], None] = lambda part: None,
) -> Covered:
    """Force an order for each outcome that the configuration guarantees, or until Ctrl-C.

    Parameters
    ----------
    progress : callable
        Receives a text with the number of finished orders.
    """
    start = time.monotonic()
    keeps = guaranteed(worker.executor, config)
    try:
        planned = plan(test, keeps, limits)
    except (LeftOut, NoAllowedSet) as reason:
        return Covered(str(reason))
    covered = Covered(apart=planned.apart)
    parts = _Parts(test, keeps)
    number = 0
    try:
        for number, (outcome, order) in enumerate(planned.orders.items()):
            progress(f"{number} of {len(planned.orders)}")
            forced = force(test, worker, config, parts.of(order), limits.timeout_s)
            if forced.problem:
                return Covered(forced.problem)
            if forced.outcome is None:
                covered.not_followed.append((outcome, forced.diverged))
            elif _shows(test, forced.outcome, outcome):
                covered.reached.append(outcome)
            else:
                covered.wrong.append((outcome, order, forced.outcome))
    except KeyboardInterrupt:
        asked = counted(len(planned.orders), "order")
        covered.interrupted = f"interrupted after {number} of {asked}"
    covered.seconds = time.monotonic() - start
    return covered


def _shows(test: LitmusTest, seen: Outcome, outcome: Outcome) -> bool:
    """True if `seen` is the outcome; what is blocked may leave out the sums of accumulators."""
    if seen.status is Status.BLOCKED:
        missing = {each.sum.name for each in test.accumulators} - {name for name, _ in seen.values}
        values = tuple((name, value) for name, value in outcome.values if name not in missing)
        outcome = replace(outcome, values=values)
    return seen == outcome


class _Parts:
    """Converts orders: an update's single event becomes its events under another model."""

    def __init__(self, test: LitmusTest, model: Model) -> None:
        self._parts: dict[tuple[str, str, str], list[Event]] = {}
        for event in unfold(test, model).events:
            self._parts.setdefault(event.instance, []).append(event)

    def of(self, order: Witness) -> Witness:
        """The order with adjacent read and write events in place of each update."""
        whole = (
            self._parts[event.instance] if event.access is Access.UPDATE else [event]
            for event in order
        )
        return tuple(event for parts in whole for event in parts)
