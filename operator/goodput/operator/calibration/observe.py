"""A cell's records as the calibration wants them, or why they are of no use to it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from pydantic import ValidationError

from goodput.analysis.metrics import request_metrics
from goodput.analysis.schema.cell import CellDocument
from goodput.analysis.schema.planned import Load
from goodput.engines.calibration.cells import NS, ObservedCell, means_of
from goodput.engines.simulated.config import CacheConfig, EngineConfig, SchedulerConfig
from goodput.engines.simulated.tokens import DEFAULT_VOCAB_SIZE
from goodput.engines.simulated.virtual import Arrival

#: A cell whose prompts are found in the cache more often than this is not replayed: the records hold no prompts.
MOST_PREFIX_HITS = 0.02
_NEEDED = ("max_num_batched_tokens", "max_num_seqs", "max_model_len")


class UnusableCellError(Exception):
    """The cell cannot be replayed; the message says why."""


def name_of(document: CellDocument) -> str:
    """Config, load and block, as the tables name them."""
    return f"{document.config.label}, {document.load.label}, block {document.key.block}"


def observe(document: CellDocument, table: pa.Table) -> ObservedCell:
    """The requests that were sent, when they were sent, and the means of those that are judged.

    Raises:
        UnusableCellError: too little is known, or the simulator does not model it.
    """
    hits = document.server.prefix_hit_ratio if document.server else None
    if hits is not None and hits > MOST_PREFIX_HITS:
        raise UnusableCellError(
            f"{hits:.0%} of the prompt tokens came from the prefix cache, and records hold no prompts"
        )
    config = _engine(document)
    metrics = request_metrics(table)
    judged = metrics.completed & ~np.isnan(metrics.ttft_s)
    if not judged.any():
        raise UnusableCellError("no request of the window completed")
    means = means_of(metrics.ttft_s[judged], metrics.e2e_s[judged], metrics.output_tokens[judged])
    rows = [
        (arrival, bool(judged[index]))
        for index, row in enumerate(table.select(["sent_s", "prompt_tokens", "output_tokens", "outcome"]).to_pylist())
        if (arrival := _arrival(row, document.load)) is not None
    ]
    rows.sort(key=lambda row: row[0].arrival_ns)
    longest = max(arrival.prompt_tokens + arrival.output_tokens for arrival, _ in rows)
    if longest > min(config.scheduler.max_model_len, config.cache.num_usable_blocks * config.cache.block_size):
        raise UnusableCellError(f"a request of {longest} tokens does not fit the engine")
    return ObservedCell(name_of(document), config, [row[0] for row in rows], [row[1] for row in rows], means)


def _arrival(row: Mapping[str, object], load: Load) -> Arrival | None:
    """None where it was never sent or its lengths are not known."""
    sent, prompt, output = row["sent_s"], row["prompt_tokens"] or load.prompt_tokens, row["output_tokens"]
    if row["outcome"] != "completed":
        output = load.output_tokens or output
    if not isinstance(sent, float) or not isinstance(prompt, int) or not isinstance(output, int) or output < 1:
        return None
    return Arrival(round(sent * NS), prompt, output)


def _engine(document: CellDocument) -> EngineConfig:
    known = {**document.config.flags, **document.provenance.resolved}
    server = document.server
    blocks = server.kv_blocks if server and server.kv_blocks else _int(known, "num_gpu_blocks")
    limits = {name: value for name in _NEEDED if (value := _int(known, name)) is not None}
    if missing := [name for name in _NEEDED if name not in limits]:
        raise UnusableCellError(f"the server did not say its {', '.join(missing)}")
    if blocks is None:
        raise UnusableCellError("the server did not say how many KV blocks it has")
    model = document.provenance.model or document.config.engine
    try:
        return EngineConfig(
            model=model,
            served_model_name=model,
            scheduler=SchedulerConfig(
                max_num_batched_tokens=limits["max_num_batched_tokens"],
                max_num_seqs=limits["max_num_seqs"],
                max_model_len=limits["max_model_len"],
                enable_chunked_prefill=known.get("enable_chunked_prefill", "true").lower() == "true",
                long_prefill_token_threshold=_int(known, "long_prefill_token_threshold") or 0,
            ),
            cache=CacheConfig(
                block_size=(server.block_size if server else None) or _int(known, "block_size") or 16,
                num_gpu_blocks=blocks,
            ),
            vocab_size=DEFAULT_VOCAB_SIZE,
        )
    except ValidationError as error:
        raise UnusableCellError(f"its config is none that the simulator knows: {error}") from error


def _int(known: Mapping[str, str], name: str) -> int | None:
    text = known.get(name, "")
    return int(text) if text.isdigit() else None
