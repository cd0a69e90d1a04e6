"""What the baseline needs of a model. `hub` has the real one; tests bring their own."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from goodput.engines.api.engine import Tokenizer
from goodput.engines.api.protocol import Sampling


@dataclass(frozen=True)
class Choice:
    """How a request's tokens are chosen, defaults filled in.

    Attributes:
        temperature: 0 means greedy.
        top_k: 0 means all.
        seed: None: the server's own stream of random numbers goes on.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None


@dataclass(frozen=True)
class ModelFacts:
    """What was loaded, for provenance.

    Attributes:
        max_model_len: tokens of prompt and output that fit.
        eos_token_ids: tokens that end an output.
        defaults: what the model's `generation_config.json` says of sampling.
        commit: snapshot of the hub that it is; None for a folder.
    """

    max_model_len: int
    eos_token_ids: frozenset[int]
    dtype: str
    device: str
    attn_implementation: str
    transformers: str
    torch: str
    threads: int
    commit: str | None = None
    cuda: str | None = None
    gpu: str | None = None
    defaults: Sampling = field(default_factory=Sampling)


class Model(Protocol):
    """A loaded model with its tokenizer."""

    @property
    def facts(self) -> ModelFacts:
        """What was loaded."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's."""

    def text(self, ids: Sequence[int]) -> str:
        """Text of an output: without special tokens."""

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
        """One call of `generate()`, in the caller's thread.

        Args:
            prompt: token ids, as they are.
            max_tokens: it ends after so many.
            min_tokens: no stop token before so many.
            stop_ids: it ends after one of these.
            choice: how tokens are chosen.
            on_token: told each token when it is known.
            cancelled: asked after each token; True ends it.
        """
