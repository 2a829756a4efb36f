"""Databases whose pages name each other."""

from __future__ import annotations

import sqlite3
import struct
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def tree_of_one_page(database: Path, depth: int, key: bytes, *, root: int = 0) -> None:
    """Make a table's pages a tree whose inner pages each name one other page a hundred times.

    It is the table `events`, or that of the schema if `root` is 1; `key` divides the children.

    References
    ----------
    https://www.sqlite.org/fileformat2.html (b-tree pages)
    """
    with closing(sqlite3.connect(database)) as db:
        (size,) = db.execute("PRAGMA page_size").fetchone()
        if not root:
            query = "SELECT rootpage FROM sqlite_master WHERE name = 'events'"
            (root,) = db.execute(query).fetchone()
        (pages,) = db.execute("PRAGMA page_count").fetchone()
    data = bytearray(database.read_bytes())
    leaf = bytes(data[(root - 1) * size : root * size])
    if root == 1:  # the header of the file comes before that of its first page
        head = leaf[100 : 108 + 2 * struct.unpack_from(">H", leaf, 103)[0]]
        leaf = head + leaf[len(head) :]
    assert leaf[0] == 13, "a leaf of a table"

    def inner(first: int, last: int) -> bytes:
        """99 children `first`, then `last`."""
        cells = [struct.pack(">I", first) + key for _ in range(99)]
        content = b"".join(reversed(cells))
        start = size - len(content)
        places = [size - len(cells[0]) * (n + 1) for n in range(len(cells))]
        head = struct.pack(">BHHHBI", 5, 0, len(cells), start, 0, last)
        body = head + b"".join(struct.pack(">H", each) for each in places)
        return body + bytes(start - len(body)) + content

    # Pages: the leaf with the events, then levels, each of which names the one below.
    data += leaf
    bottom = pages + 1
    below = bottom
    for _ in range(depth):
        data += inner(below, below)
        below = len(data) // size
    top = inner(below, bottom)
    if root == 1:
        head = top[: 12 + 2 * 99]
        top = bytes(data[:100]) + head + bytes(size)[: size - 100 - len(head)]
        top = top[: size - 99 * (4 + len(key))] + inner(below, bottom)[-99 * (4 + len(key)) :]
    data[(root - 1) * size : root * size] = top
    data[28:32] = struct.pack(">I", len(data) // size)
    database.write_bytes(bytes(data))
