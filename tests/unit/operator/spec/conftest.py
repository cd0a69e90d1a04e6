"""Documents for tests of the spec."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Document = dict[str, Any]
CASES = yaml.safe_load((Path(__file__).parent / "rule_cases.yaml").read_text())


@pytest.fixture
def sweep() -> Callable[..., Document]:
    """Builds a BenchmarkSweep: the base of the rule cases with parts of its spec replaced; None removes one."""

    def build(name: str = "t", **parts: Any) -> Document:
        spec = {key: value for key, value in {**CASES["base"], **parts}.items() if value is not None}
        return {
            "apiVersion": "goodput.dev/v1alpha1",
            "kind": "BenchmarkSweep",
            "metadata": {"name": name},
            "spec": spec,
        }

    return build
