"""A request of the baseline with its progress."""

from dataclasses import dataclass, field

from goodput.engines.transformers.model import Choice


@dataclass(slots=True, eq=False)
class BaselineRequest:
    """See `Request`. Identity is the object. All but `cancelled` belongs to the event loop.

    Attributes:
        stop_ids: it ends after one of these; empty where the end-of-text token is ignored.
        cancelled: nobody waits for it any more; read by the thread that generates.
    """

    prompt: list[int]
    max_tokens: int
    min_tokens: int
    stop_ids: frozenset[int]
    choice: Choice
    output_token_ids: list[int] = field(default_factory=list)
    finish_reason: str | None = None
    arrival_ns: int = -1
    scheduled_ns: int = -1
    first_token_ns: int = -1
    last_token_ns: int = -1
    cancelled: bool = False

    @property
    def num_prompt_tokens(self) -> int:
        """See `Request`."""
        return len(self.prompt)

    @property
    def num_output_tokens(self) -> int:
        """See `Request`."""
        return len(self.output_token_ids)

    def take(self, token: int, now_ns: int) -> None:
        """One more token; the last one sets `finish_reason`."""
        if not self.output_token_ids:
            self.first_token_ns = now_ns
        self.last_token_ns = now_ns
        self.output_token_ids.append(token)
        if token in self.stop_ids:
            self.finish_reason = "stop"
        elif self.num_output_tokens >= self.max_tokens:
            self.finish_reason = "length"
