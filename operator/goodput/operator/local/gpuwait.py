"""A GPU's memory is free again before the next server starts: a process that ended may hold it for a moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from goodput.operator.local.gpus import Gpu, gpus
from goodput.operator.observed import Failure

DEADLINE_SECONDS = 60.0
LOOK_SECONDS = 1.0
SLACK_MIB = 256.0
"""What a driver may hold more than before; a server that has not gone holds gigabytes."""


@dataclass
class GpuWait:
    """Waits for the memory in use to be what it was before the sweep's first server.

    Attributes:
        before: MiB in use by UUID, before the first server of this run. What others hold then is theirs.
        count: GPUs that the server will have; the first ones.
    """

    before: Mapping[str, float]
    count: int
    look: Callable[[], Sequence[Gpu]] = gpus
    clock: Callable[[], float] = time.monotonic
    _since: float | None = field(default=None, init=False)
    _seen: float | None = field(default=None, init=False)
    _busy: str = field(default="", init=False)

    def busy(self) -> Failure | None:
        """Which GPU is not free yet, looked at once a second; None: go."""
        now = self.clock()
        self._since = now if self._since is None else self._since
        if self._seen is None or now - self._seen >= LOOK_SECONDS:
            self._seen, self._busy = now, self._held()
        return Failure("GpuMemoryBusy", self._busy) if self._busy else None

    @property
    def expired(self) -> bool:
        """It was waited for long enough."""
        return self._since is not None and self.clock() - self._since >= DEADLINE_SECONDS

    def _held(self) -> str:
        for gpu in self.look()[: self.count] if self.count else ():
            before = self.before.get(gpu.uuid, 0.0)
            if gpu.used_mib > before + SLACK_MIB:
                return f"GPU {gpu.index} has {gpu.used_mib:.0f} MiB in use, {before:.0f} before the first server"
        return ""
