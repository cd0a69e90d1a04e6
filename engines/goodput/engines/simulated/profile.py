"""How long one step takes: profiles, data files with a source.

Roofline profile, seconds, for a step of n tokens (padded to a CUDA-graph size where the profile says so):

    t = overhead + (weights^p + (per_token * n)^p)^(1/p)
        + per_decode_kv_token * sum(context) + per_decode * decodes
        + per_prefill_attention * sum(chunk * (prior + chunk / 2)) + per_sampled * sampled

The weights are read once per step while the tensor cores work on n tokens: a soft maximum of both. Beside a
chunk of a prompt the attention kernel is one for long queries, in which decodes are dearer: such mixed steps
may have coefficients of their own for them. All coefficients are non-negative. A fixed-rate profile is a
queue whose truth is known: one request at a time, each takes exactly 1 / rate seconds, spread evenly over
its steps.
"""

from collections.abc import Callable
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from goodput.engines.errors import ProfileError
from goodput.engines.simulated.config import SchedulerConfig
from goodput.engines.simulated.graphs import capture_sizes, padded_tokens
from goodput.engines.simulated.scheduler import StepPlan

_NS = 1_000_000_000
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Memory(_Data):
    """Device memory in bytes, from which the number of KV blocks follows."""

    total_bytes: int = Field(ge=1)
    weights_bytes: int = Field(ge=0)
    activation_bytes_per_token: int = Field(ge=0)
    graphs_bytes: int = Field(ge=0)
    kv_bytes_per_token: int = Field(ge=1)

    def kv_bytes(self, utilization: float, max_num_batched_tokens: int) -> int:
        """Bytes left for the KV cache; the activations grow with the token budget."""
        used = self.weights_bytes + self.graphs_bytes
        used += self.activation_bytes_per_token * max_num_batched_tokens
        return max(0, int(utilization * self.total_bytes) - used)


class _Profile(_Data):
    """What every profile says about itself.

    Attributes:
        synthetic: always true: nothing that a profile times was measured on the device it names.
        source: where the coefficients come from.
        model: whose shapes the coefficients are of; None where there is no such model.
        mean_output_tokens: mean length at which a request without `ignore_eos` ends by itself.
    """

    name: str
    synthetic: Literal[True]
    source: str
    device: str
    model: str | None = None
    max_model_len: int = Field(ge=2)
    mean_output_tokens: int = Field(default=200, ge=1)
    memory: Memory

    @property
    def max_running(self) -> int | None:
        """Requests that may run at once, whatever the config says; None for no limit of its own."""
        return None

    def timer(self, scheduler: SchedulerConfig) -> Callable[[StepPlan], int]:
        """What times the steps of an engine so configured: planned step to nanoseconds, at least 1."""
        raise NotImplementedError


class StepCosts(_Data):
    """Coefficients of the roofline profile (module docstring), in seconds.

    Attributes:
        per_mixed_decode_kv_token_seconds, per_mixed_decode_seconds: in place of their namesakes in steps that
            also compute a chunk of a prompt; None for no difference.
        cuda_graph_max_tokens: the device's limit on the size of graphs; 0 for none.
    """

    overhead_seconds: NonNegative
    weights_seconds: NonNegative
    per_token_seconds: NonNegative
    blend_exponent: float = Field(ge=1.0, le=64.0)
    per_decode_kv_token_seconds: NonNegative
    per_decode_seconds: NonNegative
    per_mixed_decode_kv_token_seconds: NonNegative | None = None
    per_mixed_decode_seconds: NonNegative | None = None
    per_prefill_attention_seconds: NonNegative
    per_sampled_seconds: NonNegative
    cuda_graph_max_tokens: int = Field(default=0, ge=0)


class RooflineProfile(_Profile):
    """Step time from memory traffic and arithmetic."""

    kind: Literal["roofline"]
    step: StepCosts

    def timer(self, scheduler: SchedulerConfig) -> Callable[[StepPlan], int]:
        """See the module docstring."""
        step = self.step
        overhead, sampled, attention = (
            step.overhead_seconds,
            step.per_sampled_seconds,
            step.per_prefill_attention_seconds,
        )
        kv, decode = step.per_decode_kv_token_seconds, step.per_decode_seconds
        mixed_kv = kv if step.per_mixed_decode_kv_token_seconds is None else step.per_mixed_decode_kv_token_seconds
        mixed_decode = decode if step.per_mixed_decode_seconds is None else step.per_mixed_decode_seconds
        dense = _dense_timer(step, scheduler)

        def duration_ns(plan: StepPlan) -> int:
            seconds = overhead + dense(plan.num_tokens) + sampled * plan.num_sampled
            if plan.num_decodes == plan.num_tokens:
                seconds += kv * plan.decode_context_tokens + decode * plan.num_decodes
            else:
                seconds += mixed_kv * plan.decode_context_tokens + mixed_decode * plan.num_decodes
                seconds += attention * plan.prefill_attention
            return max(1, round(seconds * _NS))

        return duration_ns


class FixedRateProfile(_Profile):
    """A server of one request at a time, first in first out, with the same service time for each."""

    kind: Literal["fixed_rate"]
    requests_per_second: float = Field(gt=0.0, allow_inf_nan=False)

    @property
    def max_running(self) -> int | None:
        """One."""
        return 1

    def timer(self, scheduler: SchedulerConfig) -> Callable[[StepPlan], int]:
        """The request's share of its service time; the shares sum to it to the nanosecond."""
        total = round(_NS / self.requests_per_second)

        def duration_ns(plan: StepPlan) -> int:
            request, _ = plan.scheduled[0]
            to_prefill = request.num_prompt_tokens - max(0, request.num_cached_tokens)
            steps = -(-to_prefill // scheduler.max_num_batched_tokens) + request.target_output_tokens - 1
            done = min(request.steps_done, steps) - 1
            return max(1, total * (done + 1) // steps - total * done // steps)

        return duration_ns


Profile = RooflineProfile | FixedRateProfile
_ADAPTER: TypeAdapter[Profile] = TypeAdapter(Annotated[Profile, Field(discriminator="kind")])


def profile_names() -> list[str]:
    """Names of the profiles that come with the package, sorted."""
    folder = resources.files("goodput.engines").joinpath("profiles")
    return sorted(item.name.removesuffix(".yaml") for item in folder.iterdir() if item.name.endswith(".yaml"))


def is_path(name_or_path: str) -> bool:
    """Whether a profile is named by its file."""
    return "/" in name_or_path or name_or_path.endswith((".yaml", ".yml"))


def load_profile(name_or_path: str) -> Profile:
    """Reads a profile by the name of a shipped one, or from a file where the argument is a path.

    Raises:
        ProfileError: unknown name, unreadable file, or content that is no profile.
    """
    if is_path(name_or_path):
        source: Traversable = Path(name_or_path)
        where = name_or_path
    else:
        if name_or_path not in profile_names():
            raise ProfileError(
                f"unknown profile {name_or_path!r}; known are {', '.join(profile_names())}, or give a path"
            )
        where = f"{name_or_path}.yaml"
        source = resources.files("goodput.engines").joinpath("profiles", where)
    try:
        document: Any = yaml.safe_load(source.read_text(encoding="utf-8"))
        return _ADAPTER.validate_python(document)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValidationError) as error:
        raise ProfileError(f"profile {where}: {error}") from error


def _dense_timer(step: StepCosts, scheduler: SchedulerConfig) -> Callable[[int], float]:
    """Tokens of a step to seconds of its matrix products, after padding to a captured graph."""
    padded = padded_tokens(capture_sizes(step.cuda_graph_max_tokens, scheduler))
    known: dict[int, float] = {}

    def seconds(tokens: int) -> float:
        found = known.get(tokens)
        if found is None:
            computed = padded[tokens] if tokens < len(padded) else tokens
            found = _soft_maximum(step.weights_seconds, step.per_token_seconds * computed, step.blend_exponent)
            known[tokens] = found
        return found

    return seconds


def _soft_maximum(a: float, b: float, exponent: float) -> float:
    larger, smaller = (a, b) if a >= b else (b, a)
    if larger == 0.0:
        return 0.0
    return float(larger * (1.0 + (smaller / larger) ** exponent) ** (1.0 / exponent))
