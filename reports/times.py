"""Times, durations and sizes as short text."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(at: int) -> str:
    """A time of day, to the minute, UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def stamp(at: int) -> str:
    """A time in ISO 8601."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def lasted(seconds: float) -> str:
    """A duration in its two largest units, ``2 h 05 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def seconds(number: float) -> str:
    """Seconds as a limit has them: whole, or with a digit if they are few."""
    return f"{number:,.0f}" if number >= 1 or not number else f"{number:.1f}"


def short(number: float) -> str:
    """Three digits and a unit: ``12.3 k``."""
    for unit in ("", " k", " M", " G"):
        if number < 999.5:
            return f"{number:.0f}{unit}" if number >= 100 or not unit else f"{number:.3g}{unit}"
        number /= 1000
    return f"{number:.3g} T"
