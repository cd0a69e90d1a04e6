"""One client against the golden server: how exact, how cheap, how honest it is."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from bench.client.closed import SERVER_CPU
from bench.client.meter import Spent, run
from bench.client.score import Honesty, Timing, held, honesty, timing
from bench.client.truth import Served, match, served
from bench.golden.catalogue import ASKED, cases
from bench.golden.process import golden
from bench.golden.script import Case, Script, Stream
from bench.peers.base import Answer, Client, Task

TTFT_SECONDS = 0.05
GAP_SECONDS = 0.05
TOKENS = 60
CYCLE_SECONDS = TTFT_SECONDS + (TOKENS - 1) * GAP_SECONDS  # of one request
MIN_REQUESTS = 256
HANG_TIMEOUT_SECONDS = 10.0  # given to clients that can end a request
_TIMEOUT_SECONDS = 120.0  # of a request, where none should hang
_START_SECONDS = 90.0  # to import, make prompts and write results
HANG_LIMIT_SECONDS = 45.0


@dataclass(frozen=True)
class Run:
    """One run of one client: what it took, what it said, what was true."""

    spent: Spent
    answers: list[Answer]
    rows: list[Served]
    problem: str | None  # why there are no answers


@dataclass(frozen=True)
class Load:
    """A run of ``concurrency`` streams.

    Attributes:
        cpu_per_event: seconds of CPU per token-carrying event, its start not counted; None: not measured.
        held: streams that the server saw under way, mean.
        peak_mib: of memory.
        problem: why there are no numbers.
    """

    concurrency: int
    timing: Timing
    cpu_per_event: float | None
    held: float | None
    peak_mib: float | None
    problem: str | None


class Bench:
    """Runs of one client, each with a fresh server and in a fresh folder."""

    def __init__(self, client: Client, folder: Path, tokenizer: Path, *, fifo: bool) -> None:
        self._client, self._folder, self._tokenizer, self._fifo = client, folder, tokenizer, fifo

    def load(self, concurrency: int, rounds: int, *, cpu: bool) -> Load:
        """``rounds`` requests per stream, the first of each not judged: they are spread over one request's time.

        ``cpu``: a second run, of one request per stream, tells what starting costs: it is subtracted.
        """
        done = self._steady(concurrency, max(rounds * concurrency, MIN_REQUESTS))
        start = self._steady(concurrency, concurrency) if cpu and done.problem is None else None
        later = {id(row) for row in done.rows[concurrency:]}
        pairs = [pair for pair in match(done.answers, done.rows) if id(pair[1]) in later]
        return Load(
            concurrency=concurrency,
            timing=timing(pairs),
            cpu_per_event=None if start is None else _cpu_per_event(start, done),
            held=held(done.rows, concurrency),
            peak_mib=done.spent.peak_mib,
            problem=done.problem,
        )

    def _steady(self, concurrency: int, requests: int) -> Run:
        limit = _START_SECONDS + 3 * CYCLE_SECONDS * requests / concurrency
        return self._run(_script(concurrency), requests=requests, concurrency=concurrency, limit_seconds=limit)

    def honesty(self) -> Honesty | str:
        """All cases of the catalogue that end, one after the other; a text where there is no result."""
        ending = tuple(case for case in cases("completions") if not hangs(case))
        first = Case("default", Stream(tokens=ASKED))  # for clients that try one request before they begin
        script = Script(requests=(first, *ending), default=first)
        done = self._run(script, requests=len(ending) + 2, tokens=ASKED, limit_seconds=2 * _START_SECONDS)
        if done.problem is not None:
            return done.problem
        rows = [row for row in done.rows if row.name != "default"]
        return honesty(match(done.answers, done.rows), rows)

    def hanging(self) -> Honesty | str:
        """All cases that never end, at once."""
        hanging = tuple(case for case in cases("completions") if hangs(case))
        first = Case("default", Stream(ttft=1.0, tokens=ASKED))  # slow: a closed loop goes on with these meanwhile
        script = Script(requests=(first, *hanging), default=first)
        count = len(hanging) + 1
        done = self._run(
            script,
            requests=count,
            concurrency=count,
            tokens=ASKED,
            limit_seconds=HANG_LIMIT_SECONDS,
            timeout_seconds=HANG_TIMEOUT_SECONDS,
        )
        if done.problem is not None:
            return done.problem
        rows = [row for row in done.rows if row.name != "default"]
        return honesty(match(done.answers, done.rows), rows)

    def _run(
        self,
        script: Script,
        *,
        requests: int,
        concurrency: int = 1,
        tokens: int = TOKENS,
        limit_seconds: float = _START_SECONDS,
        timeout_seconds: float = _TIMEOUT_SECONDS,
    ) -> Run:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        with golden(script, cpu=SERVER_CPU, fifo=self._fifo) as server:
            task = Task(
                port=server.port,
                requests=requests,
                concurrency=concurrency,
                output_tokens=tokens,
                folder=self._folder,
                tokenizer=self._tokenizer,
                timeout_seconds=timeout_seconds,
            )
            command = self._client.prepare(task)
            environment = self._client.environment()
            spent = run(command, folder=self._folder, limit_seconds=limit_seconds, env=environment)
            rows = served(server.truth())
        if spent.ended == "hangs":
            return Run(spent, [], rows, "hangs")
        try:
            answers = self._client.answers(task)
        except (OSError, ValueError, KeyError) as error:
            return Run(spent, [], rows, f"no result ({type(error).__name__})")
        return Run(spent, answers, rows, None)


def _cpu_per_event(start: Run, done: Run) -> float | None:
    """What the events cost that the longer run has more of."""
    more = sum(len(row.tokens) for row in done.rows) - sum(len(row.tokens) for row in start.rows)
    return (done.spent.cpu_seconds - start.spent.cpu_seconds) / more if start.problem is None and more > 0 else None


def hangs(case: Case) -> bool:
    """Whether the server never ends that answer."""
    return not isinstance(case.plan, Stream) and bool(case.plan) and case.plan[-1] == "hang"


def _script(concurrency: int) -> Script:
    """Equal streams; the first of each begins at its own time, so that they do not go in step."""
    spread = [Stream(TTFT_SECONDS + CYCLE_SECONDS * k / concurrency, GAP_SECONDS) for k in range(concurrency)]
    return Script(
        requests=tuple(Case("first", stream) for stream in spread),
        default=Case("steady", Stream(TTFT_SECONDS, GAP_SECONDS)),
    )
