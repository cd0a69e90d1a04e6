"""What the golden server received and sent, with its own stamps: one row per request."""

from __future__ import annotations

import json
import time
from array import array
from collections import Counter
from typing import Any

from bench.golden.request import Request
from bench.golden.script import Case

_FIELDS = 5  # of a send: tokens, then CLOCK_MONOTONIC before and after, then CLOCK_REALTIME before and after


class Row:
    """One request on one connection. A request that is sent again is another row.

    Attributes:
        arrived_ns: CLOCK_MONOTONIC, when its last byte arrived: until then nobody could have begun to answer it.
        kernel: ``arrived_ns`` is the kernel's stamp, so this server's own business is not in it.
        tokens: sent so far.
        ended: complete (as the script has it), closed, reset, stale (closed as if idle), client (it closed the
            connection); None: under way, or hanging.
    """

    __slots__ = (
        "arrived_ns",
        "case",
        "connection",
        "ended",
        "ended_ns",
        "kernel",
        "number",
        "request",
        "reused",
        "sends",
        "tokens",
    )

    def __init__(
        self, case: Case, number: int | None, connection: int, arrived: tuple[int, bool], *, reused: bool
    ) -> None:
        self.case, self.number, self.connection, self.reused = case, number, connection, reused
        self.arrived_ns, self.kernel = arrived
        self.sends = array("q")
        self.tokens = 0
        self.ended: str | None = None
        self.ended_ns: int | None = None
        self.request: Request | None = None

    def sent(self, tokens: int, before: tuple[int, int]) -> None:
        """The kernel has taken all of a send that began at ``before`` (monotonic, wall)."""
        self.tokens += tokens
        self.sends.extend((tokens, before[0], time.monotonic_ns(), before[1], time.time_ns()))

    def end(self, how: str) -> None:
        """Write once how it ended."""
        if self.ended is None:
            self.ended, self.ended_ns = how, time.monotonic_ns()

    def document(self, *, sends: bool) -> dict[str, Any]:
        """The JSON form. ``sends``: all of them, else those of the first and the last token only."""
        rows = [self.sends[at : at + _FIELDS].tolist() for at in range(0, len(self.sends), _FIELDS)]
        carrying = [row for row in rows if row[0]]
        document: dict[str, Any] = {
            "request": self.number,
            "name": self.case.name,
            "verdict": self.case.verdict,
            "first_event": self.case.first,
            "tokens": self.tokens,
            "arrived_ns": self.arrived_ns,
            "arrived_by": "kernel" if self.kernel else "user",
            "first_send": carrying[0] if carrying else None,
            "last_send": carrying[-1] if carrying else None,
            "ended": self.ended,
            "ended_ns": self.ended_ns,
            "connection": self.connection,
            "reused": self.reused,
        }
        if sends:
            document["sends"] = rows
        if self.request is not None:
            document["head"] = self.request.head.decode("latin-1")
            document["body"] = self.request.document()
        return document


class Truth:
    """All rows since the last reset.

    Attributes:
        rows: in the order of arrival.
        at_once: requests under way, ``highest`` most of them.
        connections: accepted, ``open`` those that nobody has closed.
        ordered: requests that were numbered by their order.
        stalled_ns: CLOCK_MONOTONIC, when the whole server stopped and when it went on.
    """

    def __init__(self) -> None:
        self.at_once = self.open = 0
        self.reset()

    def reset(self) -> None:
        """Forget everything; requests under way stay counted and write to rows that nobody reads."""
        self.rows: list[Row] = []
        self.stalled_ns: list[int] = []
        self.connections = self.ordered = 0
        self.highest = self.at_once

    def add(self, row: Row) -> None:
        """A request has arrived."""
        self.rows.append(row)
        self.at_once += 1
        self.highest = max(self.highest, self.at_once)

    def end(self, row: Row, how: str) -> None:
        """A request has ended; only the first word counts."""
        if row.ended is None:
            self.at_once -= 1
            row.end(how)

    def lines(self, *, sends: bool) -> bytes:
        """JSON, one row a line, in the order of arrival."""
        return b"".join(json.dumps(row.document(sends=sends)).encode() + b"\n" for row in self.rows)

    def summary(self) -> dict[str, Any]:
        """Counts."""
        return {
            "requests": len(self.rows),
            "at_once": self.at_once,
            "at_once_highest": self.highest,
            "connections": self.connections,
            "connections_open": self.open,
            "tokens": sum(row.tokens for row in self.rows),
            "verdicts": dict(Counter(row.case.verdict for row in self.rows)),
            "ended": dict(Counter(row.ended or "open" for row in self.rows)),
            "stalled_ns": self.stalled_ns,
        }
