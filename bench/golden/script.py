"""What the golden server is to do: the script, to and from JSON.

A script is one document::

    {"match": "order",                     # how a request gets its number: order | prompt | req
     "requests": [case, case, …],          # by number
     "default": case,                      # for every other request; a script may consist of it alone
     "stall": {"at": 2.0, "seconds": 5.0}, # the whole server stops, that long after the first request arrived
     "keep_requests": false}               # truth holds heads and bodies of the requests, too

``prompt``: the first id of the prompt. ``req``: the N of the first ``req-N`` in the request's head or body.

A case is a name, a verdict, the number of tokens, and either a stream (`Stream`'s fields) or ``steps``: what to do
byte by byte, each a list: ``["send", text, tokens]`` (each character one byte; the tokens that these bytes
complete), ``["wait", seconds]``, ``["gate", n]`` (until n requests have arrived), ``["stale"]`` (close, if the
connection was used before), and at the end ``["keep"]``, ``["close"]``, ``["reset"]`` or ``["hang"]`` (until the
client closes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

Match = Literal["order", "prompt", "req"]
Verdict = Literal["success", "failure"]
Action = Literal["stale", "keep", "close", "reset", "hang"]
Usage = Literal["asked", "continuous", "final", "none"]


class Send(NamedTuple):
    """Bytes that are sent at once, and the tokens whose events they complete."""

    data: bytes
    tokens: int = 0


class Wait(NamedTuple):
    """Nothing happens for so long; counted from when the wait before should have ended."""

    seconds: float


class Gate(NamedTuple):
    """Wait until so many requests have arrived."""

    requests: int


Step = Send | Wait | Gate | Action


class ScriptError(ValueError):
    """The document is no script."""


@dataclass(frozen=True)
class Stream:
    """A proper stream, written when the request is known.

    Attributes:
        ttft: seconds from the request's arrival to the first token.
        gap: seconds between events.
        tokens: how many; None: as the request asks.
        per_event: tokens in an event.
        usage: where the counts are: as ``stream_options`` asks, in every event, at the end, nowhere.
        text: of one token.
        role: a chat's first token comes behind an event that has a role and no content, as vLLM sends it.
    """

    ttft: float = 0.0
    gap: float = 0.0
    tokens: int | None = None
    per_event: int = 1
    usage: Usage = "asked"
    text: str = " word"
    role: bool = True


@dataclass(frozen=True)
class Case:
    """What one request gets, and the truth about it.

    Attributes:
        verdict: whether a client that asked for the catalogue's number of tokens may call it a success.
        tokens: that the server sends; None: as asked.
        first: number, from 0, of the event with data that carries the first token; None: there is none, or a stream
            that is written later (a chat's role event comes before it).
    """

    name: str
    plan: Stream | tuple[Step, ...]
    verdict: Verdict = "success"
    tokens: int | None = None
    first: int | None = None


@dataclass(frozen=True)
class Stall:
    """The process stops: ``at`` seconds after the first request, for ``seconds``."""

    at: float
    seconds: float


@dataclass(frozen=True)
class Script:
    """All that a golden server does."""

    requests: tuple[Case, ...] = ()
    default: Case = Case("default", Stream())
    match: Match = "order"
    stall: Stall | None = None
    keep_requests: bool = False

    def case(self, number: int | None) -> Case:
        """What the request with that number gets."""
        return self.requests[number] if number is not None and 0 <= number < len(self.requests) else self.default

    def document(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "match": self.match,
            "requests": [_case_document(case) for case in self.requests],
            "default": _case_document(self.default),
            "stall": None if self.stall is None else asdict(self.stall),
            "keep_requests": self.keep_requests,
        }

    @classmethod
    def of(cls, document: dict[str, Any]) -> Script:
        """Read the JSON form. Raises `ScriptError`."""
        try:
            return cls(
                requests=tuple(_case(row) for row in document.get("requests", ())),
                default=_case({"name": "default", **document.get("default", {})}),
                match=_one_of(Match, document.get("match", "order")),
                stall=None if document.get("stall") is None else Stall(**document["stall"]),
                keep_requests=bool(document.get("keep_requests", False)),
            )
        except (TypeError, KeyError, ValueError, AttributeError, UnicodeEncodeError) as error:
            raise ScriptError(f"not a script: {error}") from error


def _case(row: dict[str, Any]) -> Case:
    fields = dict(row)
    name, verdict, first = fields.pop("name"), fields.pop("verdict", "success"), fields.pop("first", None)
    tokens = fields.get("tokens")
    if "steps" not in fields:
        stream = Stream(**fields)
        _one_of(Usage, stream.usage)
        return Case(name, stream, _one_of(Verdict, verdict), tokens, first)
    fields.pop("tokens", None)
    steps = tuple(_step(step) for step in fields.pop("steps"))
    if fields:
        raise ScriptError(f"{name}: unknown fields {sorted(fields)}")
    return Case(name, steps, _one_of(Verdict, verdict), tokens, first)


def _case_document(case: Case) -> dict[str, Any]:
    head = {"name": case.name, "verdict": case.verdict, "first": case.first}
    if isinstance(case.plan, Stream):
        return {**head, **asdict(case.plan)}
    return {**head, "tokens": case.tokens, "steps": [_step_document(step) for step in case.plan]}


def _step(row: Sequence[Any]) -> Step:
    match row:
        case ["send", str(text), int(tokens)]:
            return Send(text.encode("latin-1"), tokens)
        case ["wait", int() | float() as seconds]:
            return Wait(float(seconds))
        case ["gate", int(requests)]:
            return Gate(requests)
        case [str(action)]:
            step: Action = _one_of(Action, action)
            return step
    raise ScriptError(f"no such step: {row!r}")


def _step_document(step: Step) -> list[Any]:
    match step:
        case Send(data, tokens):
            return ["send", data.decode("latin-1"), tokens]
        case Wait(seconds):
            return ["wait", seconds]
        case Gate(requests):
            return ["gate", requests]
        case action:
            return [action]


def _one_of(choices: Any, value: Any) -> Any:
    if value not in get_args(choices):
        raise ScriptError(f"{value!r} is none of {', '.join(get_args(choices))}")
    return value
