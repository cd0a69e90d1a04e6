"""The real model: the only module that imports torch and transformers (neither has type information)."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import transformers

from goodput.engines.api.protocol import Sampling
from goodput.engines.errors import ArgumentError, ModelError
from goodput.engines.transformers.model import Choice, ModelFacts
from goodput.engines.transformers.tokenizer import HubTokenizer

_DTYPES = {"half": "float16", "float": "float32"}
_DEFAULTS = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")


class HubModel:
    """See `Model`. Everything is on one device.

    Args:
        name: on the model hub, or a folder.
        revision: of the hub.
        dtype: one of `DTYPES`.
        device: as torch names it, or auto.
        attn_implementation: as transformers names it, or auto.
        max_model_len: None: what the model allows.
        seed: of the server's own stream of random numbers.

    Raises:
        ModelError: it cannot be loaded.
        ArgumentError: there is no such device, or the model is not that long.
    """

    def __init__(
        self,
        name: str,
        *,
        revision: str | None,
        dtype: str,
        device: str,
        attn_implementation: str,
        max_model_len: int | None,
        trust_remote_code: bool,
        seed: int,
    ) -> None:
        torch.manual_seed(seed)
        self._device = _device(device)
        common = {"revision": revision, "trust_remote_code": trust_remote_code}
        attention = {} if attn_implementation == "auto" else {"attn_implementation": attn_implementation}
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(name, **common)
            model = transformers.AutoModelForCausalLM.from_pretrained(
                name, dtype=_DTYPES.get(dtype, dtype), **common, **attention
            )
        except (OSError, ValueError, ImportError) as error:
            raise ModelError(f"{name} cannot be loaded: {error}") from error
        self._model = model.to(self._device).eval()
        self._tokenizer = tokenizer
        self.tokenizer = HubTokenizer(tokenizer, model.config.get_text_config().vocab_size)
        self.facts = self._facts(max_model_len)
        self._neutral = transformers.GenerationConfig(pad_token_id=min(self.facts.eos_token_ids, default=0))
        self._model.generation_config = self._neutral  # else `generate` takes from it whatever a request leaves out

    def text(self, ids: Sequence[int]) -> str:
        """See `Model`."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))

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
        """See `Model`."""
        ids = torch.tensor([list(prompt)], dtype=torch.long, device=self._device)
        with _seeded(choice.seed, self._device), torch.inference_mode():
            self._model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=max_tokens,
                streamer=_Streamer(on_token),
                stopping_criteria=[_Cancelled(cancelled)],
                **_stop(min_tokens, stop_ids),
                **_choice(choice),
            )

    def _facts(self, asked_len: int | None) -> ModelFacts:
        config, text = self._model.config, self._model.config.get_text_config()
        longest = getattr(text, "max_position_embeddings", None)
        if asked_len is not None and longest is not None and asked_len > longest:
            raise ArgumentError(
                f"User-specified max_model_len ({asked_len}) is greater than the derived max_model_len ({longest})."
            )
        on_gpu = self._device.type == "cuda"
        return ModelFacts(
            max_model_len=asked_len or longest or 2048,
            eos_token_ids=_eos_ids(self._model.generation_config, self._tokenizer),
            dtype=str(self._model.dtype).removeprefix("torch."),
            device=str(self._model.device),
            attn_implementation=str(getattr(config, "_attn_implementation", None)),
            transformers=transformers.__version__,
            torch=torch.__version__,
            threads=torch.get_num_threads(),
            commit=getattr(config, "_commit_hash", None),
            cuda=torch.version.cuda if on_gpu else None,
            gpu=torch.cuda.get_device_name(self._device) if on_gpu else None,
            defaults=Sampling(**{key: getattr(self._model.generation_config, key, None) for key in _DEFAULTS}),
        )


def _device(name: str) -> Any:
    """The device, where torch can put something on it."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.zeros(1, device=name).device
    except (RuntimeError, AssertionError) as error:  # unknown, not built in, or not there
        raise ArgumentError(f"argument --device: {name} cannot be used: {error}") from error


class _Streamer:
    """Gets the prompt first, then each token."""

    def __init__(self, on_token: Callable[[int], None]) -> None:
        self._on_token = on_token
        self._begun = False

    def put(self, value: Any) -> None:
        if self._begun:
            self._on_token(int(value[0]))
        self._begun = True

    def end(self) -> None:
        pass


class _Cancelled:
    """A stopping criterion."""

    def __init__(self, cancelled: Callable[[], bool]) -> None:
        self._cancelled = cancelled

    def __call__(self, input_ids: Any, _scores: Any, **_others: Any) -> Any:
        return torch.full((input_ids.shape[0],), self._cancelled(), dtype=torch.bool, device=input_ids.device)


def _stop(min_tokens: int, stop_ids: Collection[int]) -> dict[str, Any]:
    """Without stop ids nothing watches for them, and no logit is touched: a token that would end is one like others.

    With them, `min_new_tokens` forbids them for so long, as vLLM's `min_tokens` does.
    """
    if not stop_ids:
        return {"eos_token_id": None}
    return {"eos_token_id": sorted(stop_ids), "min_new_tokens": min_tokens or None}


def _choice(choice: Choice) -> dict[str, Any]:
    penalty = {"repetition_penalty": choice.repetition_penalty}
    if choice.temperature == 0:
        return {"do_sample": False, **penalty}
    return {
        "do_sample": True,
        "temperature": choice.temperature,
        "top_p": choice.top_p,
        "top_k": choice.top_k,
        "min_p": choice.min_p or None,
        **penalty,
    }


@contextmanager
def _seeded(seed: int | None, device: Any) -> Iterator[None]:
    """Random numbers of its own for a request with a seed; those of the others are not disturbed."""
    if seed is None:
        yield
        return
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def _eos_ids(generation_config: Any, tokenizer: Any) -> frozenset[int]:
    """Those of the generation config and the tokenizer's: what ends an output in vLLM."""
    configured = generation_config.eos_token_id
    ids = set(configured if isinstance(configured, list) else [] if configured is None else [configured])
    return frozenset(ids | ({tokenizer.eos_token_id} if tokenizer.eos_token_id is not None else set()))
