"""Executors that raise an exception, leave a register or its value out, or never return.

In a module that knows nothing of the tests, so that a worker can load it by an entry point.
"""

from __future__ import annotations

import threading

from litmusfuzz import Config, PreparedFunction, Support


def raises(test, rng):
    """Divide by zero, in a function of its own."""
    return divided(len(test.variables))


def divided(number):
    """Divide by zero."""
    return number / 0


def lacks(test, rng):
    """Values of all but the register r1."""
    return {name: 0 for name in test.names if name != "r1"}


def leaves_none(test, rng):
    """No value for the register r1."""
    return {name: None if name == "r1" else 0 for name in test.names}


def hangs(test, rng):
    """Wait for what never happens."""
    threading.Event().wait()


class Broken:
    """Does to each test what its class says."""

    support = Support.scalars()
    play = raises

    @staticmethod
    def configurations():
        """One."""
        return (Config("plain", guarantees="executor"),)

    @staticmethod
    def versions():
        """None."""
        return {}

    def prepare(self, test, config):
        """Takes any test."""
        return PreparedFunction(test, type(self).play)


class Raises(Broken):
    """Divides by zero."""

    name = "raises"


class Lacks(Broken):
    """Leaves a register out."""

    name = "lacks"
    play = lacks


class LeavesNone(Broken):
    """Has no value for a register."""

    name = "leaves-none"
    play = leaves_none


class Hangs(Broken):
    """Never returns."""

    name = "hangs"
    play = hangs
