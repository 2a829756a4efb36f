"""A damaged file of any kind that is read is valid, or is refused in one line.

Damage is random, from a fixed seed: to fail is to have found a defect, and to
find it again on the next run.
"""

from __future__ import annotations

from litmusfuzz.corpus.textfile import Entry, dumps, loads
from tests import mutated_files

MUTATIONS = 140


def test_a_damaged_file_is_valid_or_refused_in_one_line() -> None:
    result, failed = mutated_files.run(MUTATIONS, seed=5)
    assert not failed, "\n".join(failed)
    # Damage that never spoils a file, or always does, would test one side only. Of some kinds a
    # tenth stays valid: fourteen may all be spoiled.
    kinds = mutated_files.kinds()
    assert all(result.refused[kind] for kind in kinds)
    assert sum(result.valid[kind] > 0 for kind in kinds) > len(kinds) // 2


def test_files_are_valid_before_they_are_damaged() -> None:
    texts = mutated_files.corpus()
    entries: list[Entry] = [loads(raw.decode()) for raw in texts]
    assert sum(entry.finding is not None for entry in entries) > len(texts) // 5
    assert [dumps(entry).encode() for entry in entries] == texts


def test_every_kind_is_valid_before_it_is_damaged(tmp_path) -> None:
    for name, kind in mutated_files.kinds().items():
        for raw in kind.texts[:50]:
            assert mutated_files.check(kind, raw, tmp_path / "file")[0], name
