"""One native executor for a file: it keeps the second process, which takes a second to start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from litmusfuzz.fuzz.executors.native.executor import NativeExecutor

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def native() -> Iterator[NativeExecutor]:
    executor = NativeExecutor()
    yield executor
    executor.close()
