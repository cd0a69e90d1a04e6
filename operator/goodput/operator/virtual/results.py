"""Where simulated results go: a folder that is written anew by every run, since a run can always be repeated."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from goodput.analysis.schema.answer import AnalysisAnswer
from goodput.analysis.schema.commit import Result
from goodput.analysis.schema.sweep import StatesDocument
from goodput.analysis.store import Store
from goodput.operator.sweep import Sweep
from goodput.runner.canary import SPEC
from goodput.runner.commit import RESULT
from goodput.runner.conclude import Made
from goodput.runner.contract import TrialPlan
from goodput.runner.spool import COMMIT


@dataclass(frozen=True)
class Results:
    """The sweep's folder in the store. Raises `StoreError` from every call."""

    store: Store

    def begin(self, sweep: Sweep) -> None:
        """Empty the folder and write ``spec.json``.

        The folder's name tells neither a budget nor what a profile's file holds: an earlier run may have cells that
        this one has not.
        """
        self.store.delete()
        self.store.put(SPEC, sweep.document().to_json())

    def trial(self, plan: TrialPlan) -> None:
        """Write ``trial.json``."""
        self.store.put(f"{plan.name}/trial.json", plan.to_json())

    def commit(self, made: Made) -> None:
        """Store a cell: files, commit, and its result where it is valid."""
        commit = made.commit
        folder = commit.key.attempt_prefix(commit.attempt)
        stored = commit.to_json()
        for name, data in made.files.items():
            self.store.put(f"{folder}/{name}", data)
        self.store.put(f"{folder}/{COMMIT}", stored)
        if commit.outcome == "valid":
            digest = hashlib.sha256(stored).hexdigest()
            result = Result(key=commit.key, attempt=commit.attempt, commit_sha256=digest)
            self.store.put(f"{commit.key.prefix}/{RESULT}", result.to_json())

    def analyse(self, states: StatesDocument, block: str | None) -> AnalysisAnswer:
        """Write tables, report and ``best.yaml``, after a block or (None) at the end. Raises `AnalysisError`."""
        from goodput.analysis.analyze import run_analysis  # noqa: PLC0415  # plots are slow to load
        from goodput.analysis.answer import answer  # noqa: PLC0415

        self.store.put("states.json", states.to_json())
        return answer(run_analysis(self.store), block=block)
