"""What of a metrics page does not change with the load: names, types, help texts, and the labels of every series."""

from __future__ import annotations

from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families


class Shape(NamedTuple):
    """Of one family: ``series`` are the sample names, each with the names of its labels."""

    kind: str
    help: str
    series: frozenset[tuple[str, tuple[str, ...]]]


def shapes(page: str) -> dict[str, Shape]:
    """By family, in the text format of Prometheus."""
    return {
        family.name: Shape(
            family.type,
            family.documentation,
            frozenset((sample.name, tuple(sorted(sample.labels))) for sample in family.samples),
        )
        for family in text_string_to_metric_families(page)
    }
