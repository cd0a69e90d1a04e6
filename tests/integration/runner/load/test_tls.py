"""The hot path over TLS: the same requests, and what only TLS can do to them."""

from __future__ import annotations

import ssl
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from bench.golden.render import STREAM_TYPE, head
from bench.golden.script import Case, Script, Send, Step, Stream

from goodput.analysis.schema.planned import Load

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Authority, Fronts
    from tests.integration.runner.load.conftest import RunCell, StartGolden

    from goodput.runner.load.run import CellRecords

STREAM = (
    b'data: {"choices":[{"text":"x","finish_reason":"length"}],"usage":{"completion_tokens":1}}\n\n',
    b"data: [DONE]\n\n",
)


def always(*steps: Step) -> Script:
    """The same for every request; the server keeps what it received."""
    return Script(default=Case("always", steps or Stream()), keep_requests=True)


def counted(*parts: bytes) -> Send:
    """A whole answer with its length."""
    body = b"".join(parts)
    return Send(head("200 OK", STREAM_TYPE, f"Content-Length: {len(body)}") + body, 1)


UNTIL_CLOSED = always(Send(head("200 OK", STREAM_TYPE, "Connection: close") + b"".join(STREAM), 1), "close")
COUNTED = always(counted(*STREAM), "close")


def load(requests: int = 20, *, rate: float = 100, prompt: int = 4, output: int = 4) -> Load:
    return Load(
        prompt_tokens=prompt, output_tokens=output, arrival="constant", request_rate=rate, window_requests=requests
    )


def endings(cell: CellRecords) -> Counter[tuple[str, str | None]]:
    """How the window's requests ended."""
    return Counter((row["outcome"], row["reason"]) for row in cell.requests.to_pylist() if row["in_window"])


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_requests_complete(
    golden: StartGolden, run_cell: RunCell, fronts: Fronts, authority: Authority, newest: ssl.TLSVersion
) -> None:
    server = golden(always())
    front = fronts(server.port, newest=newest)
    cell = run_cell(server.port, load(), url=front.url, ca=authority.ca)
    assert cell.counts.completed == cell.counts.attempted == 20
    assert set(front.protocols) == {"http/1.1"}
    assert all("\r\nAuthorization: Bearer k\r\n" in row["head"] for row in server.truth())


def test_the_host_is_named_and_handshakes_are_ahead_of_time_and_short(
    golden: StartGolden, run_cell: RunCell, fronts: Fronts, authority: Authority
) -> None:
    server = golden(COUNTED)
    front = fronts(server.port, shown=authority.issue("named", host="DNS:localhost"))
    url = f"https://localhost:{front.port}"
    cell = run_cell(server.port, load(60, rate=50, output=1), url=url, ca=authority.ca)
    assert cell.counts.completed == 60
    assert set(front.names) == {"localhost"}
    assert cell.client.connections_max > 1, "some wait for the next request, hands shaken"
    assert front.resumed > 30, "every request has a connection of its own"


@pytest.mark.parametrize(
    ("script", "cut", "ending"),
    [
        (UNTIL_CLOSED, False, ("completed", None)),
        (UNTIL_CLOSED, True, ("failed", "Truncated")),
        (COUNTED, True, ("completed", None)),
    ],
)
def test_an_end_without_a_close_notify_is_no_end(
    golden: StartGolden,
    run_cell: RunCell,
    fronts: Fronts,
    authority: Authority,
    *,
    script: Script,
    cut: bool,
    ending: tuple[str, str | None],
) -> None:
    server = golden(script)
    cell = run_cell(server.port, load(5, output=1), url=fronts(server.port, cut=cut).url, ca=authority.ca)
    assert endings(cell) == {ending: 5}


def test_a_request_larger_than_any_buffer(
    golden: StartGolden, run_cell: RunCell, fronts: Fronts, authority: Authority
) -> None:
    server = golden(always())
    cell = run_cell(server.port, load(3, rate=5, prompt=500_000), url=fronts(server.port).url, ca=authority.ca)
    assert cell.counts.completed == 3
    assert all(len(row["body"]["prompt"]) == 500_000 for row in server.truth())


def test_a_large_answer_in_one_segment(
    golden: StartGolden, run_cell: RunCell, fronts: Fronts, authority: Authority
) -> None:
    server = golden(always(counted(STREAM[0].replace(b"x", b"x" * 100_000), STREAM[1]), "keep"))
    cell = run_cell(server.port, load(3, output=1), url=fronts(server.port).url, ca=authority.ca)
    assert cell.counts.completed == 3


def test_a_server_that_cannot_be_trusted_gets_no_request(
    golden: StartGolden, run_cell: RunCell, fronts: Fronts, authority: Authority, tmp_path: Path
) -> None:
    server = golden(always())
    for url, ca in (
        (fronts(server.port).url, type(authority).create(tmp_path / "other").ca),
        (fronts(server.port, shown=authority.issue("else", host="DNS:elsewhere")).url, authority.ca),
        (fronts(server.port, shown=authority.issue("old", days=0)).url, authority.ca),
        (f"https://127.0.0.1:{server.port}", authority.ca),  # no TLS at all
    ):
        cell = run_cell(server.port, load(3), url=url, ca=ca, drain=1.0)
        assert set(endings(cell)) <= {("failed", "TlsFailed"), ("incomplete", "DrainDeadline")}, url
    assert server.truth() == []
