from __future__ import annotations

import pyarrow as pa
import pytest

from goodput.analysis.schema.server import RequestTally
from goodput.runner.tally import agree, tally


def test_a_stream_that_came_to_its_end_was_finished_by_the_server() -> None:
    rows = [
        ("completed", None, 1.0),
        ("failed", "ShortOutput", 1.0),
        ("failed", "Http400", 1.0),
        ("incomplete", "TailClosed", 1.0),
        ("failed", "Reset", 1.0),
        ("failed", "ConnectRefused", None),
        ("not_sent", "Stopped", None),
    ]
    table = pa.table(dict(zip(("outcome", "reason", "sent_s"), zip(*rows, strict=True), strict=True)))
    assert tally(table) == RequestTally(finished=2, other=3)


@pytest.mark.parametrize(
    ("server", "client", "expected"),
    [
        ({"length": 10.0, "stop": 2.0, "abort": 0.0}, (12, 0), True),
        ({"length": 11.0}, (12, 0), False),  # the server lost one
        ({"length": 13.0}, (12, 0), False),  # somebody else uses the server
        ({"length": 12.0, "abort": 1.0}, (12, 0), False),
        ({"length": 12.0, "abort": 3.0}, (12, 3), True),
        ({"length": 13.0, "abort": 2.0}, (12, 3), True),  # finished while the client closed it
        ({"length": 12.0}, (12, 3), True),  # refused, or closed before it was seen
        ({"length": 12.0, "abort": 4.0}, (12, 3), False),
        ({"length": 11.0, "abort": 4.0}, (12, 3), False),
        ({}, (0, 0), True),
    ],
)
def test_counts_agree_exactly_but_for_what_the_client_closed(
    server: dict[str, float], client: tuple[int, int], expected: bool
) -> None:
    assert agree(server, RequestTally(finished=client[0], other=client[1])) is expected
