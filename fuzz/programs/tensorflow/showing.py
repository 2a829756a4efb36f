"""Races shown: the two orders of an anomaly, forced in unmodified TensorFlow on the user's graph.

Functions of a module are called as they are, on the user's own variables, which are set back after
each call. Graphs, of a module, a file or a SavedModel, are run in a new session each time, in which
each of two concurrent runs has its nodes for itself, and shares the variables with the other.

Each race is run first without waiting, which says what runs at all with these inputs. The log of
`gates` then says that the accesses happened in the order that was forced.
"""

from __future__ import annotations

import threading
import time
import zlib
from dataclasses import dataclass
from itertools import count, pairwise, product
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from litmusfuzz.fuzz.programs.anomalies import AnomalyKind, Site
from litmusfuzz.fuzz.programs.effects import Access
from litmusfuzz.fuzz.programs.order import bits
from litmusfuzz.fuzz.programs.program import ProgramError
from litmusfuzz.fuzz.programs.tensorflow.gates import Gate, NoEndError, NotShown
from litmusfuzz.fuzz.programs.total_order import ranked
from litmusfuzz.reports.checked import ReportedShowing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from litmusfuzz.fuzz.programs.anomalies import Anomaly, Scenario
    from litmusfuzz.fuzz.programs.checking import CheckedAnomaly
    from litmusfuzz.fuzz.programs.expansion import Instance

TIMEOUT_S: Final = 30.0
"""Seconds after which a forced order counts as impossible, unless this process still computes."""
BUSY_SHARE: Final = 0.01
"""Share of one core that a process uses at least while it computes, whatever runs beside it."""
MAX_TIMEOUTS: Final = 10
"""Times `TIMEOUT_S` after which an order counts as impossible though the process computes."""
INPUTS: Final = 3
"""Choices of inputs that are tried until the two orders differ.

Also without inputs: what is read of a reference is no copy, and may be overwritten before its use.
"""
REPEATS: Final = 3
"""Runs of each order where accesses beside those of the race are free."""
MAX_GATES: Final = 400
"""Accesses that are forced into a total order, at most."""
_SMALL: Final = 8
"""Elements of a value that is printed as a whole."""
_LONG: Final = 60
"""Bytes of a text that is printed as a whole."""
_numbers: Final = count()
Name = tuple[str, str]
"""A value, and the verb before its text: "is" or "ends as"."""


@dataclass(frozen=True, slots=True)
class Given:
    """An input of a run: its name, type and shape."""

    side: int
    name: str
    dtype: Any
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Observed:
    """One execution: results and final values by name, and the accesses that happened, in order."""

    values: Mapping[Name, Any]
    log: tuple[int, ...]


class Prepared(Protocol):
    """A program with gates in it."""

    @property
    def inputs(self) -> Sequence[Given]:
        """The inputs of the runs."""

    def run(self, values: Mapping[Given, Any]) -> Observed:
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


class UserValues:
    """Values of inputs that the user gives: by the input's name, or RUN.NAME.

    Parameters
    ----------
    texts : mapping of str to str
        Numbers with commas between them, one number for all elements, or the name of a .npy file.

    Raises
    ------
    ProgramError
        If a file cannot be read.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self.unused = {*texts}
        self.there: dict[str, None] = {}
        """Names of inputs that runs have."""
        self.files = {
            name: _array(name, text) for name, text in texts.items() if text.endswith(".npy")
        }

    def of(self, run: str, given: Given) -> Any | None:
        """The value of a run's input; None if the user gave none.

        Raises
        ------
        ProgramError
            If it does not fit.
        """
        self.there[f"{run}.{given.name}"] = None
        name = next((n for n in (f"{run}.{given.name}", given.name) if n in self.texts), None)
        if name is None:
            return None
        self.unused.discard(name)
        kind = f"{np.dtype(given.dtype).name}{list(given.shape)}"
        if name in self.files:
            array = self.files[name]
            if array.shape != given.shape or array.dtype != given.dtype:
                own = f"{array.dtype.name}{list(array.shape)}"
                raise ProgramError(f"--value: {name} is {own}, and the input is {kind}")
            return array
        parts: list[Any] = self.texts[name].split(",")
        size = int(np.prod(given.shape))
        if len(parts) not in (1, size):
            raise ProgramError(f"--value: {name} has {len(parts)} values, and the input is {kind}")
        try:
            if given.dtype == np.object_:
                parts = [part.encode() for part in parts]
            elif given.dtype == np.bool_:
                parts = [{"true": True, "false": False}[part.strip().lower()] for part in parts]
            array = np.array(parts, given.dtype)
        except (KeyError, ValueError, OverflowError):
            text = self.texts[name]
            raise ProgramError(f"--value: {name}: {text!r:.60} is not of type {kind}") from None
        filled = np.full(given.shape, array[0], given.dtype)
        return filled if len(parts) == 1 else array.reshape(given.shape)

    def check(self) -> None:
        """Raise `ProgramError` if a name was of no input."""
        for name in sorted(self.unused):
            there = ", ".join(self.there) or "none"
            raise ProgramError(f"--value: no input is named {name}; there are {there:.400}")


def _array(name: str, file: str) -> Any:
    try:
        return np.load(file, allow_pickle=False)
    except OSError as error:
        raise ProgramError(f"--value: {name}: {file}: {error.strerror or error}") from None
    except (ValueError, EOFError) as error:
        raise ProgramError(f"--value: {name}: {file}: {error}") from None


def shown(host: Host, found: CheckedAnomaly, given: UserValues | None = None) -> ReportedShowing:
    """The results of the two orders of an anomaly, or why they are not shown.

    `given` has the user's values of inputs.

    Raises
    ------
    ProgramError
        If such a value does not fit its input.
    """
    try:
        values = given or UserValues({})
        return _Shower(host, found.scenario, found.anomaly, values).shown()
    except NotShown as why:
        return ReportedShowing((), {}, why_not=str(why))


class _Totals:
    """Total orders of all accesses of a scenario, of a loop those of the iterations that it has.

    Accesses of one op are one: that with the lowest number stands for them.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        first: dict[tuple[int, int], Site] = {}
        self.first: dict[Site, Site] = {}
        for side, each in enumerate(scenario.sides):
            for number, access in enumerate(each.run.accesses):
                site = Site(side, number)
                self.first[site] = first.setdefault((side, access.node), site)

    def possible(self) -> bool:
        """True if gates can force one."""
        if len(self.first) > MAX_GATES:
            return False
        for side in self.scenario.sides:
            for access, locks in zip(side.run.accesses, side.locks, strict=True):
                # A section would have to be in one piece.
                if locks or access.compiled >= 0 or not access.effect.known:
                    return False
        return True

    def with_chain(self, chain: Sequence[Site], ranks: Mapping[Site, int]) -> list[Site] | None:
        """A total order that edges permit, in which a chain's accesses come in its order.

        Of several accesses that may be next, the one with the lowest rank is; those without a
        rank come last. None if there is no such order.
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
        """Total orders for two chains: pairs to try, none if gates cannot force any.

        In the first pair the chains' accesses come as early as they can, so that the rest of both
        runs comes after them; in the second pair the two orders differ as little as they can.
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

    def __init__(self, host: Host, scenario: Scenario, anomaly: Anomaly, given: UserValues) -> None:
        self.host = host
        self.given = given
        self.scenario = scenario
        self.anomaly = anomaly
        self.totals = _Totals(scenario)
        self.written = sorted(
            {
                access.resource.name
                for side in scenario.sides
                for access in side.run.accesses
                if access.writes
            }
        )
        self.made: dict[tuple[bool, tuple[Site, ...]], Prepared] = {}

    def shown(self) -> ReportedShowing:
        """The two results; see `shown`."""
        self.refuse()
        sites = [self.totals.first[site] for site in self.anomaly.sites]
        chains = [
            _without_repetition([sites[place] for place in order]) for order in self.anomaly.orders
        ]
        totals = self.totals.pairs(chains)
        watched = totals[0][0] if totals else chains[0]
        free = self.prepared(watched, forced=False)
        tries = [*totals, [self.with_locks(chain) for chain in chains]]
        endless: set[int] = set()
        why = ""
        for place, salt in product(range(len(tries)), range(INPUTS)):
            total = place < len(totals)
            values = {each: self.value(each, salt) for each in free.inputs}
            given = _inputs(self.scenario, values) or "no inputs"
            log = free.run(values).log
            ran = {watched[number] for number in log if log.count(number) == 1}
            missing = [str(n) for n, site in enumerate(sites, 1) if site not in ran]
            if missing:
                why = f"with {given}, {' and '.join(missing)} does not run"
                continue
            orders = [[s for s in each if s in ran] if total else each for each in tries[place]]
            if place in endless:
                continue
            # A loop may have more iterations than those that are known.
            exact = (total or set(self.totals.first.values()) <= set(orders[0])) and not any(
                "[" in access.name for side in self.scenario.sides for access in side.run.accesses
            )
            try:
                results = self.compared(orders, values, 1 if exact else REPEATS)
            except NotShown as problem:
                if isinstance(problem, NoEndError):
                    endless.add(place)
                # Random ops go on where they were: both orders have to run equally often.
                self.made.clear()
                why = str(problem)
                continue
            if results is not None:
                inputs = _texts(self.scenario, values)
                return ReportedShowing(results, inputs, exact)
            why = f"both orders give the same results with {given}"
        raise NotShown(why)

    def with_locks(self, order: Sequence[Site]) -> list[Site]:
        """An order, with the sections that its accesses need entered in time.

        A section that holds some of its accesses is entered right before them: otherwise a run
        could hold the mutex that an earlier access waits for. A section that is over before an
        access is entered before any other section of its mutex that holds an earlier access: that
        one may be held until the access has happened.
        """
        found: list[Site] = []
        for place, site in enumerate(order):
            locks = sorted(self.scenario.sides[site.side].locks[site.number])
            for lock in (Site(site.side, number) for number in locks):
                if lock not in found:
                    found += self.over_first(self.scenario.access(lock), order[place + 1 :], found)
                    found.append(lock)
            found.append(site)
        return found

    def over_first(
        self, lock: Instance, later: Sequence[Site], found: Sequence[Site]
    ) -> list[Site]:
        """Sections on a lock's mutex that have to be over before accesses that come later."""
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
                    and own not in (*found, *needed)
                ):
                    needed.append(own)
        return needed

    def refuse(self) -> None:
        """Raise `NotShown` for a race that gates cannot force."""
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
        """The program with a gate at each of the sites."""
        key = forced, tuple(order)
        if key not in self.made:
            name = f"litmusfuzz_gate_{next(_numbers)}"
            gates: list[tuple[Site, Gate]] = []
            for number, site in enumerate(order):
                own = f"{name}_{number}" if forced and number else ""
                following = f"{name}_{number + 1}" if forced and number + 1 < len(order) else ""
                gates.append((site, Gate(number, f"{name}_log", own, following)))
            self.made[key] = self.host.prepared(self.scenario, self.written, gates)
        return self.made[key]

    def compared(
        self, orders: Sequence[Sequence[Site]], values: Mapping[Given, Any], repeats: int
    ) -> tuple[Mapping[str, str], ...] | None:
        """What differs between the orders, as text; None if nothing does."""
        outcomes: list[list[Mapping[Name, Any]]] = [[] for _ in orders]
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
            if not any(_equal(one[name], two[name]) for one in first for two in second)
        ]
        if not differing:
            return None
        texts: tuple[dict[str, str], ...] = ({}, {})
        for name in differing:
            one, two = first[0][name], second[0][name]
            where, label = _difference(one, two)
            for text, value in zip(texts, (one, two), strict=True):
                text[f"{name[0]}{label} {name[1]}"] = _text(value[where] if label else value)
        return texts

    def value(self, given: Given, salt: int) -> Any:
        """An input: the user's value, or ours; predicates are as the anomaly needs them."""
        own = self.given.of(self.scenario.runs[given.side], given)
        if own is not None:
            return own
        if given.dtype == np.bool_:
            return np.full(given.shape, self.wanted(given))
        numbers = np.random.default_rng([salt, given.side, *given.name.encode()])
        if given.dtype == np.object_:
            return np.full(given.shape, b"ab"[salt % 2 : salt % 2 + 1], np.object_)
        if np.issubdtype(given.dtype, np.integer):  # small: it may be an index
            most = int(salt > 0)
            return numbers.integers(1 - most, 2, given.shape).astype(given.dtype)
        return np.round(numbers.uniform(0.25, 1.75, given.shape), 2).astype(given.dtype)

    def wanted(self, given: Given) -> bool:
        """The value of a predicate that is an input."""
        labels = self.scenario.sides[given.side].run.labels
        for site in self.anomaly.sites:
            for predicate, way in self.scenario.access(site).guards:
                if site.side == given.side and labels[predicate] == given.name:
                    return bool(way)
        return True


def _without_repetition(order: Sequence[Site]) -> list[Site]:
    """The order with one site for each op."""
    plain = [site for site, before in zip(order, (None, *order), strict=False) if site != before]
    if len(set(plain)) < len(plain):
        raise NotShown("one op makes several of its accesses")
    return plain


# --- values as text ------------------------------------------------------------------------


def as_array(value: Any) -> Any:
    """A value that TensorFlow returns, as an array of its own; of texts, an array of objects.

    A single text is bytes to TensorFlow; NumPy's type of bytes would drop zero bytes at its end.
    """
    return np.array(value, np.object_ if isinstance(value, bytes) else None)


def _equal(one: Any, two: Any) -> bool:
    """True if two arrays are equal; NaN equals itself."""
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    if one.dtype == np.object_:
        return bool(np.array_equal(one, two))
    return bool(one.tobytes() == two.tobytes())


def _difference(one: Any, two: Any) -> tuple[tuple[int, ...], str]:
    """Index of the first difference of large arrays, and its text; "" for small ones."""
    if one.size <= _SMALL or one.shape != two.shape:
        return (), ""
    for index in np.ndindex(one.shape):
        if not _equal(as_array(one[index]), as_array(two[index])):
            return index, f"[{', '.join(map(str, index))}]"
    raise AssertionError("they are equal")


def _text(value: Any) -> str:
    array = as_array(value)
    if array.dtype == np.object_ and not array.shape:
        text = array.item()
        if len(text) > _LONG:
            return f"{len(text)} bytes with the CRC-32 {zlib.crc32(text):08x}"
        return repr(_decoded(text))
    if array.size > _SMALL:
        return f"{array.dtype} {list(array.shape)}"
    if array.dtype == np.object_:
        return str(np.vectorize(_decoded, otypes=[object])(array).tolist())
    return np.array2string(array, separator=", ").replace("\n", "")


def _decoded(text: bytes) -> str | bytes:
    """The characters of a text; the bytes if they are no UTF-8."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return text


def _texts(scenario: Scenario, values: Mapping[Given, Any]) -> dict[str, str]:
    """The inputs by name."""
    names = side_names(scenario)
    return {f"{names[each.side]} {each.name}": _text(value) for each, value in values.items()}


def _inputs(scenario: Scenario, values: Mapping[Given, Any]) -> str:
    return ", ".join(f"{name} = {text}" for name, text in _texts(scenario, values).items())


def side_names(scenario: Scenario) -> list[str]:
    """Names of the runs; numbered if a run is beside itself."""
    names = list(scenario.runs)
    if len(names) == 2 and names[0] == names[1]:
        return [f"first {names[0]}", f"second {names[0]}"]
    return names


def within_time(act: Callable[[], Any], stop: Callable[[], None]) -> Any:
    """The result of an action in a thread of its own, which is stopped after `TIMEOUT_S`.

    While the process computes, it gets more time: what waits for an access that cannot come uses
    no processor, and beside other work all takes longer.

    Raises
    ------
    NotShown
        If it raised an error of TensorFlow.
    NoEndError
        If it was stopped.
    """
    results: list[Any] = []
    problems: list[Exception] = []

    def run() -> None:
        try:
            results.append(act())
        except Exception as error:  # noqa: BLE001 - raised again by the caller's thread
            problems.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(TIMEOUT_S)
    start = time.monotonic()
    while thread.is_alive() and time.monotonic() - start < (MAX_TIMEOUTS - 1) * TIMEOUT_S:
        used_s, window_s = time.process_time(), TIMEOUT_S / MAX_TIMEOUTS
        thread.join(window_s)
        if time.process_time() - used_s < BUSY_SHARE * window_s:
            break
    if thread.is_alive():
        stop()
        thread.join(TIMEOUT_S)
        raise NoEndError(f"TensorFlow did not come to an end within {TIMEOUT_S:g} s")
    for problem in problems:
        raise failure(problem)
    return results[0]


def failure(problem: Exception) -> Exception:
    """What to raise for an exception of TensorFlow's; others stay what they are."""
    import tensorflow as tf

    if not isinstance(problem, (tf.errors.OpError, ValueError, TypeError)):
        return problem
    message = problem.message if isinstance(problem, tf.errors.OpError) else problem
    text = (str(message).splitlines() or [""])[0]
    return NotShown(f"TensorFlow fails: {type(problem).__name__}: {text:.200}")
