"""Precision and recall at every threshold on the rows held out of a training, and the threshold that suits a target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.decisions import KGoal, Target, read_target
from longtail.errors import ParameterError
from longtail.facts import ThresholdFacts, ThresholdsFacts
from longtail.model import Cuts

if TYPE_CHECKING:
    from longtail.pipeline.tagger import Tagger

OFFERED = ("f1", "precision=0.9", "precision=0.8", "recall=0.8", "recall=0.9", "labels-per-row=3")
NOT_CALIBRATED = "the model was trained without rows held out, so nothing is known of its thresholds"
NO_CUTS = "the model was saved by an earlier version, which did not keep what its thresholds give"


def threshold_facts(tagger: Tagger) -> ThresholdsFacts:
    """Return precision, recall and labels per row at every threshold, as counted on the rows held out."""
    cuts = _cuts(tagger)
    default = _own_threshold(tagger)
    if cuts is None:
        reason = NO_CUTS if tagger.model_.calibrated_ else NOT_CALIBRATED
        return {"points": None, "default": default, "rows": 0, "reason": f"{reason}."}
    precision, recall, per_row = _curves(cuts)
    points: list[ThresholdFacts] = [
        {
            "threshold": round(at / (cuts.given.size - 1), 4),
            "precision": None if not cuts.given[at] else float(precision[at]),
            "recall": float(recall[at]),
            "labels_per_row": float(per_row[at]),
        }
        for at in range(cuts.given.size)
    ]
    return {"points": points, "default": default, "rows": cuts.n_rows, "reason": None}


def threshold_for(tagger: Tagger, target: str) -> float:
    """Return the probability from which labels are given for a target such as "precision=0.8"; else ParameterError."""
    wanted = read_target(target)
    decision = tagger.decision_
    if decision is not None and decision.purpose == str(wanted) and decision.per == "global" and decision.k is None:
        return -decision.shift
    cuts = _cuts(tagger)
    if isinstance(wanted, KGoal) or wanted.name == "macro-f1":
        raise ParameterError(f"target {target!r} needs a decision that the model was saved with; it has another.")
    if cuts is None:
        raise ParameterError(
            f"target {target!r} cannot be chosen by: {NO_CUTS if tagger.model_.calibrated_ else NOT_CALIBRATED}."
        )
    if wanted.name == "f1":
        return float(tagger.model_.calibration_.threshold)
    return _reaching(cuts, wanted)


def offered_targets(tagger: Tagger) -> list[dict[str, str]]:
    """Return targets that labels can be asked for by, each with a sentence on what it gives on held-out rows."""
    cuts = _cuts(tagger)
    if cuts is None:
        return []
    precision, recall, per_row = _curves(cuts)
    out = []
    for target in OFFERED:
        try:
            threshold = threshold_for(tagger, target)
        except ParameterError:
            continue
        at = min(int(np.ceil(threshold * (cuts.given.size - 1) - 1e-9)), cuts.given.size - 1)
        sentence = (
            f"From a probability of {threshold:.1%}: {precision[at]:.0%} of the labels given are right, "
            f"{recall[at]:.0%} of the true ones are given, {per_row[at]:.1f} labels a text."
        )
        out.append({"name": target, "sentence": sentence})
    return out


def _cuts(tagger: Tagger) -> Cuts | None:
    return tagger.model_.calibration_.cuts if tagger.model_.calibrated_ else None


def _own_threshold(tagger: Tagger) -> float | None:
    """Return the threshold by which the Tagger itself assigns labels; None where it has none."""
    if tagger.decision_ is not None:
        return tagger.decision_.threshold
    return float(tagger.model_.calibration_.threshold) if tagger.model_.calibrated_ else None


def _curves(cuts: Cuts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return precision (1 where nothing is given), recall and labels per row at every cut."""
    precision = np.where(cuts.given > 0, cuts.right / np.maximum(cuts.given, 1), 1.0)
    return precision, cuts.right / max(cuts.n_true, 1), cuts.given / max(cuts.n_rows, 1)


def _reaching(cuts: Cuts, target: Target) -> float:
    """Return the threshold for a share or a number of labels; what none reaches is refused with the best."""
    precision, recall, per_row = _curves(cuts)
    value = target.value or 0.0
    if target.name == "precision":
        fits = np.flatnonzero((precision >= value) & (cuts.given > 0))
        best, at = float(precision[cuts.given > 0].max(initial=0.0)), fits[0] if fits.size else -1
    elif target.name == "recall":
        fits = np.flatnonzero(recall >= value)
        best, at = float(recall[0]), fits[-1] if fits.size else -1
    else:
        fits = np.flatnonzero(per_row <= value)
        best, at = float(per_row[-1]), fits[0] if fits.size else -1
    if at < 0:
        raise ParameterError(
            f"target {str(target)!r} is reached by no threshold on held-out rows; the best is {best:.2f}."
        )
    return float(at) / (cuts.given.size - 1)
