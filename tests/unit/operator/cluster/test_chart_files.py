"""What can be checked of chart and dashboard without helm: copies are equal, panels ask for metrics that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from goodput.operator.metrics import Metrics
from goodput.operator.sweep import Sweep, TrialId
from goodput.operator.trialplan import trial_plan
from goodput.runner.contract import ServerFacts
from goodput.runner.live import LiveMetrics

ROOT = Path(__file__).parents[4]
CHART = ROOT / "charts/goodput"
DASHBOARDS = sorted((CHART / "dashboards").glob("*.json"))
CAPTURE = ROOT / "tests/data/vllm_0.32/metrics_loaded.txt"


def panels(dashboard: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(title, expression) of every query."""
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def metrics_in(expression: str) -> set[str]:
    bare = re.sub(r"\{[^}]*\}|by \([^)]*\)", "", expression)
    names = re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*", bare)
    return {name for name in names if ":" in name or name.startswith("goodput_")}


def families(registry: Any) -> set[str]:
    """Series names of a registry's metrics."""
    names: set[str] = set()
    for family in registry.collect():
        suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(family.type, [""])
        names |= {family.name + suffix for suffix in suffixes}
    return names


def served(text: str) -> set[str]:
    return {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}


def test_the_crd_is_the_one_in_manifests() -> None:
    ours, source = CHART / "files/crd.yaml", ROOT / "manifests/crd.yaml"
    assert ours.read_bytes() == source.read_bytes(), f"cp {source} {ours}"


def test_the_dashboards_are_those_in_manifests() -> None:
    documents = yaml.safe_load_all((ROOT / "manifests/operator.yaml").read_text())
    (data,) = (document["data"] for document in documents if document["kind"] == "ConfigMap")
    assert data == {path.name: path.read_text() for path in DASHBOARDS}


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
class TestDashboard:
    def test_the_data_source_is_a_variable(self, path: Path) -> None:
        dashboard = json.loads(path.read_text())
        kinds = {variable["name"]: variable["type"] for variable in dashboard["templating"]["list"]}
        assert kinds["datasource"] == "datasource"
        for panel in dashboard["panels"]:
            for place in (panel, *panel["targets"]):
                assert place["datasource"] == {"type": "prometheus", "uid": "${datasource}"}

    def test_every_panel_is_described_and_asks_for_something(self, path: Path) -> None:
        for panel in json.loads(path.read_text())["panels"]:
            assert panel["description"]
            assert panel["targets"]

    def test_no_two_panels_overlap(self, path: Path) -> None:
        taken: set[tuple[int, int]] = set()
        for panel in json.loads(path.read_text())["panels"]:
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken
            assert max(x for x, _ in cells) < 24
            taken |= cells

    def test_counters_are_only_asked_for_as_rates(self, path: Path) -> None:
        for title, expression in panels(json.loads(path.read_text())):
            for name in metrics_in(expression):
                if name.endswith(("_total", "_bucket")):
                    assert f"rate({name}" in expression, title

    def test_every_metric_exists(self, path: Path, sweep: Sweep, trial: TrialId) -> None:
        plan = trial_plan(sweep, trial, ServerFacts(url="http://10.0.0.7:8000", order=1))
        known = served(CAPTURE.read_text()) | families(LiveMetrics(plan).registry) | families(Metrics().registry)
        for title, expression in panels(json.loads(path.read_text())):
            assert metrics_in(expression), title
            assert metrics_in(expression) <= known, title
