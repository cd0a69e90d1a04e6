"""Numbers as a person reads them. Pure."""

from __future__ import annotations

import math

from goodput.analysis.stats import Interval

_MANY = 1000.0


def number(value: float | None, digits: int = 3) -> str:
    """Three significant digits, without an exponent; a dash for None."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(places, 6)}f}"


def per_cent(ratio: float | None, *, signed: bool = False) -> str:
    """A ratio in per cent; a dash for None. From a thousandfold on the number says no more."""
    if ratio is None:
        return "–"
    if ratio >= _MANY:
        return f"> {_MANY * 100:.0f} %"
    return f"{ratio * 100:{'+' if signed else ''}.1f} %"


def duration(seconds: float) -> str:
    """In the unit that reads best: ``20 ms``, ``1.5 s``."""
    return f"{seconds * 1000:.6g} ms" if seconds < 1 else f"{seconds:.6g} s"


def range_(limits: Interval | None) -> str:
    """Such as ``1.20 to 1.31``; nothing for no interval or one without width."""
    return "" if limits is None or limits[0] == limits[1] else f"{number(limits[0])} to {number(limits[1])}"


def interval(limits: Interval | None) -> str:
    """The same in parentheses, with a space before it."""
    text = range_(limits)
    return f" ({text})" if text else ""
