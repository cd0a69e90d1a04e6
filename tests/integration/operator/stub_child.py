"""The stand-ins' processes: see stub_driver."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

CELL_SECONDS = float(os.environ.get("STUB_CELL_SECONDS", "0.05"))
stop = threading.Event()


class Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


def server(port: str, label: str) -> None:
    if os.environ.get("STUB_REFUSE", "none") in label:
        sys.exit("stub serve: error: unrecognized arguments: --nonsense")
    stolen = Path(os.environ["STUB_TRUTH"]) / "stranger"
    if os.environ.get("STUB_STRANGER") and not stolen.exists():
        _let_a_stranger_take(port, stolen)
        threading.Event().wait()
    if os.environ.get("STUB_WORKER"):
        worker = subprocess.Popen([sys.executable, "-c", "import signal\nwhile True: signal.pause()"])
        print("worker", worker.pid, flush=True)
    HTTPServer(("127.0.0.1", int(port)), Health).serve_forever()


def _let_a_stranger_take(port: str, told: Path) -> None:
    """A process that is no longer known to be of this server answers at its port before it does."""
    others = {name: value for name, value in os.environ.items() if name != "GOODPUT_CHILD"}
    stranger = ["sh", "-c", '"$@" >/dev/null 2>&1 &', "sh", sys.executable, __file__, "stranger", port, str(told)]
    subprocess.run(stranger, env=others, start_new_session=True, check=True)


def stranger(port: str, told: str) -> None:
    with HTTPServer(("127.0.0.1", int(port)), Health) as taken:
        Path(told).write_text(str(os.getpid()))
        taken.serve_forever()


def runner(outcome_file: str, block: str, attempt: str, config: str, *loads: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    truth = Path(os.environ["STUB_TRUTH"])
    fail_once = truth / "failed-once"
    if os.environ.get("STUB_FAIL_ONCE") and not fail_once.exists():
        fail_once.touch()
        sys.exit("the stub runner fails once")
    for load in loads:
        cell = truth / f"{config}-{load}-{block}"
        if cell.exists():
            continue
        with (truth / "measured.log").open("a") as log:
            log.write(f"{cell.name} {attempt}\n")
        if stop.wait(CELL_SECONDS):
            break
        cell.touch(exist_ok=False)
    missing = [load for load in loads if not (truth / f"{config}-{load}-{block}").exists()]
    still_open = [{"load": load, "outcome": "void", "reason": "RunnerStopped"} for load in missing]
    outcome = {"v": 1, "planned": len(loads), "valid": len(loads) - len(missing), "not": still_open}
    Path(outcome_file).write_text(json.dumps(outcome))


def canary(message: str) -> None:
    refused = os.environ.get("STUB_CANARY")
    answer = {"v": 1, "ok": refused is None, "reason": refused, "message": "403" if refused else ""}
    Path(message).write_text(json.dumps(answer))


def analysis(input_file: str, message: str, packs: str) -> None:
    if os.environ.get("STUB_ANALYSIS"):
        sys.exit("the stub analysis fails")
    given = json.loads(Path(input_file).read_text())
    logs = [name for name in given["logs"] if (Path(packs) / name / "target").exists()]
    answer = {"v": 1, "generation": given["states"]["generation"], "block": given["block"], "uploaded_logs": logs}
    Path(message).write_text(json.dumps(answer))


if __name__ == "__main__":
    role, *words = sys.argv[1:]
    roles: dict[str, Callable[..., None]]
    roles = {"server": server, "stranger": stranger, "runner": runner, "canary": canary, "analysis": analysis}
    roles[role](*words)
