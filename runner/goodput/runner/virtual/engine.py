"""What a trial in virtual time needs of an engine. This part knows none: whoever starts the trial brings one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from goodput.runner.snapshot import Snapshot, parse
from goodput.runner.tokens import Tokenizer

NANOSECONDS = 1_000_000_000


class Served(Protocol):
    """A request that got a token."""

    @property
    def uid(self) -> int:
        """Its number, from `Engine.submit`."""
        ...

    @property
    def finish_reason(self) -> str | None:
        """Set with the last token."""
        ...


class Engine(Tokenizer, Protocol):
    """A server whose clock jumps from event to event."""

    @property
    def now_ns(self) -> int:
        """Its clock, which `advance` alone moves."""
        ...

    @property
    def version(self) -> str:
        """As ``/version``."""
        ...

    def submit(self, prompt_tokens: int, output_tokens: int, ids: Sequence[int] | None = None) -> int | None:
        """A request that arrives now: its number, None where it is refused. ``ids`` where prompts begin alike."""
        ...

    def abort(self, uid: int) -> None:
        """The request's client is gone."""
        ...

    def advance(self, until_ns: int) -> Sequence[Served]:
        """Move to the end of the next step, or to ``until_ns`` where none ends before: who got a token now."""
        ...

    def reset_prefix_cache(self) -> bool:
        """Whether it was."""
        ...

    def metrics(self) -> str:
        """As ``/metrics``."""
        ...

    def sample(self) -> dict[str, Any]:
        """The same gauges and counters, by the names of `Snapshot`."""
        ...

    def info(self) -> Mapping[str, Any]:
        """As ``/server_info``."""
        ...


def snapshot(engine: Engine) -> Snapshot:
    """All that the engine's metrics say now."""
    return parse(engine.metrics(), engine.now_ns / NANOSECONDS)


def sample(engine: Engine) -> Snapshot:
    """Its gauges and counters now."""
    return Snapshot(stamp=engine.now_ns / NANOSECONDS, **engine.sample())


def pass_time(engine: Engine, seconds: float) -> None:
    """Let so much time pass; whatever the engine has to do, it does."""
    until = engine.now_ns + round(seconds * NANOSECONDS)
    while engine.now_ns < until:
        engine.advance(until)
