"""What a rule of the message table is."""

from __future__ import annotations

from dataclasses import dataclass

from goodput.operator.spec.errors import Problem


@dataclass(frozen=True)
class Rule:
    """One rule: where it stands in the schema (dotted, ``[]`` for items), its CEL, its words."""

    id: str
    at: str  # schema node that carries the rule: "" is the object itself
    field: str  # what the user must change, dotted, from the object's root
    cel: str
    message: str
    fix: str

    @property
    def text(self) -> str:
        """The CRD's message."""
        return f"{self.field}: {self.message}; {self.fix}"

    def problem(self, value: object, *, field: str | None = None) -> Problem:
        """The same words as a problem of one spec; ``field`` has the indexes where the rule is inside a list."""
        return Problem(field or self.field, value, self.message, self.fix)


def positive(at: str, name: str, example: str) -> Rule:
    """A duration above 0."""
    return Rule(
        id=f"positive:{at}.{name}",
        at=at,
        field=f"{at}.{name}",
        cel=f"!has(self.{name}) || duration(self.{name}) > duration('0s')",
        message="must be greater than 0",
        fix=f"write a duration such as {example}",
    )
