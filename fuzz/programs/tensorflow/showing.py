"""Races shown: the two orders of an anomaly, forced in unmodified TensorFlow on the user's graph.

Of functions of a module, copies with gates are called on the user's own variables, which are set
back after each call. Graphs, of a module, a file or a SavedModel, are run in a new session each
time, in which each of two concurrent runs has its nodes for itself, and shares the variables with
the other.

The runs are first executed freely, with gates that only log: this says which accesses happen at all
with some inputs. Then the two orders are forced, and the log of `gates` says that the accesses
happened in these orders. If the results are equal, other orders and inputs are tried.

Terms
-----
site
    An access, by the place of its run and its number in this run (`anomalies.Site`).
chain
    The accesses of an anomaly, in one of its two orders.
total order
    All accesses of the runs, in an order that edges permit; those of a chain in its order.
rank
    Place of an access in a preferred order: of accesses that may be next, that with the least rank
    is.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count, pairwise, product
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from litmusfuzz.fuzz.programs.anomalies import AnomalyKind, Site
from litmusfuzz.fuzz.programs.effects import Access
from litmusfuzz.fuzz.programs.order import bits
from litmusfuzz.fuzz.programs.tensorflow.gates import Gate, NoEndError, NotShown
from litmusfuzz.fuzz.programs.tensorflow.run_inputs import UserValues
from litmusfuzz.fuzz.programs.tensorflow.tensor_values import equal, first_difference, text_of
from litmusfuzz.fuzz.programs.total_order import ranked
from litmusfuzz.reports.checked import ReportedShowing

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from litmusfuzz.fuzz.programs.anomalies import Anomaly, Scenario
    from litmusfuzz.fuzz.programs.checking import CheckedAnomaly
    from litmusfuzz.fuzz.programs.expansion import Instance
    from litmusfuzz.fuzz.programs.tensorflow.run_inputs import RunInput

INPUTS: Final = 3
"""Times that two orders are forced, with other inputs each time, until their results differ.

So often even if the runs have no inputs. A read of a reference variable makes no copy: whether its
value is overwritten before it is used differs from one execution to the next.
"""
REPEATS: Final = 3
"""Executions of each order if other accesses are not ordered, and may change the results."""
MAX_GATES: Final = 400
"""Accesses of a scenario for which total orders are forced, at most; an op may have several."""
_numbers: Final = count()
Label = tuple[str, str]
"""Name of a result or variable, and the verb before its value: "is" or "ends as"."""


@dataclass(frozen=True, slots=True)
class Observed:
    """One execution.

    Parameters
    ----------
    values : mapping of Label to array
        Results, and final values of variables.
    log : tuple of int
        Numbers of the gates whose accesses happened, in order.
    """

    values: Mapping[Label, Any]
    log: tuple[int, ...]


class Prepared(Protocol):
    """A program with gates in it."""

    @property
    def inputs(self) -> Sequence[RunInput]:
        """The inputs of the runs."""

    def run(self, values: Mapping[RunInput, Any]) -> Observed:
        """Run it, from the program's initial values.

        Raises
        ------
        NotShown
            If TensorFlow raises.
        NoEndError
            If it does not come to an end in time (`within_time`).
        """


class Host(Protocol):
    """Means to run a program's runs with gates in them."""

    def prepared(
        self, scenario: Scenario, variables: Sequence[str], gates: Sequence[tuple[Site, Gate]]
    ) -> Prepared:
        """The runs of a scenario with these gates; the final values of `variables` are read.

        Raises
        ------
        NotShown
            If a gate cannot be put.
        """


def shown(
    host: Host, found: CheckedAnomaly, user_values: UserValues | None = None
) -> ReportedShowing:
    """The results of the two orders of an anomaly, or why they are not shown.

    Parameters
    ----------
    host : Host
    found : CheckedAnomaly
    user_values : UserValues, optional
        The user's values of inputs; other inputs have values of ours.

    Raises
    ------
    ProgramError
        If such a value does not fit its input.
    """
    try:
        values = user_values or UserValues({})
        return _Shower(host, found.scenario, found.anomaly, values).shown()
    except NotShown as why:
        return ReportedShowing((), {}, why_not=str(why))


@dataclass(frozen=True, slots=True)
class _Try:
    """Two orders to force, one for each order of the anomaly.

    Parameters
    ----------
    orders : sequence of sequences of Site
    total : bool
        True for total orders. Otherwise they have the accesses of the anomaly, with the locks that
        these need, and all other accesses are free.
    """

    orders: Sequence[Sequence[Site]]
    total: bool

    def among(self, ran: Collection[Site]) -> _Try:
        """The try for inputs with which only these accesses happen; all of the anomaly do."""
        if not self.total:
            return self
        return _Try([[site for site in order if site in ran] for order in self.orders], total=True)


class _TotalOrders:
    """Total orders of a scenario; of loops they have the iterations that the expansion has.

    An op may have several accesses, and happens as a whole: its first access stands for all.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        first: dict[tuple[int, int], Site] = {}
        self.first: dict[Site, Site] = {}
        """By access, the first one of its op."""
        for side, each in enumerate(scenario.sides):
            for number, access in enumerate(each.run.accesses):
                site = Site(side, number)
                self.first[site] = first.setdefault((side, access.node), site)

    def possible(self) -> bool:
        """True if gates can force total orders: all accesses are known, and can have one."""
        if len(self.first) > MAX_GATES:
            return False
        for side in self.scenario.sides:
            for access, locks in zip(side.run.accesses, side.locks, strict=True):
                # Two sections of one mutex must not interleave, and `ranked` does not see to that.
                if locks or access.compiled >= 0 or not access.effect.known:
                    return False
        return True

    def with_chain(self, chain: Sequence[Site], ranks: Mapping[Site, int]) -> list[Site] | None:
        """The total order with a chain's order and these ranks; None if edges permit none.

        Accesses without a rank come last.
        """
        waits: dict[Site, set[Site]] = {each: set() for each in self.first.values()}
        for site, own in self.first.items():
            before = self.scenario.sides[site.side].order.before[site.number]
            waits[own] |= {self.first[Site(site.side, number)] for number in bits(before)}
        for early, late in pairwise(chain):
            waits[late].add(early)
        for own, others in waits.items():
            others.discard(own)
        return ranked(waits, ranks)

    def pairs(self, chains: Sequence[Sequence[Site]]) -> list[list[list[Site]]]:
        """Pairs of total orders to try, one for each of two chains; none if gates cannot force any.

        In the first pair the chains' accesses come as early as they can, so that the rest of both
        runs comes after them. In the second pair the order for the second chain differs as little
        as it can from that for the first one.
        """
        if not self.possible():
            return []
        ranks = [{site: rank for rank, site in enumerate(chain)} for chain in chains]
        one, two = map(self.with_chain, chains, ranks)
        if one is None or two is None:
            return []
        near = self.with_chain(chains[1], {site: rank for rank, site in enumerate(one)})
        assert near is not None
        return [[one, two]] if two == near else [[one, two], [one, near]]


class _Shower:
    """Shows one anomaly."""

    def __init__(
        self, host: Host, scenario: Scenario, anomaly: Anomaly, user_values: UserValues
    ) -> None:
        self.host = host
        self.user_values = user_values
        self.scenario = scenario
        self.anomaly = anomaly
        self.total_orders = _TotalOrders(scenario)
        self.written = sorted(
            {
                access.resource.name
                for side in scenario.sides
                for access in side.run.accesses
                if access.writes
            }
        )
        # A loop may have more iterations than those that are expanded.
        self.has_loops = any(
            "[" in access.name for side in scenario.sides for access in side.run.accesses
        )
        self.programs: dict[tuple[bool, tuple[Site, ...]], Prepared] = {}

    def shown(self) -> ReportedShowing:
        """The two results; see `shown`."""
        self.refuse_impossible()
        sites = [self.total_orders.first[site] for site in self.anomaly.sites]
        chains = [
            _without_repetition([sites[place] for place in order]) for order in self.anomaly.orders
        ]
        pairs = self.total_orders.pairs(chains)
        tries = [_Try(pair, total=True) for pair in pairs]
        tries.append(_Try([self.with_locks(chain) for chain in chains], total=False))
        logged = pairs[0][0] if pairs else chains[0]
        free = self.prepared(logged, forced=False)
        endless: set[int] = set()
        why = ""
        for number, salt in product(range(len(tries)), range(INPUTS)):
            values = {each: self.value(each, salt) for each in free.inputs}
            inputs = _texts(self.scenario, values)
            given = ", ".join(f"{name} = {text}" for name, text in inputs.items()) or "no inputs"
            log = free.run(values).log
            ran = {logged[gate] for gate in log if log.count(gate) == 1}
            missing = [str(n) for n, site in enumerate(sites, 1) if site not in ran]
            if missing:
                why = f"with {given}, {' and '.join(missing)} does not run"
                continue
            if number in endless:
                continue
            attempt = tries[number].among(ran)
            exact = self.is_exact(attempt)
            try:
                results = self.compared(attempt.orders, values, 1 if exact else REPEATS)
            except NotShown as problem:
                if isinstance(problem, NoEndError):
                    endless.add(number)
                # Random ops go on where they were: both orders have to run equally often.
                self.programs.clear()
                why = str(problem)
                continue
            if results is not None:
                return ReportedShowing(results, inputs, exact)
            why = f"both orders give the same results with {given}"
        raise NotShown(why)

    def is_exact(self, attempt: _Try) -> bool:
        """True if a try's orders have all accesses of the runs: each has one result then."""
        all_sites = set(self.total_orders.first.values())
        return not self.has_loops and (attempt.total or all_sites <= {*attempt.orders[0]})

    def with_locks(self, chain: Sequence[Site]) -> list[Site]:
        """A chain, with the locks of the sections that its accesses are in, in time.

        A section is entered right before the first of its accesses in the chain: earlier, its run
        might hold a mutex for which the access before that one waits. Another section of its mutex
        that edges put before a later access of the chain has to be over by then: it is entered
        first, because this section may be held until the end of the chain.
        """
        order: list[Site] = []
        for place, site in enumerate(chain):
            locks = sorted(self.scenario.sides[site.side].locks[site.number])
            for lock in (Site(site.side, number) for number in locks):
                if lock not in order:
                    order += self.over_before(chain[place + 1 :], self.scenario.access(lock), order)
                    order.append(lock)
            order.append(site)
        return order

    def over_before(
        self, later: Sequence[Site], lock: Instance, entered: Sequence[Site]
    ) -> list[Site]:
        """Locks of the sections of a lock's mutex that have to be over before some later access.

        Without those in `entered`, and without the sections that such an access is in.
        """
        needed: list[Site] = []
        for site in later:
            side = self.scenario.sides[site.side]
            around = side.locks[site.number]
            for number in bits(side.order.before[site.number]):
                access, own = side.run.accesses[number], Site(site.side, number)
                if (
                    access.effect.access is Access.LOCK
                    and access is not lock
                    and access.resource == lock.resource
                    and number not in around
                    and own not in (*entered, *needed)
                ):
                    needed.append(own)
        return needed

    def refuse_impossible(self) -> None:
        """Refuse a race that gates cannot force.

        Raises
        ------
        NotShown
            With the reason.
        """
        accesses = [self.scenario.access(site) for site in self.anomaly.sites]
        if self.anomaly.kind is AnomalyKind.UNDECIDED or not all(
            access.effect.known for access in accesses
        ):
            raise NotShown("nothing is known of an op in it")
        if any(access.compiled >= 0 for access in accesses):
            raise NotShown("XLA compiles the function around it, and no gate can be inside")
        if self.anomaly.kind is AnomalyKind.LOST_UPDATE and len(accesses) == 2:
            raise NotShown("the other access would have to come inside of one kernel")

    def prepared(self, order: Sequence[Site], *, forced: bool) -> Prepared:
        """The program with a gate at each of the sites; the gates only log unless `forced`."""
        key = forced, tuple(order)
        if key not in self.programs:
            name = f"litmusfuzz_gate_{next(_numbers)}"
            gates: list[tuple[Site, Gate]] = []
            for number, site in enumerate(order):
                own = f"{name}_{number}" if forced and number else ""
                following = f"{name}_{number + 1}" if forced and number + 1 < len(order) else ""
                gates.append((site, Gate(number, f"{name}_log", own, following)))
            self.programs[key] = self.host.prepared(self.scenario, self.written, gates)
        return self.programs[key]

    def compared(
        self, orders: Sequence[Sequence[Site]], values: Mapping[RunInput, Any], repeats: int
    ) -> tuple[Mapping[str, str], ...] | None:
        """The values in which two orders differ in all repetitions, as text; None if none does.

        Raises
        ------
        NotShown
            If an order did not happen as it was forced, or TensorFlow raises.
        """
        outcomes: list[list[Mapping[Label, Any]]] = [[] for _ in orders]
        for _ in range(repeats):
            for place, order in enumerate(orders):
                observed = self.prepared(order, forced=True).run(values)
                if observed.log != tuple(range(len(order))):
                    raise NotShown(f"order {place + 1} did not happen as it was forced")
                outcomes[place].append(observed.values)
        first, second = outcomes
        differing = [
            name
            for name in first[0]
            if not any(equal(one[name], two[name]) for one in first for two in second)
        ]
        if not differing:
            return None
        texts: tuple[dict[str, str], ...] = ({}, {})
        for name in differing:
            one, two = first[0][name], second[0][name]
            index, index_text = first_difference(one, two)
            for text, value in zip(texts, (one, two), strict=True):
                element = value[index] if index_text else value
                text[f"{name[0]}{index_text} {name[1]}"] = text_of(element)
        return texts

    def value(self, each: RunInput, salt: int) -> Any:
        """An input's value: the user's, or else ours, which differs with `salt`.

        A bool is such that the conditional around an access of the anomaly takes its branch.
        """
        own = self.user_values.of(self.scenario.runs[each.side], each)
        if own is not None:
            return own
        if each.dtype == np.bool_:
            return np.full(each.shape, self.wanted(each))
        numbers = np.random.default_rng([salt, each.side, *each.name.encode()])
        if each.dtype == np.object_:
            return np.full(each.shape, b"ab"[salt % 2 : salt % 2 + 1], np.object_)
        if np.issubdtype(each.dtype, np.integer):  # small: it may be an index
            most = int(salt > 0)
            return numbers.integers(1 - most, 2, each.shape).astype(each.dtype)
        return np.round(numbers.uniform(0.25, 1.75, each.shape), 2).astype(each.dtype)

    def wanted(self, each: RunInput) -> bool:
        """The value of a predicate that is an input, so that an access of the anomaly happens."""
        labels = self.scenario.sides[each.side].run.labels
        for site in self.anomaly.sites:
            for predicate, way in self.scenario.access(site).guards:
                if site.side == each.side and labels[predicate] == each.name:
                    return bool(way)
        return True


def _without_repetition(order: Sequence[Site]) -> list[Site]:
    """The order with one site for each op, whose accesses may follow each other in it.

    Raises
    ------
    NotShown
        If accesses of another op come between those of one.
    """
    plain = [site for site, before in zip(order, (None, *order), strict=False) if site != before]
    if len(set(plain)) < len(plain):
        raise NotShown("one op makes several of its accesses")
    return plain


def _texts(scenario: Scenario, values: Mapping[RunInput, Any]) -> dict[str, str]:
    """Texts of the inputs' values, by run and name."""
    names = side_names(scenario)
    return {f"{names[each.side]} {each.name}": text_of(value) for each, value in values.items()}


def side_names(scenario: Scenario) -> list[str]:
    """Names of the runs; numbered if a run is beside itself."""
    names = list(scenario.runs)
    if len(names) == 2 and names[0] == names[1]:
        return [f"first {names[0]}", f"second {names[0]}"]
    return names
