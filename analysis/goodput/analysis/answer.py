"""What analysis tells the driver: a message of at most 3,500 bytes. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from goodput.analysis.result import AnalysisResult
from goodput.analysis.schema.answer import AnalysisAnswer, Best, TopRow
from goodput.analysis.score import Score
from goodput.analysis.words import explain

MESSAGE_BYTES = 3500  # the kubelet keeps the last 4,096 of a termination message
TOP = 10
EXPLANATION = 900  # characters
LOST = "UploadDenied"


def answer(result: AnalysisResult, *, block: str | None = None, uploaded_logs: Sequence[str] = ()) -> AnalysisAnswer:
    """The answer, cut to size: of the top rows at least three stay, then log names are left out from the end.

    A log that is not named stays with the driver and is uploaded again by the next analysis.
    """
    decision = result.decision
    full = AnalysisAnswer(
        generation=result.states.generation,
        block=block,
        verdict=decision.verdict,
        reason=decision.reason,
        message=_cut(explain(result), EXPLANATION),
        best=_best(result),
        top=top_rows(result),
        uploaded_logs=tuple(uploaded_logs),
        lost=sum(cell.reason == LOST for cell in result.planned if cell.state != "measured"),
    )
    return fit(full)


def fit(full: AnalysisAnswer) -> AnalysisAnswer:
    """The longest version of ``full`` within `MESSAGE_BYTES`."""
    rows, logs = len(full.top), len(full.uploaded_logs)
    short = full
    while len(short.model_dump_json().encode()) > MESSAGE_BYTES:
        if rows > 3:
            rows -= 1
        elif logs:
            logs -= 1
        else:
            return short.model_copy(update={"top": (), "message": _cut(full.message, EXPLANATION // 3)})
        short = full.model_copy(update={"top": full.top[:rows], "uploaded_logs": full.uploaded_logs[:logs]})
    return short


def top_rows(result: AnalysisResult) -> tuple[TopRow, ...]:
    """The best configs by score; then those that missed the SLO, by attainment."""

    def key(each: Score) -> tuple[float, float, str]:
        return -(each.value or 0.0), -max((point.attainment or 0.0 for point in each.points), default=0.0), each.config

    measured = [each for each in result.decision.scores.values() if each.points]
    return tuple(_top(each) for each in sorted(measured, key=key)[:TOP])


def _top(score: Score) -> TopRow:
    if score.value is not None:
        chosen = list(score.chosen.values())
        attained = [point.attainment for point in chosen if point.attainment is not None]
        only = chosen[0].load if len(chosen) == 1 else None
        return TopRow(
            config=score.config, load=only, goodput=score.value, attainment=min(attained, default=None), feasible=True
        )
    near = max(score.points, key=lambda point: (not point.saturated, point.attainment or 0.0, point.value))
    return TopRow(config=score.config, load=near.load, goodput=near.value, attainment=near.attainment)


def _best(result: AnalysisResult) -> Best | None:
    best = result.decision.best
    if best is None:
        return None
    loads = result.chosen(best)
    return Best(
        config=best,
        load=loads[0] if len(loads) == 1 else None,
        goodput=result.decision.scores[best].value,
        interval=result.interval,
    )


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[: characters - 1] + "…"
