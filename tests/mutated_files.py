"""Mutated files of every kind that is read: each is valid, or refused in one line.

``python -m tests.mutated_files --mutations 50000 --seed 1`` damages files of the corpus, known
findings, tests and logs of herd, tests in the notation, event logs, databases and replies of
workers: bytes, the tree of values, and what the values mean (huge numbers, control characters,
names that stand twice, deep nesting, exchanged sections, very long lists). It prints how many
of each kind were valid, and the longest time and the most memory that one took, and exits with 1
if reading one fails in any other way than by the error for such a file, takes more than
`MAX_S` of the processor's time, or more than `MAX_BYTES` of memory. ``make nightly`` reads
many, ``make test`` a few hundred.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import shutil
import sqlite3
import sys
import tempfile
import time
import traceback
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.document import FileError, read_text
from litmusfuzz.corpus.herd import dumps as herd_text
from litmusfuzz.corpus.herd import log, parse, read_log
from litmusfuzz.corpus.ops import MalformedTest
from litmusfuzz.corpus.textfile import Digest, Entry, dumps, load, loads, plain_of
from litmusfuzz.fuzz.executors import messages, reply_check
from litmusfuzz.fuzz.finding import known_file
from litmusfuzz.fuzz.store.folder import DATABASE, StoreError
from litmusfuzz.fuzz.store.shard_log import EVENTS
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports import events
from litmusfuzz.reports.stats import plain, read

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT: Final = Path(__file__).parents[1]
MAX_S: Final = 2.0
MAX_BYTES: Final = 256 << 20
MAX_ADDRESSES: Final = 6 << 30
"""Address space of the command: a file that would take all memory of the machine fails as well."""
MAX_PLACES: Final = 200_000
"""Values in a damaged tree, about: more make no valid file of any kind."""
MANY: Final = 20_000
"""Repetitions in a list that is made very long."""

# The corpus proper has no findings; some of what is damaged must have one.
FINDING = b"""finding:
  executor: tensorflow/session
  configuration: two-threads
  model: rfc
  executions: 100
  forbidden:
  - {count: 7, outcome: OUTCOME}
  noise: {copies: 32, shuffle: true}
  settings: {threads: 2, kind: a, grappler: false}
  versions: {tensorflow: 2.21.0}
  seed: 5
  index: 17
  family: dag
  minimized: true
  confirmed: false
  executed: |
    litmusfuzz: 2
    name: executed
    variables:
      X: {dtype: int32, shape: [], init: 0}
    graphs:
      main:
        r: {op: ReadVariableOp, resources: [X]}
    observe: [r]
"""
NUMBERS = (
    *(b"-1", b"0", b"-0", b"16777215", b"16777216", b"-16777216", b"9223372036854775807"),
    *(b"9223372036854775808", b"-9223372036854775808", b"1000000000000000000000", b"9" * 5000),
    *(b"1.5", b"1e9", b"0x10", b"010", b"1_0", b"true", b"null", b"", b"[1]", b"torn", b"1e999"),
)
INSERTS = (
    *(b"\0", b"\x1b[2J", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\xc2\x85", b"\r"),
    *(b"'", b'"', b"&a ", b"*a ", b"!!str ", b"!", b"[", b"]", b"{", b"}", b"? ", b": ", b"- "),
    *(b"\n", b"\t", b"#", b"---\n", b"...\n", b"<<: ", b"|", b">", b"%YAML 1.2\n", b'"\\n"', b"\\"),
    *(b"[" * 5000, b"{" * 5000, b"(" * 5000, b" " * 5000, b"\xe2\x80\xae", b"\\ud800", b"NaN"),
)
KEYS = (
    *(b'"a\\nb"', b'"\\e[2J"', b'"\\0"', b"7", b"null", b"on", b"<<", b"''", b"X", b"main"),
    *(b"? [x]\n", b"!t x", b"&a x", b"*a ", b"k" * 300),
)
VALUES = (
    *(-1, 0, 1, 1 << 24, 1 << 63, -(1 << 63), 10**30, True, None, "", "torn", "X", "main", [], {}),
    *("\x1b[2J", "a\nb", "\u202e", "k" * 5000, "../../x", "/dev/zero", [[[[]]]], {"a": {"b": {}}}),
)
TOKEN = re.compile(rb"[A-Za-z0-9_.+-]+")
NUMBER = re.compile(rb"-?\b[0-9]+\b")
KEY = re.compile(rb"[A-Za-z0-9_]+(?=:)")

Damage = "Callable[[random.Random, bytes, Sequence[bytes]], bytes]"


# --- damage to bytes and lines ---------------------------------------------------------


def _replaced(rng: random.Random, raw: bytes, what: re.Pattern[bytes], new: bytes) -> bytes:
    """One match of `what`, any of them, replaced."""
    found = [match.span() for match in what.finditer(raw)]
    if not found:
        return raw
    start, end = rng.choice(found)
    return raw[:start] + new + raw[end:]


def flip(rng: random.Random, raw: bytes, _: Sequence[bytes]) -> bytes:
    changed = bytearray(raw or b"x")
    for _ in range(rng.randint(1, 3)):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def insert(rng: random.Random, raw: bytes, _: Sequence[bytes]) -> bytes:
    place = rng.randint(0, len(raw))
    return raw[:place] + rng.choice(INSERTS) + raw[place:]


def lines(rng: random.Random, raw: bytes, texts: Sequence[bytes]) -> bytes:
    """A line dropped, put elsewhere, doubled, exchanged, or taken from another file."""
    rows = raw.splitlines(keepends=True) or [b"\n"]
    here, there = rng.randrange(len(rows)), rng.randrange(len(rows))
    other = rng.choice(rng.choice(texts).splitlines(keepends=True) or [b"\n"])
    how = rng.randrange(6)
    if how == 0:
        del rows[here]
    elif how == 1:
        rows.insert(there, rows[here])
    elif how == 2:
        rows[here], rows[there] = rows[there], rows[here]
    elif how == 3:
        rows.insert(here, other)
    elif how == 4:
        low, high = sorted((here, there))
        rows = rows[high:] + rows[low:high] + rows[:low]  # sections exchanged
    else:
        rows[here] = other
    return b"".join(rows)


def token(rng: random.Random, raw: bytes, texts: Sequence[bytes]) -> bytes:
    return _replaced(rng, raw, TOKEN, rng.choice(TOKEN.findall(rng.choice(texts)) or [b"x"]))


def number(rng: random.Random, raw: bytes, _: Sequence[bytes]) -> bytes:
    return _replaced(rng, raw, NUMBER, rng.choice(NUMBERS))


def key(rng: random.Random, raw: bytes, texts: Sequence[bytes]) -> bytes:
    keys = [*KEY.findall(rng.choice(texts)), *rng.sample(KEYS, 3)]
    return _replaced(rng, raw, KEY, rng.choice(keys))


def cut(rng: random.Random, raw: bytes, _: Sequence[bytes]) -> bytes:
    return raw[: rng.randint(0, len(raw))]


def indent(rng: random.Random, raw: bytes, _: Sequence[bytes]) -> bytes:
    rows = raw.splitlines(keepends=True) or [b"\n"]
    here = rng.randrange(len(rows))
    rows[here] = rng.choice((b"", b" ", b"  ", b"    ", b"\t")) + rows[here].lstrip(b" ")
    return b"".join(rows)


def repeat(rng: random.Random, raw: bytes, _: Sequence[bytes]) -> bytes:
    """A piece of a line, or some lines, many times."""
    start = rng.randint(0, len(raw))
    piece = raw[start : start + rng.choice((1, 2, 10, 40, 200))]
    return raw[:start] + piece * min(MANY, 1_000_000 // max(1, len(piece))) + raw[start:]


OF_TEXT = (flip, insert, lines, token, token, number, number, key, cut, indent)
OF_WORDS = (flip, insert, lines, token, token, number, number, cut)


# --- damage to the tree of values ------------------------------------------------------


def _places(data: Any) -> list[tuple[Any, Any]]:
    """Each place of a value in plain data: what holds it, and its key there."""
    found: list[tuple[Any, Any]] = []
    stack = [data]
    while stack:
        here = stack.pop()
        pairs = here.items() if isinstance(here, dict) else enumerate(here)
        for name, each in list(pairs):
            found.append((here, name))
            if isinstance(each, (dict, list)):
                stack.append(each)
    return found


def changed_tree(rng: random.Random, data: Any, other: Any) -> None:
    """Change one to three places of plain data, in place."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = _places(data)
        if not places or len(places) > MAX_PLACES:
            return
        holder, name = rng.choice(places)
        there = rng.choice(_places(other) or places)
        how = rng.randrange(8)
        if how == 0:
            del holder[name]
        elif how <= 2:
            holder[name] = deepcopy(rng.choice(VALUES))
        elif how == 3:
            holder[name] = deepcopy(there[0][there[1]])  # of another file
        elif how == 4 and isinstance(holder, dict):
            holder[str(rng.choice((*VALUES[10:14], there[1])))] = holder.pop(name)
        elif how == 5 and isinstance(holder, list):
            most = MAX_PLACES // (1 + len(_places([holder[name]])))
            count = min(most, rng.choice((1, 70, 1100, MANY)))
            holder += [deepcopy(holder[name]) for _ in range(count)]
        elif how == 6 and isinstance(holder, dict):
            most = MAX_PLACES // (1 + len(_places([holder[name]])))
            for i in range(min(most, rng.choice((3, 70, 2100)))):
                holder[f"{name}_{i}"] = deepcopy(holder[name])
        else:
            for _ in range(rng.choice((1, 10, 60))):
                holder[name] = [holder[name]] if rng.random() < 0.5 else {"a": holder[name]}


class _Plain(yaml.CSafeDumper):
    """Writes each value anew: no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def yaml_tree(rng: random.Random, raw: bytes, texts: Sequence[bytes]) -> bytes:
    try:
        data = yaml.load(raw, Loader=yaml.CSafeLoader)
        other = yaml.load(rng.choice(texts), Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return flip(rng, raw, texts)
    if not isinstance(data, dict) or not isinstance(other, dict):
        return flip(rng, raw, texts)
    changed_tree(rng, data, other)
    text = yaml.dump(data, Dumper=_Plain, sort_keys=False, default_flow_style=rng.random() < 0.5)
    return str(text).encode(errors="surrogatepass")


def json_tree(rng: random.Random, raw: bytes, texts: Sequence[bytes]) -> bytes:
    """One line of JSON changed; a length before it is made to fit."""
    rows = raw.split(b"\n")
    here = rng.randrange(len(rows))
    try:
        data = json.loads(rows[here])
        other = json.loads(rng.choice(rng.choice(texts).split(b"\n")))
    except ValueError:
        return flip(rng, raw, texts)
    if isinstance(data, dict) and isinstance(other, dict):
        changed_tree(rng, data, other)
    rows[here] = json.dumps(data).encode()
    return b"\n".join(rows)


# --- kinds of files --------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Parameters
    ----------
    texts : sequence of bytes
        Valid ones.
    damages : sequence of callables
    read : callable
        Reads a file; raises one of `refusals` if it is not valid.
    refusals : tuple of types
    """

    texts: Sequence[bytes]
    damages: Sequence[Any]
    read: Callable[[Path], None]
    refusals: tuple[type[Exception], ...] = (FileError,)

    def mutated(self, rng: random.Random) -> bytes:
        """A file damaged in one to four places."""
        raw = rng.choice(self.texts)
        for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
            raw = rng.choice(self.damages)(rng, raw, self.texts)
        return repeat(rng, raw, self.texts) if rng.random() < 0.02 else raw


@cache
def corpus() -> list[bytes]:
    """The corpus, every fourth file with a finding put behind."""
    texts = []
    for position, path in enumerate(sorted((ROOT / "corpus/litmus").glob("**/*.yaml"))):
        raw = path.read_bytes()
        listed = re.search(rb"^  - (\{.*\})$", raw, re.MULTILINE)
        if position % 4 == 0 and listed:
            raw += FINDING.replace(b"OUTCOME", listed[1])
        texts.append(raw)
    return texts


def _entry(path: Path) -> None:
    entry = load(path)
    text = dumps(entry)
    assert loads(text) == entry
    assert dumps(loads(text)) == text


def _known(path: Path) -> None:
    known_file.load(path)


def _herd(path: Path) -> None:
    parse(read_text(path), str(path))


def _log(path: Path) -> None:
    read_log(read_text(path), str(path))


def _notation(path: Path) -> None:
    litmus(path.read_bytes().decode(errors="replace"))


def _shard_log(path: Path) -> None:
    """The log of a shard, ingested into a store, and the report on it."""
    folder = path.parent / "campaign"
    shutil.rmtree(folder, ignore_errors=True)
    with Store(folder, write=True) as store:
        store.append(0, STARTED)
        store.append(1, events.ShardPlanned(configurations={"native": ("stealing",)}))
        target = store.log_folder(1) / EVENTS
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)
        while store.ingest(1):
            pass
        plain(store.fold.report("campaign"))


def _database(path: Path) -> None:
    """A store with these events, and the report on it."""
    folder = path.parent / "database"
    shutil.rmtree(folder, ignore_errors=True)
    Store(folder, write=True).close()
    with sqlite3.connect(folder / DATABASE) as db:
        for place, line in enumerate(path.read_bytes().split(b"\n")):
            text = line.decode(errors="replace")
            row = (min(place, 1), place, text)
            db.execute("INSERT INTO events (shard, position, data) VALUES (?, ?, ?)", row)
    db.close()
    with Store(folder, write=False) as store:
        plain(store.fold.report("database"))


def _reply(path: Path) -> None:
    reply = messages.take_reply(bytearray(path.read_bytes()))
    if reply is not None:
        reply_check.check(RUN, TEST, reply)
        messages.histogram(TEST, reply)


def _stats(path: Path) -> None:
    read(read_text(path))


TEST: Final = litmus("X=1; Y=2 || r0=Y; r1=X", name="MP")
RUN: Final = messages.Request(test=plain_of(TEST), count=64)
CONFIGURED: Final = events.Configured("native", "stealing", "rfc", "rfc", "native/stealing")
STARTED: Final = events.CampaignStarted(
    command="litmusfuzz nightly", seed=1, asked_s=60.0, configurations=(CONFIGURED,)
)


def _events() -> list[bytes]:
    run: dict[str, Any] = {"index": 32, "executor": "native", "configuration": "stealing"}
    entry = dumps(Entry(TEST))
    listed = (
        events.ShardStarted(host="h", pid=7, versions={"native": {"native": "1"}}),
        events.Generated(
            index=32, family="dag", executor="native", ops={"read": 2}, given=("native/stealing",)
        ),
        events.Executed(
            **run,
            family="dag",
            model="rfc",
            run_seed=1,
            count=64,
            sha256="0" * 64,
            verdicts={"allowed": 63, "forbidden": 1},
            unreduced="unreduced/a.yaml",
        ),
        events.ReductionStarted(**run),
        events.WorkerDied(
            kind=events.FindingKind.CRASHED,
            executor="native",
            ops=("read",),
            configuration="stealing",
            executor_class="native/stealing",
            message="m",
            file="crashed/a.yaml",
            entry=entry,
            suspects=((32, "stealing"),),
        ),
        events.CrashReduced(
            died_on="crashed/a.yaml",
            raised="KeyError at system/core.py:read",
            file="crashed/b.yaml",
            entry=entry,
            executor="native",
            configuration="stealing",
            needs="",
            complete=True,
            script_shows_it=None,
        ),
        events.FindingAdded(
            **run,
            key="v3-0123456789abcdef",
            file="findings/a.yaml",
            entry=entry,
            executor_class="native/stealing",
            model="rfc",
            cause="c",
            histogram=(({"r0": 0, "r1": 0, "X": 1, "Y": 2}, 1, "forbidden"),),
        ),
        events.SeenAgain(**run, key="v3-0123456789abcdef"),
        events.CauseCompared(**run, cause="v3-0123456789abcdef", verdict="new", seconds=0.5),
        events.CauseChecked(
            cause="v3-0123456789abcdef",
            executor="native",
            configuration="stealing",
            executions=64,
            seen=0,
            shows=False,
        ),
        events.ReductionEnded(**run, executions=5),
        events.Progress(spent_s=5.0, disk_bytes=7),
        events.ShardEnded(seconds=3.0),
    )
    return [b"\n".join(map(events.encode, listed)) + b"\n"]


def _replies() -> list[bytes]:
    row = messages.Row({"r0": [0], "r1": [0], "X": [1], "Y": [2]}, 64)
    made = messages.Reply(rows=[row], seconds=0.5, counters={"steals": 3.0})
    return [messages.encoded(made), messages.encoded(messages.Reply(refused="queues"))]


def _any_reply(rng: random.Random, raw: bytes, texts: Sequence[bytes]) -> bytes:
    """The body changed as JSON; its length fits."""
    body = json_tree(rng, raw[4:], [text[4:] for text in texts])
    return len(body).to_bytes(4, "big") + body


@cache
def kinds() -> dict[str, Kind]:
    """All kinds by name."""
    yamls = (*OF_TEXT, *[yaml_tree] * 10)
    words = (*OF_WORDS,)
    of_json = (*OF_WORDS, *[json_tree] * 10)
    entries = [loads(raw.decode()) for raw in corpus()]
    tests, logs = [], []
    for entry in entries[::7]:
        listed = entry.allowed.get("rfc", Digest(0, ""))
        if not isinstance(listed, Digest):
            logs.append(log(entry.test, dict.fromkeys(listed, 1)).encode())
        try:
            tests.append(herd_text(entry.test).encode())
        except ValueError:
            continue  # has no form in herd
    notation = (
        *("X=1; Y=2 || r0=Y; r1=X", "X+=1 || X+=1", "r0=X; if r0==1 {Y=1} else {Y=2}"),
        *(
            "loop 3 while X==0 {X+=1}",
            "X=1 ||| r0=X",
            "lock M; X=1; unlock M || lock M; r0=X; unlock M",
        ),
    )
    findings = [path.read_bytes() for path in sorted((ROOT / "corpus/findings").glob("*.yaml"))]
    # The damaged file is in another folder.
    text = (ROOT / "corpus/known.yaml").read_text(encoding="utf-8")
    known = [text.replace(": findings/", f": {ROOT}/corpus/findings/").encode()]
    stats = b"state : runs\nseed : 1\nlast_update : 1\ndisk_bytes : 7\n"
    store = (StoreError, sqlite3.DatabaseError)
    line = events.encode(STARTED) + b"\n" + events.encode(events.ShardPlanned(configurations={}))
    return {
        "test": Kind(corpus(), yamls, _entry),
        "finding": Kind(findings, yamls, _entry),
        "known findings": Kind(known, yamls, _known),
        "herd's test": Kind(tests, words, _herd),
        "herd's log": Kind(logs, words, _log),
        "notation": Kind([n.encode() for n in notation], words, _notation, (MalformedTest,)),
        "shard log": Kind(_events(), of_json, _shard_log, store),
        "database": Kind([line + b"\n" + _events()[0].strip()], of_json, _database, store),
        "reply": Kind(_replies(), (*OF_WORDS, *[_any_reply] * 20), _reply, (messages.BadReply,)),
        "stats": Kind([stats], words, _stats),
    }


# --- reading ---------------------------------------------------------------------------


@dataclass
class Result:
    """What became of the mutations."""

    valid: Counter[str]
    refused: Counter[str]
    longest_s: float = 0.0
    most_bytes: int = 0


def _peak(*, reset: bool = False) -> int:
    """Largest resident memory since the last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    text = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", text)[1]) << 10  # type: ignore[index]


def check(kind: Kind, raw: bytes, path: Path) -> tuple[bool, float, int]:
    """Read one file; return whether it is valid, the seconds, and the memory.

    Raises
    ------
    AssertionError
        If it is neither valid nor refused as it should be, or costs too much.
    """
    path.write_bytes(raw)
    before, start = _peak(reset=True), time.process_time()
    valid, refused = True, ""
    try:
        kind.read(path)
    except kind.refusals as error:
        valid, refused = False, str(error)
    seconds, size = time.process_time() - start, max(0, _peak() - before)
    assert len(refused) < 4_000, refused[:200]
    assert refused.isprintable() or kind.refusals != (FileError,), refused[:200]
    assert seconds <= MAX_S, f"{seconds:.1f} s"
    assert size <= MAX_BYTES, f"{size >> 20} MiB"
    return valid, seconds, size


def run(mutations: int, seed: int, failures: Path | None = None) -> tuple[Result, list[str]]:
    """Read mutated files, as many of each kind; return the figures and the failures."""
    result, failed = Result(Counter(), Counter()), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutated.yaml"
        for number in range(mutations):
            if number % 1_000 == 0 and sys.stderr.isatty():
                sys.stderr.write(f"{number} of {mutations}, {len(failed)} failed\n")
            name, kind = list(kinds().items())[number % len(kinds())]
            raw = kind.mutated(random.Random(f"{seed}/{number}"))
            try:
                valid, seconds, size = check(kind, raw, path)
            except Exception as error:  # noqa: BLE001 - each is a defect
                trace = traceback.format_exc().splitlines()
                failed.append(f"{name} {number}: {error!r:.200}: {trace[-3].strip():.160}")
                if failures is not None:
                    failures.mkdir(parents=True, exist_ok=True)
                    (failures / f"{seed}-{number}").write_bytes(raw)
                continue
            (result.valid if valid else result.refused)[name] += 1
            result.longest_s = max(result.longest_s, seconds)
            result.most_bytes = max(result.most_bytes, size)
    return result, failed


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--failures", type=Path, help="folder for the files that failed")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESSES, MAX_ADDRESSES))
    result, failed = run(options.mutations, options.seed, options.failures)
    said = [
        f"{name:16} {result.valid[name]:6} valid {result.refused[name]:6} refused"
        for name in kinds()
    ]
    memory = result.most_bytes >> 20
    said.append(f"at most {result.longest_s:.2f} s and {memory} MiB; {len(failed)} failed")
    sys.stdout.write("\n".join([*said, *failed[:50]]) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
