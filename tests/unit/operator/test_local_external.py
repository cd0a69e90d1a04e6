"""On one machine key and authority come from the shell, by the rule of `secret_variable`."""

from __future__ import annotations

from pathlib import Path

import pytest

from goodput.operator.local.errors import StartError
from goodput.operator.local.external import facts
from goodput.operator.spec.models import EngineSpec

ENGINE = EngineSpec.model_validate(
    {
        "name": "gateway",
        "kind": "external",
        "external": {
            "url": "https://x",
            "apiKeySecretRef": {"name": "gateway"},
            "caSecretRef": {"name": "gateway", "key": "ca.crt"},
        },
    }
)
KEY, CA = "GOODPUT_GATEWAY_TOKEN", "GOODPUT_GATEWAY_CA_CRT"


def test_facts_name_the_variable_and_the_file_and_hold_no_key(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.touch()
    found = facts(ENGINE, "https://x", 3, {KEY: "sentinel", CA: str(file)})
    assert (found.external, found.api_key_env, found.ca_file, found.order) == (True, KEY, str(file.resolve()), 3)
    assert "sentinel" not in found.model_dump_json()


def test_what_is_missing_is_named_with_its_field(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=rf"{KEY} \(external.apiKeySecretRef\)"):
        facts(ENGINE, "https://x", 1, {})
    with pytest.raises(StartError, match=rf"{CA} \(external.caSecretRef\)"):
        facts(ENGINE, "https://x", 1, {KEY: "k", CA: str(tmp_path / "nothing")})
