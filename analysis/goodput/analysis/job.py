"""The analysis Job: log packs into the store, analysis, answer."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field, ValidationError

from goodput.analysis.analyze import run_analysis
from goodput.analysis.answer import answer
from goodput.analysis.errors import AnalysisError
from goodput.analysis.packing import unpack
from goodput.analysis.retry import HOLD_SECONDS, while_store_refuses
from goodput.analysis.schema.answer import AnalysisAnswer
from goodput.analysis.schema.base import Document
from goodput.analysis.schema.sweep import StatesDocument
from goodput.analysis.store import Store, open_store

LOG_FILES = ("server.log.zst", "runner.log.zst", "events.json", "pod.json", "trial.json")
TARGET = "target"
RETRY_SECONDS = 30.0  # inside one call; `while_store_refuses` goes on beyond it
_TRIAL = re.compile(r"trials/config=[^/]+/block=[^/]+/attempt=\d+")
_log = logging.getLogger(__name__)


class ResultsUri(Document):
    """Where the sweep's results lie. Credentials come from the environment."""

    uri: str
    endpoint: str | None = None
    region: str | None = None


class JobInput(Document):
    """What the driver hands to the Job."""

    v: int = 1
    results: ResultsUri
    sweep: str  # the sweep's folder name, without ``sweep=``
    states: StatesDocument
    block: str | None = None  # the block that ended; None at the end
    logs: tuple[str, ...] = Field(default=())  # names of mounted log packs


def run_job(job: JobInput, logs: Path, *, hold_seconds: float = HOLD_SECONDS) -> AnalysisAnswer:
    """Upload the log packs, analyse, and give the answer. A refusing store is retried for ``hold_seconds``.

    Raises:
        AnalysisError: the records cannot be analysed; what was uploaded stays.
        StoreError: the store still refuses.
    """

    def work() -> AnalysisAnswer:
        store = _open(job)
        uploaded = upload_logs(store, logs, job.logs)
        return answer(run_analysis(store, job.states), block=job.block, uploaded_logs=uploaded)

    return while_store_refuses(work, hold_seconds=hold_seconds)


def read_input(path: Path) -> JobInput:
    """The input file. Raises `AnalysisError` where it is not one."""
    try:
        return JobInput.model_validate_json(unpack(path.read_bytes()))
    except (OSError, ValidationError) as error:
        raise AnalysisError(f"{path}: {error}") from error


def upload_logs(store: Store, logs: Path, names: Sequence[str]) -> list[str]:
    """Put each pack's files to its trial's folder, replacing what is there. Returns the packs that are safe.

    A pack that is not mounted, or names no trial, is skipped with a warning: it is not among those returned.
    """
    safe = []
    for name in names:
        target = _target(logs / name)
        if target is None:
            _log.warning("log pack %s has no valid target; skipped", name)
            continue
        for file in LOG_FILES:
            path = logs / name / file
            if path.is_file():
                store.put(f"{target}/{file}", path.read_bytes())
        safe.append(name)
    return safe


def _target(pack: Path) -> str | None:
    path = pack / TARGET
    target = path.read_text(encoding="utf-8").strip() if path.is_file() else ""
    return target if _TRIAL.fullmatch(target) else None


def _open(job: JobInput) -> Store:
    uri = f"{job.results.uri.rstrip('/')}/sweep={job.sweep}"
    return open_store(uri, endpoint=job.results.endpoint, region=job.results.region, retry_seconds=RETRY_SECONDS)
