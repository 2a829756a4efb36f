"""A damaged file is a valid test, or is refused in one line.

Damage is random, from a fixed seed: to fail is to have found a defect, and to
find it again on the next run.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

from helpers import LITMUS

from litmusfuzz.corpus.textfile import Entry, FileError, dumps, load, loads

if TYPE_CHECKING:
    from pathlib import Path

MUTATIONS = 1_000
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
    *(b"1.5", b"1e9", b"0x10", b"010", b"1_0", b"true", b"null", b"", b"[1]", b"torn"),
)
INSERTS = (
    *(b"\0", b"\x1b[2J", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\xc2\x85", b"\r"),
    *(b"'", b'"', b"&a ", b"*a ", b"!!str ", b"!", b"[", b"]", b"{", b"}", b"? ", b": ", b"- "),
    *(b"\n", b"\t", b"#", b"---\n", b"...\n", b"<<: ", b"|", b">", b"%YAML 1.2\n", b'"\\n"', b"\\"),
)
KEYS = (
    *(b'"a\\nb"', b'"\\e[2J"', b'"\\0"', b"7", b"null", b"on", b"<<", b"''", b"X", b"main"),
    *(b"? [x]\n", b"!t x", b"&a x", b"*a ", b"k" * 300),
)
TOKEN = re.compile(rb"[A-Za-z0-9_.+-]+")
NUMBER = re.compile(rb"-?\b[0-9]+\b")
KEY = re.compile(rb"[A-Za-z0-9_]+(?=:)")


def sources() -> list[bytes]:
    """The corpus, every fourth file with a finding put behind."""
    texts = []
    for position, path in enumerate(LITMUS):
        raw = path.read_bytes()
        listed = re.search(rb"^  - (\{.*\})$", raw, re.MULTILINE)
        if position % 4 == 0 and listed:
            raw += FINDING.replace(b"OUTCOME", listed[1])
        texts.append(raw)
    return texts


def mutated(rng: random.Random, texts: list[bytes]) -> bytes:
    """A file of the corpus, damaged in one to four places."""
    raw = rng.choice(texts)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        raw = rng.choice(DAMAGES)(rng, raw, texts)
    return raw


def _replaced(rng: random.Random, raw: bytes, what: re.Pattern[bytes], new: bytes) -> bytes:
    """One match of `what`, any of them, replaced."""
    found = [match.span() for match in what.finditer(raw)]
    if not found:
        return raw
    start, end = rng.choice(found)
    return raw[:start] + new + raw[end:]


def flip(rng: random.Random, raw: bytes, _: list[bytes]) -> bytes:
    changed = bytearray(raw or b"x")
    for _ in range(rng.randint(1, 3)):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def insert(rng: random.Random, raw: bytes, _: list[bytes]) -> bytes:
    place = rng.randint(0, len(raw))
    return raw[:place] + rng.choice(INSERTS) + raw[place:]


def lines(rng: random.Random, raw: bytes, texts: list[bytes]) -> bytes:
    """A line dropped, put elsewhere, doubled, exchanged, or taken from another file."""
    rows = raw.splitlines(keepends=True) or [b"\n"]
    here, there = rng.randrange(len(rows)), rng.randrange(len(rows))
    other = rng.choice(rng.choice(texts).splitlines(keepends=True))
    how = rng.randrange(5)
    if how == 0:
        del rows[here]
    elif how == 1:
        rows.insert(there, rows[here])
    elif how == 2:
        rows[here], rows[there] = rows[there], rows[here]
    elif how == 3:
        rows.insert(here, other)
    else:
        rows[here] = other
    return b"".join(rows)


def token(rng: random.Random, raw: bytes, texts: list[bytes]) -> bytes:
    return _replaced(rng, raw, TOKEN, rng.choice(TOKEN.findall(rng.choice(texts))))


def number(rng: random.Random, raw: bytes, _: list[bytes]) -> bytes:
    return _replaced(rng, raw, NUMBER, rng.choice(NUMBERS))


def key(rng: random.Random, raw: bytes, texts: list[bytes]) -> bytes:
    keys = [*KEY.findall(rng.choice(texts)), *rng.sample(KEYS, 3)]
    return _replaced(rng, raw, KEY, rng.choice(keys))


def cut(rng: random.Random, raw: bytes, _: list[bytes]) -> bytes:
    return raw[: rng.randint(0, len(raw))]


def indent(rng: random.Random, raw: bytes, _: list[bytes]) -> bytes:
    rows = raw.splitlines(keepends=True) or [b"\n"]
    here = rng.randrange(len(rows))
    rows[here] = rng.choice((b"", b" ", b"  ", b"    ", b"\t")) + rows[here].lstrip(b" ")
    return b"".join(rows)


DAMAGES = (flip, insert, lines, token, token, number, number, key, cut, indent)


def check(path: Path, raw: bytes) -> bool:
    """Whether the damaged file still is a test; fails if it is neither that nor refused."""
    path.write_bytes(raw)
    try:
        entry = load(path)
    except FileError as error:
        refused = str(error)
    else:
        text = dumps(entry)
        assert loads(text) == entry, raw
        assert dumps(loads(text)) == text, raw
        return True
    assert refused.isprintable(), raw
    assert refused.startswith((f"{path}: ", f"{path}:")), raw
    assert len(refused) < 4_000, raw
    return False


def test_a_damaged_file_is_a_test_or_refused_in_one_line(tmp_path: Path) -> None:
    rng = random.Random(20190610)
    texts = sources()
    path = tmp_path / "damaged.yaml"
    valid = sum(check(path, mutated(rng, texts)) for _ in range(MUTATIONS))
    # Damage that never spoils a file, or always does, would test one side only.
    assert 0.05 * MUTATIONS < valid < 0.6 * MUTATIONS


def test_files_are_valid_before_they_are_damaged() -> None:
    texts = sources()
    entries: list[Entry] = [loads(raw.decode()) for raw in texts]
    assert sum(entry.finding is not None for entry in entries) > len(texts) // 5
    assert [dumps(entry).encode() for entry in entries] == texts
