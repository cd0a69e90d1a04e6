"""Clocks, power, temperature and throttling of the GPUs, from a DCGM exporter; nice to have, voids nothing.

Names: DCGM's field identifiers as dcgm-exporter exposes them; ``CLOCK_THROTTLE_REASONS`` became
``CLOCKS_EVENT_REASONS`` in DCGM 3.3. Reasons are bits of NVML's mask. A value that DCGM could not read is
exported as a huge "blank" number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean

import httpx
from pydantic import Field

from goodput.analysis.schema.base import Document
from goodput.analysis.schema.server import GpuColumns, Spread
from goodput.runner.errors import ServerGoneError
from goodput.runner.exposition import ExpositionError, pick, read_samples
from goodput.runner.page import Page, get_page

INTERVAL_SECONDS = 1.0
TIMEOUT_SECONDS = 2.0
GAUGES = {
    "sm_clock_mhz": ("DCGM_FI_DEV_SM_CLOCK",),
    "memory_clock_mhz": ("DCGM_FI_DEV_MEM_CLOCK",),
    "power_watts": ("DCGM_FI_DEV_POWER_USAGE",),
    "temperature_celsius": ("DCGM_FI_DEV_GPU_TEMP",),
}
VIOLATIONS = {
    "power": ("DCGM_FI_DEV_POWER_VIOLATION",),
    "thermal": ("DCGM_FI_DEV_THERMAL_VIOLATION",),
    "board_limit": ("DCGM_FI_DEV_BOARD_LIMIT_VIOLATION",),
    "reliability": ("DCGM_FI_DEV_RELIABILITY_VIOLATION",),
    "sync_boost": ("DCGM_FI_DEV_SYNC_BOOST_VIOLATION",),
}
REASONS = ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS")
BITS = {
    0x2: "application_clocks",
    0x4: "software_power_cap",
    0x8: "hardware_slowdown",
    0x10: "sync_boost",
    0x20: "software_thermal",
    0x40: "hardware_thermal",
    0x80: "power_brake",
}
"""Being idle (0x1) and driving a display (0x100) slow nobody down."""
_BLANK = 2147483632.0  # DCGM_INT32_BLANK and above; counters are 64 bits wide
_BLANK_COUNTER = 9.2e18  # just below DCGM_INT64_BLANK
_FIELDS = {**GAUGES, **VIOLATIONS, "reasons": REASONS}
_WANTED = frozenset(name for names in _FIELDS.values() for name in names)


class GpuSample(Document):
    """One look at the exporter: quantity → GPU's UUID → value."""

    stamp: float  # CLOCK_MONOTONIC seconds
    problem: str | None = None
    values: dict[str, dict[str, float]] = Field(default_factory=dict)


class GpuReader:
    """Reads an exporter's page over a connection of its own."""

    def __init__(self, url: str, clock: Callable[[], float]) -> None:
        self._url, self._clock = url, clock
        self._client = httpx.Client(timeout=TIMEOUT_SECONDS, trust_env=False)

    def read(self) -> GpuSample:
        """A sample; what goes wrong is its problem."""
        try:
            page = get_page(self._client, self._url, timeout_seconds=TIMEOUT_SECONDS)
        except ServerGoneError as error:
            page = Page(problem=str(error))
        except (httpx.InvalidURL, ValueError) as error:
            page = Page(problem=f"{self._url}: {error}")
        stamp = self._clock()
        return GpuSample(stamp=stamp, problem=page.problem) if page.problem else parse_gpu(page.text, stamp)

    def close(self) -> None:
        """Close its connection."""
        self._client.close()


def parse_gpu(text: str, stamp: float) -> GpuSample:
    """Read an exporter's text."""
    try:
        samples = read_samples(text, _WANTED)
    except ExpositionError as error:
        return GpuSample(stamp=stamp, problem=str(error))
    values: dict[str, dict[str, float]] = {}
    for field, names in _FIELDS.items():
        blank = _BLANK_COUNTER if field in VIOLATIONS else _BLANK
        known = {
            sample.labels.get("UUID") or sample.labels.get("gpu", ""): sample.value
            for sample in pick(samples, names)
            if sample.value < blank
        }
        if known:
            values[field] = known
    return GpuSample(stamp=stamp, values=values, problem=None if values else "no DCGM metrics on the page")


def gpu_columns(
    samples: Sequence[GpuSample], window: tuple[float, float] | None, uuids: frozenset[str] = frozenset()
) -> GpuColumns:
    """The window's columns.

    Args:
        samples: of the whole cell.
        window: its beginning and end, CLOCK_MONOTONIC seconds.
        uuids: of the server's GPUs; empty: not known, so all that the exporter shows.
    """
    inside = [each for each in samples if window is not None and window[0] <= each.stamp <= window[1]]
    good = [each for each in inside if each.problem is None]

    def series(field: str) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for sample in good:
            for uuid, value in sample.values.get(field, {}).items():
                if not uuids or uuid in uuids:
                    found.setdefault(uuid, []).append(value)
        return found

    problem = next((each.problem for each in reversed(inside) if each.problem), "no sample in the window")
    gauges = {field: _spread(series(field)) for field in GAUGES}
    seen = sorted({uuid for field in _FIELDS for uuid in series(field)})
    return GpuColumns(
        reason=None if seen else problem if not good else "none of the server's GPUs is on the page",
        gpus=tuple(seen),
        samples=len(good),
        **gauges,
        violations={field: delta for field in VIOLATIONS if (delta := _delta(series(field))) is not None},
        throttled=_throttled(series("reasons")),
    )


def _spread(series: dict[str, list[float]]) -> Spread | None:
    values = [value for each in series.values() for value in each]
    return Spread(mean=fmean(values), min=min(values), max=max(values), samples=len(values)) if values else None


def _delta(series: dict[str, list[float]]) -> float | None:
    """Rise of a counter from the first to the last sample, over all GPUs; None where it went back."""
    deltas = [each[-1] - each[0] for each in series.values() if len(each) > 1]
    return sum(deltas) if deltas and min(deltas) >= 0 else None


def _throttled(series: dict[str, list[float]]) -> dict[str, int] | None:
    """Samples by reason; None where the exporter does not say."""
    if not series:
        return None
    masks = [int(value) for each in series.values() for value in each]
    counts = Counter(name for mask in masks for bit, name in BITS.items() if mask & bit)
    return dict(sorted(counts.items()))
