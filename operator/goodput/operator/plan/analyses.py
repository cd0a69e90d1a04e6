"""Analysis: one at a time, after each block and at the end; and the logs that it has put into the store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from goodput.analysis.schema.answer import AnalysisAnswer
from goodput.operator.actions import Action, DropLogs, StartAnalysis
from goodput.operator.plan.blocks import ended_blocks
from goodput.operator.plan.cells import states
from goodput.operator.plan.limits import ANALYSIS_ATTEMPTS
from goodput.operator.plan.view import View

Final = Literal["none", "running", "succeeded", "failed"]


def final_state(view: View) -> Final:
    """Where the final analysis stands; ``failed``: all its attempts are used up."""
    finals = [analysis.state for analysis in view.observed.analyses.values() if analysis.block is None]
    for state in ("succeeded", "running"):
        if state in finals:
            return state
    return "failed" if len(finals) >= ANALYSIS_ATTEMPTS else "none"


def latest_answer(view: View) -> AnalysisAnswer | None:
    """The answer of the latest analysis that succeeded."""
    answers = [
        (generation, analysis.answer)
        for generation, analysis in view.observed.analyses.items()
        if analysis.state == "succeeded" and analysis.answer is not None
    ]
    return max(answers, key=lambda item: item[0])[1] if answers else None


def new_analysis(view: View) -> Iterator[Action]:
    """The next analysis, if one is due and none is running."""
    analyses = view.observed.analyses
    if any(analysis.state == "running" for analysis in analyses.values()):
        return
    generation = max(analyses, default=0) + 1
    if view.decided:
        if not view.unclosed and final_state(view) == "none":
            yield _start(view, generation, None)
        return
    ended = ended_blocks(view)
    if not ended or view.stop is not None or final_state(view) != "none":
        return  # once nothing more is started, the final analysis is near
    tries = [analysis.state for analysis in analyses.values() if analysis.block == ended[-1]]
    if "succeeded" not in tries and len(tries) < ANALYSIS_ATTEMPTS:
        yield _start(view, generation, ended[-1])


def _start(view: View, generation: int, block: str | None) -> StartAnalysis:
    saved = tuple(trial_id for trial_id, trial in sorted(view.observed.trials.items()) if trial.memory.logs == "saved")
    document = states(view, generation, final=block is None)
    return StartAnalysis(generation=generation, block=block, states=document, logs=saved)


def stored_logs(view: View) -> Iterator[Action]:
    """Packed logs that an analysis has put into the store."""
    stored = {
        name
        for analysis in view.observed.analyses.values()
        if analysis.answer is not None
        for name in analysis.answer.uploaded_logs
    }
    for trial_id, trial in view.trials:
        if trial.memory.logs == "saved" and trial_id.name in stored:
            yield DropLogs(trial_id)
