"""Anomalies: results that depend on the order of accesses that nothing orders.

Two accesses *conflict* if they touch one resource, one of them changes it, and their order can be
seen. Conflicting accesses that nothing orders are classified pair by pair; pairs on the same
variables, between the same runs, are one anomaly.

- *lost update*: a value is read, changed and written back, and what another access writes in
  between is lost. An update whose read and write other accesses may separate is one by itself.
- *torn snapshot*: values of several variables are used together, and another access may change
  some of them between the reads.
- *stale read*: a read may come before or after a write.
- *order only*: which of two writes stays, or which of two takes gets what, is open.

Updates that commute are benign by themselves: who reads between them has a pair of its own with
each. They are none if XLA's auto-clustering compiles one of them: a cluster reads all variables
first, and writes them back in the end (semantics.md, section 5). Two writes of one constant are
benign. So is a read that nobody sees.

References
----------
semantics.md, section 3. Berenson et al., "A Critique of ANSI SQL Isolation Levels", SIGMOD 1995:
lost update, read skew.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.programs.effects import Access
from litmusfuzz.fuzz.programs.expansion import ANYTHING, expanded
from litmusfuzz.fuzz.programs.order import bits, exclusive, order_of
from litmusfuzz.fuzz.programs.total_order import TooManySteps, total_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from litmusfuzz.fuzz.programs.expansion import Expanded, Instance
    from litmusfuzz.fuzz.programs.order import Order
    from litmusfuzz.fuzz.programs.program import Program

_CLUSTERABLE: Final = re.compile(r"Assign(Add|Sub)VariableOp|ResourceApply\w+")
_READS: Final = 40
"""Reads used together of which each two are looked at for a torn snapshot."""
MAX_PAIRS: Final = 2_000
"""Pairs on one variable that are classified once some anomaly is known on it."""


class AnomalyKind(Enum):
    """Kinds of anomalies, the gravest first."""

    LOST_UPDATE = "lost update"
    TORN_SNAPSHOT = "torn snapshot"
    STALE_READ = "stale read"
    ORDER_ONLY = "order only"
    UNDECIDED = "undecided"
    """An op of which nothing is known may touch the same resource."""


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """An access of one of the concurrent runs: the run's place, and the access's number."""

    side: int
    number: int


@dataclass(frozen=True, slots=True)
class Anomaly:
    """Races on the same variables, between the same runs.

    Parameters
    ----------
    kind : AnomalyKind
    runs : tuple of str
        One run, or two that are concurrent.
    variables : tuple of str
    sites : tuple of Site
        One race of it, as an example, in the order of `orders[0]`.
    orders : tuple of tuple of int
        Two orders of `sites` that edges permit, by position, with different results. An update
        that stands twice reads at its first place, and writes at its second.
    pairs : int
        Number of pairs of accesses that nothing orders.
    conditions : tuple of str
        Predicates that have to be so that it can happen.
    note : str
        What the order would rest on, or why there is none; "" mostly.
    """

    kind: AnomalyKind
    runs: tuple[str, ...]
    variables: tuple[str, ...]
    sites: tuple[Site, ...]
    orders: tuple[tuple[int, ...], tuple[int, ...]]
    pairs: int
    conditions: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Analyzed:
    """A run, expanded and ordered.

    Parameters
    ----------
    run : Expanded
    order : Order
    seen : int
        Accesses whose result somebody sees.
    locks : tuple of frozenset of int
        For each access: the sections around it, by the access that locks the mutex.
    """

    run: Expanded
    order: Order
    seen: int
    locks: tuple[frozenset[int], ...]

    def mutex(self, lock: int) -> str:
        """Name of the mutex that an access locks."""
        return self.run.accesses[lock].resource.name


@dataclass(frozen=True, slots=True)
class Benign:
    """Pairs that nothing orders, and that change nothing; `why` says so."""

    runs: tuple[str, ...]
    variable: str
    why: str
    pairs: int


COMMUTE: Final = "updates that commute"
SERIAL: Final = "each result is that of one run after the other"
CLUSTERED: Final = "in a cluster an update is a read and a write"
"""Why updates that commute are a lost update if XLA's auto-clustering compiles one of them."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run alone, or two that are concurrent, with all that was found.

    Parameters
    ----------
    sides : tuple of Analyzed
    anomalies : tuple of Anomaly
    benign : tuple of Benign
    clustered : tuple of Benign
        Those of `benign` that are a lost update if XLA's auto-clustering compiles an update.
    """

    sides: tuple[Analyzed, ...]
    anomalies: tuple[Anomaly, ...] = ()
    benign: tuple[Benign, ...] = ()
    clustered: tuple[Benign, ...] = ()

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of the runs."""
        return tuple(each.run.name for each in self.sides)

    def access(self, site: Site) -> Instance:
        """The access at a site."""
        return self.sides[site.side].run.accesses[site.number]


def analyzed(program: Program) -> dict[str, Analyzed]:
    """All runs of a program, expanded and ordered.

    Raises
    ------
    ProgramError
        If a run cannot be expanded.
    """
    found = {}
    for entry in program.entries:
        run = expanded(program, entry)
        order = order_of(run)
        seen = 0
        for _, mask in order.seen:
            seen |= mask
        for access, mask in zip(run.accesses, order.values, strict=True):
            if access.writes or not access.effect.known:
                seen |= mask
        found[entry.name] = Analyzed(run, order, seen, _locks(run, order))
    return found


def _locks(run: Expanded, order: Order) -> tuple[frozenset[int], ...]:
    """For each access: the sections around it."""
    around: list[set[int]] = [set() for _ in run.accesses]
    for lock, inside in order.lock_ends.items():
        for number in bits(inside):
            if order.ordered(lock, number):
                around[number].add(lock)
    return tuple(map(frozenset, around))


def scenarios(
    runs: Mapping[str, Analyzed], concurrent: Iterable[tuple[str, str]], *, unknown: bool | None
) -> Iterator[Scenario]:
    """Each run alone, then the concurrent ones, with their anomalies.

    Parameters
    ----------
    runs : mapping
    concurrent : iterable of (str, str)
    unknown : bool or None
        Whether an op of which nothing is known touches everything; None for: undecided.
    """
    for each in runs.values():
        yield _Search((each,), unknown).scenario()
    for first, second in concurrent:
        yield _Search((runs[first], runs[second]), unknown).scenario()


@dataclass(slots=True)
class _Found:
    """Pairs of one kind on one variable, between the same operations."""

    sites: tuple[Site, ...]
    orders: tuple[tuple[int, ...], tuple[int, ...]]
    pairs: int = 0
    note: str = ""


_Key = tuple[AnomalyKind, frozenset[str], object]


@dataclass(slots=True)
class _Search:
    """Finds the anomalies of one scenario."""

    sides: tuple[Analyzed, ...]
    unknown: bool | None
    found: dict[str, dict[_Key, _Found]] = field(default_factory=lambda: defaultdict(dict))
    benign: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    clustered: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    stale: dict[Site, list[Site]] = field(default_factory=lambda: defaultdict(list))
    """For each read: writes that it may come before or after."""
    by_resource: list[dict[str, int]] = field(default_factory=list)
    """For each side: accesses by resource."""
    reads_of: dict[Site, list[Site]] = field(default_factory=dict)
    backs_of: dict[Site, list[Site]] = field(default_factory=dict)
    checked: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def scenario(self) -> Scenario:
        """Search, and group what was found."""
        by_resource = [_by_resource(side, unknown=self.unknown) for side in self.sides]
        self.by_resource = by_resource
        for name in by_resource[0]:
            if name in by_resource[-1]:
                groups = [
                    _Group(side, each[name])
                    for side, each in zip(self.sides, by_resource, strict=True)
                ]
                self.resource(name, groups)
        anomalies = self.grouped()
        names = tuple(side.run.name for side in self.sides)
        benign = tuple(
            Benign(names, variable, why, pairs) for (variable, why), pairs in self.benign.items()
        )
        clustered = tuple(
            Benign(names, variable, CLUSTERED, pairs) for variable, pairs in self.clustered.items()
        )
        return Scenario(self.sides, tuple(map(self.serial, anomalies)), benign, clustered)

    def serial(self, anomaly: Anomaly) -> Anomaly:
        """An anomaly, with a note if it is all that two runs share: then nothing can be torn."""
        single = anomaly.kind in (AnomalyKind.STALE_READ, AnomalyKind.ORDER_ONLY)
        pairs = sum(each.pairs for by_key in self.found.values() for each in by_key.values())
        if not (single and len(self.sides) == 2 and pairs == 1) or anomaly.note:
            return anomaly
        if any("sections" in why for _, why in self.benign):
            return anomaly
        return replace(anomaly, note=SERIAL)

    # --- pairs ---------------------------------------------------------------------------

    def resource(self, name: str, groups: Sequence[_Group]) -> None:
        """Classify the pairs on one resource."""
        first, second = groups[0], groups[-1]
        alone = len(self.sides) == 1
        if not alone and first.local:
            return
        for number in bits(second.mask):
            other = first.mask
            if alone:
                other &= ((1 << number) - 1) & ~self.sides[0].order.before[number]
            other = self.without_benign(name, first, second, number, other)
            for before in bits(other):
                if self.found.get(name) and self.checked[name] > MAX_PAIRS:
                    return
                self.checked[name] += 1
                self.pair(name, Site(0, before), Site(len(self.sides) - 1, number))

    def without_benign(
        self, name: str, first: _Group, second: _Group, number: int, mask: int
    ) -> int:
        """The accesses that conflict with one, of a set of those that nothing orders."""
        side = self.sides[-1]
        access = side.run.accesses[number]
        if not access.effect.known:
            return mask
        if not access.writes:
            if not side.seen >> number & 1:
                self.note_benign(name, "a read that nobody sees", mask & first.writes)
                return mask & first.unknown
            return mask & (first.writes | first.unknown)
        unseen = mask & first.unseen
        self.note_benign(name, "a read that nobody sees", unseen)
        mask &= ~unseen
        if access.constant:
            same = mask & first.constants.get(access.constant, 0)
            self.note_benign(name, "writes of the same constant", same)
            mask &= ~same
        group = access.effect.group
        if group and not access.effect.split and not access.effect.shows:
            same = mask & first.commuting.get(group, 0)
            self.note_benign(name, COMMUTE, same)
            either = same if _clusterable(access) else same & first.clusterable
            if either:
                self.clustered[name] += either.bit_count()
            mask &= ~same
        return mask

    def note_benign(self, name: str, why: str, mask: int) -> None:
        """Count pairs that change nothing."""
        if mask:
            self.benign[name, why] += mask.bit_count()

    def pair(self, name: str, first: Site, second: Site) -> None:
        """Classify a pair that nothing orders."""
        one, two = self.access(first), self.access(second)
        if first.side == second.side and exclusive(one.guards, two.guards):
            return
        if not (one.effect.known and two.effect.known):
            if self.unknown is not False:
                kind = AnomalyKind.STALE_READ if self.unknown else AnomalyKind.UNDECIDED
                known = one if one.effect.known else two
                if self.unknown and (known.writes or not known.effect.known):
                    kind = AnomalyKind.ORDER_ONLY
                self.add(name, kind, (first, second), ((0, 1), (1, 0)))
            return
        if one.writes and two.writes:
            self.writes(name, first, second)
        elif one.writes:
            self.read_and_write(name, second, first)
        else:
            self.read_and_write(name, first, second)

    def writes(self, name: str, first: Site, second: Site) -> None:
        """Classify two accesses that both write."""
        for mine, other in ((first, second), (second, first)):
            for read in self.own_reads(mine):
                if self.may_be_lost(read, other, mine):
                    self.lost_update(name, (read, other, mine))
                    return
        if self.in_sections(name, first, second):
            return
        one, two = self.access(first), self.access(second)
        for access, mine, other in ((one, first, second), (two, second, first)):
            if access.effect.split and access.effect.access is Access.UPDATE:
                note = ""
                if access.compiled >= 0:
                    note = "only because XLA compiles the function around it"
                # In the first order the other comes between the read and the write of mine.
                self.add(name, AnomalyKind.LOST_UPDATE, (mine, other), ((0, 1, 0), (0, 1)), note)
                return
        if not self.overwritten(first, second):
            self.add(name, AnomalyKind.ORDER_ONLY, (first, second), ((0, 1), (1, 0)))

    def read_and_write(self, name: str, read: Site, write: Site) -> None:
        """Classify a read and a write."""
        for back in self.write_backs(read):
            if self.may_be_lost(read, write, back):
                self.lost_update(name, (read, write, back))
                return
        self.stale[read].append(write)
        if self.in_sections(name, read, write):
            return
        self.add(name, AnomalyKind.STALE_READ, (read, write), ((0, 1), (1, 0)))

    def in_sections(self, name: str, first: Site, second: Site) -> bool:
        """True if sections of one mutex keep two accesses apart, or in one order."""
        both = (first, second)
        if self.excluded((first,), (second,)):
            self.benign[name, "both in sections of one mutex"] += 1
            return True
        if not (self.permitted(both, (0, 1)) and self.permitted(both, (1, 0))):
            self.benign[name, "ordered by sections of one mutex"] += 1
            return True
        return False

    def may_be_lost(self, read: Site, other: Site, back: Site) -> bool:
        """True if an access may come between a read and what is written back, and also not."""
        if not self.between(read, other, back) or self.excluded((read, back), (other,)):
            return False
        sites = (read, other, back)
        apart = self.permitted(sites, (0, 2, 1)) or self.permitted(sites, (1, 0, 2))
        return apart and self.permitted(sites, (0, 1, 2))

    def lost_update(self, name: str, sites: tuple[Site, Site, Site]) -> None:
        """Note a read, a write that may come between, and what is written back."""
        after = (0, 2, 1)
        other = after if self.permitted(sites, after) else (1, 0, 2)
        self.add(name, AnomalyKind.LOST_UPDATE, sites, ((0, 1, 2), other))

    def permitted(self, sites: Sequence[Site], order: Sequence[int]) -> bool:
        """True if edges and sections permit an order of accesses, given by position."""
        ordered = any(
            sites[early].side == sites[late].side
            and self.sides[sites[early].side].order.ordered(sites[late].number, sites[early].number)
            for early, late in combinations(order, 2)
        )
        return not ordered and self.possible([sites[place] for place in order])

    def possible(self, wanted: Sequence[Site]) -> bool:
        """True if sections permit an order of accesses that edges permit."""
        every = [
            Site(number, lock)
            for number, side in enumerate(self.sides)
            for lock in side.order.lock_ends
        ]
        if len(every) == len({self.access(lock).resource for lock in every}):
            return True  # no mutex is locked twice
        guards = [
            frozenset[tuple[int, bool]]().union(
                *(self.access(site).guards for site in wanted if site.side == number)
            )
            for number in range(len(self.sides))
        ]
        # Those that run whenever these accesses do.
        locks = [lock for lock in every if self.access(lock).guards <= guards[lock.side]]
        chosen = dict.fromkeys((*locks, *wanted))

        def among(side: int, mask: int) -> set[Site]:
            return {site for site in chosen if site.side == side and mask >> site.number & 1}

        waits = {s: among(s.side, self.sides[s.side].order.before[s.number]) for s in chosen}
        ends = {s: among(s.side, self.sides[s.side].order.lock_ends[s.number]) for s in locks}
        mutexes = {s: (self.access(s).resource.name, ends[s] - {s}) for s in locks}
        try:
            return total_order(waits, mutexes, wanted) is not None
        except TooManySteps:
            return True

    def own_reads(self, write: Site) -> list[Site]:
        """Reads of a variable that what is written to it depends on."""
        if write not in self.reads_of:
            side, access = self.sides[write.side], self.access(write)
            mask = 0
            if access.effect.puts:
                mask = side.order.values[write.number]
                mask &= self.by_resource[write.side].get(access.resource.name, 0)
            self.reads_of[write] = [Site(write.side, number) for number in bits(mask)]
        return self.reads_of[write]

    def write_backs(self, read: Site) -> list[Site]:
        """Writes of what depends on a read of the same variable."""
        if read not in self.backs_of:
            side, access = self.sides[read.side], self.access(read)
            mine = self.by_resource[read.side].get(access.resource.name, 0)
            self.backs_of[read] = [
                Site(read.side, number)
                for number in bits(mine)
                if side.run.accesses[number].effect.puts
                and side.order.values[number] >> read.number & 1
            ]
        return self.backs_of[read]

    def between(self, read: Site, other: Site, write: Site) -> bool:
        """True if an access may come between a read and what is written back, and also not."""
        if other.side != read.side:
            return True
        if other in (read, write):
            return False
        order = self.sides[read.side].order
        early = order.ordered(other.number, read.number)
        late = order.ordered(write.number, other.number)
        forced = order.ordered(read.number, other.number)
        forced = forced and order.ordered(other.number, write.number)
        guards = self.access(other).guards
        apart = exclusive(guards, self.access(write).guards)
        apart = apart or exclusive(guards, self.access(read).guards)
        return not (early or late or forced or apart)

    def overwritten(self, first: Site, second: Site) -> bool:
        """True if nobody can see which of two writes came last."""
        if first.side != second.side:
            return False
        side = self.sides[first.side]
        order, accesses = side.order, side.run.accesses
        name = self.access(first).resource
        both = self.access(first).guards & self.access(second).guards
        mine = [n for n, access in enumerate(accesses) if access.resource == name]
        for last in mine:
            covers = accesses[last].effect.access is Access.WRITE and accesses[last].guards <= both
            covers = covers and order.ordered(first.number, last)
            covers = covers and order.ordered(second.number, last)
            if covers and all(
                order.ordered(last, n)
                or (order.ordered(n, first.number) and order.ordered(n, second.number))
                for n in mine
                if n != last and accesses[n].reads
            ):
                self.benign[name.name, "overwritten before anybody reads"] += 1
                return True
        return False

    # --- groups --------------------------------------------------------------------------

    def add(
        self,
        name: str,
        kind: AnomalyKind,
        sites: tuple[Site, ...],
        orders: tuple[tuple[int, ...], tuple[int, ...]],
        note: str = "",
    ) -> None:
        """Note one race."""
        accesses = [self.access(site) for site in sites]
        places: object = None
        if len(self.sides) == 1:
            places = frozenset((access.location, access.op) for access in accesses)
        key = (kind, frozenset(access.op for access in accesses), places)
        found = self.found[name].get(key)
        if found is None:
            handles = {access.handle for access in accesses}
            automatic = all(access.automatic and access.effect.known for access in accesses)
            if len(self.sides) == 1 and automatic and len(handles) > 1 and not note:
                note = (
                    "documentation only: `tf.function` does not order two handles of one variable"
                )
            found = self.found[name][key] = _Found(sites, orders, 0, note)
        found.pairs += 1

    def grouped(self) -> list[Anomaly]:
        """Anomalies: on each variable the gravest kind, alike ones together."""
        torn = self.torn()
        covered = {name for names, _ in torn for name in names}
        groups: dict[_Key, list[tuple[str, _Found]]] = defaultdict(list)
        rank = list(AnomalyKind)
        beside = self.beside_graver()
        for name, by_key in self.found.items():
            gravest = min((key[0] for key in by_key), key=rank.index)
            if (name in covered and gravest is not AnomalyKind.LOST_UPDATE) or name in beside:
                continue
            total = sum(each.pairs for each in by_key.values())
            for key, each in by_key.items():
                if key[0] is gravest:
                    each.pairs = total
                    groups[key].append((name, each))
                    break
        anomalies = []
        for (kind, _, _), alike in groups.items():
            names = [name for name, _ in alike]
            pairs = sum(found.pairs for _, found in alike)
            more = [name for name, other in beside.items() if other in names]
            pairs += sum(f.pairs for name in more for f in self.found[name].values())
            anomalies.append(self.anomaly(kind, [*names, *more], alike[0][1], pairs))
        for names_read, sites in torn:
            variables = (*names_read, *(n for n, other in beside.items() if other in names_read))
            pairs = sum(f.pairs for name in variables for f in self.found.get(name, {}).values())
            orders = self.torn_orders(sites)
            assert orders is not None, sites
            example = _Found(sites if len(orders[0]) == 4 else sites[:3], orders)
            anomalies.append(self.anomaly(AnomalyKind.TORN_SNAPSHOT, variables, example, pairs))
        return sorted(anomalies, key=lambda each: rank.index(each.kind))

    def beside_graver(self) -> dict[str, str]:
        """Variables of which only the order of two ops is open, that have a graver race on another.

        An optimizer's op updates a variable and its slots: the race on the variable tells it all.
        """
        rank = list(AnomalyKind)
        gravest = {
            name: min((key[0] for key in by_key), key=rank.index)
            for name, by_key in self.found.items()
        }
        nodes = {
            name: {
                (number, side.run.accesses[access].node)
                for number, side in enumerate(self.sides)
                for access in bits(self.by_resource[number].get(name, 0))
            }
            for name in self.found
        }
        found: dict[str, str] = {}
        for name, by_key in self.found.items():
            sites = [site for each in by_key.values() for site in each.sites]
            mine = {(site.side, self.access(site).node) for site in sites}
            for other in self.found:
                graver = rank.index(gravest[other]) < rank.index(AnomalyKind.ORDER_ONLY)
                if gravest[name] is AnomalyKind.ORDER_ONLY and graver and mine <= nodes[other]:
                    found[name] = other
                    break
        return found

    def anomaly(
        self, kind: AnomalyKind, names: Sequence[str], example: _Found, pairs: int
    ) -> Anomaly:
        """One anomaly, with an example."""
        conditions: dict[str, None] = {}
        for site in example.sites:
            labels = self.sides[site.side].run.labels
            for predicate, way in sorted(self.access(site).guards):
                conditions[f"{labels[predicate]} is {bool(way)}".lower()] = None
        runs = tuple(side.run.name for side in self.sides)
        return Anomaly(
            kind,
            runs,
            tuple(sorted(names)),
            example.sites,
            example.orders,
            pairs,
            tuple(conditions),
            example.note,
        )

    def torn(self) -> list[tuple[tuple[str, ...], tuple[Site, Site, Site, Site]]]:
        """Torn snapshots: the variables, then two reads and the writes beside them."""
        groups: list[tuple[set[str], tuple[Site, Site, Site, Site]]] = []
        for number, side in enumerate(self.sides):
            reads = [read for read in self.stale if read.side == number]
            mask = sum(1 << read.number for read in reads)
            for joined in _merged(mask & seen for _, seen in _places(side)):
                sites = [Site(number, n) for n in bits(joined)]
                names = {self.access(site).resource.name for site in sites}
                pair = self.torn_pair(sites) if len(names) > 1 else None
                if pair is None:
                    continue
                for each in [each for each in groups if each[0] & names]:
                    groups.remove(each)
                    names |= each[0]
                    pair = each[1]
                groups.append((names, pair))
        lost = {
            name
            for name, by_key in self.found.items()
            if any(kind is AnomalyKind.LOST_UPDATE for kind, _, _ in by_key)
        }
        return [(tuple(sorted(names)), pair) for names, pair in groups if names - lost]

    def torn_pair(self, reads: Sequence[Site]) -> tuple[Site, Site, Site, Site] | None:
        """Two of the reads, with writes that may come between them.

        Weights tell more than counters and seeds: those that are integers come last.
        """
        reads = sorted(reads, key=lambda site: "int" in self.access(site).resource.dtype)
        for first, second in combinations(reads[:_READS], 2):
            one, two = self.access(first), self.access(second)
            if one.resource == two.resource or (one.compiled >= 0 and one.compiled == two.compiled):
                continue
            for early, late in ((first, second), (second, first)):
                if self.sides[early.side].order.ordered(late.number, early.number):
                    continue
                writes = self.stale[early], self.stale[late]
                apart = [self.not_together((early, late), *both) for both in (writes, writes[::-1])]
                found = []
                if apart[0] and writes[1]:
                    found.append((apart[0][0], self.beside(apart[0][0], writes[1])))
                if apart[1] and writes[0]:
                    found.append((self.beside(apart[1][0], writes[0]), apart[1][0]))
                for some in found:
                    if self.torn_orders((early, late, *some)):
                        return (early, late, *some)
        return None

    def torn_orders(
        self, sites: tuple[Site, Site, Site, Site]
    ) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Orders of two reads, and of a write beside each, that edges and sections permit.

        In the first, the early read comes before the write beside it, and the late one after the
        other write. In the second, both reads come before the writes beside them; where edges
        forbid that, both come after them. Edges always permit some: a read has no path from or to
        the write beside it, and the early read none from the late one.
        """
        if sites[2] == sites[3]:
            single = self.permitted(sites[:3], (0, 2, 1)) and self.permitted(sites[:3], (0, 1, 2))
            return ((0, 2, 1), (0, 1, 2)) if single else None
        # The reads are the first and the last of the first order if they can be.
        every = sorted(permutations(range(4)), key=lambda order: order.index(1) < 3)
        permitted = [each for each in every if self.permitted(sites, each)]

        def first(*pairs: tuple[int, int]) -> tuple[int, ...] | None:
            return next((each for each in permitted if _before(each, *pairs)), None)

        torn, whole = first((0, 2), (3, 1)), first((0, 2), (1, 3)) or first((2, 0), (3, 1))
        return (torn, whole) if torn and whole else None

    def not_together(
        self, reads: tuple[Site, Site], some: Sequence[Site], others: Sequence[Site]
    ) -> list[Site]:
        """Writes without one of the others in a section that excludes both reads."""
        return [
            each
            for each in some
            if not any(
                each.side == other.side and self.excluded(reads, (each, other)) for other in others
            )
        ]

    def beside(self, write: Site, others: Sequence[Site]) -> Site:
        """One of the other writes, if possible of the same run."""
        return next((each for each in others if each.side == write.side), others[0])

    def access(self, site: Site) -> Instance:
        """The access at a site."""
        return self.sides[site.side].run.accesses[site.number]

    def excluded(self, some: tuple[Site, ...], others: tuple[Site, ...]) -> bool:
        """True if some are in one section, the others in another, and both of one mutex."""
        mine, theirs = self.sections(some), self.sections(others)
        return bool(mine and theirs and mine.keys() & theirs.keys())

    def sections(self, sites: tuple[Site, ...]) -> dict[str, int]:
        """Mutexes of the sections that hold all these accesses of one run."""
        side = self.sides[sites[0].side]
        common = frozenset.intersection(*(side.locks[site.number] for site in sites))
        return {side.mutex(lock): lock for lock in common}


def _before(order: Sequence[int], *pairs: tuple[int, int]) -> bool:
    """True if in an order the first of each pair comes before the second."""
    return all(order.index(one) < order.index(two) for one, two in pairs)


def _places(side: Analyzed) -> Iterator[tuple[str, int]]:
    """Places where values are used together, each with the accesses that they come from."""
    results = 0
    for what, mask in side.order.seen:
        if what == "results":
            results |= mask
        else:
            yield what, mask
    yield "results", results
    for access, mask in zip(side.run.accesses, side.order.values, strict=True):
        if access.writes:
            yield access.name, mask


def _merged(masks: Iterable[int]) -> list[int]:
    """Sets joined where they overlap."""
    joined: list[int] = []
    for mask in masks:
        if not mask:
            continue
        apart = []
        for each in joined:
            if each & mask:
                mask |= each
            else:
                apart.append(each)
        joined = [*apart, mask]
    return joined


def _by_resource(side: Analyzed, *, unknown: bool | None) -> dict[str, int]:
    """Accesses by resource; those of unknown ops are of every resource."""
    found: dict[str, int] = defaultdict(int)
    anything = 0
    for number, access in enumerate(side.run.accesses):
        if access.effect.access in (Access.LOCK, Access.UNLOCK):
            continue
        if access.resource is ANYTHING:
            anything |= 1 << number
        else:
            found[access.resource.name] |= 1 << number
    if unknown is not False and anything:
        for name in found:
            found[name] |= anything
        found[ANYTHING.name] = anything
    return found


def _clusterable(access: Instance) -> bool:
    """True for an update that XLA's auto-clustering may compile with ops beside it."""
    return bool(_CLUSTERABLE.fullmatch(access.op)) and access.resource.kind == "variable"


class _Group:
    """Accesses of one run to one resource, by what they do.

    Attributes
    ----------
    mask, writes, unknown, unseen : int
        All; those that write; those of which nothing is known; reads that nobody sees.
    clusterable : int
        Updates that XLA's auto-clustering may compile.
    commuting : dict
        Updates by the group in which they commute.
    constants : dict
        Writes of a constant, by its digest.
    local : bool
        True if each run makes the resource for itself.
    """

    def __init__(self, side: Analyzed, mask: int) -> None:
        self.mask = mask
        self.writes = self.unknown = self.unseen = self.clusterable = 0
        self.commuting: dict[str, int] = defaultdict(int)
        self.constants: dict[bytes, int] = defaultdict(int)
        self.local = False
        for number in bits(mask):
            access = side.run.accesses[number]
            self.local = self.local or access.resource.local
            if not access.effect.known:
                self.unknown |= 1 << number
            elif access.writes:
                self.writes |= 1 << number
                if _clusterable(access):
                    self.clusterable |= 1 << number
                if access.constant:
                    self.constants[access.constant] |= 1 << number
                if access.effect.group and not access.effect.split and not access.effect.shows:
                    self.commuting[access.effect.group] |= 1 << number
            elif not side.seen >> number & 1:
                self.unseen |= 1 << number
