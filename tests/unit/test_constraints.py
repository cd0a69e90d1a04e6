"""The pinned requirement files: every extra has one, they agree with each other, and all is held by hashes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINNED = ("operator", "runner", "analysis", "engines", "local", "transformers", "dev")


def pins(name: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Package → version and hashes."""
    text = (ROOT / "constraints" / f"{name}.txt").read_text().replace("\\\n", " ")
    found: dict[str, tuple[str, frozenset[str]]] = {}
    for line in text.splitlines():
        match = re.fullmatch(r"(?P<name>\S+)==(?P<version>\S+?)(?P<hashes>(\s+--hash=sha256:[0-9a-f]{64})+)\s*", line)
        assert match is not None, f"{name}: {line}"
        found[canonicalize_name(match["name"])] = match["version"], frozenset(match["hashes"].split())
    return found


def asked(extra: str) -> list[Requirement]:
    """What an extra asks for itself, and through the project's other extras."""
    found = [Requirement(text) for text in PROJECT["dependencies"]]
    for text in PROJECT["optional-dependencies"][extra]:
        requirement = Requirement(text)
        if requirement.name == "goodput":
            found.extend(each for other in requirement.extras for each in asked(other))
        else:
            found.append(requirement)
    return found


@pytest.mark.parametrize("extra", PINNED)
def test_every_requirement_is_pinned_within_its_bounds(extra: str) -> None:
    held = pins(extra)
    for requirement in asked(extra):
        version, _ = held[canonicalize_name(requirement.name)]
        assert version in requirement.specifier, requirement


@pytest.mark.parametrize("extra", PINNED)
def test_a_package_has_one_version_in_all_files(extra: str) -> None:
    held, known = pins(extra), pins("dev")
    assert {name: held[name] for name in held.keys() & known.keys()} == {
        name: known[name] for name in held.keys() & known.keys()
    }


def test_the_baseline_is_pinned_to_what_it_is_tested_beside() -> None:
    held, tested = pins("transformers"), pins("peers/vllm")
    for name in ("torch", "transformers", "tokenizers", "safetensors", "huggingface-hub"):
        (version, hashes), (tested_version, tested_hashes) = held[name], tested[name]
        assert version == tested_version
        assert tested_hashes <= hashes
