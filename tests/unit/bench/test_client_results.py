"""Aims and page of the comparison."""

from __future__ import annotations

from bench.client.events import Costs
from bench.client.lateness import Lateness
from bench.client.measure import Load
from bench.client.results import Aim, ClientResults, Results, aims, better_peers
from bench.client.score import Honesty, Timing
from bench.client.table import markdown

SEARCHED = (64, 128, 256)
HONEST = Honesty(failures=3, successes=2, called_success=(), called_failure=())


def load(streams: int, error: float, cpu: float | None = 10e-6, problem: str | None = None) -> Load:
    return Load(streams, Timing(error / 2, error, error, False, 100), cpu, streams - 0.4, 90.0, problem)


def client(name: str, *loads: Load, honesty: Honesty | str = HONEST) -> ClientResults:
    return ClientResults(name, "1.0", {one.concurrency: one for one in loads}, honesty, "hangs")


def results(*clients: ClientResults) -> Results:
    costs = [Costs(64, bare=10.0, hot=14.0, whole=31.0, spool_bytes=290.0)]
    return Results(64, SEARCHED, costs, Lateness(0.001, 0.0015, 100), list(clients), {"vllm": "there is no gcc"})


def by_text(found: Results, part: str) -> Aim:
    (aim,) = (aim for aim in aims(found) if part in aim.text)
    return aim


def test_capacity_ends_at_the_first_number_that_is_not_held() -> None:
    assert client("a", load(64, 0.001), load(128, 0.006), load(256, 0.001)).capacity(SEARCHED) == (64, True)
    assert client("a", load(64, 0.006)).capacity(SEARCHED) == (0, True)
    assert client("a", load(64, 0.001), load(128, 0.001)).capacity(SEARCHED) == (128, False)
    assert client("a", load(64, 0.001, problem="hangs")).capacity(SEARCHED) == (0, True)
    assert client("a").capacity(SEARCHED) == (0, False)


def test_aims_are_judged_by_what_was_measured() -> None:
    liar = Honesty(3, 2, ("no [DONE]",), ())
    found = results(client("ours", load(64, 0.0009), honesty=liar), client("theirs", load(64, 0.01, cpu=29e-6)))
    assert by_text(found, "hot path").met
    assert by_text(found, "with parsing").met is False
    assert by_text(found, "sends at").met
    assert by_text(found, "TTFT error").met
    assert by_text(found, "theirs needs").met is False
    assert by_text(found, "theirs needs").measured == "2.9 ×"
    assert by_text(found, "no failure called a success").met is False


def test_an_aim_that_was_not_measured_is_neither_met_nor_missed() -> None:
    found = results(client("ours", load(64, 0.001)), client("theirs", load(64, 0.001, cpu=None, problem="hangs")))
    assert by_text(found, "theirs needs").met is None


def test_a_better_peer_is_named() -> None:
    mine = client("ours", load(64, 0.002), honesty=Honesty(3, 2, (), ("CR",)))
    found = results(mine, client("theirs", load(64, 0.001, cpu=40e-6)))
    assert list(better_peers(found)) == [
        "theirs has the smaller TTFT error p50.",
        "theirs has the smaller TTFT error p99.",
        "theirs has the smaller gap error p99.",
        "theirs fails fewer true successes.",
    ]


def test_the_page_names_what_is_missing_and_what_hangs() -> None:
    text = markdown(results(client("ours", load(64, 0.001)), client("theirs", honesty="no result")), ["# Title"])
    assert "vllm: missing here: there is no gcc." in text
    assert "| ours 1.0 | 0.50 / 1.00 | 1.00 | 10.0 | 64 | ≥ 64 | 90 | 0 of 3 | 0 of 2 | hangs |" in text
    assert "| theirs 1.0 | – | – | – | – | – | – | no result | – | hangs |" in text
