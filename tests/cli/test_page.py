"""`litmusfuzz page`: what campaigns recorded, as Markdown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

STALE = ("run", "--executors", "mutant/stale-reads", "--families", "dag", "--time", "10m")


@pytest.fixture
def recorded(litmusfuzz, tmp_path: Path) -> dict[str, dict]:
    """Two campaigns in one folder, one in another."""
    records = {}
    for seed, out in (("1", "a"), ("2", "a"), ("1", "b")):
        few = ("--tests", "24", "--count", "16", "--seed", seed, "--out", out)
        litmusfuzz(*STALE, *few)
        path = tmp_path / out / f"record-{seed}.json"
        records[f"{out}{seed}"] = json.loads(path.read_text())
    return records


def test_records_are_added_up(litmusfuzz, tmp_path: Path, recorded: dict[str, dict]) -> None:
    result = litmusfuzz("page", "a", "b", "--json")
    assert (result.returncode, result.stderr) == (0, "")
    data = json.loads(result.stdout)
    assert len(data["campaigns"]) == 3
    config = data["configurations"]["mutant/stale-reads/plain"]
    assert config["tests"] == 72
    assert data["families"]["dag"]["graphs"] == 72
    forbidden = sum(record["forbidden_graphs"] for record in recorded.values())
    assert config["forbidden_graphs"] == data["families"]["dag"]["forbidden_graphs"] == forbidden
    # The same finding, of both folders, is there once.
    names = [each["name"] for each in data["findings"]]
    assert len(names) == len(set(names)) > 0
    assert {each["name"] for r in recorded.values() for each in r["findings"]} == set(names)
    assert sum(each["graphs"] for each in data["findings"]) == forbidden


def test_files_are_named_where_they_lie_now(
    litmusfuzz, tmp_path: Path, recorded: dict[str, dict]
) -> None:
    assert recorded["b1"]["findings"]
    (tmp_path / "kept").mkdir()
    (tmp_path / "b").rename(tmp_path / "kept/b")
    data = json.loads(litmusfuzz("page", "kept/b", "--json").stdout)
    assert all((tmp_path / each["file"]).is_file() for each in data["findings"])
    assert data["campaigns"][0]["command"].endswith("--out kept/b")


def test_the_page_has_all_findings_each_with_its_command(
    litmusfuzz, tmp_path: Path, recorded: dict[str, dict]
) -> None:
    findings = {each["name"]: each for each in recorded["a1"]["findings"]}
    first = next(iter(findings.values()))
    (tmp_path / first["file"]).with_suffix(".py").write_text("", encoding="utf-8")
    result = litmusfuzz("page", "a", "--title", "Stale reads")
    assert result.returncode == 0
    text = result.stdout
    assert text.startswith("# Stale reads\n")
    for name, finding in findings.items():
        assert f"**{name}**" in text
        assert f"`litmusfuzz replay {finding['file']}`" in text
    script = str(Path(first["file"]).with_suffix(".py"))
    assert text.count("- script, without LitmusFuzz: ") == 1
    assert f"`{script}`: **unconfirmed** by it" in text  # nobody has run it
    assert "reported in 48 of 48 runs" in text
    assert "| mutant/stale-reads/plain | rfc |" in text
    for line in text.splitlines():
        if line.startswith("|"):
            assert line.endswith("|")


def test_what_is_no_record_is_refused_in_one_line(litmusfuzz, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "record-1.json").write_text("{}", encoding="utf-8")
    (tmp_path / "list").mkdir()
    (tmp_path / "list" / "record-1.json").write_text("[]", encoding="utf-8")
    for folder, said in (
        ("list", "a table is expected"),
        ("empty", "holds no record"),
        ("absent", "holds no record"),
        ("bad", "of"),
    ):
        result = litmusfuzz("page", folder)
        assert result.returncode == 2
        assert said in result.stderr
        assert result.stderr.count("\n") == 1
