"""A sweep with its children written down by hand, and what `plan` makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pytest

from goodput.operator.actions import Action
from goodput.operator.observed import Analysis, Canary, Failure, Memory, Observed, Runner, Server, Trial
from goodput.operator.plan import Plan, plan
from goodput.operator.spec.resolve import resolve
from goodput.operator.sweep import Sweep, TrialId
from goodput.runner.contract import OpenCell, Outcome

NOW = 1_800_000_000.0
DOCUMENT: dict[str, Any] = {
    "apiVersion": "goodput.dev/v1alpha1",
    "kind": "BenchmarkSweep",
    "metadata": {"name": "book", "generation": 3},
    "spec": {
        "model": {"name": "toy"},
        "engines": [
            {
                "name": "vllm",
                "kind": "vllm",
                "image": "vllm:1",
                "args": {"max_num_seqs": 64, "max_model_len": 512},
                "resources": {"limits": {"nvidia.com/gpu": 1}},
            }
        ],
        "configs": {"grid": {"max_num_batched_tokens": [1024, 2048, 4096]}},
        "workload": {
            "promptTokens": [64],
            "outputTokens": [8],
            "requestRate": [1, 2],
            "window": {"duration": "10s"},
        },
        "slo": {"ttft": "500ms"},
        "plan": {"blocks": {"min": 2}},
        "results": {"uri": "s3://bucket/sweeps"},
    },
}


@cache
def _resolved() -> Sweep:
    return resolve(DOCUMENT, namespace="default", uid="0123456789abcdef")


@dataclass
class Book:
    """Everything that one look shows. ``now`` is the time of the look."""

    sweep: Sweep = field(default_factory=_resolved)
    now: float = NOW
    canary: Canary | None = field(default_factory=lambda: Canary("succeeded", NOW - 100))
    trials: dict[TrialId, Trial] = field(default_factory=dict)
    analyses: dict[int, Analysis] = field(default_factory=dict)
    status: Mapping[str, object] = field(default_factory=dict)

    def spec(self, part: str | None = None, **changes: object) -> None:
        """Change a part of the spec, as a user does while it runs."""
        spec = self.sweep.spec
        if part is None:
            spec = spec.model_copy(update=changes)
        else:
            spec = spec.model_copy(update={part: getattr(spec, part).model_copy(update=changes)})
        self.sweep = replace(self.sweep, spec=spec)

    def plan(self) -> Plan:
        observed = Observed(self.canary, dict(self.trials), dict(self.analyses), self.status)
        return plan(self.sweep, observed, self.now)

    def actions(self) -> tuple[Action, ...]:
        return self.plan().actions

    def turn(self) -> Plan:
        """Plan, and keep the status."""
        found = self.plan()
        self.status = found.status
        return found

    def id(self, number: int, block: str = "0", attempt: int = 1) -> TrialId:
        """The n-th config in the order of a block."""
        return TrialId(block, self.sweep.order(block)[number], attempt)

    def config(self, budget: int) -> str:
        """Id of the config with a token budget."""
        return next(c.id for c in self.sweep.configs if c.flags["max_num_batched_tokens"] == str(budget))

    def add(self, trial: TrialId, **memory: Any) -> None:
        """A trial that is remembered, and nothing more."""
        self.trials[trial] = Trial(Memory(order=len(self.trials) + 1, created=self.now - 60, **memory))

    def ready(self, trial: TrialId, **server: Any) -> None:
        """A trial with a server that is ready."""
        self.add(trial, server_running=self.now - 50, server_ready=self.now - 40)
        found = Server("ready", self.now - 60, running=self.now - 50, ready=self.now - 40, url="http://10.0.0.1:8000")
        self.trials[trial] = replace(self.trials[trial], server=replace(found, **server))

    def measuring(self, trial: TrialId, **runner: Any) -> None:
        """A trial that is being measured."""
        self.ready(trial)
        self.trials[trial] = replace(self.trials[trial], runner=replace(Runner("running", self.now - 30), **runner))

    def over(self, trial: TrialId, outcome: Outcome | None = None, failure: str | None = None, **memory: Any) -> None:
        """A trial that has ended, without anything left of it."""
        ended = {
            "server_running": self.now - 50,
            "server_gone": self.now - 14,
            "ended": self.now - 20,
            "logs": "saved",
        }
        found = None if failure is None else Failure(failure, f"because of {failure}")
        self.add(trial, **(ended | {"outcome": outcome, "failure": found} | memory))

    def done(self, trial: TrialId) -> None:
        """A trial in which every load was measured."""
        self.over(trial, self.outcome())

    def outcome(self, **still_open: str) -> Outcome:
        """An outcome; ``first`` and ``second`` give reasons of loads without a result."""
        names = dict(zip(("first", "second"), self.sweep.load_ids, strict=True))
        cells = tuple(OpenCell(load=names[name], outcome="void", reason=reason) for name, reason in still_open.items())
        return Outcome(planned=2, valid=2 - len(cells), open=cells)

    def finish_block(self, block: str) -> None:
        """Every config of a block was measured."""
        for number in range(len(self.sweep.configs)):
            self.done(self.id(number, block))

    def condition(self, name: str) -> dict[str, Any]:
        found = self.plan().status["conditions"]
        assert isinstance(found, list)
        return next(item for item in found if item["type"] == name)


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
def document() -> dict[str, Any]:
    """The document that the book's sweep was made from."""
    return DOCUMENT
