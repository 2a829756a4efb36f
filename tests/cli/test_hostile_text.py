"""Text from files, in the whole way from a stranger's folder to each place where it is shown."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import msgspec
import pytest
from helpers import LITMUS
from helpers_events import PLAIN, STARTED, added, died, executed, shown, started
from markdown_it import MarkdownIt

from litmusfuzz.corpus.document import FileError
from litmusfuzz.corpus.model import CONTROL
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import dumps, load, loads
from litmusfuzz.fuzz.cli.common import harmless
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports.events import (
    CampaignEnded,
    CanaryRun,
    ConfigurationUnavailable,
    Kill,
    MutantRun,
    Problem,
    ShardEnded,
    ShardPlanned,
    ShardStarted,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Command

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
SEQUENCES = "\x1b[31m\x1b]0;title\x07\x1b[2J\x9b1m\x85\x00\x7f\r"
EVIL = (
    f"[red]{SEQUENCES}{BIDI}\ufffe\U000e0041</script><img src=x onerror=alert(1)>"
    "\"><svg onload=alert(1)> `$(touch hit)` '; touch hit #"
    " | a | ![i](http://evil.example/x.png) [l](javascript:alert(1)) https://evil.example/ "
    "www.evil.example ]]> @everyone\n::error::forged\n##[error]forged\n\n# forged\nseed 7: nothing"
)
SB = load(LITMUS[0].parent / "SB.yaml")


@pytest.mark.parametrize("sign", [*BIDI, "\ufffe", "\ufeff", "\U000e0041", "\x1b", "\x9b", "\x7f"])
def test_no_file_has_characters_that_turn_or_hide_text(sign: str) -> None:
    text = dumps(SB).replace("name: SB\n", f'name: SB\ndescription: "a{sign}b"\n')
    text = re.sub(r"(?m)^description: \|\n(  .*\n)+", "", text)
    with pytest.raises(FileError, match=r"control|special") as error:
        loads(text)
    assert str(error.value).isprintable()


def test_text_in_other_scripts_is_no_control_character() -> None:
    assert not CONTROL.search("naïve 日本語 ελληνικά עברית العربية 👩‍💻 ½ “x” \u200c \xa0")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A campaign's folder in which each text that may be anything is hostile."""
    first = shown(1, STARTED + 1)
    key = "v3-0000000000000001"
    hostile = {
        "reason": (EVIL, EVIL),
        "cause": EVIL,
        "rules": (EVIL,),
        "executor_class": EVIL,
        "allowed_by": (EVIL,),
        "is_cycle": False,
    }
    file = "findings/a b$(touch hit).yaml"
    found = added(first, key, "findings/a.yaml", at=STARTED + 2, **hostile)
    entry = loads(found.entry)
    assert entry.finding is not None
    plain = "".join(sorted(set(EVIL) - set(CONTROL.findall(EVIL)) - set("\n\r")))
    text = CONTROL.sub("", EVIL).replace("\n", " ") + plain
    finding = replace(entry.finding, family=text, versions={text: text})
    entry = replace(entry, test=replace(entry.test, description=text), finding=finding)
    at = STARTED + 3
    shard = (
        ShardPlanned(at=STARTED, configurations={"native": ("plain",)}),
        ShardStarted(at=STARTED, host=EVIL, pid=1, versions={"native": {EVIL: EVIL}}),
        CanaryRun(at=at, reported=True),
        first,
        msgspec.structs.replace(found, entry=dumps(entry), file=file),
        executed(2, at, end=f"refused: {EVIL}", counters={EVIL: 1.0}),
        died(at, message=EVIL, executor_class=EVIL, ops=(EVIL,)),
        ConfigurationUnavailable(at=at, executor="native", configuration="tbb", why=EVIL),
        MutantRun(at=at, kill=Kill(EVIL, EVIL, None, 1, EVIL, EVIL)),
        ShardEnded(at=at, seconds=1.0, problem=EVIL),
    )
    made = tmp_path / "c"
    with Store(made, write=True) as store:
        store.append(0, started(PLAIN, command=EVIL))
        store.append(1, *shard)
        store.append(0, Problem(at=at, message=EVIL), CampaignEnded(at=at, spent_s=3.0))
    (made / "findings").mkdir()
    (made / file).write_text(dumps(entry))
    return made


class Tags(HTMLParser):
    """Elements, attributes and links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep all of it."""
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [str(value) for name, value in attrs if name in ("href", "src")]


def lines_of(*texts: str) -> Iterator[str]:
    for text in texts:
        yield from text.splitlines()


def test_what_a_campaign_shows(
    folder: Path, litmusfuzz_here: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    done = litmusfuzz_here("run", "--resume", "c", "--tests", "0")
    status = litmusfuzz_here("status", "c")
    shown = [done.stdout, done.stderr, status.stdout, status.stderr]
    files = ("stats", "summary.md", "junit.xml", "report.html", "findings.sarif", "report.json")
    texts = {name: (folder / name).read_text(encoding="utf-8") for name in files}
    assert "[red]" in done.stdout
    assert "forged" in done.stdout
    for text in (*shown, *texts.values()):
        assert not CONTROL.search(text)
    for line in lines_of(*shown):
        assert not line.lstrip().startswith(("::", "# forged", "seed 7: nothing"))
        assert "##[" not in line

    page = Tags(texts["report.html"])
    assert not page.tags & {"script", "img", "iframe", "object"}
    assert not {name for name in page.attributes if name.startswith("on")}
    assert all(re.match(r"data:,$|#|findings/|crashed/", link) for link in page.links), page.links

    rendered = MarkdownIt("commonmark").enable("table").render(texts["summary.md"])
    summary = Tags(rendered)
    assert not summary.tags & {"script", "img", "a", "svg", "iframe"}
    assert not summary.attributes - {"class", "href"}
    # What GitHub makes links of by itself.
    outside = re.sub(r"(?s)<pre>.*?</pre>", "", re.sub(r"(?s)```.*?```", "", texts["summary.md"]))
    assert not re.search(r"https?://|www\.|(?<!\\)@", outside)
    assert not re.search(r"(?m)^# forged", texts["summary.md"])

    assert len(ElementTree.fromstring(texts["junit.xml"])) == 3  # noqa: S314 - our own
    (run,) = json.loads(texts["findings.sarif"])["runs"]
    assert all("](" not in each["message"]["text"] for each in run["results"])
    for each in json.loads(texts["report.json"])["findings"]:
        assert shlex.split(each["replay"])[:2] == ["litmusfuzz", "replay"]
        assert len(shlex.split(each["replay"])) in (3, 5)


def test_a_copied_command_runs_nothing_else(folder: Path, tmp_path: Path) -> None:
    with Store(folder, write=False) as store:
        report = store.fold.report(f"{folder} '$(touch hit)'\n")
    for each in report.findings:
        command = each.replay.replace("litmusfuzz", "echo", 1)
        subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, check=True, capture_output=True)
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize(
    "command", [["show"], ["replay"], ["oracle"], ["known", "list"], ["minimize"], ["status"]]
)
def test_names_and_contents_of_files_in_messages(
    command: list[str], tmp_path: Path, litmusfuzz_here: Command
) -> None:
    name = f"x{SEQUENCES.replace(chr(0), '')}{BIDI}\n::error::.yaml"
    (tmp_path / name).write_bytes(f"{EVIL}: {EVIL}\n".encode())
    for file in (name, f"absent{name}"):
        done = litmusfuzz_here(*command, file)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert not CONTROL.search(done.stdout + done.stderr)
        assert done.stderr.startswith("litmusfuzz: ")


def test_options_in_messages(litmusfuzz_here: Command) -> None:
    for option in ("--executors", "--families", "--noise", "--engine", "--python", "--known"):
        done = litmusfuzz_here("run", option, EVIL.replace("\0", ""))
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert not CONTROL.search(done.stderr)


@pytest.mark.parametrize("command", ["run", "nightly"])
def test_a_campaign_refuses_arguments_that_it_cannot_record(
    command: str, tmp_path: Path, litmusfuzz_here: Command
) -> None:
    for option in ("--known", "--out", "--resume"):
        done = litmusfuzz_here(command, option, os.fsdecode(b"x\xff"))
        assert done.returncode == 2
        assert done.stderr == "litmusfuzz: x?: is not UTF-8, in which campaigns are recorded\n"
    assert not [*tmp_path.iterdir()]


def test_a_locale_of_ascii_opens_no_way_around() -> None:
    """The library for the command line writes to the bytes below a stream that is in ASCII."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "litmusfuzz", "oracle", "no\x07such\x1bc"],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.decode().startswith("litmusfuzz: no\ufffdsuch\ufffd")


@pytest.mark.parametrize(
    ("asked", "said"), [("complete", "plain,lost-update\n"), ("source", "complete -o")]
)
def test_a_shell_completes_commands(asked: str, said: str) -> None:
    """What it gets is bytes, by the same stream."""
    words = {"COMP_WORDS": "litmusfuzz oracle lost-up", "COMP_CWORD": "2"}
    done = subprocess.run(
        [Path(sys.executable).with_name("litmusfuzz")],
        env=os.environ | words | {"_LITMUSFUZZ_COMPLETE": f"bash_{asked}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert said in done.stdout


def test_commands_of_a_workflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    assert harmless("a\n  ::stop-commands::x ## [x]") == "a\n  ::stop-commands::x ## [x]"
    assert harmless("x ##[error]") == "x ## [error]"
    assert (
        harmless("##vso[task.complete] ###teamcity[x]") == "## vso[task.complete] ### teamcity[x]"
    )
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert harmless("a\n  ::stop-commands::x ::y") == "a\n  : :stop-commands::x ::y"
