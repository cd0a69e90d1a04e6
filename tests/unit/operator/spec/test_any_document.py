"""Whatever a file holds, it is taken or refused with problems: never another exception."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goodput.operator.spec.errors import SpecError
from goodput.operator.spec.planview import render_plan
from goodput.operator.spec.resolve import resolve

FULL: dict[str, Any] = {
    "apiVersion": "goodput.dev/v1alpha1",
    "kind": "BenchmarkSweep",
    "metadata": {"name": "t"},
    "spec": {
        "model": {"name": "m", "cache": {"claimName": "c"}},
        "engines": [
            {
                "name": "vllm",
                "kind": "vllm",
                "image": "i",
                "args": {"max_model_len": "8k", "gpu_memory_utilization": "0.9"},
                "env": [{"name": "A", "value": "b"}],
                "resources": {"limits": {"nvidia.com/gpu": 1, "memory": "16Gi"}},
                "podTemplate": {"spec": {"volumes": [{"name": "v"}], "containers": [{"name": "server"}]}},
            }
        ],
        "configs": {
            "grid": {"max_num_seqs": [8, 16], "tensor_parallel_size": [1]},
            "exclude": [{"max_num_seqs": 8}],
            "reference": {"engine": "vllm"},
        },
        "workload": {"promptTokens": [64], "outputTokens": [8], "requestRate": [1, 2.5], "window": {"requests": 10}},
        "slo": {"ttft": "500ms", "tpot": "20ms"},
        "plan": {"blocks": {"min": 2}, "sentinel": "on"},
        "budget": {"maxGpuHours": 9.5, "deadline": "8h"},
        "results": {"uri": "s3://b/x"},
    },
}

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["1s", "0s", "auto", "-1", "8k", "true", "{}", "on", "race", "s3://x", "1e400", "9" * 400]),
    st.lists(st.integers(-1, 3), max_size=3),
    st.dictionaries(st.text(max_size=4), st.integers(), max_size=2),
)


def paths(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path, *(inner for key, child in children for inner in paths(child, (*path, key)))]


PATHS = [path for path in paths(FULL) if path]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(PATHS), LEAVES), min_size=1, max_size=3), st.booleans())
def test_taken_or_refused(edits: list[tuple[tuple[Any, ...], Any]], in_cluster: bool) -> None:
    document: Any = copy.deepcopy(FULL)
    for path, value in edits:
        node = document
        try:
            for part in path[:-1]:
                node = node[part]
            node[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue  # an earlier edit took the place away
    assert outcome(document, "0123456789" if in_cluster else None)


def outcome(document: dict[str, Any], uid: str | None) -> str:
    """The plan, or the problems."""
    try:
        return render_plan(resolve(document, uid=uid))
    except SpecError as refused:
        return str(refused)


def test_the_document_itself_is_taken() -> None:
    assert len(resolve(FULL).configs) == 1
