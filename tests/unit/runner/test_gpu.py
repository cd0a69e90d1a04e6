from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from goodput.analysis.schema.server import Spread
from goodput.runner.gpu import GpuReader, GpuSample, gpu_columns, parse_gpu

PAGE = (Path(__file__).parents[2] / "data" / "dcgm.txt").read_text()
WINDOW = (10.0, 20.0)


@pytest.fixture
def exporter() -> Iterator[str]:
    """A real HTTP server with the recorded page at ``/metrics`` and JSON elsewhere."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path == "/metrics"
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4" if known else "application/json")
            self.end_headers()
            self.wfile.write(PAGE.encode() if known else b"{}")

        def log_message(self, *_: Any) -> None:
            """Keep the test's output quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def read(url: str) -> GpuSample:
    reader = GpuReader(url, lambda: 12.0)
    try:
        return reader.read()
    finally:
        reader.close()


def test_a_page_over_http_becomes_columns_of_the_servers_gpu(exporter: str) -> None:
    columns = gpu_columns([read(f"{exporter}/metrics")], WINDOW, frozenset({"GPU-a"}))
    assert (columns.reason, columns.gpus, columns.samples) == (None, ("GPU-a",), 1)
    assert columns.sm_clock_mhz == Spread(mean=1980, min=1980, max=1980, samples=1)
    assert columns.memory_clock_mhz == Spread(mean=2619, min=2619, max=2619, samples=1)
    assert columns.power_watts == Spread(mean=612.5, min=612.5, max=612.5, samples=1)
    assert columns.temperature_celsius == Spread(mean=61, min=61, max=61, samples=1)
    assert columns.throttled == {"software_power_cap": 1}
    assert columns.violations == {}, "one sample has no rise"


@pytest.mark.parametrize(
    ("path", "problem"),
    [("/other", "not Prometheus text"), (":1/metrics", "ConnectError"), ("x", "Invalid")],
)
def test_what_cannot_be_read_is_a_reason(exporter: str, path: str, problem: str) -> None:
    url = "http://127.0.0.1" + path if path.startswith(":") else exporter + path
    columns = gpu_columns([read(url)], WINDOW)
    assert problem in (columns.reason or "")
    assert (columns.sm_clock_mhz, columns.throttled, columns.samples) == (None, None, 0)


def test_gauges_have_extremes_and_counters_rise_over_the_window() -> None:
    later = PAGE.replace('DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-a"', 'DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-a",x="y"')
    later = later.replace("} 1980", "} 1500").replace("5000000000", "5900000000").replace('GPU-a"} 4', 'GPU-a"} 68')
    samples = [parse_gpu(PAGE, 5.0), parse_gpu(PAGE, 11.0), parse_gpu(later, 12.0), parse_gpu(later, 25.0)]
    columns = gpu_columns(samples, WINDOW, frozenset({"GPU-a"}))
    assert columns.sm_clock_mhz == Spread(mean=1740, min=1500, max=1980, samples=2)
    assert columns.violations == {"power": 900_000_000}
    assert columns.throttled == {"hardware_thermal": 1, "software_power_cap": 2}


def test_without_a_uuid_all_gpus_count_and_blank_values_are_unknown() -> None:
    columns = gpu_columns([parse_gpu(PAGE, 11.0)], WINDOW)
    assert columns.gpus == ("GPU-a", "GPU-b")
    assert columns.power_watts is not None
    assert (columns.power_watts.min, columns.power_watts.max) == (70.1, 612.5)
    assert columns.memory_clock_mhz == Spread(mean=2619, min=2619, max=2619, samples=1)


def test_the_older_name_of_the_reasons() -> None:
    old = PAGE.replace("CLOCKS_EVENT_REASONS", "CLOCK_THROTTLE_REASONS")
    assert gpu_columns([parse_gpu(old, 11.0)], WINDOW, frozenset({"GPU-a"})).throttled == {"software_power_cap": 1}


def test_a_gpu_that_is_not_there_and_a_window_without_samples_are_reasons() -> None:
    sample = parse_gpu(PAGE, 11.0)
    assert gpu_columns([sample], WINDOW, frozenset({"GPU-c"})).reason == "none of the server's GPUs is on the page"
    assert gpu_columns([sample], (20.0, 30.0)).reason == "no sample in the window"
    assert gpu_columns([sample], None).reason == "no sample in the window"
    assert gpu_columns([parse_gpu("up 1\n", 11.0)], WINDOW).reason == "no DCGM metrics on the page"
