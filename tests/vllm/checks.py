"""What must hold of every sweep of a real vLLM, whoever drove it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Row = dict[str, Any]
#: Known of a vLLM on CPU whose model is a folder: it has no GPU, no driver, no snapshot of a hub.
KNOWN = ("engine_version", "model", "torch", "node", "goodput_version")


def all_measured(cells: list[Row], planned: int) -> None:
    """Every planned cell has a valid result; server and client counted the same; nothing came from a prefix cache."""
    assert Counter((row["state"], row["reason"]) for row in cells) == {("measured", None): planned}
    for row in cells:
        assert row["evidence"] == "measured"
        assert row["load_state"] in {"stable", "saturated"}
        assert row["attempted"] > 0
        assert (row["failed"], row["incomplete"], row["not_sent"]) == (0, 0, 0)
        assert row["counts_agree"] is True
        assert 0 < row["server_requests"] <= row["client_requests"], "the client closes what is open after the window"
        assert row["server_incomplete"] is None
        assert row["prefix_reset"] == "verified", "vLLM says that it is reset, and its counters show it"
        assert row["prefix_hit_ratio"] == 0


def lengths_are_exact(document: Mapping[str, Any], requests: pa.Table) -> None:
    """Each answer has the tokens that were asked for: by its usage, and by the counters where all answers ended.

    Once the window's requests are answered the client closes what was sent after the window.
    """
    asked = (document["load"]["prompt_tokens"], document["load"]["output_tokens"])
    columns = ("token_source", "prompt_tokens", "output_tokens")
    ended = requests.filter(pc.field("outcome") == "completed")
    found = Counter(zip(*(ended[name].to_pylist() for name in columns), strict=True))
    assert found == {("continuous_usage", *asked): ended.num_rows}
    closed = requests.filter(pc.field("outcome") != "completed")
    assert not any(closed["in_window"].to_pylist())
    if closed.num_rows == 0:
        server = document["server"]
        assert sum(server["requests_finished"].values()) == ended.num_rows
        assert server["prompt_tokens"] == ended.num_rows * asked[0]
        assert server["generation_tokens"] == ended.num_rows * asked[1]


def log_is_parsed(cells: list[Row]) -> None:
    """What the CPU build's log says of a start. It names no attention backend, and on CPU no graph is captured."""
    for row in cells:
        assert row["start_seconds"] > row["init_engine_seconds"] > 0
        assert row["weights_seconds"] > 0
        assert row["kv_cache_tokens"] == 46_592, "1 GiB of this model's keys and values"
        assert row["max_concurrency"] == 22.75


def provenance_is_complete(configs: Iterable[Row], documents: Iterable[Mapping[str, Any]]) -> None:
    """What ran is known, and it is what was asked for."""
    for row in configs:
        assert [name for name in KNOWN if not row[name]] == []
        assert row["engine_version"] == "0.32.0"
        assert row["torch"].startswith("2.13.0")
        assert "vllm serve" in row["command"]
    for document in documents:
        resolved, swept = document["provenance"]["resolved"], document["config"]["swept"]
        assert swept.items() <= resolved.items()
        assert resolved["enable_prefix_caching"] == "true"
        assert int(document["server"]["kv_blocks"]) == int(resolved["num_gpu_blocks"]) > 0
