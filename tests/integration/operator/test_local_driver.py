"""The local driver with real processes that are quick stand-ins: endings, faults, resuming, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from goodput.operator.local.processes import TOKEN

STUB = Path(__file__).with_name("stub_driver.py")
SWEEP: dict[str, Any] = {
    "apiVersion": "goodput.dev/v1alpha1",
    "kind": "BenchmarkSweep",
    "metadata": {"name": "stubbed"},
    "spec": {
        "model": {"name": "toy"},
        "engines": [{"name": "sim", "kind": "simulated", "args": {"max_num_seqs": 16}}],
        "configs": {"grid": {"max_num_batched_tokens": [512, 1024]}},
        "workload": {
            "promptTokens": [16],
            "outputTokens": [4],
            "requestRate": [1, 2],
            "window": {"duration": "1s"},
        },
        "slo": {"ttft": "1s"},
        "plan": {"blocks": {"min": 2}},
        "results": {"uri": "file://./results"},
    },
}


class Bench:
    """A folder with a sweep, and drivers that work in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.truth = folder / "truth"
        self.truth.mkdir()
        (folder / "sweep.json").write_text(json.dumps(SWEEP))
        self.drivers: list[subprocess.Popen[str]] = []

    def start(self, *words: str, **behaviour: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "STUB_TRUTH": str(self.truth), "COLUMNS": "300"}
        driver = subprocess.Popen(
            [sys.executable, str(STUB), *(words or ("run", "sweep.json", "--plain"))],
            cwd=self.folder,
            env=environment | {f"STUB_{name.upper()}": value for name, value in behaviour.items()},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.drivers.append(driver)
        return driver

    def run(self, *words: str, **behaviour: str) -> tuple[int, str]:
        driver = self.start(*words, **behaviour)
        output, _ = driver.communicate(timeout=120)
        return driver.returncode, output

    @property
    def state(self) -> Path:
        return next((self.folder / ".goodput").iterdir())

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.state / "status.json").read_text())
        return found

    @property
    def measured(self) -> Counter[str]:
        """How often each cell was measured, by attempts that were stopped too."""
        return Counter(line.split()[0] for line in (self.truth / "measured.log").read_text().splitlines())

    @property
    def results(self) -> int:
        return sum(1 for path in self.truth.iterdir() if path.suffix == "" and "-" in path.name)

    def children(self) -> list[psutil.Process]:
        """Live processes that carry a child's token of this folder."""
        found = []
        for process in psutil.process_iter():
            try:
                environment = process.environ()
                if TOKEN in environment and environment.get("STUB_TRUTH") == str(self.truth):
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found


def reads(driver: subprocess.Popen[str], wanted: str) -> list[str]:
    """The driver's lines until one contains ``wanted``."""
    assert driver.stdout is not None
    lines = []
    for line in driver.stdout:
        lines.append(line)
        if wanted in line:
            return lines
    pytest.fail(f"{wanted!r} never came: {''.join(lines)}")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    for driver in made.drivers:
        driver.kill()
        driver.wait()
        assert driver.stdout is not None
        driver.stdout.close()
    psutil.wait_procs(made.children(), timeout=20)
    assert made.children() == []


def test_a_sweep_runs_to_its_end_and_leaves_nothing_behind(bench: Bench) -> None:
    code, output = bench.run()
    assert code == 0
    assert bench.status["phase"] == "Succeeded"
    assert bench.status["progress"] == "8/8"
    assert set(bench.measured.values()) == {1}
    assert bench.results == 8
    assert bench.children() == []
    assert list((bench.state / "processes").iterdir()) == []
    assert list((bench.state / "packs").iterdir()) == [], "logs that are in the store are not kept"
    assert output.splitlines()[0].count("SYNTHETIC") == 1
    assert output.splitlines()[-1].startswith("SYNTHETIC Succeeded")


def test_a_sweep_that_succeeded_is_not_run_again(bench: Bench) -> None:
    bench.run()
    measured = bench.measured
    code, _ = bench.run()
    assert code == 0
    assert bench.measured == measured


def test_ctrl_c_keeps_what_was_measured_and_the_next_run_goes_on(bench: Bench) -> None:
    driver = bench.start(cell_seconds="1.5")
    reads(driver, "done, 2 of 2 loads")
    reads(driver, "ready after")
    driver.send_signal(signal.SIGINT)
    output, _ = driver.communicate(timeout=60)
    assert driver.returncode == 130
    assert "go on with: goodput run sweep.json" in output
    assert bench.status["phase"] == "Suspended"
    assert bench.children() == []
    before = bench.results
    assert before >= 2
    code, output = bench.run()
    assert code == 0
    assert "going on from an earlier run" in output
    assert bench.results == 8
    assert all(count <= 2 for count in bench.measured.values()), "only the interrupted cell is measured again"
    assert sum(bench.measured.values()) <= 9
    assert bench.status["phase"] == "Succeeded"


def test_an_interruption_uses_up_no_retry(bench: Bench) -> None:
    sweep = json.loads(json.dumps(SWEEP))
    sweep["spec"]["plan"]["retries"] = 0
    (bench.folder / "sweep.json").write_text(json.dumps(sweep))
    driver = bench.start(cell_seconds="1.5")
    reads(driver, "ready after")
    driver.send_signal(signal.SIGTERM)
    driver.communicate(timeout=60)
    assert driver.returncode == 130
    assert bench.run()[0] == 0
    assert bench.status["phase"] == "Succeeded"
    assert bench.status["counts"]["trials"] == 5


def test_children_end_with_a_driver_that_is_killed_and_the_next_run_goes_on(bench: Bench) -> None:
    driver = bench.start(cell_seconds="1.5", worker="1")
    reads(driver, "done, 2 of 2 loads")
    reads(driver, "ready after")
    left = bench.children()
    assert left
    driver.kill()
    driver.communicate()
    code, _ = bench.run(worker="1")
    assert code == 0
    assert [process for process in left if process.is_running()] == []
    assert bench.status["phase"] == "Succeeded"
    assert bench.results == 8
    assert sum(bench.measured.values()) <= 10


def test_a_second_driver_is_refused(bench: Bench) -> None:
    driver = bench.start(cell_seconds="5")
    reads(driver, "ready after")
    code, output = bench.run()
    assert code == 1
    assert f"process {driver.pid} runs this sweep already" in output
    driver.send_signal(signal.SIGINT)
    driver.send_signal(signal.SIGINT)
    driver.communicate(timeout=60)


def test_a_refused_flag_fails_its_config_and_not_the_sweep(bench: Bench) -> None:
    code, output = bench.run(refuse="1024")
    assert code == 0
    status = bench.status
    assert status["phase"] == "PartiallyFailed"
    assert status["counts"]["measured"] == 4
    assert status["counts"]["failed"] == 4
    assert status["counts"]["trials"] == 3, "a deterministic failure is not tried again, in no block"
    assert status["lastError"]["reason"] == "InvalidServerArgs"
    assert "unrecognized arguments: --nonsense" in output


def test_a_runner_that_fails_gets_another_attempt(bench: Bench) -> None:
    code, output = bench.run(fail_once="1")
    assert code == 0
    assert "failed: RunnerFailed: the runner ended with exit code 1: the stub runner fails once" in output
    assert bench.status["phase"] == "Succeeded"
    assert bench.status["counts"]["trials"] == 5


def test_a_stranger_that_took_the_port_is_never_measured(bench: Bench) -> None:
    code, output = bench.run(stranger="1")
    os.kill(int((bench.truth / "stranger").read_text()), signal.SIGKILL)
    memories = {path.parent.name: json.loads(path.read_text()) for path in bench.state.glob("trials/*/memory.json")}
    robbed = [memory for memory in memories.values() if memory["failure"] is not None]
    assert [(memory["failure"]["reason"], memory["outcome"]) for memory in robbed] == [("PortInUse", None)]
    assert "answered by another process" in robbed[0]["failure"]["message"]
    assert code == 0, output
    assert (bench.status["progress"], set(bench.measured.values())) == ("8/8", {1})
    assert len(memories) == 5, "one attempt more than there are trials"


def test_a_refused_preflight_starts_no_server(bench: Bench) -> None:
    code, output = bench.run(canary="UploadDenied")
    assert code == 1
    assert bench.status["phase"] == "Failed"
    assert "UploadDenied" in output
    assert "server start" not in output.split("\n", 1)[1]
    assert bench.run()[0] == 0, "once the store takes it, the same command runs the sweep"


def test_a_sweep_without_success_is_run_again_where_it_failed(bench: Bench) -> None:
    assert bench.run(refuse="1024")[0] == 0
    measured = bench.measured
    assert bench.run()[0] == 0
    assert bench.status["phase"] == "Succeeded"
    assert bench.results == 8
    assert bench.measured - measured == Counter({cell: 1 for cell in bench.measured if cell not in measured})


def test_tables_that_cannot_be_written_are_tried_three_times(bench: Bench) -> None:
    code, output = bench.run(analysis="1")
    assert code == 0
    assert bench.status["phase"] == "PartiallyFailed"
    assert _condition(bench.status, "ResultsCommitted") == ("False", "AnalysisFailed")
    assert output.count("tables of the whole sweep could not be written") == 3


def test_a_bad_spec_is_refused_with_field_and_fix(bench: Bench) -> None:
    sweep = json.loads(json.dumps(SWEEP))
    sweep["spec"]["slo"] = {"ttft": 500}
    (bench.folder / "sweep.json").write_text(json.dumps(sweep))
    code, output = bench.run()
    assert code == 2
    assert "spec.slo.ttft" in output
    assert "write a duration such as 500ms" in output
    assert not (bench.folder / ".goodput").exists()


def test_what_one_machine_cannot_do_is_refused(bench: Bench) -> None:
    sweep = json.loads(json.dumps(SWEEP))
    sweep["spec"]["suspend"] = True
    sweep["spec"]["plan"]["parallelism"] = 2
    sweep["spec"]["engines"][0] = {"name": "real", "kind": "vllm", "args": {"max_num_seqs": 16}}
    (bench.folder / "sweep.json").write_text(json.dumps(sweep))
    code, output = bench.run()
    assert code == 2
    assert "spec.suspend" in output
    assert "spec.plan.parallelism: 2" in output


@pytest.mark.parametrize("place", ["file://./elsewhere", "elsewhere"])
def test_results_elsewhere_are_another_sweep_folder(bench: Bench, place: str) -> None:
    code, output = bench.run("run", "sweep.json", "--plain", "--results", place)
    assert code == 0
    assert f"results: file://{bench.folder}/elsewhere/sweep=local.stubbed." in output


def _condition(status: dict[str, Any], kind: str) -> tuple[str, str]:
    found = next(item for item in status["conditions"] if item["type"] == kind)
    return found["status"], found["reason"]


def primed(bench: Bench) -> None:
    """Let the servers of the sweep share a compile cache that is filled first."""
    spec = SWEEP["spec"]
    engine = {**spec["engines"][0], "compileCache": {"mode": "prime", "claimName": "compiled"}}
    document = {**SWEEP, "spec": {**spec, "engines": [engine]}}
    (bench.folder / "sweep.json").write_text(json.dumps(document))


def test_the_compile_cache_is_filled_before_anything_is_measured(bench: Bench) -> None:
    primed(bench)
    code, output = bench.run()
    assert code == 0, output
    assert output.count(": done\n") == 2
    assert output.index("filling the compile cache") < output.index("block 0 ·")
    assert output.rindex("filling the compile cache") < output.index("block 0 ·")
    assert (bench.status["plan"]["primes"], bench.status["counts"]["trials"], bench.results) == (2, 6, 8)
    assert max(bench.measured.values()) == 1


def test_a_driver_that_is_killed_while_the_cache_is_filled_goes_on_there(bench: Bench) -> None:
    primed(bench)
    driver = bench.start()
    reads(driver, "filling the compile cache")
    driver.kill()
    driver.communicate(timeout=120)
    code, output = bench.run()
    assert code == 0, output
    assert (bench.results, bench.status["phase"]) == (8, "Succeeded")
    assert not bench.children()
