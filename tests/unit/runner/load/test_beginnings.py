from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.analysis.schema.planned import Load
from goodput.runner.contract import PlannedLoad
from goodput.runner.load.beginnings import Beginnings
from goodput.runner.load.bodies import Bodies, Entries
from goodput.runner.load.errors import PromptError
from goodput.runner.load.job import BODIES, ENTRIES
from goodput.runner.load.lengths import PlannedLengths
from goodput.runner.load.prepare import Prepared, write_requests
from goodput.runner.load.prompts import FittedText, RandomIds, SharedPrefixIds
from goodput.runner.load.schedule import draw

prompts = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=70), max_size=12)


def as_bytes(ids: list[int]) -> bytes:
    return np.array(ids, dtype="<u4").tobytes()


@given(prompts)
def test_shared_is_the_longest_common_beginning_in_whole_blocks(prompts: list[list[int]]) -> None:
    """Against the plain definition: compared with every earlier prompt."""
    seen = Beginnings()
    for number, ids in enumerate(prompts):
        common = 0
        for earlier in prompts[:number]:
            same = [here == there for here, there in zip(ids, earlier, strict=False)]
            common = max(common, same.index(False) if False in same else len(same))
        expected = min(common // 16, (len(ids) - 1) // 16) * 16
        assert seen.shared(as_bytes(ids)) == expected


def test_a_prompt_computes_at_least_its_last_token() -> None:
    seen = Beginnings()
    assert [seen.shared(as_bytes([1] * 32)) for _ in range(2)] == [0, 16]
    assert seen.shared(as_bytes([1] * 33)) == 32


def shared_load(groups: int = 3, tokens: int = 40) -> PlannedLoad:
    load = Load(
        prompt_tokens=100,
        output_tokens=4,
        arrival="constant",
        request_rate=20,
        window_seconds=5,
        prefix_groups=groups,
        prefix_tokens=tokens,
    )
    return PlannedLoad(load=load, seed=5, lead_in_seconds=0, drain_seconds=2)


def write(planned: PlannedLoad, folder: Path, groups: int) -> Prepared:
    rest, prefixes = RandomIds(range(30_000), 5), RandomIds(range(30_000), 5, "prefixes")
    source = SharedPrefixIds(rest, prefixes, 5, groups=groups, tokens=40)
    lengths = PlannedLengths(planned.load, 5)
    return write_requests(planned, draw(planned), source, lengths, endpoint="completions", model="m", folder=folder)


def shared(folder: Path, prepared: Prepared, count: int) -> list[int]:
    entries = Entries(folder / ENTRIES, prepared.first_recycled)
    found = [entries.at(index)[0].shared_tokens for index in range(count)]
    entries.close()
    return found


def test_groups_share_their_prefix_and_the_plan_knows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goodput.runner.load.prepare.SPARE_BYTES", 2000)
    prepared = write(shared_load(), tmp_path, 3)
    bodies = Bodies(tmp_path / BODIES, tmp_path / ENTRIES, prepared.first_recycled)
    sent = [bodies.body(index) for index in range(140)]
    bodies.close()
    found = [json.loads(body)["prompt"] for body in sent]
    assert {len(ids) for ids in found} == {100}
    assert len({tuple(ids[:40]) for ids in found}) == 3, "those sent again keep their prefix"
    assert len({tuple(ids[40:56]) for ids in found}) == 140
    assert sorted(shared(tmp_path, prepared, 100)) == [0] * 3 + [32] * 97, (
        "two whole blocks of the 40 tokens; the first of each group misses"
    )


def test_a_chat_shares_the_head_of_its_template(tmp_path: Path) -> None:
    planned = shared_load()
    load = planned.load.model_copy(update={"prefix_groups": None, "prefix_tokens": None})
    plain = planned.model_copy(update={"load": load})
    source = FittedText(RandomIds(range(30_000), 5), lambda ids, _: " ".join(map(str, ids)), head_tokens=24)
    lengths = PlannedLengths(load, 5)
    prepared = write_requests(plain, draw(plain), source, lengths, endpoint="chat", model="m", folder=tmp_path)
    assert shared(tmp_path, prepared, 4) == [0, 24, 24, 24]


def test_more_sharing_than_planned_is_refused(tmp_path: Path) -> None:
    planned = shared_load()
    less = planned.model_copy(update={"load": planned.load.model_copy(update={"prefix_tokens": 20})})
    with pytest.raises(PromptError, match="begins like an earlier one"):
        write(less, tmp_path, 3)
