"""What is started: the model and the engines."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from goodput.operator.spec.base import (
    EnvVar,
    NodeSelector,
    Part,
    PodTemplate,
    Resources,
    SecretKeyRef,
    Tolerations,
)
from goodput.operator.spec.scalars import SERVER_PATTERN, FlagValue, ObjectName, Quantity, Seconds, ShortName, Text

Flags = Annotated[dict[str, FlagValue], Field(max_length=64)]


class CacheCreate(Part):
    """A PersistentVolumeClaim that the operator creates."""

    size: Quantity = Field(description="Size of the volume, such as 100Gi.")
    storage_class_name: ObjectName | None = Field(
        default=None, description="Its StorageClass; without it the cluster's default."
    )


class ModelCache(Part):
    """Where the model's files are kept between server starts."""

    claim_name: ObjectName | None = Field(
        default=None,
        description="An existing PersistentVolumeClaim, mounted at /models; model.name may be a path in it.",
    )
    create: CacheCreate | None = Field(default=None, description="A claim that the operator creates.")
    offline: bool = Field(default=False, description="Never ask a model hub: every file must be in the cache already.")


class ModelSpec(Part):
    """The model that is served."""

    name: Text = Field(description="Name on the model hub, or a path that the server can read.")
    revision: Text | None = Field(
        default=None, description="Branch, tag or commit of the model; fix it to make results repeatable."
    )
    served_name: Text | None = Field(default=None, description="Name that requests use; without it the model's name.")
    cache: ModelCache | None = Field(default=None, description="Keeps the model's files between starts.")
    token_secret_ref: SecretKeyRef | None = Field(
        default=None, description="Token for the model hub, given to the server as HF_TOKEN."
    )

    @property
    def served(self) -> str:
        """The name that requests use."""
        return self.served_name or self.name


class CompileCache(Part):
    """Whether servers share what they compiled."""

    mode: Literal["none", "prime", "shared"] = Field(
        default="none",
        description="none: every start compiles anew. shared: all servers use the claim. prime: the same, and before "
        "the first block one unmeasured start per distinct compile key fills it, so that all measured starts are warm.",
    )
    claim_name: ObjectName | None = Field(
        default=None,
        description="The PersistentVolumeClaim that holds the cache, for prime and shared. "
        "On one machine prime uses the sweep's state folder.",
    )


class External(Part):
    """A server that runs already and is not started by the sweep."""

    url: Annotated[str, Field(max_length=2048, pattern=SERVER_PATTERN)] = Field(
        description="Base URL of the server, without /v1. Proxies are not used."
    )
    api_key_secret_ref: SecretKeyRef | None = Field(
        default=None,
        description="Key sent as a bearer token. On one machine it is the value of the variable GOODPUT_<NAME>_<KEY>.",
    )
    ca_secret_ref: SecretKeyRef | None = Field(
        default=None,
        description="Certificate authority to trust in place of the system's, as PEM. On one machine the variable "
        "GOODPUT_<NAME>_<KEY> holds the file's path.",
    )


class GpuMetrics(Part):
    """Where clocks, power and temperature of the GPUs can be read."""

    url: Annotated[str, Field(max_length=2048, pattern="^https?://.+")] = Field(
        description="Metrics page of a DCGM exporter, e.g. http://{node}:9400/metrics; {node} is the server's node."
    )


class EngineSpec(Part):
    """One engine: what is started, with which base flags, where. Its name is part of every config's id."""

    name: ShortName = Field(description="Name of the engine in configs, tables and plots.")
    kind: Literal["vllm", "transformers", "simulated", "external"] = Field(
        description="What is started: vllm (a vLLM server), simulated (a model of vLLM's scheduler; its "
        "results are synthetic), transformers (the sequential baseline: Transformers' generate(), one request at a "
        "time), external (a server that runs already)."
    )
    image: Text | None = Field(
        default=None,
        description="Container image of the server. simulated: without it the operator's own. Not used on one machine.",
    )
    args: Flags = Field(
        default_factory=dict,
        description="Flags of the server by snake_case name, for all configs of this engine. Booleans and "
        'decimals are quoted: "true" gives --flag, "false" gives --no-flag.',
    )
    env: Annotated[tuple[EnvVar, ...], Field(max_length=64)] = Field(
        default=(), description="Environment variables of the server."
    )
    resources: Resources = Field(
        default_factory=Resources,
        description="Resources of the server's container. Without a GPU count, vllm gets as many as tensor, "
        "pipeline and data parallel size need; write nvidia.com/gpu: 0 for a server on CPU.",
    )
    node_selector: NodeSelector = Field(default_factory=dict, description="Labels of nodes it may run on.")
    tolerations: Tolerations = Field(default=(), description="Taints that the server's pod tolerates.")
    runtime_class_name: ObjectName | None = Field(default=None, description="RuntimeClass of the server's pod.")
    pod_template: PodTemplate | None = Field(
        default=None,
        description="Parts of a PodTemplateSpec, merged over the server's pod. The server's container is "
        "called server. Privileges, host namespaces, hostPath and other ServiceAccounts are refused.",
    )
    startup_timeout_seconds: Seconds = Field(
        default=1200.0,
        alias="startupTimeout",
        description="Time from the pod's creation until the server must be ready, image pull included.",
    )
    compile_cache: CompileCache = Field(
        default_factory=CompileCache, description="Whether servers share what they compiled."
    )
    profile: Text | None = Field(
        default=None,
        description="simulated: name of a step-time profile, or path of a YAML file; without it teaching.",
    )
    external: External | None = Field(default=None, description="external: where the server is.")
    gpu_metrics: GpuMetrics | None = Field(
        default=None,
        description="GPU metrics of the window for the records. An exporter that cannot be read is a warning.",
    )

    @property
    def loads_model(self) -> bool:
        """A server that we start reads the model's files."""
        return self.kind in ("vllm", "transformers")
