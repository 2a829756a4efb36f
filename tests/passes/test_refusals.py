"""The count of pairs that the rules refuse although they are sound."""

from __future__ import annotations

from collections import Counter

import refusals

from litmusfuzz.corpus.builder import litmus


def counted(program: str) -> dict[str, str]:
    tally: refusals.Tally = Counter()
    refusals.count(litmus(program), tally)
    return {f"{rule}: {what}": verdict for rule, what, verdict in tally}


def test_a_pair_that_is_unsound_with_another_member() -> None:
    found = counted("X=6; r0=Y || Y=8; X=7")
    assert found == {"unsafe pair: write -> read, different variables": "unsound"}


def test_a_pair_that_is_sound_with_any_member() -> None:
    """The read sees what the cluster writes: as if both came at the write-back."""
    found = counted("X=6; r0=X || X=8; r1=X; X=7; r2=X")
    assert found["unsafe pair: write -> read, one variable"] == "sound"


def test_a_pair_around_another_refused_op_is_not_counted() -> None:
    found = counted("X=6; r1=Z; r0=Y || Y=8; X=7")
    assert list(found) == ["unsafe pair: write -> read, different variables"]
    assert set(found.values()) == {"sound"}  # the write and the read of Z: nobody writes Z


def test_the_command_line_prints_a_table(capsys) -> None:
    assert refusals.main(["--tests", "5"]) == 0
    assert refusals.main(["--tests", "5", "--family", "queues"]) == 0
    out = capsys.readouterr().out
    assert "| unsafe pair | " in out
    assert "one variable | " in out
    assert "unknown: 0" in out
