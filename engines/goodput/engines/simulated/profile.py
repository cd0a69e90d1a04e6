"""How long one step takes: profiles, data files with a source.

Roofline profile, seconds, for a step of n tokens (padded to a CUDA-graph size where the profile says so):

    t = overhead + (weights^p + (per_token * n)^p)^(1/p)
        + per_decode_kv_token * sum(context) + per_decode * decodes
        + per_prefill_attention * sum(chunk * (prior + chunk / 2)) + per_sampled * sampled

The weights are read once per step while the tensor cores work on n tokens: a soft maximum of both. All
coefficients are non-negative. A fixed-rate profile is a queue whose truth is known: one request at a time,
each takes exactly 1 / rate seconds, spread evenly over its steps.
"""

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from goodput.engines.errors import ProfileError
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
        mean_output_tokens: mean length at which a request without `ignore_eos` ends by itself.
    """

    name: str
    synthetic: Literal[True]
    source: str
    device: str
    max_model_len: int = Field(ge=2)
    mean_output_tokens: int = Field(default=200, ge=1)
    memory: Memory

    @property
    def max_running(self) -> int | None:
        """Requests that may run at once, whatever the config says; None for no limit of its own."""
        return None

    def duration_ns(self, plan: StepPlan, max_num_batched_tokens: int) -> int:
        """Duration of a planned step in nanoseconds."""
        raise NotImplementedError


class StepCosts(_Data):
    """Coefficients of the roofline profile (module docstring), in seconds."""

    overhead_seconds: NonNegative
    weights_seconds: NonNegative
    per_token_seconds: NonNegative
    blend_exponent: float = Field(ge=1.0, le=64.0)
    per_decode_kv_token_seconds: NonNegative
    per_decode_seconds: NonNegative
    per_prefill_attention_seconds: NonNegative
    per_sampled_seconds: NonNegative
    cuda_graph_max_tokens: int = Field(default=0, ge=0)


class RooflineProfile(_Profile):
    """Step time from memory traffic and arithmetic."""

    kind: Literal["roofline"]
    step: StepCosts

    def duration_ns(self, plan: StepPlan, max_num_batched_tokens: int) -> int:
        """See the module docstring; never below 1 ns."""
        step = self.step
        tokens = graph_size(plan.num_tokens, min(step.cuda_graph_max_tokens, max_num_batched_tokens))
        compute = step.per_token_seconds * tokens
        dense = _soft_maximum(step.weights_seconds, compute, step.blend_exponent)
        seconds = (
            step.overhead_seconds
            + dense
            + step.per_decode_kv_token_seconds * plan.decode_context_tokens
            + step.per_decode_seconds * plan.num_decodes
            + step.per_prefill_attention_seconds * plan.prefill_attention
            + step.per_sampled_seconds * plan.num_sampled
        )
        return max(1, round(seconds * _NS))


class FixedRateProfile(_Profile):
    """A server of one request at a time, first in first out, with the same service time for each."""

    kind: Literal["fixed_rate"]
    requests_per_second: float = Field(gt=0.0, allow_inf_nan=False)

    @property
    def max_running(self) -> int | None:
        """One."""
        return 1

    def duration_ns(self, plan: StepPlan, max_num_batched_tokens: int) -> int:
        """The request's share of its service time; the shares sum to it to the nanosecond."""
        request, _ = plan.scheduled[0]
        to_prefill = request.num_prompt_tokens - max(0, request.num_cached_tokens)
        steps = -(-to_prefill // max_num_batched_tokens) + request.target_output_tokens - 1
        total = round(_NS / self.requests_per_second)
        done = min(request.steps_done, steps - 1)
        return max(1, total * (done + 1) // steps - total * done // steps)


Profile = RooflineProfile | FixedRateProfile
_ADAPTER: TypeAdapter[Profile] = TypeAdapter(Annotated[Profile, Field(discriminator="kind")])


def profile_names() -> list[str]:
    """Names of the profiles that come with the package, sorted."""
    folder = resources.files("goodput.engines").joinpath("profiles")
    return sorted(item.name.removesuffix(".yaml") for item in folder.iterdir() if item.name.endswith(".yaml"))


def load_profile(name_or_path: str) -> Profile:
    """Reads a profile by the name of a shipped one, or from a file where the argument is a path.

    Raises:
        ProfileError: unknown name, unreadable file, or content that is no profile.
    """
    if "/" in name_or_path or name_or_path.endswith((".yaml", ".yml")):
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


def graph_size(tokens: int, largest: int) -> int:
    """Tokens of a step after padding to the next captured CUDA-graph size, as vLLM V1 captures them.

    Sizes are 1, 2, 4, multiples of 8 below 256, then multiples of 16, up to `largest`. Bigger steps run
    without a graph and are not padded.
    """
    if tokens > largest or tokens <= 2:
        return tokens
    if tokens <= 4:
        return min(4, largest)
    unit = 8 if tokens <= 248 else 16
    return min(-(-tokens // unit) * unit, largest)


def _soft_maximum(a: float, b: float, exponent: float) -> float:
    larger, smaller = (a, b) if a >= b else (b, a)
    if larger == 0.0:
        return 0.0
    return float(larger * (1.0 + (smaller / larger) ** exponent) ** (1.0 / exponent))
