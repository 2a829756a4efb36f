"""Strict reader for a small part of YAML, with the line of each value.

Loading never executes anything, accepts plain maps, lists, strings, ints and booleans only
(no anchors, tags, or repeated keys; no control characters), and reports the first mistake as
file, line and field.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
import yaml
from yaml.reader import ReaderError

from litmusfuzz.corpus.model import CONTROL

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_BYTES: Final = 4 << 20
MAX_DEPTH: Final = 40

Path_ = tuple[str | int, ...]
"""The keys from the top of a file."""


class FileError(ValueError):
    """A file that is not a litmus file; ``str()`` is one line.

    Parameters
    ----------
    source : str
        The file's name.
    line : int
        Counted from 1; 0 if the file could not be read at all.
    fields : tuple of str or int
        The keys from the top, as the file has them.
    message : str
    """

    def __init__(self, source: str, line: int, fields: Path_, message: str) -> None:
        where = ".".join(str(each)[:80] for each in fields)
        parts = [source + (f":{line}" if line else ""), where, " ".join(message.split())]
        # Keys and names come from outside: they neither end the line nor move a cursor.
        super().__init__(": ".join(_printable(part) for part in parts if part))
        self.source = source
        self.line = line
        self.fields = fields
        self.message = message


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def read_text(path: str | os.PathLike[str]) -> str:
    """Text of a file.

    Raises
    ------
    FileError
        If it cannot be read, is larger than `MAX_BYTES`, or is not UTF-8.
    """
    source = os.fspath(path)
    try:
        with open(source, "rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise FileError(source, 0, (), error.strerror or "cannot be read") from None
    except ValueError:  # a NUL
        raise FileError(source, 0, (), "cannot be a file's name") from None
    if len(raw) > MAX_BYTES:
        raise FileError(source, 0, (), f"is larger than {MAX_BYTES} bytes")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise FileError(source, line, (), "is not UTF-8") from None


class Document:
    """A file being read: its plain data, and the line of each value.

    Parameters
    ----------
    text : str
    source : str
        The file's name, for errors.

    Raises
    ------
    FileError
        If the text is not YAML, or none of the small part that is accepted.
    """

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self.lines: dict[Path_, int] = {}
        self.blocks: set[Path_] = set()  # block literals: their text begins on the next line
        self.events: Iterator[Any] = yaml.parse(text, Loader=yaml.CSafeLoader)
        try:
            self.data = self.document()
        except UnicodeEncodeError as error:  # half of a pair of surrogates
            line = text.count("\n", 0, error.start) + 1
            raise FileError(source, line, (), "is not UTF-8") from None
        except ReaderError as error:
            line = text.encode().count(b"\n", 0, error.position) + 1
            raise FileError(source, line, (), f"not YAML: {error.reason}") from None
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            problem = getattr(error, "problem", None)
            line = mark.line + 1 if mark else 1
            raise FileError(source, line, (), f"not YAML: {problem or error}") from None

    def error(self, path: Path_, message: str) -> FileError:
        """Error at the deepest part of `path` that the file has."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.lines:
                return FileError(self.source, self.lines[path[:end]], path, message)
        return FileError(self.source, 1, path, message)

    def at(self, event: Any, path: Path_, message: str) -> FileError:
        """Where `event` stands, which nothing in the file may name yet."""
        return FileError(self.source, event.start_mark.line + 1, path, message)

    def document(self) -> Any:
        """Plain data of the only document.

        From parser events, not by `yaml.compose`: that recurses in C, and a
        file of brackets would crash the process.
        """
        next(self.events)  # stream start
        if isinstance(next(self.events), yaml.StreamEndEvent):
            raise FileError(self.source, 1, (), "is empty")
        data = self.plain(next(self.events), ())
        next(self.events)  # document end
        more: Any = next(self.events)
        if not isinstance(more, yaml.StreamEndEvent):
            raise FileError(self.source, more.start_mark.line + 1, (), "a second document")
        return data

    def plain(self, event: Any, path: Path_) -> Any:
        """Plain data of the value that begins with `event`.

        Notes lines, and refuses all that is not plain.
        """
        self.lines.setdefault(path, event.start_mark.line + 1)
        self.refuse_references(event, path)
        if len(path) > MAX_DEPTH:
            raise self.at(event, path[:4], "is nested too deeply")
        if isinstance(event, yaml.ScalarEvent):
            if event.style == "|":
                self.blocks.add(path)
            return self.scalar(event, path)
        if isinstance(event, yaml.SequenceStartEvent):
            rows: list[Any] = []
            for each in self.until(yaml.SequenceEndEvent):
                rows.append(self.plain(each, (*path, len(rows))))
            return rows
        out: dict[str, Any] = {}
        for each in self.until(yaml.MappingEndEvent):
            self.refuse_references(each, path)
            key = self.scalar(each, path) if isinstance(each, yaml.ScalarEvent) else None
            if not isinstance(key, str):
                raise self.at(each, path, "a key must be a string")
            if key in out:
                raise self.at(each, (*path, key), "stands twice")
            self.lines[(*path, key)] = each.start_mark.line + 1
            out[key] = self.plain(next(self.events), (*path, key))
        return out

    def until(self, end: type[yaml.Event]) -> Iterator[Any]:
        """Events up to the next one of type `end`, which is consumed."""
        for event in self.events:
            if isinstance(event, end):
                return
            yield event

    def refuse_references(self, event: Any, path: Path_) -> None:
        """Refuse anchors, aliases and tags."""
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise self.at(event, path, "anchors and aliases are not part of the format")
        if event.tag is not None:
            raise self.at(event, path, f"tag {event.tag[:80]!r} is not part of the format")

    def scalar(self, event: Any, path: Path_) -> Any:
        """Parse a scalar: an int, a bool, null, or a string."""
        text = str(event.value)
        if CONTROL.search(text):  # by an escape, in quotes
            raise self.at(event, path, "control characters are not part of the format")
        if event.style:  # quoted, or a block
            return text
        if re.fullmatch(r"-?(0|[1-9][0-9]*)", text):
            if len(text) > 20 or not -(1 << 63) <= int(text) < 1 << 63:
                raise self.at(event, path, "an int of more than 64 bits")
            return int(text)
        return {"true": True, "false": False, "null": None, "~": None, "": None}.get(text, text)

    def convert(self, data: Any, schema: Any, path: Path_) -> Any:
        """Convert `data` to `schema`; report the field of the first mistake."""
        try:
            return msgspec.convert(data, schema, strict=True)
        except msgspec.ValidationError as error:
            message, _, where = str(error).partition(" - at `$")
            inner = re.findall(r"\.([A-Za-z_0-9]+)|\[(\d+)\]", where)
            more = tuple(name or int(index) for name, index in inner)
            unknown = re.search(r"unknown field `(.*)`", message, re.DOTALL)
            if unknown:
                more = (*more, unknown.group(1))
                message = "unknown field"
            raise self.error((*path, *more), _reworded(message)) from None

    def mapping(self, data: Any, schema: Any, path: Path_) -> dict[str, Any]:
        """Convert a mapping whose values are all of one `schema`."""
        fields: dict[str, Any] = self.convert(data, dict[str, Any], path)
        return {name: self.convert(each, schema, (*path, name)) for name, each in fields.items()}


_WORDS: Final = {
    "object": "a mapping",
    "array": "a list",
    "str": "a string",
    "int": "an int",
    "bool": "true or false",
    "null": "nothing",
}


def _reworded(message: str) -> str:
    """Message of a schema error, in the words of the file format."""
    message = message.replace("Object missing required field", "missing field")
    types = f"(?:{'|'.join(_WORDS)})"
    message = re.sub(
        rf"`({types}(?: \| {types})*)`",
        lambda match: " or ".join(_WORDS[each] for each in match[1].split(" | ")),
        message,
    )
    return message[:1].lower() + message[1:]
