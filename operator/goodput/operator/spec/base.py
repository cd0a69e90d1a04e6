"""The base of the spec's models, and the small parts that several of them share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from goodput.operator.spec.scalars import ObjectName, Quantity, Text


class Part(BaseModel):
    """A frozen, strict part of the spec: camelCase outside, snake_case inside, nothing unknown let in."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        allow_inf_nan=False,
    )


#: Parts of a PodTemplateSpec (``metadata``, ``spec``), merged over what the operator renders.
PodTemplate = Annotated[
    dict[str, object],
    WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
]
NodeSelector = Annotated[dict[str, str], Field(max_length=32)]


class SecretRef(Part):
    """A Secret in the sweep's namespace."""

    name: ObjectName = Field(description="Name of the Secret, in the namespace of the sweep.")


class SecretKeyRef(Part):
    """One key of a Secret in the sweep's namespace."""

    name: ObjectName = Field(description="Name of the Secret, in the namespace of the sweep.")
    key: Text = Field(default="token", description="Key in the Secret that holds the value.")


class EnvSource(Part):
    """Where the value of an environment variable comes from."""

    secret_key_ref: SecretKeyRef = Field(description="A key of a Secret.")


class EnvVar(Part):
    """One environment variable of the server."""

    name: Text = Field(description="Name of the variable.")
    value: Annotated[str, Field(max_length=4096)] | None = Field(
        default=None, description="Its value. Leave it out where valueFrom is set."
    )
    value_from: EnvSource | None = Field(
        default=None,
        description="Takes the value from a Secret. On one machine the variable is taken from the shell.",
    )


class Resources(Part):
    """Requests and limits of a container."""

    limits: Annotated[dict[str, Quantity], Field(max_length=16)] = Field(
        default_factory=dict, description="Most that the container may use, by resource."
    )
    requests: Annotated[dict[str, Quantity], Field(max_length=16)] = Field(
        default_factory=dict, description="What the container is scheduled with, by resource."
    )


class Toleration(Part):
    """A taint that the pod tolerates, as in a PodSpec."""

    key: Text | None = Field(default=None, description="Key of the taint; without it all keys match.")
    operator: Literal["Exists", "Equal"] = Field(default="Equal", description="How the value is compared.")
    value: Annotated[str, Field(max_length=253)] | None = Field(
        default=None, description="Value of the taint, for Equal."
    )
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        default=None, description="Effect of the taint; without it all effects match."
    )
    toleration_seconds: int | None = Field(
        default=None, ge=0, description="How long the pod stays once a NoExecute taint appears."
    )


Tolerations = Annotated[tuple[Toleration, ...], Field(max_length=32)]
