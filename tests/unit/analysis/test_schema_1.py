"""Documents that the first version of the schema wrote stay readable, and mean the same."""

from __future__ import annotations

from pathlib import Path

from goodput.analysis.schema.cell import CellDocument
from goodput.analysis.schema.sweep import SpecDocument

DATA = Path(__file__).parents[2] / "data" / "schema_1"


def test_an_early_spec_has_the_configs_and_loads_that_its_cells_are_stored_under() -> None:
    spec = SpecDocument.model_validate_json((DATA / "spec.json").read_bytes())
    cell = CellDocument.model_validate_json((DATA / "cell.json").read_bytes())
    assert cell.key.config in {config.id for config in spec.configs}
    assert cell.key.load in {load.id for load in spec.loads}
    assert (cell.key.config, cell.key.load) == (cell.config.id, cell.load.id)
    assert [load.label for load in spec.loads] == ["2048→64 @ 2/s", "2048→64 @ 4/s"]


def test_what_an_early_cell_does_not_say_is_not_known() -> None:
    cell = CellDocument.model_validate_json((DATA / "cell.json").read_bytes())
    assert cell.server is not None
    assert cell.client is not None
    assert cell.server.counts_agree is None
    assert cell.server.kv_usage_p95 is None
    assert cell.client.send_lag_max_seconds is None
    assert cell.asked.prompt_tokens_mean is None
    assert cell.asked.prefix_hit_ratio is None
    assert (cell.gpu, cell.makespan_seconds, cell.provenance.dataset) == (None, None, None)
