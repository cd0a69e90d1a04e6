"""The comparison as Markdown (pure)."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from bench.client.measure import Load
from bench.client.results import HELD_ERROR_SECONDS, ClientResults, Results, aims, better_peers
from bench.client.score import Honesty

NONE = "–"
_WIDTH = 120


def markdown(results: Results, about: Sequence[str]) -> str:
    """The whole page; ``about``: sentences on how and where it was measured."""
    parts = [
        *about,
        "## Side by side",
        _table(_side_header(results), [_side(client, results) for client in results.clients]),
        *_missing(results),
        *_notes(results),
        "## At every number of streams",
        _table(
            (
                "client",
                "streams",
                "TTFT error p50 / p99, ms",
                "gap error p99, ms",
                "CPU µs / event",
                "held",
                "peak MiB",
            ),
            [_load_row(client.name, load) for client in results.clients for _, load in sorted(client.loads.items())],
        ),
        "## Scripted answers",
        *_scripted(results),
    ]
    if results.costs:
        parts += [
            "## CPU per event against a bare loop",
            _table(
                (
                    "streams",
                    "bare recv, µs",
                    "hot path, µs",
                    "with parsing, µs",
                    "hot ÷ bare",
                    "whole ÷ bare",
                    "spool bytes",
                ),
                [
                    (
                        f"{row.streams:,}",
                        *(f"{value:.1f}" for value in (row.bare, row.hot, row.whole)),
                        *(f"{value / row.bare:.2f}" for value in (row.hot, row.whole)),
                        f"{row.spool_bytes:.0f}",
                    )
                    for row in results.costs
                ],
            ),
        ]
    verdict = {True: "met", False: "**missed**", None: "not measured"}
    parts += [
        "## Aims",
        _table(("aim", "measured", ""), [(aim.text, aim.measured, verdict[aim.met]) for aim in aims(results)]),
        "## Where a peer is better",
        "\n".join(f"- {text}" for text in better_peers(results)) or "Nowhere in this run.",
    ]
    return "\n\n".join(parts) + "\n"


def _side_header(results: Results) -> Sequence[str]:
    return (
        "client",
        "TTFT error p50 / p99, ms",
        "gap error p99, ms",
        "CPU µs / event",
        f"streams held of {results.compared:,}",
        f"streams, errors ≤ {HELD_ERROR_SECONDS * 1e3:g} ms",
        "peak MiB",
        "failures called success",
        "successes failed",
        "streams that hang",
    )


def _side(client: ClientResults, results: Results) -> Sequence[str]:
    load = client.loads.get(results.compared)
    wrong, failed = _counts(client.honesty)
    shown = _load_cells(load) if load is not None else [NONE] * 5
    return (
        f"{client.name} {client.version}",
        *shown[:4],
        _capacity(client, results),
        shown[4],
        wrong,
        failed,
        _hanging(client.hanging),
    )


def _capacity(client: ClientResults, results: Results) -> str:
    if len(results.searched) < 2:
        return NONE
    best, ended = client.capacity(results.searched)
    if not best:
        return f"< {results.searched[0]}" if ended else NONE
    return f"{best:,}" if ended else f"≥ {best:,}"


def _counts(found: Honesty | str | None) -> tuple[str, str]:
    if isinstance(found, Honesty):
        called, failed = len(found.called_success), len(found.called_failure)
        return f"{called} of {found.failures}", f"{failed} of {found.successes}"
    return found or NONE, NONE


def _hanging(found: Honesty | str | None) -> str:
    if isinstance(found, Honesty):
        return f"ended; {len(found.called_success)} of {found.failures} called success"
    return found or NONE


def _load_row(name: str, load: Load) -> Sequence[str]:
    return name, f"{load.concurrency:,}", *_load_cells(load)


def _load_cells(load: Load) -> list[str]:
    if load.problem is not None:
        return [load.problem, NONE, NONE, NONE, _number(load.peak_mib)]
    errors = load.timing
    return [
        f"{_ms(errors.ttft_p50)} / {_ms(errors.ttft_p99)}",
        _ms(errors.gap_p99) + (" (of means)" if errors.gap_is_mean else ""),
        NONE if load.cpu_per_event is None else f"{load.cpu_per_event * 1e6:.1f}",
        _number(load.held),
        _number(load.peak_mib),
    ]


def _missing(results: Results) -> Iterator[str]:
    for name, reason in results.missing.items():
        yield f"{name}: missing here: {reason}."


def _notes(results: Results) -> Iterator[str]:
    if any(load.timing.gap_is_mean for client in results.clients for load in client.loads.values()):
        yield "“Of means”: the client records no single gaps, so only each request's mean gap can be judged."


def _scripted(results: Results) -> Iterator[str]:
    for client in results.clients:
        for kind, found in (("", client.honesty), (" of those that hang", client.hanging)):
            if isinstance(found, Honesty) and (found.called_success or found.called_failure):
                yield _names(f"**{client.name}**{kind} calls success", found.called_success)
                yield _names(f"**{client.name}**{kind} fails", found.called_failure)


def _names(what: str, names: Iterable[str]) -> str:
    return textwrap.fill(f"{what}: {'; '.join(names) or 'none'}.", _WIDTH, break_long_words=False)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _ms(seconds: float | None) -> str:
    return NONE if seconds is None else f"{seconds * 1e3:.2f}" if seconds < 0.1 else f"{seconds * 1e3:,.0f}"


def _number(value: float | None) -> str:
    return NONE if value is None else f"{value:,.0f}"
