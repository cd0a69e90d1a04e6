"""What can be wrong with a spec: problems that name the field, the value and the fix."""

from __future__ import annotations

import json
from dataclasses import dataclass

SHOWN_CHARACTERS = 80


class _Missing:
    """Stands for "there is no value": the field is not set."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: a dotted field path, its value, what is wrong, and what to write instead."""

    field: str
    value: object  # MISSING where the field is not set, or not to be shown
    message: str
    fix: str

    def __str__(self) -> str:
        shown = "" if self.value is MISSING else f" {_shown(self.value)}:"
        return f"{self.field}:{shown} {self.message}; {self.fix}"


class SpecError(Exception):
    """The spec is refused. `problems` has all that was found, in the order in which it was found."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
