"""The spec of a BenchmarkSweep (v1alpha1): frozen and strict, camelCase outside, seconds inside."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from goodput.operator.spec.base import NodeSelector, Part, PodTemplate, Resources, SecretRef, Tolerations
from goodput.operator.spec.engine import EngineSpec, ModelSpec
from goodput.operator.spec.scalars import HTTP_PATTERN, URI_PATTERN, FlagValue, ObjectName, Seconds, Text
from goodput.operator.spec.workload import ObjectiveSpec, SloSpec, WorkloadSpec

__all__ = [
    "BlocksSpec",
    "BudgetSpec",
    "ConfigsSpec",
    "EngineSpec",
    "ModelSpec",
    "ObjectiveSpec",
    "PlanSpec",
    "ResultsSpec",
    "RetentionSpec",
    "RunnerSpec",
    "SchedulingSpec",
    "SloSpec",
    "SweepSpec",
    "WorkloadSpec",
]

GROUP = "goodput.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "BenchmarkSweep"
MAX_BLOCKS = 8

AxisValues = Annotated[tuple[FlagValue, ...], Field(min_length=1, max_length=32)]
Point = Annotated[dict[str, FlagValue], Field(max_length=16)]


class ConfigsSpec(Part):
    """The server axis: a grid of flag values, or a list of points. Without either, one config per engine."""

    grid: Annotated[dict[str, AxisValues], Field(min_length=1, max_length=8)] | None = Field(
        default=None, description="Values by flag; every combination is a config. Flags in snake_case."
    )
    points: Annotated[tuple[Point, ...], Field(min_length=1, max_length=64)] | None = Field(
        default=None, alias="list", description="Configs one by one, each a map of flags."
    )
    exclude: Annotated[tuple[Point, ...], Field(max_length=64)] = Field(
        default=(),
        description="Configs that have all these flag values are left out. The key engine names an engine.",
    )
    reference: Point | None = Field(
        default=None,
        description="The config that others are compared with: flag values that one config has. The key "
        "engine names an engine. Without it the first config.",
    )


class BlocksSpec(Part):
    """How often every config is measured, each time on a fresh server."""

    min: int = Field(default=3, ge=1, le=64, description="Blocks of an exhaustive sweep; the least of a race.")
    max: int | None = Field(
        default=None, ge=1, le=64, description="Most blocks of a race; without it 8, or min where that is more."
    )

    @property
    def most(self) -> int:
        """Most blocks of a race."""
        return max(MAX_BLOCKS, self.min) if self.max is None else self.max


class PlanSpec(Part):
    """How the measurements are laid out."""

    blocks: BlocksSpec = Field(default_factory=BlocksSpec, description="How often every config is measured.")
    parallelism: int = Field(default=1, ge=1, le=64, description="Servers that may be alive at once.")
    strategy: Literal["exhaustive", "race"] = Field(
        default="exhaustive",
        description="exhaustive: all configs in all blocks. race: configs that cannot win drop out.",
    )
    indifference: float = Field(
        default=0.05,
        gt=0,
        lt=1,
        description="Lead that does not matter: 0.05 is 5 %. A config ties with the leader where the interval of the "
        "leader's lead over it reaches 0 and ends within this. A lead whose whole interval lies above 0 wins, however "
        "small it is. A sentinel that moves by more than this is drift.",
    )
    retries: int = Field(
        default=2, ge=0, le=10, description="Further attempts at a trial after failures that may pass."
    )
    sentinel: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="Measures the reference at both ends of each block to see drift. auto: when more than 2 h "
        'are expected. Write "on" and "off" in quotes: YAML reads the bare words as true and false.',
    )
    output_check: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="Asks every config 16 prompts at temperature 0 before its first cell and reports the share of "
        "continuations identical to the reference's. auto: when an axis that can change the output is swept "
        "(attention backend, dtype, quantization, KV cache dtype, speculative decoding, parallel sizes) or several "
        'engines are compared; never for simulated ones. Write "on" and "off" in quotes.',
    )


class BudgetSpec(Part):
    """When the sweep ends early; what is not measured by then is shown as not_run."""

    max_trials: int | None = Field(default=None, ge=1, description="Most server starts.")
    max_gpu_hours: float | None = Field(
        default=None, gt=0, description="Most GPU hours, counted from a server's start to its end."
    )
    deadline_seconds: Seconds | None = Field(
        default=None, alias="deadline", description="Longest run time, not counting suspended time."
    )
    max_failed_configs: int | None = Field(
        default=None, ge=0, description="The sweep fails when more configs than this have failed."
    )
    gpu_hour_price: float | None = Field(
        default=None, gt=0, description="Price of a GPU hour, for the cost per million good tokens."
    )


class RunnerSpec(Part):
    """The pod that sends the load and reads the server's metrics."""

    image: Text | None = Field(default=None, description="Image of the runner; without it the operator's own.")
    resources: Resources = Field(
        default_factory=Resources, description="Resources of the runner; its CPU is the client's ceiling."
    )
    node_selector: NodeSelector = Field(default_factory=dict, description="Labels of nodes it may run on.")
    tolerations: Tolerations = Field(default=(), description="Taints that the runner's pod tolerates.")
    pod_template: PodTemplate | None = Field(
        default=None,
        description="Parts of a PodTemplateSpec, merged over the runner's pod. The container is called runner. "
        "Privileges, host namespaces, hostPath and other ServiceAccounts are refused.",
    )


class ResultsSpec(Part):
    """Where records, tables and the report go."""

    uri: Annotated[str, Field(max_length=1024, pattern=URI_PATTERN)] = Field(
        description="Folder in an object store: s3://bucket/path, gs://, az://, or file:// on one machine."
    )
    endpoint: Annotated[str, Field(max_length=1024, pattern=HTTP_PATTERN)] | None = Field(
        default=None, description="Endpoint of an S3-compatible store; without it the provider's own."
    )
    region: Text | None = Field(default=None, description="Region of the bucket.")
    credentials_secret_ref: SecretRef | None = Field(
        default=None,
        description="Secret whose keys become environment variables of runner and analysis, such as "
        "AWS_ACCESS_KEY_ID. Without it the pod's identity.",
    )
    service_account_name: ObjectName | None = Field(
        default=None, description="ServiceAccount of runner and analysis; without it the namespace's default."
    )


class SchedulingSpec(Part):
    """How the pods are scheduled."""

    queue_name: ObjectName | None = Field(default=None, description="Kueue LocalQueue that admits the pods.")
    priority_class_name: ObjectName | None = Field(default=None, description="PriorityClass of the pods.")
    exclusive_node: bool = Field(default=False, description="No two servers of the sweep on one node.")


class RetentionSpec(Part):
    """What is kept once it is no longer needed."""

    keep_failed_pods: bool = Field(default=False, description="Leave the pods of failed trials for a look.")
    ttl_after_finished_seconds: Seconds | None = Field(
        default=None,
        alias="ttlAfterFinished",
        description="Children are deleted this long after the end; without it at once. Never the sweep itself.",
    )


class SweepSpec(Part):
    """What a user writes.

    Immutable but for suspend, cancel, budget, retention, plan.parallelism, plan.blocks.max and
    results.credentialsSecretRef.
    """

    model: ModelSpec = Field(description="The model that is served.")
    engines: Annotated[tuple[EngineSpec, ...], Field(min_length=1, max_length=4)] = Field(
        description="What is started: one to four engines, each with its own name."
    )
    configs: ConfigsSpec | None = Field(
        default=None, description="The server axis; without it one config per engine, as its args say."
    )
    workload: WorkloadSpec = Field(description="The load axis.")
    slo: SloSpec = Field(default_factory=SloSpec, description="What a good request keeps.")
    objective: ObjectiveSpec = Field(
        default_factory=ObjectiveSpec, description="What makes a config better than another."
    )
    plan: PlanSpec = Field(default_factory=PlanSpec, description="How the measurements are laid out.")
    budget: BudgetSpec = Field(default_factory=BudgetSpec, description="When the sweep ends early.")
    runner: RunnerSpec = Field(default_factory=RunnerSpec, description="The pod that sends the load.")
    results: ResultsSpec = Field(description="Where records, tables and the report go.")
    scheduling: SchedulingSpec = Field(default_factory=SchedulingSpec, description="How the pods are scheduled.")
    suspend: bool = Field(default=False, description="Stops after voiding the running cell; false goes on.")
    cancel: bool = Field(default=False, description="Ends the sweep for good; what was measured stays.")
    retention: RetentionSpec = Field(
        default_factory=RetentionSpec, description="What is kept once it is no longer needed."
    )
