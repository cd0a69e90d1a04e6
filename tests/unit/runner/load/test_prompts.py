from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.analysis.schema.planned import Load
from goodput.runner.contract import PlannedLoad
from goodput.runner.load.bodies import Bodies, Entries, rotated
from goodput.runner.load.errors import PromptError
from goodput.runner.load.job import BODIES, ENTRIES
from goodput.runner.load.lengths import PlannedLengths
from goodput.runner.load.prepare import Prepared, write_requests
from goodput.runner.load.prompts import BodyWriter, FittedText, Ids, PromptSource, RandomIds
from goodput.runner.load.schedule import draw


def plan(rate: float = 20, prompt_tokens: int = 32, lead_in: float = 1) -> PlannedLoad:
    load = Load(
        prompt_tokens=prompt_tokens,
        output_tokens=7,
        arrival="constant",
        request_rate=rate,
        window_seconds=2,
    )
    return PlannedLoad(load=load, seed=5, lead_in_seconds=lead_in, drain_seconds=3)


def write(planned: PlannedLoad, source: PromptSource, folder: Path) -> Prepared:
    lengths = PlannedLengths(planned.load, planned.seed)
    schedule = draw(planned)
    return write_requests(planned, schedule, source, lengths, endpoint="completions", model="m", folder=folder)


@given(seed=st.integers(0, 2**63 - 1), n=st.integers(1, 300), index=st.integers(0, 10**6))
def test_prompts_are_exact_and_a_function_of_seed_and_index(seed: int, n: int, index: int) -> None:
    ids = RandomIds(range(100, 2000), seed).ids(n, index)
    assert len(ids) == n
    assert ids.min() >= 100
    assert ids.max() < 2000
    assert ids.tolist() == RandomIds(range(100, 2000), seed).ids(n, index).tolist()


def test_prompts_come_from_the_pool_only() -> None:
    pool = [3, 17, 40, 99]
    ids = RandomIds(pool, 1).ids(1000, 0)
    assert set(ids.tolist()) == set(pool)
    with pytest.raises(PromptError, match="at least two"):
        RandomIds([3], 1)


def test_no_two_prompts_share_their_first_block() -> None:
    source = RandomIds(range(1000), 3)
    beginnings = {tuple(source.ids(64, index)[:16].tolist()) for index in range(3000)}
    assert len(beginnings) == 3000


def test_the_request_file_gives_back_what_was_drawn(tmp_path: Path) -> None:
    source = RandomIds(range(1000), 3)
    prepared = write(plan(), source, tmp_path)
    assert prepared.count == 120  # lead-in 20, window 40, tail 60
    bodies = Bodies(tmp_path / BODIES, tmp_path / ENTRIES, prepared.first_recycled)
    for index in (0, 59, 119):
        document = json.loads(bodies.body(index))
        assert document["prompt"] == source.ids(32, index).tolist()
        assert document["max_tokens"] == 7
        entry, _ = Entries(tmp_path / ENTRIES, prepared.first_recycled).at(index)
        assert (entry.prompt_tokens, entry.output_tokens, entry.shared_tokens) == (32, 7, 0)
    bodies.close()


def test_the_prompts_hash_covers_lead_in_and_window(tmp_path: Path) -> None:
    source = RandomIds(range(1000), 3)
    prepared = write(plan(), source, tmp_path)
    expected = hashlib.sha256()
    for index in range(60):
        expected.update((128).to_bytes(4, "little") + source.ids(32, index).astype("<u4").tobytes())
    assert prepared.prompts_sha256 == expected.hexdigest()


def test_a_pool_that_is_too_small_is_refused(tmp_path: Path) -> None:
    class Same:
        def ids(self, n: int, index: int) -> Ids:  # noqa: ARG002 (that is what is wrong with it)
            return np.arange(n, dtype=np.int64)

    with pytest.raises(PromptError, match="prompt 1 begins like an earlier one"):
        write(plan(), Same(), tmp_path)


def test_a_source_that_gives_another_length_is_refused(tmp_path: Path) -> None:
    class Short:
        def ids(self, n: int, index: int) -> Ids:
            return np.arange(index, index + n - 1, dtype=np.int64)

    with pytest.raises(PromptError, match="31 ids, not 32"):
        write(plan(), Short(), tmp_path)


def test_a_bounded_tail_is_recycled_without_repeating(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goodput.runner.load.prepare.SPARE_BYTES", 2000)
    prepared = write(plan(), RandomIds(range(1000), 3), tmp_path)
    assert prepared.first_recycled == 60
    assert 60 < prepared.count < 120
    bodies = Bodies(tmp_path / BODIES, tmp_path / ENTRIES, prepared.first_recycled)
    prompts = [json.loads(bodies.body(index))["prompt"] for index in range(120)]
    assert {len(prompt) for prompt in prompts} == {32}
    assert len({tuple(prompt[:16]) for prompt in prompts}) == 120
    bodies.close()


def test_chats_that_come_again_are_new_ones_of_the_same_words(tmp_path: Path) -> None:
    """A closed loop sends more than was prepared: else a prefix cache would have every chat from there on."""
    load = Load(prompt_tokens=40, output_tokens=7, arrival="closed", concurrency=1, window_seconds=2)
    planned = PlannedLoad(load=load, seed=5, lead_in_seconds=0, drain_seconds=3)
    source = FittedText(RandomIds(range(1000), 3), lambda ids, n: " ".join(f"w{token}" for token in ids[:n].tolist()))
    lengths = PlannedLengths(load, 5)
    prepared = write_requests(planned, None, source, lengths, endpoint="chat", model="m", folder=tmp_path)
    bodies = Bodies(tmp_path / BODIES, tmp_path / ENTRIES, prepared.first_recycled)
    count = 6 * prepared.count
    chats = [json.loads(bodies.body(index))["messages"][0]["content"].split(" ") for index in range(count)]
    bodies.close()
    assert len({tuple(words[:9]) for words in chats}) == count
    for index in range(prepared.count, count):
        first = chats[index % prepared.count]
        assert chats[index][0] == first[0]
        assert sorted(chats[index]) == sorted(first)


@given(ids=st.lists(st.integers(0, 200_000), min_size=1, max_size=80), rounds=st.integers(1, 50))
def test_rotating_keeps_the_ids_and_the_length(ids: list[int], rounds: int) -> None:
    body, start = BodyWriter("completions", "m").completion(np.array(ids), 5)
    turned = rotated(body, start, rounds)
    assert len(turned) == len(body)
    prompt = json.loads(turned)["prompt"]
    assert any(prompt == ids[k:] + ids[:k] for k in range(len(ids)))
    assert len(ids) < 2 or any(prompt == ids[k:] + ids[:k] for k in range(1, len(ids)))
