"""When a trial ends: because its runner has, its server has, the user wants it, or a wait took too long."""

from __future__ import annotations

from dataclasses import dataclass

from goodput.operator.observed import Failure, Runner, Server, Trial
from goodput.operator.plan.attempts import runner_active
from goodput.operator.plan.limits import CAPACITY_TIMEOUT_SECONDS, RUNNER_START_TIMEOUT_SECONDS


@dataclass(frozen=True)
class Terms:
    """What holds for one trial at this look. Times are Unix seconds, the others seconds."""

    now: float
    startup_timeout_seconds: float
    runner_limit_seconds: float  # a runner that is older than this is ended
    interrupt: Failure | None = None  # suspend or cancel
    unwanted: Failure | None = None  # its config failed or was pruned, or the budget is used up
    may_start: bool = True  # a slot is free for its server


@dataclass(frozen=True)
class Ending:
    """The decision to end a trial: with an outcome alone, or with a failure."""

    failure: Failure | None = None
    interrupted: bool = False


def ending(trial: Trial, terms: Terms) -> Ending | None:
    """Whether a trial that was not ended yet is to end now, and why. Causes come before the user's wish."""
    return _of_runner(trial) or _of_server(trial) or _of_user(trial, terms) or _of_time(trial, terms)


def server_cause(trial: Trial) -> Failure | None:
    """Why the server failed, as far as the driver knows."""
    return trial.server.failure if trial.server is not None else None


def _of_runner(trial: Trial) -> Ending | None:
    runner = trial.runner
    if runner is None and trial.memory.outcome is not None:
        return Ending()
    if runner is None:
        gone = Failure("RunnerLost", "the runner went away while its records waited for the store")
        return Ending(gone) if trial.memory.released is not None else None
    if runner_active(trial):
        return None
    outcome = runner.outcome or trial.memory.outcome
    if outcome is None:
        nothing = Failure("RunnerFailed", "the runner ended without an outcome")
        return Ending(server_cause(trial) or runner.failure or nothing)
    return Ending(None if outcome.done else server_cause(trial))


def _of_server(trial: Trial) -> Ending | None:
    if trial.memory.released is not None:
        return None
    server = trial.server
    if server is None:
        was_there = trial.memory.server_running is not None or trial.memory.server_ready is not None
        return Ending(Failure("ServerGone", "the server is gone")) if was_there else None
    if server.failure is not None:
        return Ending(server.failure)
    if server.state == "ended":
        return Ending(Failure("ServerGone", "the server's container ended"))
    if server.state == "stopping":
        return Ending(Failure("ServerGone", "the server was deleted by someone else"))
    return None


def _of_user(trial: Trial, terms: Terms) -> Ending | None:
    if terms.interrupt is not None:
        return Ending(terms.interrupt, interrupted=True)
    if terms.unwanted is not None and trial.runner is None:
        return Ending(terms.unwanted, interrupted=True)
    return None


def _of_time(trial: Trial, terms: Terms) -> Ending | None:
    deadline = wait_until(trial, terms)
    if deadline is None or terms.now < deadline[0]:
        return None
    return Ending(deadline[1])


def wait_until(trial: Trial, terms: Terms) -> tuple[float, Failure] | None:
    """When the present wait ends (Unix seconds), and in what; None where nothing is waited for."""
    if trial.runner is not None:
        return _runner_wait(trial.runner, terms)
    if trial.server is not None:
        return _server_wait(trial.server, terms)
    return trial.memory.created + CAPACITY_TIMEOUT_SECONDS, Failure("StartupTimeout", "the server was never started")


def _runner_wait(runner: Runner, terms: Terms) -> tuple[float, Failure] | None:
    if runner.state == "pending":
        text = f"the runner did not start within {RUNNER_START_TIMEOUT_SECONDS:.0f} s"
        return runner.since + RUNNER_START_TIMEOUT_SECONDS, Failure("RunnerFailed", text)
    text = f"the runner did not end within {terms.runner_limit_seconds:.0f} s"
    return runner.since + terms.runner_limit_seconds, Failure("TrialDeadline", text)


def _server_wait(server: Server, terms: Terms) -> tuple[float, Failure] | None:
    if server.state == "ready":
        return None
    if server.waiting is not None:
        return server.since + CAPACITY_TIMEOUT_SECONDS, server.waiting
    begun = server.scheduled if server.scheduled is not None else server.since
    text = f"the server was not ready within {terms.startup_timeout_seconds:.0f} s"
    return begun + terms.startup_timeout_seconds, Failure("StartupTimeout", text)
