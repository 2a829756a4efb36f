"""Writes `corpus/findings/apart.csv`: for each two findings, an experiment that sets them apart.

``litmusfuzz known compare corpus/findings/*.yaml --json >pairs.json``, without the findings that
have no outcome, then ``python -m tests.corpus.apart pairs.json``. Several files may be named: a
pair that was undecided in one of them, on a busy machine, may be decided in the next. Pairs that
stand in none of them stay as they are in the table, as long as there are files of both findings.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parents[2] / "corpus" / "findings"
APART: Final = FOLDER / "apart.csv"
COLUMNS: Final = ("finding", "other", "why", "configuration", "symptom", "executions", "seen")


def row_of(pair: dict[str, Any]) -> dict[str, Any] | None:
    """The row of a pair: the last experiment that says that one does not explain the other."""
    for each in pair["comparisons"]:
        if pair["verdict"] == "two causes" and each["verdict"] == "new":
            last = each["experiments"][-1]
            values = (
                *(Path(each[name]).stem for name in ("finding", "cause")),
                each["why"],
                last["configuration"],
                " ".join(last["symptoms"]),
                last["executions"],
                last["seen"],
            )
            return dict(zip(COLUMNS, values, strict=True))
    return None


def main() -> None:
    """Write the rows of the files named; of a pair that stands in several, the last."""
    with APART.open(newline="") as file:
        rows = {frozenset((row["finding"], row["other"])): row for row in csv.DictReader(file)}
    there = {path.stem for path in FOLDER.glob("*.yaml")}
    rows = {pair: row for pair, row in rows.items() if pair <= there}
    for name in sys.argv[1:]:
        for pair in json.loads(Path(name).read_text()):
            row = row_of(pair)
            if row is not None:
                rows[frozenset((row["finding"], row["other"]))] = row
    with APART.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows.values(), key=lambda row: (row["finding"], row["other"])))


if __name__ == "__main__":
    main()
