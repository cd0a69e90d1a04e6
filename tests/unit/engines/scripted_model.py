"""A model without weights: it generates what it was told to, when it was told to."""

import threading
from collections.abc import Callable, Collection, Iterable, Sequence

from goodput.engines.simulated.tokens import EOS, ToyTokenizer
from goodput.engines.transformers.model import Choice, ModelFacts

FACTS = ModelFacts(
    max_model_len=1000,
    eos_token_ids=frozenset({EOS}),
    dtype="float32",
    device="cpu",
    attn_implementation="sdpa",
    transformers="5.0.0",
    torch="2.13.0",
    threads=1,
)


class ScriptedModel:
    """See `Model`.

    Args:
        script: what it generates, for every request anew; EOS is passed over where it does not stop.
        gated: each token waits for one `release`.
    """

    facts = FACTS

    def __init__(self, script: Iterable[int] = range(300, 900), *, gated: bool = False) -> None:
        self.tokenizer = ToyTokenizer(2000)
        self.asked: list[tuple[tuple[int, ...], Choice]] = []
        self.at_once = 0
        self.most_at_once = 0
        self._script = tuple(script)
        self._gate = threading.Semaphore(0) if gated else None

    def release(self, tokens: int) -> None:
        """Let so many tokens be generated."""
        assert self._gate is not None
        self._gate.release(tokens)

    def text(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids)

    def generate(
        self,
        prompt: Sequence[int],
        *,
        max_tokens: int,
        min_tokens: int,
        stop_ids: Collection[int],
        choice: Choice,
        on_token: Callable[[int], None],
        cancelled: Callable[[], bool],
    ) -> None:
        self.asked.append((tuple(prompt), choice))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        for number, token in enumerate(self._script[:max_tokens], start=1):
            if self._gate is not None:
                self._gate.acquire()
            if token < 0:
                raise RuntimeError("out of memory")
            on_token(token)
            if cancelled() or (token in stop_ids and number >= min_tokens):
                break
        self.at_once -= 1
