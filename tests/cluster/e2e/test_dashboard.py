"""Every query of the dashboard returns data on a real Prometheus that scraped the pods of a sweep."""

from __future__ import annotations

import json
import math
import re
import socket
import subprocess
import threading
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
SCRAPE = "prometheus.io/"


def settings(targets: Path) -> dict[str, Any]:
    """Debian's Prometheus knows no Kubernetes: the pods to scrape are read from a file that `follow_pods` writes."""
    job = {
        "job_name": "pods",
        "honor_labels": True,
        "file_sd_configs": [{"files": [str(targets)], "refresh_interval": "1s"}],
    }
    path = {"source_labels": ["__path"], "target_label": "__metrics_path__"}
    return {"global": {"scrape_interval": "1s"}, "scrape_configs": [{**job, "relabel_configs": [path]}]}


def follow_pods(core: Any, targets: Path, ended: threading.Event) -> None:
    """What Kubernetes discovery by annotations does: address, path, namespace and labels of each pod to scrape."""
    while not ended.wait(0.5):
        found = [
            {
                "targets": [f"{pod.status.pod_ip}:{pod.metadata.annotations[SCRAPE + 'port']}"],
                "labels": {
                    **{re.sub(r"\W", "_", key): value for key, value in (pod.metadata.labels or {}).items()},
                    "namespace": pod.metadata.namespace,
                    "pod": pod.metadata.name,
                    "__path": pod.metadata.annotations.get(SCRAPE + "path", "/metrics"),
                },
            }
            for pod in core.list_pod_for_all_namespaces().items
            if pod.status.pod_ip and (pod.metadata.annotations or {}).get(SCRAPE + "scrape") == "true"
        ]
        partial = targets.with_suffix(".new")
        partial.write_text(json.dumps(found))
        partial.rename(targets)


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
    targets = tmp_path / "targets.json"
    targets.write_text("[]")
    config.write_text(yaml.safe_dump(settings(targets)))
    ended = threading.Event()
    follower = threading.Thread(target=follow_pods, args=(bench.core, targets, ended), daemon=True)
    command = [bench.info.prometheus, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}"]
    log = (tmp_path / "log").open("w")
    with log, subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stderr=log) as process:
        try:
            _ready(f"http://127.0.0.1:{port}/-/ready", process)
            follower.start()
            yield Prometheus(f"http://127.0.0.1:{port}", time.time())
        finally:
            ended.set()
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
