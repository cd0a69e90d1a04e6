"""Adapters of the peers: commands and results."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from bench.peers import setup
from bench.peers.aiperf import Aiperf
from bench.peers.base import Answer, Client, Task
from bench.peers.guidellm import Guidellm
from bench.peers.inference_perf import InferencePerf
from bench.peers.tokenizer import write_tokenizer
from bench.peers.vllm_bench import VllmBench
from constraints.lock_peers import lines

BIN = Path("/peers/bin")
CLIENTS: tuple[Client, ...] = (VllmBench(BIN), Aiperf(BIN), Guidellm(BIN), InferencePerf(BIN))


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return Task(8123, 40, 7, 60, tmp_path, tmp_path / "tokenizer", 20.0)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_every_peer_is_told_the_server_the_load_and_the_tokenizer(client: Client, task: Task) -> None:
    told = " ".join(client.prepare(task)) + "".join(path.read_text() for path in task.folder.glob("*.yaml"))
    for part in ("http://127.0.0.1:8123", "40", "7", "60", str(task.tokenizer)):
        assert part in told


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_peer_without_a_result_says_so(client: Client, task: Task) -> None:
    with pytest.raises(OSError, match="No such file"):
        client.answers(task)


def test_vllm_gives_columns(task: Task) -> None:
    columns: dict[str, list[Any]] = {
        "start_times": [5.0, 6.0],
        "ttfts": [0.05, 0.0],
        "itls": [[0.1, 0.2], []],
        "errors": ["", "no"],
    }
    (task.folder / "result.json").write_text(json.dumps(columns))
    assert VllmBench(BIN).answers(task) == [
        Answer(success=True, started=5.0, ttft=0.05, gaps=(0.1, 0.2)),
        Answer(success=False, started=6.0),
    ]


def test_aiperf_gives_milliseconds(task: Task) -> None:
    good = {"time_to_first_token": {"value": 50.0}, "inter_chunk_latency": {"value": [10.0]}}
    records: list[dict[str, Any]] = [
        {"metadata": {"request_start_ns": 1, "was_cancelled": False}, "metrics": good},
        {"metadata": {"request_start_ns": 2, "was_cancelled": False}, "metrics": {}, "error": {"code": 500}},
        {"metadata": {"request_start_ns": 3, "was_cancelled": True}, "metrics": {}},
    ]
    folder = task.folder / "artifacts"
    folder.mkdir()
    (folder / "profile_export.jsonl").write_text("\n".join(map(json.dumps, records)))
    found = Aiperf(BIN).answers(task)
    assert [answer.success for answer in found] == [True, False, False]
    assert (found[0].ttft, found[0].gaps) == (0.05, (0.01,))


def test_guidellm_sorts_requests_by_their_end(task: Task) -> None:
    row = {"request_start_time": 1.0, "time_to_first_token_ms": 50.0, "inter_token_latency_ms": 10.0}
    requests = {"successful": [row], "errored": [{"request_start_time": 2.0}], "incomplete": None}
    (task.folder / "result.json").write_text(json.dumps({"benchmarks": [{"requests": requests}]}))
    good, bad = Guidellm(BIN).answers(task)
    assert (good.success, good.ttft, good.mean_gap, good.gaps) == (True, 0.05, 0.01, None)
    assert (bad.success, bad.ttft) == (False, None)


def test_inference_perf_gives_one_record_a_request(task: Task) -> None:
    metrics = {"time_to_first_token": 0.05, "inter_token_latencies": [0.1]}
    rows = [{"start_time": 3.0, "error": None, "computed_metrics": metrics}, {"start_time": 4.0, "error": {"x": 1}}]
    folder = task.folder / "reports"
    folder.mkdir()
    (folder / "per_request_lifecycle_metrics.json").write_text(json.dumps(rows))
    assert InferencePerf(BIN).answers(task) == [
        Answer(success=True, started=3.0, ttft=0.05, gaps=(0.1,)),
        Answer(success=False, started=4.0),
    ]


def test_the_tokenizer_has_a_word_for_every_number_and_no_special_word_for_the_others(tmp_path: Path) -> None:
    document = json.loads((write_tokenizer(tmp_path, 10) / "tokenizer.json").read_text())
    assert sorted(document["model"]["vocab"].values()) == list(range(10))
    assert document["model"]["unk_token"] not in {token["content"] for token in document["added_tokens"]}


def test_an_installed_peer_is_not_installed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOODPUT_CACHE", str(tmp_path))
    folder = tmp_path / "peers" / "aiperf"
    folder.mkdir(parents=True)
    pins = (setup.PINS / "aiperf.txt").read_bytes()
    (folder / "installed.sha256").write_text(hashlib.sha256(pins).hexdigest())
    assert setup.bin_folder("aiperf") == folder / "bin"


def test_of_many_who_want_a_folder_at_once_one_makes_it(tmp_path: Path) -> None:
    pins, made = tmp_path / "pins.txt", []
    pins.write_text("a==1")

    def want() -> None:
        with setup.once(tmp_path / "folder", pins) as wanted:
            if wanted:
                (tmp_path / "folder").mkdir()
                made.append(1)

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(want) for _ in range(8)]:
            done.result()
    assert made == [1]


def test_a_folder_is_made_again_when_its_inputs_change_or_the_making_failed(tmp_path: Path) -> None:
    folder, pins = tmp_path / "folder", tmp_path / "pins.txt"
    folder.mkdir()
    pins.write_text("a==1")
    with pytest.raises(OSError, match="no room"), setup.once(folder, pins):
        raise OSError("no room")
    seen = []
    for text in ("a==1", "a==1", "a==2"):
        pins.write_text(text)
        with setup.once(folder, pins) as wanted:
            seen.append(wanted)
    assert seen == [True, False, True]


def test_a_peer_whose_python_is_not_there_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOODPUT_CACHE", str(tmp_path))
    monkeypatch.setitem(setup.WANTED, "aiperf", setup.Wanted((3, 99), 0.0))
    with pytest.raises(setup.PeerMissingError, match=r"Python 3\.99"):
        setup.bin_folder("aiperf")


def test_pins_hold_one_hash_per_package_and_no_address() -> None:
    def item(name: str, hashes: dict[str, str]) -> dict[str, Any]:
        archive = {"archive_info": {"hashes": hashes}, "url": "https://somewhere"}
        return {"metadata": {"name": name, "version": "1"}, "download_info": archive}

    report = {"install": [item("Zed_a", {"sha256": "ff"}), item("a", {"sha256": "00"})]}
    assert lines(report) == "a==1 --hash=sha256:00\nzed-a==1 --hash=sha256:ff\n"
    with pytest.raises(ValueError, match="no archive"):
        lines({"install": [item("a", {})]})
