"""Each rule that voids a cell, provoked: real cells on a server, or a client, that misbehaves in this one way."""

from __future__ import annotations

import json
import os
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.integration.runner.proxy import Proxy, busy, changed, once_worked, value

from goodput.analysis.schema.cell import CellDocument
from goodput.analysis.schema.planned import Load
from goodput.runner.cell import Bench, measure
from goodput.runner.conclude import conclude
from goodput.runner.contract import PlannedLoad, TrialPlan
from goodput.runner.load.ceiling import TOKENS, sink
from goodput.runner.load.prompts import RandomIds
from goodput.runner.load.run import LoadRun, Target, recover
from goodput.runner.server import Server
from goodput.runner.snapshot import Snapshot
from goodput.runner.spool import CellSpool, Closing, Memory, Opening, TrialSpool
from goodput.runner.status import Board
from goodput.runner.stop import Stop
from goodput.runner.tokens import vocabulary
from goodput.runner.workload import Workloads

if TYPE_CHECKING:
    from tests.integration.runner.conftest import Engine

Planned = Callable[..., TrialPlan]
Wait = Callable[..., Any]
TWO = Load(prompt_tokens=32, output_tokens=20, arrival="closed", concurrency=2, window_seconds=1.5)


@dataclass
class Cell:
    """One cell, run in this process."""

    plan: TrialPlan
    folder: Path
    idle_seconds: float = 20.0
    board: Board = field(init=False)
    spool: CellSpool = field(init=False)

    def __post_init__(self) -> None:
        self.board = Board(self.plan)
        self.spool = TrialSpool(self.folder, self.plan).cell(self.planned.load.id)

    @property
    def planned(self) -> PlannedLoad:
        return self.plan.loads[0]

    def run(self) -> CellDocument:
        server = Server(self.plan.server, model=self.plan.served_model, timeout_seconds=2.0)
        try:
            bench = Bench(
                plan=self.plan,
                server=server,
                target=Target.of(self.plan.server.url, self.plan.served_model, "completions"),
                workloads=Workloads(self.plan, vocabulary(server, self.plan), None, server),
                board=self.board,
                stop=Stop(),
                idle_seconds=self.idle_seconds,
            )
            self.records, _ = measure(bench, self.planned, self.spool)
        finally:
            server.close()
        return self.judge()

    def judge(self) -> CellDocument:
        return conclude(self.plan, self.planned, Memory(began_unix=0), self.spool, self.records).document

    def worker(self) -> int:
        """Process id of its load client's worker."""
        return process("goodput.runner.load.worker", str(self.spool.load))


def process(*words: str) -> int:
    """Id of the process that has these words in its command line."""
    wanted = {word.encode() for word in words}
    for entry in Path("/proc").iterdir():
        with suppress(OSError):  # it has just ended
            if entry.name.isdigit() and wanted <= set((entry / "cmdline").read_bytes().split(b"\0")):
                return int(entry.name)
    raise AssertionError(f"there is no process with {words}")


def first_in_line(pid: int) -> None:
    """Let nothing else delay the process; where this is not allowed, hope that nothing does."""
    with suppress(PermissionError):
        os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(1))


@pytest.fixture
def proxy(engine: Engine) -> Iterator[Proxy]:
    with Proxy(engine.url) as proxy:
        yield proxy


MakeCell = Callable[..., Cell]


@pytest.fixture
def cell(planned: Planned, tmp_path: Path) -> MakeCell:
    """Make a cell: (url, load, lead-in, drain)."""

    def make(url: str, load: Load, *, lead_in: float = 0.3, drain: float = 10.0, idle: float = 20.0) -> Cell:
        plan = planned(url, "file:///nowhere", [load])
        fixed = plan.loads[0].model_copy(update={"lead_in_seconds": lead_in, "drain_seconds": drain})
        return Cell(plan.model_copy(update={"loads": (fixed,)}), tmp_path / "spool", idle)

    return make


def test_a_clean_cell_has_no_reason_and_no_warning(proxy: Proxy, cell: MakeCell) -> None:
    document = cell(proxy.url, TWO).run()
    assert (document.outcome, document.reason, document.warnings) == ("valid", None, ())
    assert document.server is not None
    assert document.server.counts_agree
    assert document.server.prefix_reset == "verified"


def restarted(page: str) -> str:
    return changed(page, "process_start_time_seconds", 5) if busy(page) else page


def counter_back(page: str) -> str:
    return changed(page, "vllm:num_preemptions_total", 3 if busy(page) else 7)


def hits(page: str) -> str:
    return changed(page, "vllm:prefix_cache_hits_total", value(page, "vllm:prefix_cache_queries_total") / 2)


@pytest.mark.parametrize(
    ("metrics", "reason"),
    [
        (restarted, "ServerRestarted"),
        (counter_back, "CounterReset"),
        (once_worked(hits), "PrefixHit"),
        (lambda page: changed(page, "vllm:num_requests_running", 1), "NotIdle"),
        (once_worked(lambda page: changed(page, "vllm:num_requests_waiting", 1)), "NotIdle"),
        (once_worked(lambda _: "<html>Bad gateway</html>"), "ServerGone"),
    ],
)
def test_what_the_servers_metrics_say_voids_the_cell(
    proxy: Proxy, cell: MakeCell, metrics: Callable[[str], str], reason: str
) -> None:
    proxy.metrics = metrics
    document = cell(proxy.url, TWO, idle=2.0).run()
    assert (document.outcome, document.reason) == ("void", reason)
    assert document.message


def test_a_cache_that_is_not_reset(proxy: Proxy, cell: MakeCell) -> None:
    proxy.refuse_reset = True
    assert cell(proxy.url, TWO, idle=1.0).run().reason == "CacheNotReset"


def test_a_cache_that_only_says_that_it_was_reset(proxy: Proxy, cell: MakeCell) -> None:
    proxy.lie_about_resets = True
    document = cell(proxy.url, TWO).run()
    assert (document.outcome, document.reason) == ("void", "CacheNotReset")
    assert document.message is not None
    assert "tokens were still in the cache" in document.message


def test_a_cache_whose_hits_are_not_counted_is_taken_at_its_word(proxy: Proxy, cell: MakeCell) -> None:
    proxy.metrics = lambda page: page.replace("vllm:prefix_cache_", "some:prefix_cache_")
    document = cell(proxy.url, TWO).run()
    assert document.outcome == "valid"
    assert document.server is not None
    assert document.server.prefix_reset == "said"
    assert any("counters do not show" in text for text in document.warnings)


def test_a_server_that_is_ended_while_it_answers_leaves_no_stream_open_and_no_success(
    engine: Engine, cell: MakeCell, wait: Wait
) -> None:
    """SIGTERM without a time to drain, in the middle of the streams, as vLLM's default is."""
    long = TWO.model_copy(update={"output_tokens": 1800, "window_seconds": 60.0})
    running = cell(engine.url, long, lead_in=0.0, drain=600.0)
    with ThreadPoolExecutor(1) as pool:
        document = pool.submit(running.run)
        wait(lambda: value(httpx.get(f"{engine.url}/metrics").text, "vllm:num_requests_running") == 2)
        engine.process.send_signal(signal.SIGTERM)
        found = document.result()
    assert engine.process.wait(60) == 0
    assert (found.outcome, found.reason) == ("void", "ServerGone")
    assert running.records is not None
    outcomes = running.records.requests["outcome"].to_pylist()
    assert len(outcomes) >= 2
    assert "completed" not in outcomes


def test_a_busy_server_is_asked_again_to_reset_its_cache(proxy: Proxy, cell: MakeCell) -> None:
    proxy.slow_resets = 2
    document = cell(proxy.url, TWO).run()
    assert (document.outcome, document.reason, document.warnings) == ("valid", None, ())


def test_a_server_too_busy_to_reset_its_cache_is_not_gone(proxy: Proxy, cell: MakeCell) -> None:
    proxy.slow_resets = 100
    assert cell(proxy.url, TWO, idle=1.0).run().reason == "CacheNotReset"


def test_prompts_of_another_length(proxy: Proxy, cell: MakeCell) -> None:
    proxy.body = lambda data: data.replace(b'"prompt_tokens":32', b'"prompt_tokens":34')
    assert cell(proxy.url, TWO).run().reason == "PromptDrift"


def test_first_requests_that_never_end(engine: Engine, cell: MakeCell) -> None:
    endless = TWO.model_copy(update={"output_tokens": 1500})
    assert cell(engine.url, endless, drain=0.2).run().reason == "NoWindow"


def test_a_client_that_runs_out_of_descriptors(engine: Engine, cell: MakeCell, wait: Wait) -> None:
    crowd = Load(prompt_tokens=8, output_tokens=400, arrival="constant", request_rate=100, window_seconds=2)
    short = cell(engine.url, crowd, lead_in=1.0)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(short.run)
        wait(lambda: short.board.status.step == "lead-in")
        resource.prlimit(short.worker(), resource.RLIMIT_NOFILE, (24, 24))
        document = running.result()
    assert document.reason == "ClientShort"
    assert document.counts is not None
    assert document.counts.reasons["NoDescriptors"] > 10


def test_a_client_that_is_held_up(engine: Engine, cell: MakeCell, wait: Wait) -> None:
    steady = Load(prompt_tokens=8, output_tokens=4, arrival="constant", request_rate=40, window_seconds=3)
    late = cell(engine.url, steady)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(late.run)
        wait(lambda: late.board.status.step == "measuring")
        worker = late.worker()
        os.kill(worker, signal.SIGSTOP)
        threading.Event().wait(0.5)
        os.kill(worker, signal.SIGCONT)
        document = running.result()
    assert document.reason == "ScheduleLag"
    assert document.client is not None
    assert (document.client.send_lag_max_seconds or 0) > 0.4


def test_a_client_at_its_ceiling(cell: MakeCell) -> None:
    crowd = Load(prompt_tokens=16, output_tokens=TOKENS, arrival="closed", concurrency=400, window_seconds=1.5)
    mine, its = (sorted(os.sched_getaffinity(0)) * 2)[:2]
    with sink(0.002, its) as port:
        full = cell(f"http://127.0.0.1:{port}", crowd)
        full.spool.begin(0)
        full.spool.open(Opening(snapshot=Snapshot(stamp=0)))
        target = Target.of(full.plan.server.url, "sink", "completions")
        run = LoadRun(full.planned, target, RandomIds(range(1000), 0), full.spool.load, cpus=[mine])
        run.start()
        first_in_line(full.worker())
        first_in_line(process("goodput.runner.load.sink", str(its)))
        try:
            assert run.wait(60)
            full.records = run.collect()
        finally:
            run.close()
    full.spool.close(Closing(snapshot=Snapshot(stamp=1)))
    document = full.judge()
    assert document.client is not None
    assert document.reason == "ClientSaturated", document.client.used_ratio


def test_a_clock_that_was_set(engine: Engine, cell: MakeCell) -> None:
    stepped = cell(engine.url, TWO)
    judge = stepped.judge

    def set_the_clock() -> CellDocument:
        end = stepped.spool.load / "end-0.json"
        document = json.loads(end.read_text())
        end.write_text(json.dumps(document | {"offset_end_ns": document["offset_start_ns"] + 2_000_000}))
        stepped.records = recover(stepped.spool.load)
        return judge()

    stepped.judge = set_the_clock  # type: ignore[method-assign]  # the cell has ended, nothing is judged yet
    assert stepped.run().reason == "ClockStep"


def test_an_overloaded_server_is_saturated_and_valid(engines: Callable[..., Engine], cell: MakeCell) -> None:
    """One request at a time, 100 ms each, is 10 per second; 40 come."""
    load = Load(prompt_tokens=8, output_tokens=100, arrival="constant", request_rate=40, window_seconds=2)
    document = cell(engines("--max-num-seqs", "1").url, load, drain=0.5).run()
    assert document.load_state == "saturated"
    assert document.reason in {None, "ScheduleLag"}, "a busy machine may delay sends, nothing else is wrong"


@pytest.mark.parametrize(
    "page", ['{"running": 1}', "<html>Sign in</html>", "vllm:num_requests_running oops\n", ""], ids=str
)
def test_a_server_without_usable_metrics_costs_the_columns_only(proxy: Proxy, cell: MakeCell, page: str) -> None:
    proxy.metrics = lambda _: page
    document = cell(proxy.url, TWO).run()
    assert (document.outcome, document.reason) == ("valid", None)
    assert document.server is not None
    assert document.server.running_mean is None
    assert document.server.generation_tokens is None
    assert document.server.counts_agree is None
    assert [warning.partition(":")[0] for warning in document.warnings] == ["NoServerMetrics"]


def test_metrics_that_are_slow_under_load_cost_the_gauges_only(proxy: Proxy, cell: MakeCell) -> None:
    proxy.slow_when = busy
    document = cell(proxy.url, TWO.model_copy(update={"window_seconds": 2.5})).run()
    assert document.reason is None
    assert document.server is not None
    assert (document.server.complete, document.server.running_max) == (False, None)
    assert document.server.generation_tokens is not None
    assert [warning.partition(":")[0] for warning in document.warnings] == ["MetricsGap"]


def test_a_server_that_counts_other_requests_is_a_warning(proxy: Proxy, cell: MakeCell) -> None:
    """As if somebody else had used it."""
    name = 'vllm:request_success_total{engine="0",finished_reason="stop",model_name="toy/model"}'
    proxy.metrics = once_worked(lambda page: changed(page, name, 5))
    document = cell(proxy.url, TWO).run()
    assert (document.outcome, document.reason) == ("valid", None)
    assert document.server is not None
    assert document.server.counts_agree is False
    assert [warning.partition(":")[0] for warning in document.warnings] == ["CountsDiffer"]


def test_an_exporter_that_cannot_be_read_is_a_warning(engine: Engine, cell: MakeCell) -> None:
    watched = cell(engine.url, TWO)
    facts = watched.plan.server.model_copy(update={"gpu_metrics_url": "http://127.0.0.1:1/metrics"})
    watched.plan = watched.plan.model_copy(update={"server": facts})
    document = watched.run()
    assert (document.outcome, document.reason) == ("valid", None)
    assert document.gpu is not None
    assert document.gpu.sm_clock_mhz is None
    assert [warning.partition(":")[0] for warning in document.warnings] == ["NoGpuMetrics"]
