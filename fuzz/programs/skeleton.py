"""Skeletons: the accesses of a program as a litmus test, with each pure part one op, Opaque.

Accesses of other variables, pure ops, calls, branches and loops are contracted: what remains are
the accesses that were chosen, the order that edges impose on them, transitively, and for each
written value the reads that it depends on. So values say who read what. Locks that order these
accesses are critical sections. Tables, iterators and the states of random generators are variables
here: what matters is who comes before whom.

References
----------
semantics.md, section 2. `litmusfuzz.corpus.pure.opaque`: equal parts of equal inputs are equal.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    Graph,
    LitmusTest,
    MalformedTest,
    Mutex,
    Node,
    Run,
    Variable,
)
from litmusfuzz.corpus.ops import ConstAttrs, Kind, PureAttrs, SectionAttrs
from litmusfuzz.corpus.pure.opaque import term
from litmusfuzz.fuzz.programs.anomalies import Site
from litmusfuzz.fuzz.programs.effects import Access
from litmusfuzz.fuzz.programs.order import bits, exclusive
from litmusfuzz.fuzz.programs.total_order import TooManySteps, total_order
from litmusfuzz.oracles.events import Access as EventAccess
from litmusfuzz.oracles.events import unfold
from litmusfuzz.oracles.model import EXECUTOR
from litmusfuzz.oracles.reference import outcome_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.programs.anomalies import Analyzed, Anomaly, Scenario
    from litmusfuzz.fuzz.programs.expansion import Instance
    from litmusfuzz.oracles.events import Event

MAX_ACCESSES: Final = 40
"""Accesses of a skeleton that is made for a report."""
_MOST_ADDED: Final = 12
"""Updates of one variable that stay AssignAdd: sums of terms must stay below 2**24."""
_ITERATION: Final = r"\[\d+\]"
_ANOTHER: Final = "the value of another access"
_DTYPE: Final = "int32"


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A litmus test, and what its parts stand for.

    Parameters
    ----------
    test : LitmusTest
    nodes : mapping
        For each access the nodes that stand for it, in order: an update that litmus tests do not
        have is a read and a write.
    sections : mapping
        For each lock its critical section; also for each access that is one step and has several
        nodes, or that must not come between those of another.
    variables : mapping
        Names in the program by names in the test.
    waits : mapping
        For each access and lock: those that edges put before it.
    ends : mapping
        For each lock: what comes before its release.
    replacing : frozenset of Site
        Updates after which a part of the variable is what they were given.
    """

    test: LitmusTest
    nodes: Mapping[Site, tuple[str, ...]]
    sections: Mapping[Site, str]
    variables: Mapping[str, str]
    waits: Mapping[Site, frozenset[Site]]
    ends: Mapping[Site, frozenset[Site]]
    replacing: frozenset[Site]

    def mutex(self, site: Site) -> str:
        """Name of the mutex that a lock takes."""
        name = self.sections[site]
        return next(node.resources[0] for node in self.test.nodes if node.name == name)


def skeleton(
    sides: Sequence[Analyzed], sites: Collection[Site], name: str = "skeleton", salt: int = 0
) -> Skeleton:
    """The skeleton of some accesses of concurrent runs.

    Parameters
    ----------
    sides : sequence of Analyzed
        The runs; two of one program may be the same.
    sites : collection of Site
        The accesses that remain, and the locks: each becomes a critical section. No two of one run
        exclude each other.
    name : str
        Of the test.
    salt : int
        Chooses the numbers of terms, should two collide.

    Raises
    ------
    MalformedTest
        If the test would be too large.
    """
    return _Maker(sides, sorted(sites), salt).made(name)


class _Maker:
    def __init__(self, sides: Sequence[Analyzed], sites: Sequence[Site], salt: int) -> None:
        self.sides = sides
        self.sites = sites
        self.locks = [site for site in sites if self.access(site).effect.access is Access.LOCK]
        self.salt = salt
        accesses = [site for site in sites if site not in self.locks]
        resources = dict.fromkeys(self.access(site).resource.name for site in accesses)
        self.variables = {resource: f"v{n}" for n, resource in enumerate(resources)}
        added: dict[str, int] = dict.fromkeys(resources, 0)
        for site in accesses:
            added[self.access(site).resource.name] += self.access(site).effect.group == "add"
        self.many = {resource for resource, count in added.items() if count > _MOST_ADDED}
        self.mutexes: dict[tuple[str, str], str] = {}
        for site in self.locks:
            self.mutex("", self.access(site).resource.name)
        for resource in resources:
            if self.interrupted([s for s in accesses if self.access(s).resource.name == resource]):
                self.mutex("of", resource)
        self.labels: dict[str, int] = {}
        self.nodes: dict[Site, tuple[str, ...]] = {}
        self.sections: dict[Site, str] = {}
        self.observed: list[str] = []

    def access(self, site: Site) -> Instance:
        return self.sides[site.side].run.accesses[site.number]

    def mutex(self, *key: str) -> str:
        """The mutex of a program's mutex, or of a variable whose updates need one."""
        assert len(key) == 2
        return self.mutexes.setdefault((key[0], key[1]), f"m{len(self.mutexes)}")

    def native(self, access: Instance) -> bool:
        """True for an update that is one node of a litmus test."""
        adds = access.effect.group == "add" and access.resource.name not in self.many
        return adds and not access.effect.split and not access.effect.shows

    def interrupted(self, sites: Sequence[Site]) -> bool:
        """True if a write may come between the two nodes of an update that is one step.

        The accesses are those of one variable.
        """
        writes = [site for site in sites if self.access(site).writes]
        for site in writes:
            access = self.access(site)
            step = access.effect.access is Access.UPDATE and not access.effect.split
            if step and not self.native(access):
                order = self.sides[site.side].order
                for other in writes:
                    ordered = order.ordered(other.number, site.number)
                    ordered = ordered or order.ordered(site.number, other.number)
                    if other.side != site.side or not (ordered or other == site):
                        return True
        return False

    def made(self, name: str) -> Skeleton:
        graphs = []
        several = len(self.sides) > 1
        for number in range(len(self.sides)):
            nodes = self.side(number)
            graphs.append(Graph(f"g{number}", tuple(nodes)))
        runs = tuple(Run(f"run{n}", f"g{n}") for n in range(len(graphs))) if several else ()
        variables = tuple(
            Variable(short, _DTYPE, (), term(-1 - place, self.salt, ()))
            for place, short in enumerate(self.variables.values())
        )
        test = LitmusTest(
            name,
            variables,
            tuple(graphs),
            tuple(f"run{each[1]}.{each}" if several else each for each in self.observed),
            f"Accesses of {', '.join(dict.fromkeys(side.run.name for side in self.sides))}"[:200],
            client=runs,
            mutexes=tuple(map(Mutex, self.mutexes.values())),
        )
        back = {short: resource for resource, short in self.variables.items()}
        waits = {
            site: self.chosen(site.side, self.sides[site.side].order.before[site.number])
            for site in self.sites
        }
        ends = {site: self.inside(site) for site in self.locks}
        replacing = frozenset(site for site in self.sites if self.access(site).effect.replaces)
        return Skeleton(test, self.nodes, self.sections, back, waits, ends, replacing)

    def chosen(self, side: int, mask: int) -> frozenset[Site]:
        """The chosen accesses and locks among some of a run."""
        return frozenset(s for s in self.sites if s.side == side and mask >> s.number & 1)

    def inside(self, lock: Site) -> frozenset[Site]:
        """What comes before a lock is released."""
        return self.chosen(lock.side, self.sides[lock.side].order.lock_ends[lock.number]) - {lock}

    def members(self, side: int) -> dict[int, set[int]]:
        """For each lock of a run: the accesses that are members of its section.

        Those that are in other sections as well are in none: edges put them into each.
        """
        analyzed = self.sides[side]
        locks = {site.number for site in self.locks if site.side == side}
        found: dict[int, set[int]] = {number: set() for number in sorted(locks)}
        for site in self.sites:
            around = analyzed.locks[site.number] & locks if site.side == side else frozenset()
            own = site in self.locks or self.guarded(self.access(site))
            for number in around:
                found[number].add(-1 if own or len(around) > 1 else site.number)
        return {lock: set() if -1 in mine else mine for lock, mine in found.items()}

    def guarded(self, access: Instance) -> bool:
        """True for a write to a variable whose updates need a mutex."""
        return access.writes and ("of", access.resource.name) in self.mutexes

    def side(self, side: int) -> list[Node]:
        """The nodes of one run."""
        analyzed = self.sides[side]
        mine = [site for site in self.sites if site.side == side]
        chosen = sum(1 << site.number for site in mine)
        members = self.members(side)
        nodes: list[Node] = []
        waits: dict[int, tuple[str, ...]] = {}  # by lock
        last: dict[int, str] = {}  # by access: its last node; by lock: the start of its section
        read: dict[int, str] = {}
        for site in mine:
            number, access = site.number, self.access(site)
            before = analyzed.order.before[number] & chosen
            near = before
            for other in reversed(list(bits(before))):
                if near >> other & 1:
                    near &= ~analyzed.order.before[other]
            after = tuple(
                last[other] for other in bits(near) if number not in members.get(other, ())
            )
            if number in members:
                waits[number] = after
                last[number] = f"a{side}_{number}"
                continue
            inputs = [
                read[other]
                for other in bits(analyzed.order.values[number] & chosen)
                if other in read
            ]
            made = self.nodes_of(f"{side}_{number}", access, inputs, after)
            nodes += made
            if made[-1].members:
                self.sections[site] = made.pop().name
            effects = [node.name for node in made if node.resources]
            self.nodes[site] = tuple(effects)
            last[number] = effects[-1]
            if access.effect.shows:
                read[number] = effects[0]
                self.observed.append(effects[0])
        return self.with_sections(side, nodes, members, waits, last)

    def with_sections(
        self,
        side: int,
        nodes: Sequence[Node],
        members: Mapping[int, set[int]],
        waits: Mapping[int, tuple[str, ...]],
        last: Mapping[int, str],
    ) -> list[Node]:
        """The nodes of one run, and a section for each lock.

        Where not all that comes after a lock is a member, or not all that comes before its
        release, NoOps at the begin and at the end of the section stand for the lock.
        """
        inner: dict[int, list[str]] = {}
        ends: list[Node] = []
        for number, mine in members.items():
            inner[number] = [name for each in sorted(mine) for name in self.nodes[Site(side, each)]]
            rest = sorted(each.number for each in self.inside(Site(side, number)))
            after = tuple(last[each] for each in rest if each not in mine)
            if after:
                ends.append(Node(f"z{side}_{number}", "NoOp", after=after))
                inner[number].append(ends[-1].name)
        used = {name for node in (*nodes, *ends) for name in node.after}
        used |= {name for names in waits.values() for name in names}
        starts, sections = [], []
        for number, names in inner.items():
            site = Site(side, number)
            if last[number] in used or not names:
                starts.append(Node(last[number], "NoOp"))
                names.insert(0, last[number])
            self.sections[site] = f"s{side}_{number}"
            mutex = (self.mutexes["", self.access(site).resource.name],)
            attrs = SectionAttrs(tuple(names))
            sections.append(
                Node(self.sections[site], "CriticalSection", (), mutex, waits[number], attrs)
            )
        return [*starts, *nodes, *ends, *sections]

    def nodes_of(
        self, name: str, access: Instance, inputs: Sequence[str], after: tuple[str, ...]
    ) -> list[Node]:
        """The nodes of one access; the last one is the section around it, if it has one."""
        variable = (self.variables[access.resource.name],)
        kind = access.effect.access
        if kind is Access.READ:
            return [Node(f"r{name}", "ReadVariableOp", (), variable, after)]
        old: list[Node] = []
        if kind is Access.UPDATE and not self.native(access):
            old = [Node(f"r{name}", "ReadVariableOp", (), variable, after)]
            inputs = [old[0].name, *inputs]
        value = self.value(f"t{name}", access, inputs)
        op = "AssignVariableOp" if old or kind is Access.WRITE else "AssignAddVariableOp"
        waits = (old[0].name,) if old else after
        write = Node(f"w{name}", op, (value.name,), variable, waits)
        made = [*old, value, write]
        if self.guarded(access):
            mutex = (self.mutexes["of", access.resource.name],)
            held = old if not access.effect.split else []
            attrs = SectionAttrs(tuple(node.name for node in (*held, write)))
            # Nothing inside of the section waits: what comes before is before the lock.
            before = dict.fromkeys((*after, *inputs, *(() if held else (value.name,))))
            before.pop(attrs.members[0], None)
            made.append(Node(f"s{name}", "CriticalSection", (), mutex, tuple(before), attrs))
        return made

    def value(self, name: str, access: Instance, inputs: Sequence[str]) -> Node:
        """The pure part that computes an access's operand."""
        # Another run may have other inputs: only constants are the same in two runs.
        plain = f"{name[1]} {re.sub(_ITERATION, '', access.name)}"
        key = access.constant.hex() if access.constant and not inputs else plain
        label = self.labels.setdefault(key, len(self.labels))
        if not inputs:
            return Node(name, "Const", attrs=ConstAttrs(_DTYPE, (), term(label, self.salt, ())))
        attrs = PureAttrs((("label", label), ("salt", self.salt)))
        return Node(name, "Opaque", tuple(inputs), attrs=attrs)


def chosen_sites(scenario: Scenario, anomaly: Anomaly) -> list[Site]:
    """The accesses of an anomaly's variables that can happen together with its example.

    If they are too many, those of the example only. With them come the locks that order them.
    """
    names = {scenario.access(site).resource.name for site in anomaly.sites}
    kept = [
        site
        for site in _all_sites(scenario)
        if scenario.access(site).resource.name in names
        and scenario.access(site).effect.known
        and not _excluded(scenario, site, anomaly.sites)
    ]
    for place, site in enumerate(kept):  # of others that exclude each other, the first
        if _excluded(scenario, site, kept[:place]):
            kept = list(anomaly.sites)
            break
    if len(kept) > MAX_ACCESSES:
        kept = list(anomaly.sites)
    locks: list[Site] = []
    for site in _locks(scenario, kept):
        if not _excluded(scenario, site, (*kept, *locks)):
            locks.append(site)
    return [*kept, *locks]


def _all_sites(scenario: Scenario) -> Iterator[Site]:
    for side, each in enumerate(scenario.sides):
        for number in range(len(each.run.accesses)):
            yield Site(side, number)


def _excluded(scenario: Scenario, site: Site, others: Iterable[Site]) -> bool:
    """True if an access is in another branch than one of the others."""
    guards = scenario.access(site).guards
    return any(
        other.side == site.side and exclusive(scenario.access(other).guards, guards)
        for other in others
    )


def _locks(scenario: Scenario, sites: Collection[Site]) -> list[Site]:
    """The locks of each mutex that orders some of the accesses with others."""
    locks = [
        Site(side, number)
        for side, each in enumerate(scenario.sides)
        for number in each.order.lock_ends
    ]
    names = set()
    for lock in locks:
        order = scenario.sides[lock.side].order
        names |= {
            scenario.access(lock).resource.name
            for site in sites
            if site.side == lock.side
            and (
                order.ordered(lock.number, site.number)
                or order.lock_ends[lock.number] >> site.number & 1
            )
        }
    found = [lock for lock in locks if scenario.access(lock).resource.name in names]
    counts = Counter(scenario.access(lock).resource.name for lock in found)
    # A mutex that is locked once excludes nothing.
    return [lock for lock in found if counts[scenario.access(lock).resource.name] > 1]


@dataclass(frozen=True, slots=True)
class Found:
    """What a read sees, or a variable ends as.

    Parameters
    ----------
    value : object
        In the outcome of the skeleton; equal values are equal in the program.
    text : str
        Whose value it is.
    origins : str
        The same; of a value of another access also which accesses of the example it comes from.
    """

    value: object
    text: str
    origins: str


@dataclass(frozen=True, slots=True)
class Followed:
    """One order of an anomaly's example: its outcome in the skeleton, and who read what.

    Parameters
    ----------
    outcome : Outcome
    seen : mapping
        For each read of the example, by its number there, and each final value: what it is.
    """

    outcome: Outcome
    seen: Mapping[str, Found]


def followed(
    made: Skeleton, anomaly: Anomaly, order: Sequence[int], *, others_first: bool = False
) -> Followed | None:
    """The outcome of a total order in which the example's accesses come in that order.

    None if there is no such total order, or none was found.

    Parameters
    ----------
    others_first : bool
        Other accesses that may come first do; else those come last that can.
    """
    wanted = [anomaly.sites[place] for place in order]
    waits = dict(made.waits)
    for place, site in enumerate(wanted):
        if site in wanted[place + 1 :]:
            wanted[place] = _reading(site)
            waits[_reading(site)] = waits[site]
            waits[site] |= {_reading(site)}
    locks = {lock: (made.mutex(lock), ends) for lock, ends in made.ends.items()}
    try:
        sites = total_order(waits, locks, wanted, others_first=others_first)
    except TooManySteps:
        sites = None
    if sites is None:
        return None
    outcome = outcome_of(made.test, EXECUTOR, events_of(made, sites))
    return Followed(outcome, _seen(made, anomaly, sites, dict(outcome.values)))


def _reading(site: Site) -> Site:
    """Stands for the read of an update whose write comes later."""
    return Site(site.side, -1 - site.number)


def _whose(site: Site) -> Site:
    """The access of which a part comes."""
    return site if site.number >= 0 else _reading(site)


def events_of(made: Skeleton, sites: Sequence[Site]) -> tuple[Event, ...]:
    """The events of a total order of accesses and locks; each section ends as soon as it can."""
    several = len(made.test.graphs) > 1
    nodes = {node.name: node for node in made.test.nodes}
    named = {
        (event.run, event.node.name, event.access is EventAccess.RELEASE): event
        for event in unfold(made.test, EXECUTOR).events
    }
    found: list[Event] = []
    held: list[Site] = []
    done: set[Site] = set()
    for site in sites:
        run = f"run{site.side}" if several else ""
        if site.number < 0:
            found.append(named[run, made.nodes[_whose(site)][0], False])
            continue
        section = made.sections.get(site)
        inside = nodes[section].members if section else ()
        for name in made.nodes.get(site, ())[_reading(site) in sites :]:
            if section and name == inside[0]:
                found.append(named[run, section, False])
            found.append(named[run, name, False])
        if section and site in made.nodes:
            found.append(named[run, section, True])
        elif section:
            found.append(named[run, section, False])
            held.append(site)
        done.add(site)
        for lock in list(held):
            if made.ends[lock] <= done:
                held.remove(lock)
                run = f"run{lock.side}" if several else ""
                found.append(named[run, made.sections[lock], True])
    return tuple(found)


def _seen(
    made: Skeleton, anomaly: Anomaly, order: Sequence[Site], values: Mapping[str, object]
) -> dict[str, Found]:
    """Who read what in a total order, in words."""
    numbers = {site: place + 1 for place, site in enumerate(anomaly.sites)}
    nodes = {node.name: node for node in made.test.nodes}
    several = len(made.test.graphs) > 1
    holds: dict[str, str] = {}
    origins: dict[str, tuple[int, ...]] = {}  # of what a variable holds, or a node reads
    ends: set[str] = set()
    found: dict[str, Found] = {}

    def said(text: str, come: tuple[int, ...]) -> str:
        return f"{text}, {_from(come)}" if text == _ANOTHER else text

    for step in order:
        site = _whose(step)
        if site not in made.nodes:
            continue
        names = made.nodes[site]
        variable = nodes[names[0]].resources[0]
        own = origins.get(variable, ())
        if nodes[names[0]].definition.whole_read and (step != site or _reading(site) not in order):
            origins[names[0]] = own
            observed = f"run{site.side}.{names[0]}" if several else names[0]
            if site in numbers and observed in values:
                text = holds.get(variable, "the initial value")
                key = f"{numbers[site]} reads"
                found[key] = Found(values[observed], text, said(text, own))
        last = nodes[names[-1]]
        if last.definition.kind.writes and step == site:
            old = origins[names[0]] if len(names) > 1 else own
            earlier = [number for number in old if number != numbers.get(site)]
            updates = last.definition.kind is Kind.UPDATE or len(names) > 1
            holds[variable] = f"the value of {numbers[site]}" if site in numbers else _ANOTHER
            if site in numbers and updates and earlier and site not in made.replacing:
                holds[variable] += f" after {earlier[-1]}"
            flows = [origins[name] for name in _reads_into(last, nodes)]
            flows += [own] if last.definition.kind is Kind.UPDATE else []
            flows += [(numbers[site],)] if site in numbers else []
            origins[variable] = tuple(dict.fromkeys(each for flow in flows for each in flow))
            if site in numbers:
                ends.add(variable)
    for variable in [each for each in made.variables if each in ends]:
        text = holds[variable]
        key = f"{made.variables[variable]} ends as"
        found[key] = Found(values[variable], text, said(text, origins[variable]))
    return found


def _reads_into(node: Node, nodes: Mapping[str, Node]) -> list[str]:
    """The reads whose values a node is given, through pure ops."""
    found, todo = [], list(node.inputs)
    while todo:
        source = nodes[todo.pop()]
        if source.resources:
            found.append(source.name)
        else:
            todo += source.inputs
    return found


def _from(numbers: Sequence[int]) -> str:
    if not numbers:
        return "which comes from none of these"
    return f"which comes from {', then '.join(map(str, numbers))}"


def decided(scenario: Scenario, anomaly: Anomaly) -> tuple[Skeleton, list[Followed]] | None:
    """The skeleton of an anomaly, and the outcomes of its two orders.

    None where a litmus test cannot have it: nothing then is decided but the order.
    """
    if any(not scenario.access(site).effect.known for site in anomaly.sites):
        return None
    try:
        made = skeleton(scenario.sides, chosen_sites(scenario, anomaly))
    except MalformedTest:
        return None
    found: list[Followed] = []
    for first in (False, True):  # what comes between or after may hide the difference
        both = [followed(made, anomaly, order, others_first=first) for order in anomaly.orders]
        if None in both:
            return None
        found = [each for each in both if each is not None]
        if outcomes(found):
            break
    return made, found


def outcomes(orders: Sequence[Followed]) -> tuple[dict[str, str], ...]:
    """For each order who reads what, in words; none if words cannot tell the orders apart.

    A final value that does not differ is left out. Of a value that differs, the words do as well;
    if need be they say what it comes from.
    """
    found: list[dict[str, str]] = [{} for _ in orders]
    differs = False
    for key in orders[0].seen if orders else ():
        every = [each.seen[key] for each in orders]
        texts = [each.text for each in every]
        if len({each.value for each in every}) == 1:
            if not key.endswith("reads") or len(set(texts)) > 1:
                continue
        else:
            if len(set(texts)) == 1:
                texts = [each.origins for each in every]
            if len(set(texts)) == 1:
                continue
            differs = True
        for each, text in zip(found, texts, strict=True):
            each[key] = text
    return tuple(found) if differs else ()
