"""Do server and client count the same requests? vLLM counts a request when it has finished, by ``finished_reason``.

A stream that came to its end must have been finished by the server, and nothing else may have been, but for
requests that the client closed (or lost): the server may have finished those first, aborted them, or never had
them. So the comparison is exact where the client closed nothing, and else as exact as it can be.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from goodput.analysis.schema.server import RequestTally

FINISHED = ("stop", "length", "repetition")
_COLUMNS = ("outcome", "reason", "sent_s")
_AFTER_THE_END = frozenset({"UsageMismatch", "LengthUnknown", "ShortOutput", "LongOutput", "NoTokenTimes"})


def tally(requests: pa.Table) -> RequestTally:
    """Of a cell's ``requests.parquet``: what the server must have finished, and the rest of what was sent."""
    finished = other = 0
    for outcome, reason, sent in zip(*(requests[name].to_pylist() for name in _COLUMNS), strict=True):
        if outcome == "completed" or reason in _AFTER_THE_END:
            finished += 1
        elif sent is not None:
            other += 1
    return RequestTally(finished=finished, other=other)


def agree(server: Mapping[str, float], client: RequestTally) -> bool:
    """Whether the server's counts by ``finished_reason`` can be those of the client."""
    finished = sum(server.get(reason, 0.0) for reason in FINISHED)
    return client.finished <= finished and sum(server.values()) <= client.finished + client.other
