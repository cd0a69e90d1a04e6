"""Engines that run already: one config, no flags, nothing about starting, and no secret in any message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from goodput.operator.spec.base import SecretKeyRef
from goodput.operator.spec.errors import SpecError
from goodput.operator.spec.external import address, secret_variable
from goodput.operator.spec.parse import parse_spec
from goodput.operator.spec.resolve import resolve

Build = Callable[..., dict[str, Any]]


def engine(name: str = "gateway", url: str = "https://x:8000", **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": "external", "external": {"url": url}, **more}


def refusals(document: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(SpecError) as refused:
        resolve(document)
    return {problem.field: str(problem) for problem in refused.value.problems}


def test_it_is_one_config_that_is_measured_and_not_started(sweep: Build) -> None:
    found = resolve(sweep(engines=[engine(), engine("other")], configs=None))
    assert [(c.label, c.flags, c.gpus, c.command) for c in found.configs] == [
        ("gateway", {}, 0, ()),
        ("other", {}, 0, ()),
    ]
    assert found.evidence == "measured"
    assert found.address(found.configs[0].id) == "https://x:8000"


def test_beside_an_engine_that_is_started_the_grid_is_that_ones(sweep: Build) -> None:
    vllm = {"name": "vllm", "kind": "vllm", "image": "i"}
    found = resolve(sweep(engines=[vllm, engine()]))
    assert [c.label for c in found.configs] == [
        "vllm max_num_batched_tokens=2048",
        "vllm max_num_batched_tokens=4096",
        "gateway",
    ]
    assert found.address(found.configs[0].id) is None


def test_flags_are_refused_with_the_fix(sweep: Build) -> None:
    for configs in ({"grid": {"max_num_seqs": [8]}}, {"list": [{"max_num_seqs": 8}]}):
        (text,) = refusals(sweep(engines=[engine()], configs=configs)).values()
        assert "an external server takes no flags" in text
        assert "set it where that server starts" in text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("image", "i"),
        ("args", {"max_num_seqs": 8}),
        ("env", [{"name": "A", "value": "b"}]),
        ("resources", {"limits": {"nvidia.com/gpu": 1}}),
        ("nodeSelector", {"a": "b"}),
        ("podTemplate", {"spec": {}}),
        ("startupTimeout", "5m"),
    ],
)
def test_nothing_about_starting_is_ignored(sweep: Build, field: str, value: object) -> None:
    found = refusals(sweep(engines=[engine() | {field: value}], configs=None))
    assert "is a server that is not started" in found[f"spec.engines[0].{field}"]


def test_a_key_in_the_url_is_refused_and_not_repeated(sweep: Build) -> None:
    for url in ("https://u:sentinel@x", "https://x/?api_key=sentinel", "https://x/#sentinel"):
        (text,) = refusals(sweep(engines=[engine(url=url)], configs=None)).values()
        assert "sentinel" not in text
        assert "apiKeySecretRef" in text


def test_one_variable_for_each_key_of_a_secret() -> None:
    assert secret_variable(SecretKeyRef(name="gateway")) == "GOODPUT_GATEWAY_TOKEN"
    assert secret_variable(SecretKeyRef(name="my.gate-way", key="ca.crt")) == "GOODPUT_MY_GATE_WAY_CA_CRT"


def test_one_server_has_one_address(sweep: Build) -> None:
    urls = ["https://Host:1/base", "https://host:1/base/", "HTTPS://host:1/base/v1", "https://host:1/base/v1/"]
    spec = parse_spec(sweep(engines=[engine(f"e{n}", url.replace("HTTPS", "https")) for n, url in enumerate(urls)]))
    assert {address(one) for one in spec.engines} == {"https://host:1/base"}
