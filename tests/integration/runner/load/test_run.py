"""A whole cell over real sockets: schedule, window, connections, stopping and recovering."""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from bench.golden.render import Form
from bench.golden.script import Case, Gate, Script, Step, Stream
from bench.golden.stream import stream_steps

from goodput.analysis.schema.planned import Load, Stage
from goodput.runner.contract import PlannedLoad
from goodput.runner.load.ceiling import measure_ceiling
from goodput.runner.load.errors import PromptError, TargetError, WorkerError
from goodput.runner.load.prompts import FittedText, RandomIds
from goodput.runner.load.records import REQUESTS_SCHEMA
from goodput.runner.load.run import LoadRun, Target, recover

if TYPE_CHECKING:
    from bench.golden.process import Golden
    from tests.integration.runner.load.conftest import RunCell, StartGolden

QUICK = Stream()
SLOW = Stream(ttft=0.01, gap=0.01)


def always(plan: Stream | Sequence[Step]) -> Script:
    """The same for every request; the server keeps what it received."""
    case = Case("always", plan if isinstance(plan, Stream) else tuple(plan))
    return Script(default=case, keep_requests=True)


def proper(tokens: int, gap: float = 0.0) -> tuple[Step, ...]:
    """The steps of a proper stream."""
    return stream_steps(Stream(gap=gap), Form(chat=False), tokens, continuous=True, final=True)


def open_load(rate: float, requests: int, output_tokens: int = 4) -> Load:
    return Load(
        prompt_tokens=4,
        output_tokens=output_tokens,
        arrival="constant",
        request_rate=rate,
        window_requests=requests,
    )


def closed_load(concurrency: int, requests: int) -> Load:
    return Load(
        prompt_tokens=4,
        output_tokens=4,
        arrival="closed",
        concurrency=concurrency,
        window_requests=requests,
    )


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_burst_is_over_with_its_last_request(golden: StartGolden, run_cell: RunCell) -> None:
    load = Load(prompt_tokens=4, output_tokens=4, arrival="burst", window_requests=30)
    cell = run_cell(golden(always([Gate(30), *proper(4, gap=0.01)])).port, load, processes=2)
    assert cell.counts.attempted == cell.counts.completed == 30, "all are there before one is answered"
    assert set(cell.requests["planned_s"].to_pylist()) == {0.0}
    assert (cell.window.opened, cell.window.drained, cell.load_state) == (0.0, True, "not_judged")
    assert cell.window.seconds == pytest.approx(max(cell.requests["end_s"].to_pylist()))
    assert cell.delivered_requests == 30
    assert cell.delivered_output_tokens == 120


def test_a_burst_that_does_not_end_is_given_up(golden: StartGolden, run_cell: RunCell) -> None:
    script = Script(requests=(Case("silent", ("hang",)),), default=Case("proper", QUICK))
    load = Load(prompt_tokens=4, output_tokens=4, arrival="burst", window_requests=5)
    cell = run_cell(golden(script).port, load, drain=1.0)
    assert (cell.counts.completed, cell.counts.incomplete) == (4, 1)
    assert not cell.window.drained


def test_stages_and_a_trace_are_sent_as_planned(golden: StartGolden, run_cell: RunCell) -> None:
    port = golden(always(QUICK)).port
    stages = (Stage(duration_seconds=0.5, rate=20), Stage(duration_seconds=0.5, rate=20, end_rate=60))
    load = Load(prompt_tokens=4, output_tokens=4, arrival="constant", stages=stages, window_seconds=1)
    cell = run_cell(port, load, lead_in=0.2)
    times = np.array(cell.requests.filter(cell.requests["in_window"])["planned_s"].to_pylist())
    assert np.histogram(times, [0.2, 0.7, 1.2])[0].tolist() == [10, 20]
    trace = np.array([0, 10, 300, 310, 700, 900], dtype=np.int64) * 1_000_000
    replay = Load(prompt_tokens=4, output_tokens=4, arrival="replay", speed=2, window_seconds=0.6)
    cell = run_cell(port, replay, lead_in=0.2, replayed=trace)
    assert cell.requests["planned_s"].to_pylist()[:5] == [0, 0.01, 0.3, 0.31, 0.7]
    assert cell.requests["in_window"].to_pylist()[:5] == [False, False, True, True, True]


@pytest.mark.parametrize("endpoint", ["completions", "chat"])
def test_each_request_has_its_own_length_and_is_held_to_it(
    golden: StartGolden, run_cell: RunCell, endpoint: str
) -> None:
    load = open_load(100, 40).model_copy(
        update={"length_distribution": "uniform", "length_variation": 0.5, "prompt_tokens": 40, "output_tokens": 12}
    )
    server = golden(always(QUICK))
    cell = run_cell(server.port, load, endpoint=endpoint)
    assert cell.counts.completed == 40
    outputs = cell.requests.filter(cell.requests["in_window"])["output_tokens"].to_pylist()
    assert outputs == list(cell.asked.output_tokens)
    assert (min(outputs), max(outputs)) == pytest.approx((2, 22), abs=3)
    if endpoint == "completions":
        bodies = [row["body"] for row in server.truth(sends=False)]
        sent = [(len(body["prompt"]), body["max_tokens"]) for body in bodies]
        assert list(zip(cell.asked.prompt_tokens, outputs, strict=True)) == sent[:40]
    short = run_cell(golden(always(Stream(tokens=12))).port, load, endpoint=endpoint)
    kept = sum(tokens == 12 for tokens in short.asked.output_tokens)
    assert (short.counts.completed, short.counts.attempted) == (kept, 40)


def test_a_clean_cell(golden: StartGolden, run_cell: RunCell) -> None:
    cell = run_cell(golden(always(SLOW)).port, open_load(50, 40), lead_in=0.4)
    assert cell.requests.schema.equals(REQUESTS_SCHEMA, check_metadata=True)
    assert cell.requests.schema.metadata[b"goodput.schema_version"] == b"1"
    assert (cell.window.opened, cell.window.closed, cell.window.seconds) == pytest.approx((0.4, 1.2, 0.8))
    assert cell.window.drained
    assert cell.monotonic_closed - cell.monotonic_opened == pytest.approx(0.8)
    rows = cell.requests.to_pylist()
    assert [row["request"] for row in rows] == list(range(len(rows)))
    assert [row["in_window"] for row in rows[:61]] == [False] * 20 + [True] * 40 + [False]
    for row in rows[:60]:
        assert row["outcome"] == "completed"
        assert row["planned_s"] <= row["sent_s"] < row["first_s"] <= row["last_s"] <= row["end_s"]
        assert row["itl_sum_s"] == (pytest.approx(row["last_s"] - row["first_s"]) if row["itl_count"] else None)
    assert cell.counts.attempted == cell.counts.completed == 40
    assert (cell.client.planned, cell.client.sent, cell.client.processes) == (60, 60, 1)
    assert cell.client.used_ratio is not None
    assert cell.itl.zero + sum(cell.itl.counts.values()) == sum(r["itl_count"] or 0 for r in rows if r["in_window"])
    assert cell.prompt_drift_ratio == 0
    assert cell.load_state == "stable"


def test_an_open_loop_is_never_slowed_by_the_server(golden: StartGolden, run_cell: RunCell) -> None:
    """The server answers nobody until it has all requests: whoever waits for answers never gets there."""
    requests = 60
    server = golden(always([Gate(requests), *proper(1)]))
    cell = run_cell(server.port, open_load(200, requests, 1))
    assert cell.counts.completed == requests
    assert server.summary()["at_once_highest"] >= requests
    assert cell.client.connections_max >= requests
    rows = cell.requests.to_pylist()[:requests]
    assert all(row["first_s"] >= rows[-1]["sent_s"] for row in rows)  # scheduled latency shows the stall


@pytest.mark.parametrize("processes", [1, 3])
def test_a_closed_loop_holds_its_concurrency(golden: StartGolden, run_cell: RunCell, processes: int) -> None:
    server = golden(always(SLOW))
    cell = run_cell(server.port, closed_load(5, 40), processes=processes)
    assert cell.counts.completed == cell.counts.attempted == 40
    assert server.summary()["at_once_highest"] == 5
    assert cell.load_state == "not_judged"
    rows = cell.requests.to_pylist()
    first_five = [row["end_s"] for row in rows[:5]]
    assert cell.window.opened >= max(first_five)
    inside = [row["planned_s"] for row in rows if row["in_window"]]
    assert min(inside) >= cell.window.opened
    assert max(inside) < cell.window.closed


def test_a_closed_loop_whose_first_requests_never_end_has_no_window(golden: StartGolden, run_cell: RunCell) -> None:
    cell = run_cell(golden(always(["hang"])).port, closed_load(2, 4), drain=0.5)
    assert not cell.window_opened
    assert cell.counts.attempted == 0
    assert cell.in_flight_opened is None
    assert not cell.window.drained
    assert {row["outcome"] for row in cell.requests.to_pylist()} == {"incomplete"}


def test_a_closed_loop_does_not_flood_a_dead_server(run_cell: RunCell) -> None:
    load = Load(prompt_tokens=4, output_tokens=4, arrival="closed", concurrency=2, window_seconds=1)
    cell = run_cell(unused_port(), load)
    assert cell.counts.reasons == {"ConnectRefused": cell.counts.attempted}
    assert cell.counts.attempted <= 2 * 11  # each slot waits 0.1 s after a failure


def test_the_schedule_and_the_prompts_do_not_depend_on_the_number_of_processes(
    golden: StartGolden, run_cell: RunCell
) -> None:
    server = golden(always(QUICK))
    one, two = (run_cell(server.port, open_load(100, 30), processes=n) for n in (1, 2))
    assert one.window.schedule_sha256 == two.window.schedule_sha256
    assert one.window.prompts_sha256 == two.window.prompts_sha256
    planned = [cell.requests.column("planned_s").to_pylist()[:30] for cell in (one, two)]
    assert planned[0] == planned[1]


def test_connections_are_used_again(golden: StartGolden, run_cell: RunCell) -> None:
    server = golden(always(QUICK))
    cell = run_cell(server.port, open_load(40, 60))
    assert cell.counts.completed == 60
    assert server.summary()["connections"] < 30


def test_no_connection_outlives_its_cell(golden: StartGolden, run_cell: RunCell) -> None:
    server = golden(always(SLOW))
    for _ in range(2):
        assert run_cell(server.port, open_load(100, 20)).counts.completed == 20
        assert server.summary()["connections_open"] == 1  # the one that asks


def test_a_long_prompt_and_a_long_event_are_nothing_special(golden: StartGolden, run_cell: RunCell) -> None:
    server = golden(always(Stream(text=" word" * 100_000)))
    load = open_load(10, 5, 2).model_copy(update={"prompt_tokens": 50_000})
    cell = run_cell(server.port, load)
    assert cell.counts.completed == 5
    assert cell.prompt_drift_ratio == 0
    truth = server.truth()
    assert {len(row["body"]["prompt"]) for row in truth} == {50_000}
    start = cell.monotonic_opened - cell.window.opened
    for row in cell.requests.to_pylist()[:5]:
        assert row["output_tokens"] == 2
        assert row["last_s"] + start >= truth[row["request"]]["last_send"][1] / 1e9


def test_a_kept_connection_that_the_server_closed_costs_no_request(golden: StartGolden, run_cell: RunCell) -> None:
    server = golden(always(["stale", *proper(4, 0.01)]))
    cell = run_cell(server.port, open_load(20, 40))
    assert cell.counts.completed == 40
    assert cell.retried > 0


def test_a_server_that_is_not_there(run_cell: RunCell) -> None:
    cell = run_cell(unused_port(), open_load(100, 20))
    assert cell.counts.failed == cell.counts.attempted == 20
    assert cell.counts.reasons == {"ConnectRefused": 20}
    assert cell.client.sent == cell.client.planned  # what the server does with it is no part of that
    assert cell.delivered_output_tokens == cell.delivered_requests == 0
    assert cell.client.send_lag_p99_seconds is None


def test_bodies_and_headers(golden: StartGolden, run_cell: RunCell, tmp_path: Path) -> None:
    server = golden(always(QUICK))
    run_cell(server.port, open_load(100, 10))
    truth = server.truth()
    assert truth[0]["body"] == {
        "model": "golden",
        "prompt": [0, 0, 1, 2],
        "max_tokens": 4,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }
    assert all("Authorization: Bearer k" in row["head"] for row in truth)
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"Bearer k" not in stored


def test_a_long_tail_repeats_no_prompt(golden: StartGolden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the prepared requests the prompts are rotated: another beginning each time."""
    monkeypatch.setattr("goodput.runner.load.prepare.SPARE_CLOSED", 8)
    monkeypatch.setattr("goodput.runner.load.prepare.SPARE_CLOSED_BYTES", 0)
    server = golden(always(SLOW))
    load = Load(prompt_tokens=256, output_tokens=4, arrival="closed", concurrency=2, window_seconds=2)
    run = start(server, load, tmp_path)
    assert run.wait(30)
    cell = run.collect()
    prompts = [row["body"]["prompt"] for row in server.truth()]
    assert cell.counts.completed == cell.counts.attempted
    assert len(prompts) > 24
    assert Counter(map(len, prompts)) == {256: len(prompts)}
    assert len({tuple(prompt[:16]) for prompt in prompts}) == len(prompts)


def start(server: Golden, load: Load, folder: Path, *, drain: float = 30) -> LoadRun:
    plan = PlannedLoad(load=load, seed=3, lead_in_seconds=0, drain_seconds=drain)
    target = Target.of(f"http://127.0.0.1:{server.port}", "golden", "completions")
    run = LoadRun(plan, target, RandomIds(range(100, 5000), 3), folder / "cell")
    assert run.phase() == "preparing"
    run.start()
    return run


def until_sent(run: LoadRun, requests: int) -> None:
    deadline = time.monotonic() + 30
    while run.live().sent < requests:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_stop_closes_what_is_open_and_says_so(golden: StartGolden, tmp_path: Path) -> None:
    run = start(golden(always(["hang"])), open_load(20, 600), tmp_path)
    until_sent(run, 5)
    assert run.phase() == "measuring"
    assert not run.wait(0)
    run.stop()
    assert run.wait(30)
    assert run.phase() == "ended"
    cell = run.collect()
    assert cell.stopped
    assert not cell.window.drained
    assert cell.counts.attempted == 600
    assert cell.counts.incomplete >= 5
    assert cell.counts.incomplete + cell.counts.not_sent == 600
    assert set(cell.counts.reasons) == {"Stopped"}
    assert cell.client.sent < 0.98 * cell.client.planned
    assert recover(tmp_path / "cell") is None


def test_another_process_recovers_a_finished_cell(golden: StartGolden, tmp_path: Path) -> None:
    run = start(golden(always(QUICK)), open_load(100, 30), tmp_path)
    assert recover(tmp_path / "cell") is None
    assert run.wait(30)
    run.close()  # never collected
    recovered = recover(tmp_path / "cell")
    assert recovered is not None
    assert recovered.counts.completed == 30
    assert recovered.requests.equals(run.collect().requests)
    assert recover(tmp_path / "elsewhere") is None


def test_a_worker_that_dies_is_an_error(golden: StartGolden, tmp_path: Path) -> None:
    run = start(golden(always(QUICK)), open_load(100, 30), tmp_path)
    for worker in run._workers:
        worker.kill()
    with pytest.raises(WorkerError, match="worker 0"):
        run.wait(10)
    with pytest.raises(WorkerError, match="worker 0"):
        run.collect()
    assert recover(tmp_path / "cell") is None


def test_a_worker_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    plan = PlannedLoad(load=open_load(10, 5), seed=0, lead_in_seconds=0, drain_seconds=5)
    target = Target("host.invalid", 80, "/", "m", "completions")
    with pytest.raises(WorkerError, match="worker 0 ended with 1"):
        LoadRun(plan, target, RandomIds(range(9), 0), tmp_path).start()


def test_chat_sends_fitted_text(golden: StartGolden, tmp_path: Path) -> None:
    server = golden(always(QUICK))
    plan = PlannedLoad(load=open_load(100, 5), seed=0, lead_in_seconds=0, drain_seconds=5)
    target = Target.of(f"http://127.0.0.1:{server.port}/v1", "golden", "chat")
    ids = RandomIds(range(10), 0)
    with pytest.raises(PromptError, match="text"):
        LoadRun(plan, target, ids, tmp_path / "a").start()
    source = FittedText(ids, lambda drawn, n: f"{n} é " + " ".join(map(str, drawn)))
    run = LoadRun(plan, target, source, tmp_path / "b")
    run.start()
    assert run.wait(30)
    assert run.collect().counts.completed == 5
    first = server.truth()[0]
    body = first["body"]
    content = f"4 é {' '.join(map(str, ids.ids(4, 0)))}"
    assert body["messages"] == [{"role": "user", "content": content}]
    assert body["max_completion_tokens"] == 4
    assert first["head"].startswith("POST /v1/chat/completions HTTP/1.1")


def test_targets() -> None:
    target = Target.of("http://[::1]:8000/base/v1/", "m", "completions")
    assert (target.host, target.port, target.path) == ("::1", 8000, "/base/v1/completions")
    secure = Target.of("https://host", "m", "chat", ca_file="/ca.pem")
    assert (secure.port, secure.tls, secure.ca_file, secure.origin) == (443, True, "/ca.pem", "https://host:443")
    for url in (
        "ftp://host",
        "http://",
        "https://",
        "http://host:99999",
        "https://u:secret@host",
        "http://h/?k=secret",
    ):
        with pytest.raises(TargetError) as caught:
            Target.of(url, "m", "completions")
        assert "secret" not in str(caught.value)
    assert "secret" not in repr(Target.of("http://h", "m", "chat", {"Authorization": "secret"}))


def test_the_client_knows_its_ceiling() -> None:
    assert measure_ceiling(0.5) > 1000


def test_a_send_is_not_put_off_by_an_answer_that_wakes_the_loop_before_it(
    golden: StartGolden, run_cell: RunCell
) -> None:
    # After an answer the loop slept on past its next look-around, and past a send that fell due just behind it.
    load = open_load(20, 120).model_copy(update={"arrival": "poisson"})
    cell = run_cell(golden(always(SLOW)).port, load, lead_in=0)
    rows = cell.requests.to_pylist()
    late = [row for row in rows if row["sent_s"] is not None and row["sent_s"] - row["planned_s"] > 0.005]
    assert len(late) <= 0.04 * len(rows)
