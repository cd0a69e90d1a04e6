"""Every reason a trial, a cell or a sweep can end with: what follows from it, and what a person can do.

One table for both drivers, the planner, status, events and docs. Sources: DESIGN §9 (failing); the start-up
texts of vLLM 0.32; Kubernetes pod conditions and container states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["deterministic", "transient", "disruption", "interruption", "budget", "sweep"]
"""deterministic: the config fails for the whole sweep, no retry. transient: uses one of ``plan.retries``.
disruption: a new attempt that is not counted. interruption: ended by the user. budget, sweep: of the sweep,
never of a trial."""


@dataclass(frozen=True)
class Reason:
    """One reason: ``memory`` says what other configs it rules out (`plan.pruning`)."""

    name: str
    kind: Kind
    text: str
    fix: str
    memory: Literal["oom", "kv"] | None = None


def _table(*reasons: Reason) -> dict[str, Reason]:
    return {reason.name: reason for reason in reasons}


def _deterministic(name: str, text: str, fix: str, memory: Literal["oom", "kv"] | None = None) -> Reason:
    return Reason(name, "deterministic", text, fix, memory)


REASONS = _table(
    _deterministic("InvalidServerArgs", "the server refused its flags", "correct the flag that the message names"),
    _deterministic("ImagePullFailed", "the image cannot be pulled", "check name, tag and pull secret"),
    _deterministic(
        "ContainerConfigError",
        "the container cannot be created",
        "create the Secret, ConfigMap key or volume that the message names",
    ),
    _deterministic(
        "UnschedulableStructural",
        "no node can ever take the pod",
        "check nodeSelector, tolerations and resource names against the nodes",
    ),
    _deterministic(
        "PodRefused", "the cluster refuses the pod", "fit the pod to Pod Security, LimitRange and admission rules"
    ),
    _deterministic(
        "HostOutOfMemory", "the server ran out of host memory", "raise resources.limits.memory or ask for less", "oom"
    ),
    _deterministic(
        "CudaOutOfMemory",
        "the server ran out of GPU memory",
        "lower max_num_batched_tokens, max_num_seqs, max_model_len or gpu_memory_utilization",
        "oom",
    ),
    _deterministic(
        "KvCacheTooSmall",
        "the KV cache cannot hold one request of max_model_len",
        "lower max_model_len or max_num_batched_tokens, or raise gpu_memory_utilization",
        "kv",
    ),
    _deterministic(
        "ServerMismatch",
        "the server is not what was asked for",
        "compare the flags, the image and the model that the message names",
    ),
    _deterministic("ModelUnavailable", "the server cannot get the model", "check model.name, revision and token"),
    _deterministic(
        "TlsUntrusted",
        "the server's certificate is of no trusted authority",
        "give its authority in engines[].external.caSecretRef",
    ),
    _deterministic(
        "TlsHostname",
        "the server's certificate is for another host",
        "write the host that the certificate names in engines[].external.url",
    ),
    _deterministic("TlsExpired", "the server's certificate is not valid now", "renew it on the server"),
    _deterministic("TlsFailed", "no TLS connection to the server", "correct engines[].external.url"),
    _deterministic(
        "KeyRefused", "the server does not take the API key", "correct the key of engines[].external.apiKeySecretRef"
    ),
    _deterministic("KeyExpired", "the API key has expired", "put a new key into engines[].external.apiKeySecretRef"),
    _deterministic("NotOpenAi", "the address is no OpenAI endpoint", "correct engines[].external.url, without /v1"),
    _deterministic("RequestRefused", "the server refuses the planned requests", "read runner.log and server.log"),
    _deterministic(
        "RequestsTooLong",
        "prompt and output do not fit the server's max_model_len",
        "raise max_model_len, or shorten promptTokens or outputTokens",
    ),
    _deterministic("InvalidTarget", "the server's address cannot be loaded", "give an http:// or https:// address"),
    _deterministic("NoPrompts", "no prompts of the planned lengths", "check promptTokens and workload.tokenIdRange"),
    _deterministic("NoSchedule", "the trace ends before the window does", "shorten the window or lower the speed"),
    _deterministic("InvalidDataset", "the dataset cannot be used", "correct the line that the message names"),
    _deterministic("NoTokenIds", "no token ids for prompts", "set workload.tokenIdRange"),
    _deterministic("InvalidPlan", "the runner cannot read its plan", "use runner and operator of one version"),
    Reason("WaitingForCapacity", "transient", "no free node in time", "add capacity or lower parallelism"),
    Reason("QuotaExceeded", "transient", "the namespace's quota is used up", "raise the quota or lower parallelism"),
    Reason("VolumeNotReady", "transient", "a volume could not be mounted in time", "check the claim and its class"),
    Reason(
        "GpuMemoryBusy",
        "transient",
        "other processes hold the GPU's memory",
        "end them, or lower gpu_memory_utilization",
    ),
    Reason("EngineDead", "transient", "the engine died", "read server.log; look at the GPU's health"),
    Reason("Unreachable", "transient", "the external server cannot be reached", "correct engines[].external.url"),
    Reason("ServerRestarted", "transient", "the server restarted while it was measured", "read server.log"),
    Reason("ServerGone", "transient", "the server ended or went away", "read server.log and events"),
    Reason("StartupTimeout", "transient", "the server was not ready in time", "raise engines[].startupTimeout"),
    Reason("RunnerFailed", "transient", "the runner ended without a result", "read runner.log"),
    Reason("TrialDeadline", "transient", "the trial took longer than planned", "read runner.log and server.log"),
    Reason("ClientSaturated", "transient", "the load client was too slow", "raise spec.runner.resources"),
    Reason("ClientShort", "transient", "fewer requests were sent than planned", "raise spec.runner.resources"),
    Reason("ScheduleLag", "transient", "requests left later than planned", "give the runner CPUs of its own"),
    Reason("NotIdle", "transient", "the server did not become idle between loads", "read server.log"),
    Reason("CacheNotReset", "transient", "the prefix cache could not be reset", "read server.log"),
    Reason("PrefixHit", "transient", "prompts were found in the prefix cache", "let nobody else use the server"),
    Reason("PromptDrift", "transient", "prompts were not as long as planned", "use the completions endpoint"),
    Reason("CounterReset", "transient", "a counter of the server went back", "read server.log"),
    Reason("NoWindow", "transient", "the window did not open in time", "read runner.log and server.log"),
    Reason("ClockStep", "transient", "the clock was changed while measuring", "let the clock slew, not step"),
    Reason("MetricsGap", "transient", "the server's metrics could not be read", "check network policies"),
    Reason("SpoolFull", "transient", "no room for the records", "give the runner more ephemeral storage"),
    Reason("DatasetUnreadable", "transient", "the dataset could not be read", "check workload.datasetUri"),
    Reason("StoreUnreachable", "transient", "the object store cannot be reached", "check results.uri and endpoint"),
    Reason("NoSuchBucket", "transient", "the bucket does not exist", "create it, or correct results.uri"),
    Reason(
        "UploadDenied",
        "transient",
        "the object store refused the records",
        "give the runner's identity leave to write below results.uri",
    ),
    Reason(
        "ConditionalCreateIgnored",
        "transient",
        "the store lets a second writer replace a record",
        "use a store that honours If-None-Match",
    ),
    Reason("SpecConflict", "transient", "the results folder holds another spec", "use another name or results.uri"),
    Reason("PortInUse", "disruption", "another process took a port of the server", "nothing: another port is tried"),
    Reason("Evicted", "disruption", "the pod was evicted", "protect the node while the sweep runs"),
    Reason("Preempted", "disruption", "the pod was preempted", "raise scheduling.priorityClassName"),
    Reason("NodeLost", "disruption", "the node went away", "look at the node"),
    Reason("RunnerLost", "disruption", "the runner's pod was replaced mid-trial", "protect the runner's node"),
    Reason("RunnerStopped", "disruption", "the runner was told to stop", "protect the runner's node"),
    Reason("Suspended", "interruption", "the sweep was suspended", "set spec.suspend to false"),
    Reason("Cancelled", "interruption", "the sweep was cancelled", "create it anew"),
    Reason("BudgetDeadline", "budget", "budget.deadline has passed", "raise budget.deadline"),
    Reason("BudgetMaxTrials", "budget", "budget.maxTrials is used up", "raise budget.maxTrials"),
    Reason("BudgetMaxGpuHours", "budget", "budget.maxGpuHours is used up", "raise budget.maxGpuHours"),
    Reason("MaxFailedConfigs", "budget", "more configs failed than allowed", "look at lastError; raise the limit"),
    Reason("Finishing", "budget", "the sweep was already finishing", "create it anew"),
    Reason("SpecRefused", "sweep", "the spec cannot be run", "correct the field that the message names"),
    Reason("PreflightRefused", "sweep", "the preflight check failed", "read the message: nothing was started"),
    Reason("AnalysisFailed", "sweep", "tables and report could not be written", "run `goodput analyze URI`"),
    Reason("NoValidCell", "sweep", "nothing could be measured", "look at lastError and the trials' logs"),
    Reason("CellsMissing", "sweep", "some cells have no result", "tables/cells says which and why"),
    Reason("AllMeasured", "sweep", "every planned cell was measured or pruned", ""),
)

PRUNED_BY = "PrunedBy:"
"""Prefix of the reason of a cell whose config needs more memory than one that ran out of it."""


def kind(name: str) -> Kind:
    """What follows from a reason; one that is not in the table is treated as transient."""
    reason = REASONS.get(name)
    return reason.kind if reason else "transient"


def text(name: str) -> str:
    """A reason in words with what to do, for messages; empty for one that is not in the table."""
    reason = REASONS.get(name)
    if reason is None:
        return ""
    return f"{reason.text}: {reason.fix}" if reason.fix else reason.text
