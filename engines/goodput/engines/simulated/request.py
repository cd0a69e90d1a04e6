"""A request as the scheduler sees it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from goodput.engines.simulated.tokens import block_hash

#: More tokens than any request has.
NEVER = 1 << 62


@dataclass(slots=True, eq=False)
class SimRequest:
    """One request with its progress. Identity is the object; `uid` breaks ties and seeds its tokens.

    Tokens are counted, not stored, except that `prompt_token_ids` and `output_token_ids` are needed where
    block contents must be comparable between requests. Without ids the request is taken to share no
    prefix with any other (its blocks still survive its own preemption, which is when they get their keys).

    Attributes:
        uid: number unique within an engine, rising in order of submission.
        num_prompt_tokens: prompt length in tokens, at least 1.
        target_output_tokens: tokens after which it ends, at least 1 (already limited by the model length).
        max_tokens: the limit that was asked for (after the model length), for the metrics.
        stops_early: it ends with `stop` (its own end-of-text token), not with `length`.
        arrival_ns: when it reached the engine, on the engine's clock.
        token_seed: fixes what it generates.
        greedy: what it generates is fixed by the prompt and the engine's seed, as at temperature 0.
        num_computed_tokens: tokens whose keys and values are in its blocks, or will be when the step that is
            planned has run.
        num_output_tokens: tokens generated so far.
        num_tokens: prompt and generated tokens.
        block_ids: blocks held, in order; `num_slots` tokens fit them.
        publish_at: computed tokens at which its next full block can be made findable.
        num_cached_tokens: prompt tokens taken from the prefix cache at first admission; -1 before it.
        num_preemptions: how often it lost its blocks; `unreported_preemptions` of them are not yet in
            the metrics (they ride on the next token, as in vLLM).
        steps_done: steps in which it was scheduled.
    """

    uid: int
    num_prompt_tokens: int
    target_output_tokens: int
    max_tokens: int = 0
    stops_early: bool = False
    arrival_ns: int = 0
    prompt_token_ids: Sequence[int] | None = None
    output_token_ids: list[int] = field(default_factory=list)
    num_computed_tokens: int = 0
    num_output_tokens: int = 0
    num_tokens: int = field(init=False)
    block_ids: list[int] = field(default_factory=list)
    num_slots: int = 0
    publish_at: int = NEVER
    block_keys: list[int] = field(default_factory=list)
    token_seed: int = 0
    greedy: bool = False
    num_cached_blocks: int = 0
    num_cached_tokens: int = -1
    num_preemptions: int = 0
    unreported_preemptions: int = 0
    steps_done: int = 0
    scheduled_ns: int = -1
    first_token_ns: int = -1
    last_token_ns: int = -1
    finish_reason: str | None = None

    def __post_init__(self) -> None:
        self.num_tokens = self.num_prompt_tokens + self.num_output_tokens

    def key_of_block(self, index: int, block_size: int) -> int:
        """Hash that names the content of full block `index` and everything before it."""
        keys = self.block_keys
        while len(keys) <= index:
            keys.append(self._next_key(len(keys), block_size))
        return keys[index]

    def _next_key(self, index: int, block_size: int) -> int:
        if self.prompt_token_ids is None:
            return block_hash(-3 - self.uid, (index,))  # below -2: Python's hash(-1) is hash(-2)
        start, end = index * block_size, (index + 1) * block_size
        prompt = self.prompt_token_ids
        tokens = tuple(prompt[start:end])
        if end > self.num_prompt_tokens:
            first = max(0, start - self.num_prompt_tokens)
            tokens += tuple(self.output_token_ids[first : end - self.num_prompt_tokens])
        return block_hash(self.block_keys[index - 1] if index else 0, tokens)
