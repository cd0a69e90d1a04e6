"""Reads a sweep, fits a profile to some of its cells, and says how far it is off on the others."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import yaml

from goodput.analysis import ids
from goodput.analysis.read import read_index, read_results, read_spec
from goodput.analysis.schema.cell import CellDocument
from goodput.analysis.store import Store
from goodput.engines.calibration.cells import ObservedCell, Prediction, calibrate, predict
from goodput.engines.errors import ProfileError
from goodput.engines.simulated.profile import RooflineProfile, load_profile
from goodput.operator.calibration.alike import differences
from goodput.operator.calibration.observe import UnusableCellError, name_of, observe

LATENCIES = ("ttft", "tpot", "e2e")


class CalibrationError(Exception):
    """Nothing can be fitted; the message says why."""


@dataclass(frozen=True)
class Calibration:
    """The profile, every cell's prediction, and the cells that were of no use, with the reason.

    ``spread``: how many times as long the mean E2E of one block was as that of another, for the same config and load,
    at most. No profile can be closer than that; None with one block.
    """

    profile: RooflineProfile
    predictions: tuple[Prediction, ...]
    unusable: tuple[tuple[str, str], ...]
    spread: float | None

    def unseen_errors(self) -> str:
        """Mean of the absolute relative errors over the cells that the fit did not see, by latency."""
        texts = []
        for name in LATENCIES:
            errors = [one.error(name) for one in self.predictions if not one.fitted]
            known = [abs(error) for error in errors if error is not None]
            texts.append(f"{name.upper()} {statistics.fmean(known):.1%}" if known else f"{name.upper()} not known")
        return ", ".join(texts)


def run(store: Store, *, base: str, name: str, hold_out: float) -> Calibration:
    """Fit ``name`` from the sweep in ``store``, starting at the shipped or given profile ``base``.

    Raises:
        CalibrationError: too few usable cells, cells of unlike servers, or a base that cannot be read or has no costs.
        AnalysisError, StoreError: the records cannot be read.
    """
    try:
        start = load_profile(base)
    except ProfileError as error:
        raise CalibrationError(str(error)) from error
    if not isinstance(start, RooflineProfile):
        raise CalibrationError(f"profile {base} has no costs to fit; take one of kind roofline")
    spec = read_spec(store)
    unusable: list[tuple[str, str]] = []

    def each(document: CellDocument, table: pa.Table) -> tuple[CellDocument, ObservedCell] | None:
        try:
            return document, observe(document, table)
        except UnusableCellError as error:
            unusable.append((name_of(document), str(error)))
            return None

    found = [one for one in read_results(store, spec, read_index(store), each) if one is not None]
    if mixed := "; ".join(differences(spec, (document for document, _ in found))):
        raise CalibrationError(f"a profile is of one model on one kind of server, and this sweep has {mixed}")
    held = held_out(sorted({(document.config.id, document.load.id) for document, _ in found}), hold_out, unusable)
    fitted = [cell for document, cell in found if (document.config.id, document.load.id) not in held]
    profile = calibrate(fitted, start).model_copy(update={"name": name, "model": spec.model})
    predictions = tuple(
        Prediction(cell, predict(cell, profile), (document.config.id, document.load.id) not in held)
        for document, cell in found
    )
    result = Calibration(profile, predictions, tuple(unusable), _spread(found))
    return replace(result, profile=_with_source(result, base, f"{spec.evidence} cells of sweep {spec.folder}"))


def held_out(
    points: Sequence[tuple[str, str]], share: float, unusable: Sequence[tuple[str, str]] = ()
) -> frozenset[tuple[str, str]]:
    """(config, load) pairs that the fit does not see: at least one, picked by a hash, the same on every run.

    Raises:
        CalibrationError: fewer than three pairs.
    """
    if len(points) < 3:
        reasons = "".join(f"\n  {cell}: {reason}" for cell, reason in unusable)
        raise CalibrationError(
            f"three measured pairs of config and load are needed (two to fit, one to test), {len(points)} can be used"
            + reasons
        )
    count = min(max(1, round(share * len(points))), len(points) - 2)
    return frozenset(sorted(points, key=lambda pair: ids.digest({"config": pair[0], "load": pair[1]}))[:count])


def document(calibration: Calibration) -> str:
    """The profile's file."""
    content = calibration.profile.model_dump(mode="json", exclude_none=True)
    return (
        "# SYNTHETIC: whatever is timed with this profile was not measured. Made by `goodput calibrate`.\n"
        f"{yaml.safe_dump(content, sort_keys=False, width=110)}"
    )


def report(calibration: Calibration, file: Path) -> str:
    """Every cell, measured beside predicted, and the mean error on those that the fit did not see."""
    lines = ["        predicted seconds, and how far they are off what was measured"]
    lines.append("        " + "".join(f"{name.upper():<18}" for name in LATENCIES))
    for one in sorted(calibration.predictions, key=lambda one: (one.fitted, one.cell.name)):
        texts = "".join(f"{_with_error(one, name):<18}" for name in LATENCIES)
        lines.append(f"{'fitted' if one.fitted else 'unseen'}  {texts}{one.cell.name}")
    lines += [f"not used: {cell}: {reason}" for cell, reason in calibration.unusable]
    if calibration.spread is not None:
        lines.append(f"blocks of one config and load differ by up to {calibration.spread:.2f} times in E2E")
    lines.append(f"mean error on cells that the fit did not see: {calibration.unseen_errors()}")
    lines.append(f"SYNTHETIC: {file} is a model, not a measurement")
    return "\n".join(lines)


def _spread(found: Sequence[tuple[CellDocument, ObservedCell]]) -> float | None:
    blocks: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for document, cell in found:
        blocks[document.config.id, document.load.id].append(cell.means.e2e)
    return max((max(values) / min(values) for values in blocks.values() if len(values) > 1), default=None)


def _with_error(one: Prediction, name: str) -> str:
    error = one.error(name)
    return "-" if error is None else f"{getattr(one.predicted, name):.4f} {error:+.1%}"


def _with_source(result: Calibration, base: str, cells: str) -> RooflineProfile:
    fitted = sum(one.fitted for one in result.predictions)
    source = (
        f"goodput calibrate: costs of {base} moved to fit {fitted} {cells}; mean "
        f"error on {len(result.predictions) - fitted} cells that the fit did not see: {result.unseen_errors()}"
    )
    return result.profile.model_copy(update={"source": source})
