"""Prometheus text (exposition format 0.0.4) to samples: only the wanted names are parsed at all."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

Samples = dict[str, list[Sample]]
_NAME = re.compile(r"[^{\s]*")


class ExpositionError(ValueError):
    """The text is not what a Prometheus exporter sends."""


def read_samples(text: str, wanted: AbstractSet[str]) -> Samples:
    """Samples of the wanted names. Lines of other metrics cost a look at their name: this runs beside the load.

    Raises:
        ExpositionError: a wanted line cannot be read.
    """
    samples: Samples = defaultdict(list)
    lines = "\n".join(line for line in text.splitlines() if _name(line) in wanted)
    try:
        for family in text_string_to_metric_families(lines + "\n"):
            for sample in family.samples:
                samples[sample.name].append(sample)
    except (ValueError, IndexError) as error:
        raise ExpositionError(f"a line cannot be read: {error}") from error
    return samples


def pick(samples: Samples, spellings: Iterable[str]) -> list[Sample]:
    """Samples of the first spelling that is there."""
    return next((samples[name] for name in spellings if samples.get(name)), [])


def reduce(samples: list[Sample], how: Callable[[Iterable[float]], float]) -> float | None:
    """One number over all label sets; None where there is none. NaN is an exporter's way to say unknown."""
    values = [sample.value for sample in samples if not math.isnan(sample.value)]
    return how(values) if values else None


def _name(line: str) -> str:
    match = _NAME.match(line)
    return match[0] if match else ""
