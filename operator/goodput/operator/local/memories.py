"""A trial's memory as a JSON file."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import TypeAdapter

from goodput.operator.actions import Note
from goodput.operator.local import layout
from goodput.operator.local.layout import Layout
from goodput.operator.observed import Memory
from goodput.operator.sweep import TrialId

_MEMORY = TypeAdapter(Memory)


def load(folders: Layout) -> dict[TrialId, Memory]:
    """All trials that are remembered."""
    found: dict[TrialId, Memory] = {}
    for path in sorted(folders.trials.glob("*/memory.json")):
        trial = layout.trial_id(path.parent.name)
        if trial is not None:
            found[trial] = _MEMORY.validate_json(path.read_bytes())
    return found


def save(folders: Layout, trial: TrialId, memory: Memory) -> None:
    """Write a trial's memory."""
    layout.write(folders.trial(trial).memory, _MEMORY.dump_json(memory, by_alias=True, indent=1))


def noted(memory: Memory, note: Note) -> Memory:
    """The memory with what a note adds; what is None there stays."""
    changes = {name: value for name, value in vars(note).items() if name != "trial" and value is not None}
    return replace(memory, **changes)


def with_logs(memory: Memory, logs: Literal["server", "saved", "uploaded"]) -> Memory:
    """The memory after its logs were packed, or are in the store."""
    return replace(memory, logs=logs)
