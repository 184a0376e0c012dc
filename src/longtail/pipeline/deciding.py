"""Which labels a Tagger assigns, for `predict`, `evaluate` and the commands alike, and how a decision is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.data import Dataset, TopK
from longtail.decisions import (
    CANDIDATES,
    Decision,
    assigned_only,
    check_purpose,
    decode_batch,
    learn_decision,
    read_goal,
)
from longtail.errors import DataError, Keyword, ModelError, ParameterError
from longtail.facts import DecisionFacts
from longtail.model import HeldOut, XMCEstimator
from longtail.pipeline.label_numbering import check_shared_labels, predict_dataset, truth
from longtail.pipeline.labels_in_vocabulary import count_ambiguous
from longtail.validate import check_integer

if TYPE_CHECKING:
    from longtail.pipeline.tagger import Tagger


def n_candidates(tagger: Tagger, optimise: str | None = None) -> int:
    """Return how many labels of a row a decision looks at."""
    wanted = tagger.decision_.candidates if tagger.decision_ is not None else CANDIDATES
    if optimise is not None:
        wanted = max(CANDIDATES, read_goal(optimise).k)
    return min(wanted, tagger.n_labels_)


def assign(tagger: Tagger, top: TopK, k: int | None = None, optimise: str | None = None) -> TopK:
    """Return the labels that rows are given out of their candidates, best first, at most k.

    With `optimise`, a goal such as "macro-f1@5", for all rows together; else as the stored decision of the Tagger says,
    or the threshold of its calibration where it has none.
    """
    if k is not None:
        check_integer("k", k, low=1)
    if optimise is not None:
        goal, model = read_goal(optimise), tagger.model_
        check_probabilities(tagger, "optimise")
        keep = decode_batch(model.probabilities(top), goal, train_shares(model)).keep
    elif tagger.decision_ is not None:
        keep = tagger.decision_.chosen(tagger.model_.probabilities(top.head(tagger.decision_.candidates)))
    else:
        keep = tagger.model_.chosen(top)
    return assigned_only(top, keep, k)


def check_probabilities(tagger: Tagger, argument: str) -> None:
    """Refuse what needs probabilities where the model has none."""
    if tagger.model_._why_no_probabilities() is not None:
        raise ParameterError(
            "{name} needs probabilities, and the model was trained without rows held out for them; "
            "train it again with {how}, on 50 rows or more.",
            name=argument,
            how=Keyword("calibrate", 0.1),
        )


def train_shares(model: XMCEstimator) -> np.ndarray:
    """Return the share of training rows that have each label."""
    return np.asarray(model.label_counts_) / max(model.n_rows_, 1)


def has_learned(tagger: Tagger, data: Dataset) -> bool:
    """Say whether a Tagger was trained or updated on just these rows."""
    learned = {tagger.data_.get("digest"), *tagger.data_.get("digests", ())}
    return data.compact_labels().digest() in learned


def decide_on_held_out(model: XMCEstimator, held_out: HeldOut, target: str, per: str) -> Decision:
    """Return the decision for a target, chosen on the rows that a training held out."""
    chances = model.probabilities(held_out.top)
    return learn_decision(held_out.Y, chances, held_out.label_counts, held_out.n_rows, target=target, per=per)


def decide_on_data(
    tagger: Tagger, data: Dataset, target: str | None = None, guarantee: str | None = None, per: str = "global"
) -> tuple[Decision, TopK]:
    """Return the decision for a target or a guarantee, chosen on rows not trained on, and the candidates of these."""
    check_purpose(target, guarantee, per)
    check_probabilities(tagger, "target" if guarantee is None else "guarantee")
    if has_learned(tagger, data):
        how = "trained or updated on" if tagger.data_.get("updates") else "trained on"
        raise DataError(
            f"{{input}} is what the model was {how}; a decision needs rows that it has not seen.", input="the data"
        )
    check_shared_labels(tagger, data)
    count_ambiguous(data, tagger.labels_, tagger.vocabulary_)
    Y, _ = truth(tagger, data)
    top = predict_dataset(tagger, data, k=min(CANDIDATES, tagger.n_labels_))
    model = tagger.model_
    chances = model.probabilities(top)
    purpose: dict[str, Any] = {"target": target, "guarantee": guarantee, "per": per}
    return learn_decision(Y, chances, model.label_counts_, model.n_rows_, **purpose), top


def decision_facts(tagger: Tagger) -> DecisionFacts:
    """Return how the Tagger decides which labels are assigned."""
    decision, model = tagger.decision_, tagger.model_
    if decision is None:
        threshold = model.calibration_.threshold if model.calibrated_ else None
        rows = model.calibration_.n_rows if model.calibrated_ else 0
        return {
            "purpose": "f1" if model.calibrated_ else "score",
            "per": "global",
            "threshold": threshold,
            "k": None,
            "candidates": n_candidates(tagger),
            "rows": rows,
        }
    return {
        "purpose": decision.purpose,
        "per": decision.per,
        "threshold": decision.threshold,
        "k": decision.k,
        "candidates": decision.candidates,
        "rows": decision.n_rows,
        "reached": dict(decision.reached),
    }


def check_loaded(tagger: Tagger, decision: Decision) -> Decision:
    """Return a decision that was loaded, if it fits the model."""
    if decision.scales.size > tagger.n_labels_:
        raise ModelError(f"a decision for {decision.scales.size} labels does not fit {tagger.n_labels_} labels.")
    if tagger.model_._why_no_probabilities() is not None:
        raise ModelError("a decision needs probabilities, and the model has none.")
    return decision
