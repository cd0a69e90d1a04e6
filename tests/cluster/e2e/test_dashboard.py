"""Every query of the dashboard returns data on a real Prometheus that scraped a sweep by its pods' annotations."""

from __future__ import annotations

import json
import math
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from tests.cluster.e2e.conftest import Bench

ROOT = Path(__file__).parents[3]
DASHBOARD = ROOT / "charts/goodput/dashboards/sweep-live.json"
START_S = 30.0
LABELS = "__meta_kubernetes_pod_label_"
ANNOTATIONS = "__meta_kubernetes_pod_annotation_prometheus_io_"


def settings(kubeconfig: str) -> dict[str, Any]:
    """The usual way to scrape by annotations."""
    return {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [
            {
                "job_name": "pods",
                "kubernetes_sd_configs": [{"role": "pod", "kubeconfig_file": kubeconfig}],
                "relabel_configs": [
                    {"source_labels": [f"{ANNOTATIONS}scrape"], "regex": "true", "action": "keep"},
                    {
                        "source_labels": ["__meta_kubernetes_pod_ip", f"{ANNOTATIONS}port"],
                        "regex": "(.+);(.+)",
                        "replacement": "$1:$2",
                        "target_label": "__address__",
                    },
                    {"source_labels": [f"{ANNOTATIONS}path"], "target_label": "__metrics_path__"},
                    {"source_labels": ["__meta_kubernetes_namespace"], "target_label": "namespace"},
                    {"regex": f"{LABELS}(.+)", "action": "labelmap"},
                ],
            }
        ],
    }


@dataclass(frozen=True)
class Prometheus:
    """A Prometheus on this machine."""

    url: str
    begun: float

    def get(self, path: str, **query: str) -> Any:
        address = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(address, timeout=10) as answer:
            return json.load(answer)["data"]

    def values(self, expression: str) -> list[float]:
        """All finite values of an expression since the beginning."""
        found = self.get("query_range", query=expression, start=str(self.begun), end=str(time.time()), step="1")
        values = [float(value) for series in found["result"] for _, value in series["values"]]
        return [value for value in values if math.isfinite(value)]


@pytest.fixture
def prometheus(bench: Bench, tmp_path: Path) -> Iterator[Prometheus]:
    assert bench.info.prometheus, "prometheus is needed on PATH"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = tmp_path / "prometheus.yml"
    config.write_text(yaml.safe_dump(settings(bench.info.kubeconfig)))
    command = [bench.info.prometheus, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}"]
    log = (tmp_path / "log").open("w")
    with log, subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stderr=log) as process:
        try:
            _ready(f"http://127.0.0.1:{port}/-/ready", process)
            yield Prometheus(f"http://127.0.0.1:{port}", time.time())
        finally:
            process.terminate()


def test_every_query_returns_data(bench: Bench, prometheus: Prometheus) -> None:
    bench.apply(bench.sweep(budgets=[1024, 4096], rates=[4, 8], window="8s"))
    assert bench.finished(240)["phase"] == "Succeeded"
    given = {"$namespace": bench.namespace, "$sweep": "t", "$__rate_interval": "15s", "$__range": "10m"}
    empty = []
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            expression = target["expr"]
            for name, value in given.items():
                expression = expression.replace(name, value)
            if not prometheus.values(expression):
                empty.append(f"{panel['title']}: {expression}")
    assert empty == []


def test_the_variables_find_the_sweep(bench: Bench, prometheus: Prometheus) -> None:
    bench.apply(bench.sweep())
    bench.step("measuring")
    deadline = time.monotonic() + START_S
    series: list[dict[str, str]] = []
    while not series and time.monotonic() < deadline:
        time.sleep(1.0)  # the next scrape
        match = f'goodput_sweep_cells{{namespace="{bench.namespace}"}}'
        series = prometheus.get("series", **{"match[]": match})
    assert {row["sweep"] for row in series} == {"t"}


def _ready(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    pytest.fail(f"Prometheus is not ready within {START_S:.0f} s")
