"""Update a trained Tagger: new rows, labels and words, without training anew.

Rows keep the features that the Tagger knows; words that it does not know become new columns after the old ones. Known
labels learn from the new rows, held by the old weights, and new labels with them. A share of the new rows is held out
first, to see how the update does on rows it has not learned, and to learn again what scores mean as probabilities.
"""

from __future__ import annotations

import hashlib
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from longtail.data import Dataset, TopK
from longtail.decisions import GUARANTEES, Decision
from longtail.errors import DataError, ModelError, ParameterError, warn_of_data
from longtail.facts import DatasetFacts, UpdateFacts, UpdateVocabularyFacts
from longtail.metrics import evaluate
from longtail.model import HeldOut, Stages, Updatable, XMCEstimator
from longtail.monitoring import Reference
from longtail.pipeline.deciding import decide_on_held_out
from longtail.pipeline.drift import reference_of_held_out
from longtail.pipeline.held_out import held_out_facts, hold_out
from longtail.pipeline.label_numbering import with_ids_of
from longtail.pipeline.labels_in_vocabulary import (
    LISTED,
    count_ambiguous,
    deprecated_choice,
    match_labels,
    unknown_choice,
)
from longtail.pipeline.schema import MOST_DIGESTS
from longtail.text import BeginningFeatures, TfidfFeatures
from longtail.validate import Json, Rows, resolve_seed

if TYPE_CHECKING:
    from longtail.pipeline.tagger import Tagger

RANKED = 20  # labels per held-out row, as for a calibration
FEW_KNOWN = 0.1  # of the labels of new rows; fewer look like rows of other data ...
MANY_NEW = 10  # ... if there are so many new labels


def updatable(tagger: Tagger) -> Any:
    """Return a copy of the model to be changed, or say which models can be."""
    model = tagger.model_
    if not isinstance(model, Updatable):
        raise ModelError(
            f"a model of the method {tagger.method_name!r} cannot learn new rows; train it anew on all rows, or use "
            "the method 'tree' or 'ova'."
        )
    return copy(model)  # the arrays of a model are replaced by an update, never written to


def update_tagger(
    tagger: Tagger, data: Dataset, replay: Dataset | None = None, progress: Stages | None = None
) -> tuple[dict[str, Any], UpdateFacts]:
    """Return the new state of a Tagger that learned the rows of `data`, and the facts of the update.

    Rows of `replay` were learned before; they are shown again so that less of them is forgotten.
    """
    learned = [rows.compact_labels().digest() for rows in (data, replay) if rows is not None]
    data, matched = _matched(tagger, data)
    if not data.Y.nnz:
        raise DataError("the new data must hold at least one label; every row is empty.")
    model = updatable(tagger)
    _warn_of_odd_rows(tagger, data, learned[0])
    names = (*tagger.labels_, *sorted(set(data.names()) - set(tagger.labels_)))
    features, X = _read_rows(tagger, data)
    Y = data.align(names)[0].Y
    old = _replayed(tagger, replay, names, features)
    seed = resolve_seed(tagger.random_state)
    split = hold_out(Y, tagger.calibrate, seed) if model.calibrated_ else None
    state: dict[str, Any] = {"features_": features, "labels_": names, "held_out_": tagger.held_out_}
    held_out: HeldOut | None = None
    compared: Json | None = None
    feature_rows = _rows_with_features(features, tagger.model_.n_rows_, tagger.model_.n_features_in_)
    if split is not None:
        train, test = split
        trial = copy(model)
        if progress is not None:
            progress("Updating (calibration)", 0, 2)
        _learn(trial, X[train], Y[train], old, feature_rows)
        held_out = trial.judge(X[test], Y[test])
        state["held_out_"] = held_out_facts(held_out, seed)
        compared = _compare(tagger.model_, X[test], held_out)
        model.calibration_ = model.calibration_.joined(trial.calibration_)
    if progress is not None:
        progress("Updating", 1, 2)
    _learn(model, X, Y, old, feature_rows)
    if progress is not None:
        progress("Updating", 2, 2)
    state |= {"model_": model, "label_texts_": _label_texts(tagger, data, names)}
    state["data_"] = _data_facts(tagger, data, model, names)
    state["data_"]["digests"] = _digests(tagger.data_, learned)
    state["decision_"], decision = _decision(tagger, model, held_out)
    state["reference_"] = tagger.reference_
    if held_out is not None and split is not None:
        state["reference_"] = _reference(tagger, state, held_out, data.take(split[1]), data.n_rows)
    facts: UpdateFacts = {
        "rows": data.n_rows,
        "replayed": 0 if replay is None else replay.n_rows,
        "labels_added": list(names[len(tagger.labels_) :]),
        "features_added": int(model.n_features_in_ - tagger.model_.n_features_in_),
        "held_out": compared,
        "calibration": None if not model.calibrated_ else "kept" if split is None else "learned again",
        "decision": decision,
    }
    if matched is not None and tagger.vocabulary_ is not None:
        facts["vocabulary"] = matched
        known = tagger.vocabulary_
        facts["added_names"] = [known.name(id) if id in known else id for id in facts["labels_added"]]
    return state, facts


def _matched(tagger: Tagger, data: Dataset) -> tuple[Dataset, UpdateVocabularyFacts | None]:
    """Return new rows with labels called and chosen as in training, and facts about those the vocabulary lacks."""
    vocabulary, data = tagger.vocabulary_, data.compact_labels()
    if vocabulary is None:
        return data, None
    choice = unknown_choice(tagger.data_)
    given = set(data.names()) - set(tagger.labels_)
    count = count_ambiguous(data, tagger.labels_, vocabulary)
    data, _ = match_labels(data, vocabulary, choice, deprecated_choice(tagger.data_))
    strange = sorted(name for name in given if not vocabulary.candidates(name))
    return data.compact_labels(), {
        "unknown_labels": choice,
        "labels_unknown": len(strange),
        "unknown": strange[:LISTED],
        "labels_ambiguous": count,
    }


def _warn_of_odd_rows(tagger: Tagger, data: Dataset, digest: str) -> None:
    """Warn of rows that the model has learned before, and of rows with hardly any label that it knows."""
    if digest in _digests(tagger.data_, []):
        warn_of_data("the model has learned the new rows before, in its training or an update: it learns them twice.")
        return
    known, names = set(tagger.labels_), data.names()
    shared = np.array([name in known for name in names], dtype=bool)[data.Y.indices]
    if shared.mean() < FEW_KNOWN and len(set(names) - known) >= MANY_NEW:
        told = "none" if not shared.any() else f"only {100 * shared.mean():.0f}%"
        ours, theirs = (", ".join(repr(name[:60]) for name in some[:3]) for some in (names, tagger.labels_))
        warn_of_data(
            "the model knows {told} of the labels of the new rows: they have {ours}, the model {theirs}.",
            told=told,
            ours=ours,
            theirs=theirs,
        )


def _decision(tagger: Tagger, model: XMCEstimator, held_out: HeldOut | None) -> tuple[Decision | None, str | None]:
    """Return what is assigned after an update: a target is chosen again, a guarantee holds no more."""
    decision = tagger.decision_
    if decision is None:
        return None, None
    if decision.purpose.partition("=")[0] in GUARANTEES:
        return None, "dropped"
    if held_out is None:
        return decision, "kept"
    return decide_on_held_out(model, held_out, decision.purpose, decision.per), "learned again"


def _reference(tagger: Tagger, state: dict[str, Any], held_out: HeldOut, rows: Dataset, n_new: int) -> Reference | None:
    """Return the reference after an update: that of before with the new rows held out, where there is one."""
    if tagger.reference_ is None:
        return None
    after = copy(tagger)
    after.__dict__.update(state)
    before = tagger.model_
    new = reference_of_held_out(after, held_out, rows, learned_from=before.n_rows_ + n_new, first=before.n_features_in_)
    return tagger.reference_.joined(new, after.n_labels_)


def _read_rows(tagger: Tagger, data: Dataset) -> tuple[Any, Rows]:
    """Return the features with the new words of the texts, and the rows of the data."""
    features = tagger.features_
    if isinstance(features, TfidfFeatures | BeginningFeatures) and data.texts is not None:
        features = features.extended(data.texts, tagger.model_.n_rows_)
        return features, features.transform(data.texts)
    return features, tagger.dataset_rows(data)


def _replayed(
    tagger: Tagger, replay: Dataset | None, names: tuple[str, ...], features: Any
) -> tuple[Rows, sp.csr_array] | None:
    """Return rows and labels that are shown again; labels that the model has no more are left out."""
    if replay is None:
        return None
    if isinstance(features, TfidfFeatures | BeginningFeatures) and replay.texts is not None:
        X: Rows = features.transform(replay.texts)
    else:
        X = tagger.dataset_rows(replay)
    return X, with_ids_of(tagger, replay).align(names)[0].Y


def _learn(
    model: Any,
    X: Rows,
    Y: sp.csr_array,
    old: tuple[Rows, sp.csr_array] | None,
    feature_rows: np.ndarray | None,
) -> None:
    """Let a model learn rows, with those that are shown again after them."""
    replayed = 0
    if old is not None:
        X, Y, replayed = _stacked(X, old[0]), sp.csr_array(sp.vstack([Y, old[1]])), old[0].shape[0]
    model.widen(X.shape[1])
    model.partial_fit(X, Y, replayed=replayed, feature_rows=feature_rows)


def _rows_with_features(features: Any, n_rows: int, n_known: int) -> np.ndarray | None:
    """Return how many old rows had each feature; new ones: none."""
    if not isinstance(features, TfidfFeatures | BeginningFeatures):
        return None
    rows = features.rows_with_terms(n_rows)
    rows[n_known:] = 0.0
    return rows


def _stacked(X: Rows, more: Rows) -> Rows:
    """Return one matrix of two."""
    if isinstance(X, np.ndarray) and isinstance(more, np.ndarray):
        return np.vstack([X, more])
    return sp.csr_array(sp.vstack([sp.csr_array(X), sp.csr_array(more)]))


def _compare(before: XMCEstimator, X: Rows, after: HeldOut) -> Json:
    """Return precision on held-out new rows before and after the update."""
    rows = X[:, : before.n_features_in_]
    top = before.predict_topk(rows, k=RANKED)  # fewer labels leave empty places
    return {"rows": after.Y.shape[0], "before": _precisions(after.Y, top), "after": _precisions(after.Y, after.top)}


def _precisions(Y: sp.csr_array, top: TopK) -> Json:
    facts = evaluate(Y, top, n_bootstrap=0)["metrics"]
    return {name: facts[name]["value"] for name in ("p@1", "p@3", "p@5") if name in facts}


def _label_texts(tagger: Tagger, data: Dataset, names: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the texts of all labels, where the Tagger has some; a new label without one has its name."""
    if tagger.label_texts_ is None:
        return None
    given = {} if data.label_texts is None else dict(zip(data.names(), data.label_texts, strict=True))
    return (*tagger.label_texts_, *(given.get(name) or name for name in names[len(tagger.labels_) :]))


def _data_facts(tagger: Tagger, data: Dataset, model: Any, names: tuple[str, ...]) -> DatasetFacts:
    """Return the facts about all rows that the model has learned."""
    old, new = tagger.data_, data.summary()
    rows, counts = int(model.n_rows_), np.asarray(model.label_counts_)
    digest = hashlib.sha256(f"{old.get('digest', '')}{data.digest()}".encode()).hexdigest()
    facts: DatasetFacts = {
        **old,
        "digest": digest,
        "rows": rows,
        "labels": len(names),
        "labels_used": int((counts > 0).sum()),
        "labels_per_row": float(counts.sum()) / max(rows, 1),
        "rows_per_label": float(counts.sum()) / max(len(names), 1),
        "rows_without_labels": old.get("rows_without_labels", 0) + new["rows_without_labels"],
        "labels_seen_once": int((counts == 1).sum()),
        "updates": old.get("updates", 0) + 1,
        "rows_of_updates": old.get("rows_of_updates", 0) + data.n_rows,
    }
    if "features" in old:
        facts["features"] = int(model.n_features_in_)
    return facts


def _digests(old: DatasetFacts, learned: list[str]) -> list[str]:
    """Return the digests of all data that a model learned from, of its training first; of very many the last."""
    known = old.get("digests", [old["digest"]] if "digest" in old and not old.get("updates") else [])
    out = list(dict.fromkeys([*known, *learned]))
    return out if len(out) <= MOST_DIGESTS else [out[0], *out[1 - MOST_DIGESTS :]]


def check_labels_agree(tagger: Tagger) -> None:
    """Refuse a Tagger whose model was changed without it: its label names no longer fit."""
    known, own = len(tagger.labels_), tagger.model_.n_labels_
    if known != own:
        raise ModelError(
            f"the model of this Tagger has {own} labels, and the Tagger {known} names: it was changed on its own; "
            "use partial_fit, add_labels and remove_labels of the Tagger."
        )


def without_labels(tagger: Tagger, numbers: list[int]) -> dict[str, Any]:
    """Return the new state of a Tagger without some of its labels."""
    model = tagger.model_
    if not hasattr(model, "remove_labels"):
        raise ModelError(f"a model of the method {tagger.method_name!r} cannot let labels go; train it anew.")
    if len(set(numbers)) == tagger.n_labels_:
        raise ParameterError(name="labels", problem="must leave at least one label; got all of them.")
    gone, smaller = set(numbers), copy(model)
    smaller.remove_labels(sorted(gone))
    stays = [number for number in range(tagger.n_labels_) if number not in gone]
    texts = tagger.label_texts_
    data: DatasetFacts = {**tagger.data_, "labels": len(stays)}
    data["labels_removed"] = data.get("labels_removed", 0) + len(gone)
    return {
        "model_": smaller,
        "labels_": tuple(tagger.labels_[i] for i in stays),
        "label_texts_": None if texts is None else tuple(texts[i] for i in stays),
        "decision_": None if tagger.decision_ is None else tagger.decision_.of_labels(stays),
        "reference_": None if tagger.reference_ is None else tagger.reference_.of_labels(stays),
        "data_": data,
    }
