"""Words for what is wrong with the flags of one config."""

from __future__ import annotations

from goodput.analysis.schema.planned import Config
from goodput.operator.spec.errors import Problem


def problem(config: Config, flag: str, message: str, fix: str) -> Problem:
    """A problem of a flag, named where the user wrote it: among the configs or in the engine's args."""
    where = "spec.configs" if flag in config.swept else f"engine {config.engine}"
    return Problem(f"{where}: {flag}", config.flags[flag], message, fix)


def number(config: Config, flag: str) -> int | None:
    """The whole number that a flag has; None where it is not set, or left to the server."""
    text = config.flags.get(flag)
    return int(text) if text not in (None, "auto", "None") else None
