"""Strict reader for a small part of YAML, with the line of each value.

Loading never executes anything, accepts plain maps, lists, strings, ints and booleans only
(no anchors, tags, or repeated keys; no control characters), and reports the first mistake as
file, line and field.
"""

from __future__ import annotations

import os
import re
from array import array
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec
import yaml
from yaml.reader import ReaderError

from litmusfuzz.corpus.model import CONTROL
from litmusfuzz.corpus.ops import MAX_MESSAGE

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_BYTES: Final = 4 << 20
MAX_DEPTH: Final = 40
MAX_VALUES: Final = 1_000_000
"""Limit on the values of a file: a value of two bytes takes a hundred in memory."""
_INT: Final = re.compile(r"-?(0|[1-9][0-9]*)")
_CONSTANTS: Final = {"true": True, "false": False, "null": None, "~": None, "": None}
_DIRECTIVE: Final = re.compile("^[\ufeff]?%", re.MULTILINE)

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
        if len(message) > MAX_MESSAGE:  # it names something long in the file
            message = message[:MAX_MESSAGE] + " [...]"
        parts = [source + (f":{line}" if line else ""), where, " ".join(message.split())]
        # Keys and names come from outside: they neither end the line nor move a cursor.
        super().__init__(": ".join(_printable(part) for part in parts if part))
        self.source = source
        self.line = line
        self.fields = fields
        self.message = message


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def open_at_once(
    path: str | os.PathLike[str], mode: str, buffering: int = -1, *, links: bool = True
) -> IO[bytes]:
    """Open a file; a pipe that nobody else has open is empty, or an error.

    `open` would wait for that without end, and so would a command on a folder from a stranger.

    Parameters
    ----------
    path : str or path
    mode : str
    buffering : int
    links : bool
        False if a link is an error.

    Raises
    ------
    OSError
    """
    more = 0 if links else os.O_NOFOLLOW
    return open(path, mode, buffering, opener=lambda path, flags: _opened(path, flags | more))


def _opened(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_NONBLOCK, 0o666)
    os.set_blocking(descriptor, True)
    return descriptor


def read_text(path: str | os.PathLike[str], most: int = MAX_BYTES) -> str:
    """Text of a file.

    Parameters
    ----------
    path : str or path
    most : int
        Limit on its bytes: there are files without end, and some larger than memory.

    Raises
    ------
    FileError
        If it cannot be read, is larger, or is not UTF-8.
    """
    source = os.fspath(path)
    try:
        with open_at_once(source, "rb") as file:
            raw = file.read(most + 1)
    except OSError as error:
        raise FileError(source, 0, (), error.strerror or "cannot be read") from None
    except ValueError:  # a NUL
        raise FileError(source, 0, (), "cannot be a file's name") from None
    return _decoded(raw, source, most)


def _decoded(raw: bytes, source: str, most: int) -> str:
    if len(raw) > most:
        raise FileError(source, 0, (), f"is larger than {most} bytes")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise FileError(source, line, (), "is not UTF-8") from None


def read_stream(stream: IO[bytes], source: str, most: int = MAX_BYTES) -> str:
    """Text of an open stream; see `read_text`."""
    return _decoded(stream.read(most + 1), source, most)


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
        # One line for each value, in the order of the file: that of its key, if it has one. A
        # number each, since a file may have a million values.
        self._lines = array("I")
        self._blocks: set[int] = set()  # places, in that order, of block literals
        self._path: list[str | int] = []  # of the value that is being read
        self._events: Iterator[Any] = yaml.parse(text, Loader=yaml.CSafeLoader)
        if directive := _DIRECTIVE.search(text):  # libyaml takes quadratic time for many
            line = text.count("\n", 0, directive.start()) + 1
            raise FileError(source, line, (), "directives are not part of the format")
        try:
            self.data = self._document()
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
        return FileError(self.source, self.line(path), path, message)

    def line(self, path: Path_) -> int:
        """Line of the deepest part of `path` that the file has."""
        return self._lines[self._place(path)]

    def is_block(self, path: Path_) -> bool:
        """True for a block literal, whose text begins on the line after its own."""
        return self._place(path) in self._blocks

    def _place(self, path: Path_) -> int:
        """Number of values before the deepest part of `path` that the file has.

        Counts them, since a path is asked for once, for an error.
        """
        place, data = 0, self.data
        for key in path:
            if isinstance(data, dict) and key in data:
                before = islice(data.values(), list(data).index(str(key)))
                place += 1 + sum(map(_count, before))
            elif isinstance(data, list) and isinstance(key, int) and 0 <= key < len(data):
                place += 1 + sum(map(_count, islice(data, key)))
            else:
                break
            data = data[key]
        return place

    def _at(self, event: Any, message: str, *more: str) -> FileError:
        """Error where `event` stands, which nothing in the file may name yet."""
        return FileError(self.source, event.start_mark.line + 1, (*self._path, *more), message)

    def _document(self) -> Any:
        """Plain data of the only document.

        From parser events, not by `yaml.compose`: that recurses in C, and a
        file of brackets would crash the process.
        """
        next(self._events)  # stream start
        if isinstance(next(self._events), yaml.StreamEndEvent):
            raise FileError(self.source, 1, (), "is empty")
        event = next(self._events)
        data = self._plain(event, event.start_mark.line + 1)
        next(self._events)  # document end
        more: Any = next(self._events)
        if not isinstance(more, yaml.StreamEndEvent):
            raise FileError(self.source, more.start_mark.line + 1, (), "a second document")
        return data

    def _plain(self, event: Any, line: int) -> Any:
        """Plain data of the value that begins with `event`.

        Notes its line, and refuses all that is not plain.
        """
        self._lines.append(line)
        self._refuse_references(event)
        if len(self._path) > MAX_DEPTH:
            del self._path[4:]
            raise self._at(event, "is nested too deeply")
        if isinstance(event, yaml.ScalarEvent):
            if event.style == "|":
                self._blocks.add(len(self._lines) - 1)
            return self._scalar(event)
        path = self._path
        if isinstance(event, yaml.SequenceStartEvent):
            rows: list[Any] = []
            path.append(0)
            for each in self._until(yaml.SequenceEndEvent):
                path[-1] = len(rows)
                rows.append(self._plain(each, each.start_mark.line + 1))
            path.pop()
            return rows
        out: dict[str, Any] = {}
        for each in self._until(yaml.MappingEndEvent):
            self._refuse_references(each)
            key = self._scalar(each) if isinstance(each, yaml.ScalarEvent) else None
            if not isinstance(key, str):
                raise self._at(each, "a key must be a string")
            if key in out:
                raise self._at(each, "stands twice", key)
            path.append(key)
            out[key] = self._plain(next(self._events), each.start_mark.line + 1)
            path.pop()
        return out

    def _until(self, end: type[yaml.Event]) -> Iterator[Any]:
        """Events up to the next one of type `end`, which is consumed."""
        for event in self._events:
            if isinstance(event, end):
                return
            if len(self._lines) > MAX_VALUES:
                raise self._at(event, f"a file has at most {MAX_VALUES} values")
            yield event

    def _refuse_references(self, event: Any) -> None:
        """Refuse anchors, aliases and tags."""
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise self._at(event, "anchors and aliases are not part of the format")
        if event.tag is not None:
            raise self._at(event, f"tag {event.tag[:80]!r} is not part of the format")

    def _scalar(self, event: Any) -> Any:
        """Parse a scalar: an int, a bool, null, or a string."""
        text = str(event.value)
        if CONTROL.search(text):  # by an escape, in quotes
            raise self._at(event, "control characters are not part of the format")
        if event.style:  # quoted, or a block
            return text
        if _INT.fullmatch(text):
            if len(text) > 20 or not -(1 << 63) <= int(text) < 1 << 63:
                raise self._at(event, "an int of more than 64 bits")
            return int(text)
        return _CONSTANTS.get(text, text)

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


def _count(data: Any) -> int:
    """Number of values in plain data, itself included."""
    if isinstance(data, dict):
        return 1 + sum(map(_count, data.values()))
    return 1 + sum(map(_count, data)) if isinstance(data, list) else 1


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
