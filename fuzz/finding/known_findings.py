"""Known findings: what a campaign may show and still be clean.

A known finding has one of three forms:

- a *cause*: the file of a minimized finding, with the settings that it needs. A finding is
  explained by it only if experiments show that (`litmusfuzz.fuzz.finding.experiments`);
- the *key* of one finding (`litmusfuzz.fuzz.finding.canonical`);
- a *pattern*: symptoms and kernels, for what no experiment compares. What ends a process is never
  minimized, and clusters are judged without running them.

It may name the versions of packages that it holds for: it matches only what was found in these.

It may say what it means for a user (`litmusfuzz.fuzz.finding.defect`). One that does so and has
only a name describes what no campaign shows, and matches nothing.

They are read from a file (`litmusfuzz.fuzz.finding.known_file`). See
docs/decisions/0012-known-findings.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.ops import OPS
from litmusfuzz.corpus.textfile import Entry, dumps
from litmusfuzz.fuzz.finding.canonical import key_of
from litmusfuzz.fuzz.finding.versions import EVERYWHERE, Versions

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import date

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.textfile import Finding
    from litmusfuzz.fuzz.finding.defect import Defect
    from litmusfuzz.fuzz.finding.trials import Case

DEADLY: Final = ("crashed", "timed out", "out of memory")
"""Kinds of findings that end their process."""
SYMPTOMS: Final = (*DEADLY, "unsound")
"""Kinds of findings that no experiment compares."""
KERNELS: Final = frozenset(op.kernel_class for op in OPS.values() if op.has_effect)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A defect that no experiment compares, recognized by the kernels in the test.

    Parameters
    ----------
    symptoms : tuple of str
        Some of `SYMPTOMS`; the finding has one of them.
    kernels : tuple of str
        Faulty kernels (`OpDef.kernel_class`): the finding's test has at least one of them.
    classes : tuple of str
        Executor classes (`canonical.executor_class`) that have the defect.
    beside : tuple of str, optional
        Further kernels that the test may have. None allows any.
    message : str
        Text in the last message of a process that ended; "" for any.
    """

    symptoms: tuple[str, ...]
    kernels: tuple[str, ...]
    classes: tuple[str, ...]
    beside: tuple[str, ...] | None = None
    message: str = ""

    def explains(
        self, test: LitmusTest, symptom: str, executor_class: str, message: str = ""
    ) -> bool:
        """True if a finding has this cause; `message` is the last one of its process."""
        if symptom not in self.symptoms or executor_class not in self.classes:
            return False
        if self.message not in message:
            return False
        found = {node.definition.kernel_class for node in test.effects}
        if self.beside is not None and not found <= {*self.kernels, *self.beside}:
            return False
        return not found.isdisjoint(self.kernels)

    @property
    def ops(self) -> frozenset[str]:
        """The ops of its kernels."""
        return frozenset(name for name, op in OPS.items() if op.kernel_class in self.kernels)


@dataclass(frozen=True, slots=True)
class Cause:
    """A minimized finding that explains others.

    Parameters
    ----------
    file : str
        As it stands in the known-findings file.
    entry : Entry
        With a finding, whose configuration has the settings that the cause needs.
    case : Case or None
        For experiments; None if its executor or configuration is not here.
    path : str
        Where the file is.
    """

    file: str
    entry: Entry = field(compare=False)
    case: Case | None = field(compare=False)
    path: str = field(default="", compare=False)

    @property
    def key(self) -> str:
        """Its key. Computing it takes up to a third of a second: no reader does."""
        return key_of(self.entry)

    @property
    def finding(self) -> Finding:
        """How it shows."""
        assert self.entry.finding is not None
        return self.entry.finding


@dataclass(frozen=True, slots=True)
class KnownFinding:
    """An entry of the file: a cause, a key or a pattern, and the reason to accept it.

    Parameters
    ----------
    why : str
        A reason, a link, or both.
    given_key : str
        The key of one finding; "" with a `cause` or a `pattern`.
    since, expires : date, optional
        First and last day. After its last day an entry matches no finding.
    name : str
        Name of the cause or pattern, in the form of `textfile.Finding.cause`; any text with a key.
    versions : Versions
        Where it holds; elsewhere it matches no finding.
    defect : Defect, optional
        What it means for a user.
    """

    why: str
    given_key: str = ""
    cause: Cause | None = None
    pattern: Pattern | None = None
    since: date | None = None
    expires: date | None = None
    name: str = ""
    versions: Versions = EVERYWHERE
    defect: Defect | None = None

    @property
    def key(self) -> str:
        """The key of the finding, or of the cause's; "" of a pattern."""
        return self.cause.key if self.cause else self.given_key

    @property
    def explained(self) -> tuple[str, str, Pattern | None]:
        """Equal for two entries, of any files, that explain the same findings."""
        return self.given_key, dumps(self.cause.entry) if self.cause else "", self.pattern

    @property
    def title(self) -> str:
        """Name in lists."""
        if self.pattern is not None:
            return f"{' or '.join(self.pattern.symptoms)}: {' or '.join(self.pattern.kernels)}"
        return self.name if self.cause or not self.given_key else self.key

    @property
    def executors(self) -> frozenset[str]:
        """Executors whose findings it may match; empty for any, as of a key, or for none."""
        if self.cause is not None:
            return frozenset((self.cause.finding.executor,))
        classes = self.pattern.classes if self.pattern else ()
        return frozenset(each.rpartition("/")[0] for each in classes)

    def expired(self, today: date) -> bool:
        """True after the last day of the entry."""
        return self.expires is not None and today > self.expires


@dataclass(frozen=True, slots=True)
class KnownFindings:
    """The entries of a file."""

    entries: tuple[KnownFinding, ...] = ()

    def of(self, tested: Mapping[str, str]) -> KnownFindings:
        """The entries that hold for the tested versions of packages."""
        return KnownFindings(tuple(e for e in self.entries if e.versions.include(tested)))

    def about(self, executors: Collection[str]) -> KnownFindings:
        """The entries that may match a finding of one of these executors."""
        kept = [e for e in self.entries if e.given_key or not e.executors.isdisjoint(executors)]
        return KnownFindings(tuple(kept))

    def and_of(self, other: KnownFindings) -> KnownFindings:
        """These entries and those of another file, which replace those that explain the same."""
        theirs = {each.explained for each in other.entries}
        kept = [each for each in self.entries if each.explained not in theirs]
        return KnownFindings((*kept, *other.entries))

    def match(
        self,
        key: str,
        test: LitmusTest,
        symptom: str,
        executor_class: str,
        today: date,
        message: str = "",
    ) -> KnownFinding | None:
        """The entry that matches a finding by key, else by pattern; None if there is none.

        Whether a cause explains it is decided by experiments, not here. `message` is the last one
        of a process that ended.
        """
        valid = [each for each in self.entries if not each.expired(today)]
        for each in valid:
            if each.key and each.key == key:
                return each
        for each in valid:
            pattern = each.pattern
            if pattern and pattern.explains(test, symptom, executor_class, message):
                return each
        return None

    def causes(self, today: date) -> tuple[KnownFinding, ...]:
        """Entries with a cause, of executors that are here."""
        return tuple(
            each
            for each in self.entries
            if each.cause is not None and each.cause.case is not None and not each.expired(today)
        )

    def patterns(self, today: date) -> KnownFindings:
        """The entries with a pattern."""
        valid = [e for e in self.entries if e.pattern and not e.expired(today)]
        return KnownFindings(tuple(valid))

    def deadly_ops(self, today: date) -> frozenset[str]:
        """Ops that are known to end their process.

        What ends it with a certain message needs more than the op: most tests with it do no harm.
        """
        patterns = [each.pattern for each in self.patterns(today).entries if each.pattern]
        deadly = [p for p in patterns if not p.message and not set(DEADLY).isdisjoint(p.symptoms)]
        return frozenset(op for each in deadly for op in each.ops)


NOTHING: Final = KnownFindings()
"""No known findings: all that a campaign shows is new."""
