"""Which GPUs a server has: from the labels of a DCGM exporter's page. Names: as dcgm-exporter labels its samples."""

from __future__ import annotations

from goodput.analysis.schema.provenance import GpuFacts
from goodput.runner.exposition import ExpositionError, read_samples

FREE, USED = "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_USED"  # MiB
_NAMES = frozenset({FREE, USED, "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_POWER_USAGE"})
_MIB_PER_GIB = 1024


def gpus_of_pod(text: str, pod: str | None) -> tuple[GpuFacts, ...]:
    """The GPUs that the page says belong to a pod; where it names no pods, the only one there is.

    Which of several GPUs a server has is not guessed.
    """
    try:
        samples = [sample for found in read_samples(text, _NAMES).values() for sample in found]
    except ExpositionError:
        return ()
    labels = {sample.labels.get("UUID", ""): sample.labels for sample in samples}
    pods = {uuid: _pod(each) for uuid, each in labels.items()}
    mine = {uuid for uuid, name in pods.items() if name and name == pod}
    if not any(pods.values()) and len(labels) == 1:
        mine = set(labels)
    memory: dict[str, float] = {}
    for sample in samples:
        if sample.name in (FREE, USED):
            uuid = sample.labels.get("UUID", "")
            memory[uuid] = memory.get(uuid, 0.0) + sample.value
    return tuple(
        GpuFacts(
            uuid=uuid or None,
            name=labels[uuid].get("modelName"),
            driver=labels[uuid].get("DCGM_FI_DRIVER_VERSION"),
            memory_gib=memory[uuid] / _MIB_PER_GIB if uuid in memory else None,
        )
        for uuid in sorted(mine)
    )


def _pod(labels: dict[str, str]) -> str:
    return labels.get("exported_pod") or labels.get("pod") or ""
