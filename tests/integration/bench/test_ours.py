"""Our client as one of the comparison: run as a process, read like the others."""

from __future__ import annotations

from pathlib import Path

from bench.client.meter import run
from bench.client.score import honesty, timing
from bench.client.truth import match, served
from bench.golden.process import golden
from bench.golden.script import Case, Script, Send, Stream
from bench.peers.base import Task
from bench.peers.ours import Ours


def test_its_answers_fit_the_servers_truth(tmp_path: Path) -> None:
    proper = Case("proper", Stream(ttft=0.02, gap=0.01))
    broken = Case(
        "broken", (Send(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"), "keep"), "failure"
    )
    with golden(Script(requests=(proper, broken, proper, broken), default=proper)) as server:
        task = Task(server.port, 6, 1, 5, tmp_path, tmp_path, 20.0)
        client = Ours()
        command = client.prepare(task)
        spent = run(command, folder=tmp_path, limit_seconds=60, env=client.environment(), cpu=0)
        rows = served(server.truth())
    assert spent.ended == "ok", (tmp_path / "client.log").read_text()
    answers = client.answers(task)
    assert [answer.success for answer in answers][:6] == [True, False, True, False, True, True]
    pairs = match(answers, rows)
    assert len(pairs) == len(rows)
    found = honesty(pairs, rows)
    assert (found.failures, found.called_success) == (2, ())
    for answer, row in pairs:
        if answer.success:
            assert answer.gaps is not None
            assert len(answer.gaps) == len(row.gaps) == 4
    assert timing(pairs).judged == sum(answer.success for answer in answers)
