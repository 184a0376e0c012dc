"""Evaluate and compare taggers on data: predictions, every metric, calibration and examples, as facts for reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.data import Dataset, TopK, binary_hits, rows_per_label
from longtail.decisions import tradeoff_curve
from longtail.errors import DataError
from longtail.facts import (
    AssignedFacts,
    ByFacts,
    ComparisonFacts,
    EvaluationFacts,
    ExplanationFacts,
    LabelRowFacts,
    ModelFacts,
    PartOfRowsFacts,
    SuggestionFacts,
    TradeoffFacts,
    WordFacts,
    tail_points,
)
from longtail.metrics import (
    PROPENSITY_CONSTANTS,
    compare,
    evaluate,
    evaluate_sets,
    filter_topk,
    label_bands,
    propensities,
    share_interval,
)
from longtail.model import Estimator, TextReader, plain_value
from longtail.notebook import shown_as
from longtail.pipeline.deciding import assign, decision_facts, n_candidates, train_shares
from longtail.pipeline.label_numbering import LabelLimit, check_shared_labels, predict_dataset, truth
from longtail.pipeline.labels_in_vocabulary import count_ambiguous, deprecated_choice, ids_of, label_ids, with_ids
from longtail.pipeline.shown import ShownComparison, ShownEvaluation
from longtail.pipeline.tagger import Tagger
from longtail.text import BeginningFeatures
from longtail.validate import check_choice
from longtail.vocabulary import Vocabulary, add_names

LABELS_LISTED = 2000  # in facts and on pages; the records of all labels can be had one by one
WORST_LISTED = 20
ROWS_TO_JUDGE = 5  # that a label must have among the test rows to be one of the worst
PARTS_LISTED = 100
TRADEOFF_ROWS = 20_000
WORDS_SHOWN = 8
LETTERS_KEPT = 2000  # of the text of an example: a text may have megabytes, and a page holds every fact
LETTERS_OF_AN_EXAMPLE = 2_000_000  # of a text that is explained; nobody reads longer ones, and they take long
WORD_LETTERS_KEPT = 100
Naming = tuple[Vocabulary | None, str]
OF_NGRAMS = ("ngram_weight", "ngram_min_df")  # parameters of features without effect on single words
PLAIN = (bool, int, float, str, list)  # what parameters of features are in JSON


def evaluate_tagger(
    tagger: Tagger,
    data: Dataset,
    *,
    ks: Sequence[int] = (1, 3, 5),
    filter_pairs: Any = None,
    constants: str = "default",
    n_bootstrap: int = 1000,
    n_examples: int = 5,
    by: str | None = None,
    on_labels: Callable[[list[LabelRowFacts]], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
    allow: Sequence[str] | None = None,
    deny: Sequence[str] | None = None,
) -> EvaluationFacts:
    """Return the facts of an evaluation: metrics with intervals, bands, calibration, labels and worked examples.

    Labels of the data that the tagger has never seen stay in the truth, as misses. `filter_pairs` are (row, label)
    pairs that must not count, with labels numbered as in the data; `constants` names the propensity constants.
    With `by`, the name of the column that the groups of the rows are from, every group is judged by itself. `on_labels`
    gets the record of every label; the facts list the most frequent and the worst ones. With `allow` (only these
    labels) and `deny` (none of these) the others are neither predicted nor asked for.
    """
    check_shared_labels(tagger, data)
    ambiguous = count_ambiguous(data, tagger.labels_, tagger.vocabulary_)
    limit = LabelLimit.of([tagger], allow, deny)
    Y, names = truth(tagger, data)
    Y = limit.truth(Y, names)
    started = time.perf_counter()
    k = max(_n_predicted(ks, filter_pairs), n_candidates(tagger))  # the same predictions for rankings and for sets
    top = predict_dataset(tagger, data, k=k, progress=progress, limit=limit)
    seconds = time.perf_counter() - started
    facts = evaluation_facts(
        tagger, data, Y, names, top, ks=ks, filter_pairs=filter_pairs, constants=constants, n_bootstrap=n_bootstrap
    )
    if ambiguous:
        facts["data"]["labels_ambiguous"] = ambiguous
    best = _filtered(top, data, names, filter_pairs, _naming(tagger))
    labels = _label_table(Y, best.head(max(ks)), names, _counts(tagger, len(names)))
    labels = [row for row in labels if limit.may_give(row["label"])]
    facts["labels"], facts["labels_left_out"] = labels[:LABELS_LISTED], max(len(labels) - LABELS_LISTED, 0)
    facts["worst_labels"] = _worst(labels)
    if on_labels is not None:
        on_labels(add_names(labels, tagger.vocabulary_))
    if by is not None:
        facts["by"] = _by_groups(data, by, Y, best, ks, n_bootstrap)
    facts["timings"] = {"predict_seconds": seconds, "predict_ms_per_row": 1000 * seconds / max(data.n_rows, 1)}
    facts["examples"] = _examples(tagger, data, Y, names, n_examples, limit)
    return shown_as(ShownEvaluation, add_names(facts, tagger.vocabulary_))


def evaluate_predictions(
    top: TopK,
    labels: Sequence[str],
    data: Dataset,
    *,
    ks: Sequence[int] = (1, 3, 5),
    n_bootstrap: int = 1000,
    by: str | None = None,
    on_labels: Callable[[list[LabelRowFacts]], None] | None = None,
    train: Dataset | None = None,
    constants: str = "default",
) -> EvaluationFacts:
    """Return the facts about predictions of any program, whose labels are numbered as in `labels`.

    What needs the training rows `train`, such as propensities and the frequency of labels, is left out without them.
    `constants` names the propensity constants.
    """
    A, B = _constants(constants)
    compact = data.compact_labels()
    known = set(labels)
    if compact.Y.nnz and not known.intersection(compact.names()):
        raise DataError("the predictions and the data share no label.")
    names = (*labels, *sorted(set(compact.names()) - known))
    Y = compact.align(names)[0].Y
    counts = None if train is None else _counts_by_name(train, names)
    weights = None if train is None or counts is None else propensities(counts, train.n_rows, A=A, B=B)
    table = _label_table(Y, top.head(max(ks)), names, counts)
    if on_labels is not None:
        on_labels(table)
    facts: EvaluationFacts = {
        "title": f"{data.name or 'data'}: predictions",
        "data": data.summary(),
        "evaluation": evaluate(Y, top, ks=ks, propensity=weights, train_counts=counts, n_bootstrap=n_bootstrap),
        "labels": table[:LABELS_LISTED],
        "labels_left_out": max(len(table) - LABELS_LISTED, 0),
        "worst_labels": _worst(table),
    }
    if counts is not None:
        facts["data"]["tail"] = tail_points(counts.tolist())
    facts["evaluation"]["suggested_at_most"] = int((top.ids >= 0).sum(axis=1).max(initial=0))
    if by is not None:
        facts["by"] = _by_groups(data, by, Y, top, ks, n_bootstrap)
    return shown_as(ShownEvaluation, facts)


def evaluation_facts(
    tagger: Tagger,
    data: Dataset,
    Y: Any,
    names: Sequence[str],
    top: TopK,
    *,
    ks: Sequence[int] = (1, 3, 5),
    filter_pairs: Any = None,
    constants: str = "default",
    n_bootstrap: int = 1000,
) -> EvaluationFacts:
    """Return the facts about predictions that were made already."""
    counts = _counts(tagger, len(names))
    A, B = _constants(constants)
    weights = propensities(counts, tagger.model_.n_rows_, A=A, B=B)
    top = _filtered(top, data, names, filter_pairs, _naming(tagger))
    calibrated = tagger.model_.calibrated_
    scored = tagger.model_.probabilities(top) if calibrated else top
    metrics = evaluate(
        Y,
        scored,
        ks=ks,
        propensity=weights,
        train_counts=counts,
        ancestors=_ancestors(names, tagger.vocabulary_),
        probabilities=calibrated,
        n_bootstrap=n_bootstrap,
    )
    summary = data.summary()
    unseen = int((np.bincount(Y.indices, minlength=len(names))[tagger.n_labels_ :] > 0).sum())
    summary["labels_unknown_to_model"] = unseen
    summary["tail"] = tail_points(counts.tolist())
    facts: EvaluationFacts = {
        "title": f"{data.name or 'data'}: {tagger.method_name}",
        "model": model_facts(tagger),
        "data": summary,
        "evaluation": metrics,
        "assigned": _assigned_facts(tagger, Y, top, n_bootstrap),
        "tradeoff": _tradeoff(tagger, Y, scored, max(ks)) if calibrated else None,
        "labels": _label_table(Y, top.head(max(ks)), names, counts)[:LABELS_LISTED],
    }
    return shown_as(ShownEvaluation, facts)


def compare_taggers(
    a: Tagger,
    b: Tagger,
    data: Dataset,
    *,
    ks: Sequence[int] = (1, 3, 5),
    filter_pairs: Any = None,
    constants: str = "default",
    n_bootstrap: int = 1000,
    progress: Callable[[int, int], None] | None = None,
    allow: Sequence[str] | None = None,
    deny: Sequence[str] | None = None,
) -> ComparisonFacts:
    """Return where tagger b is better or worse than a on the same rows, with intervals and p-values.

    With `allow` (only these labels) and `deny` (none of these) the others are neither predicted nor asked for.
    """
    vocabulary = a.vocabulary_ if a.vocabulary_ is not None else b.vocabulary_
    a, b = (_with_vocabulary(tagger, vocabulary) for tagger in (a, b))
    limit = LabelLimit.of([a, b], allow, deny)
    for tagger, called in ((a, "model a"), (b, "model b")):
        check_shared_labels(tagger, data, called)
    names = [*a.labels_, *sorted(set(b.labels_) - set(a.labels_))]
    summary, ambiguous = data.summary(), count_ambiguous(data, names, vocabulary)
    if ambiguous:
        summary["labels_ambiguous"] = ambiguous
    deprecated = max(deprecated_choice(tagger.data_) for tagger in (a, b))  # replace, if one of them does
    compact = with_ids(data.compact_labels(), vocabulary, deprecated)
    names += sorted(set(compact.names()) - set(names))
    Y = limit.truth(compact.align(names)[0].Y, names)
    tops = []
    for tagger in (a, b):
        top = predict_dataset(tagger, data, k=_n_predicted(ks, filter_pairs), progress=progress, limit=limit)
        where = {name: i for i, name in enumerate(names)}
        renumber = np.array([*(where[name] for name in tagger.labels_), -1], dtype=np.int32)
        tops.append(_filtered(TopK(renumber[top.ids], top.scores), data, names, filter_pairs, (vocabulary, deprecated)))
    counts = np.zeros(len(names), dtype=np.int64)
    position = {name: i for i, name in enumerate(names)}
    for name, count in zip(a.labels_, a.model_.label_counts_, strict=True):
        counts[position[name]] = count
    A, B = _constants(constants)
    weights = propensities(counts, a.model_.n_rows_, A=A, B=B)
    differences = compare(
        Y,
        *tops,
        ks=ks,
        propensity=weights,
        train_counts=counts,
        bands=label_bands(counts),
        ancestors=_ancestors(names, vocabulary),
        n_bootstrap=n_bootstrap,
    )
    facts: ComparisonFacts = {
        "title": f"{data.name or 'data'}: a against b",
        "a": model_facts(a),
        "b": model_facts(b),
        "data": summary,
        "comparison": differences,
    }
    return shown_as(ShownComparison, facts)


def _with_vocabulary(tagger: Tagger, vocabulary: Vocabulary | None) -> Tagger:
    """Return a tagger that calls its labels by the ids of a vocabulary, if it was trained without one."""
    if vocabulary is None or tagger.vocabulary_ is not None:
        return tagger
    view = copy(tagger)
    view.labels_, view.vocabulary_ = label_ids(tagger.labels_, vocabulary), vocabulary
    return view


def model_facts(tagger: Tagger) -> ModelFacts:
    """Return the method, parameters and training data of a tagger."""
    return {
        "method": tagger.method_name,
        **tagger.model_.describe(),
        **({} if tagger.features_ is None else {"reads": reading_facts(tagger.features_)}),
        "decision": decision_facts(tagger),
        "held_out": tagger.held_out_,
        "trained_on": tagger.data_,
    }


def reading_facts(features: TextReader) -> dict[str, Any]:
    """Return how texts become rows: the class of the features and their parameters."""
    if isinstance(features, BeginningFeatures):
        whole = reading_facts(features.tfidf_)
        return {**whole, "features": type(features).__name__, "beginning": features.n_words_}
    params = features.get_params(deep=False) if isinstance(features, Estimator) else {}
    told: dict[str, Any] = {"features": type(features).__name__}
    for name, value in params.items():
        if name not in ("n_jobs", "device"):
            plain = plain_value(list(value) if isinstance(value, tuple) else value)
            told[name] = plain if plain is None or isinstance(plain, PLAIN) else f"{plain!s:.200}"
    single = told.get("ngrams") == [1, 1]
    return {name: value for name, value in told.items() if not (single and name in OF_NGRAMS)}


def _assigned_facts(tagger: Tagger, Y: Any, top: TopK, n_bootstrap: int) -> AssignedFacts:
    """Return how good the label sets are that the tagger assigns, and how it decides."""
    sets = evaluate_sets(Y, assign(tagger, top), n_bootstrap=n_bootstrap)
    return {**sets, "decision": decision_facts(tagger)}


def _tradeoff(tagger: Tagger, Y: Any, chances: TopK, k: int) -> TradeoffFacts | None:
    """Return P@k against macro-F1@k, from at most so many rows, evenly spread; None without a choice among labels."""
    if chances.k <= k:
        return None
    step = -(-chances.n_rows // TRADEOFF_ROWS)
    return tradeoff_curve(Y[::step], chances[::step], k, train_shares(tagger.model_))


def _n_predicted(ks: Sequence[int], filter_pairs: Any) -> int:
    """Return how many labels to predict for a row: more than are judged where some will be filtered out."""
    return max(ks) if filter_pairs is None else max(100, 2 * max(ks))


def _naming(tagger: Tagger) -> Naming:
    """Return what the labels of data are called by: a vocabulary, and what is done with its deprecated concepts."""
    return tagger.vocabulary_, deprecated_choice(tagger.data_)


def _filtered(top: TopK, data: Dataset, names: Sequence[str], filter_pairs: Any, naming: Naming) -> TopK:
    if filter_pairs is None:
        return top
    where = {name: i for i, name in enumerate(names)}
    pairs = np.asarray(filter_pairs, dtype=np.int64).reshape(-1, 2)
    if pairs.size and (pairs[:, 1].min() < 0 or pairs[:, 1].max() >= data.n_labels):
        worst = int(pairs[:, 1].max())
        raise DataError(f"the filter names label {worst}; the data has labels 0 to {data.n_labels - 1}.")
    named, codes = np.unique(pairs[:, 1], return_inverse=True)
    known = [str(i) if data.label_names is None else data.label_names[i] for i in named.tolist()]
    numbers = np.array([where.get(name, -1) for name in ids_of(known, *naming)], dtype=np.int64)[codes]
    kept = numbers >= 0  # a label that neither the model nor the rows know is never predicted
    return filter_topk(top, np.column_stack([pairs[:, 0], numbers])[kept])


def _ancestors(names: Sequence[str], vocabulary: Vocabulary | None) -> sp.csr_array | None:
    """Return what stands above each label, where a vocabulary tells that."""
    return vocabulary.ancestors(names) if vocabulary is not None and vocabulary.has_hierarchy else None


def _constants(name: str) -> tuple[float, float]:
    return PROPENSITY_CONSTANTS[check_choice("constants", name, tuple(PROPENSITY_CONSTANTS))]


def _counts(tagger: Tagger, n_labels: int) -> np.ndarray:
    counts = np.zeros(n_labels, dtype=np.int64)
    counts[: tagger.n_labels_] = tagger.model_.label_counts_
    return counts


def _counts_by_name(train: Dataset, names: Sequence[str]) -> np.ndarray:
    """Return how many training rows have each of some labels, which are matched by name."""
    compact = train.compact_labels()
    count_of = dict(zip(compact.names(), rows_per_label(compact.Y).tolist(), strict=True))
    counts = np.array([count_of.get(name, 0) for name in names], dtype=np.int64)
    if not counts.any():
        raise DataError(f"{train.name or 'the training data'} has none of the labels of the predictions and the data.")
    return counts


def _by_groups(data: Dataset, column: str, Y: Any, top: TopK, ks: Sequence[int], n_bootstrap: int) -> ByFacts:
    """Return the metrics of every group of rows, at most 100, the largest first."""
    if data.groups is None:
        raise DataError("{name} has no column {column!r}.", name="the data", column=column)
    names = data.group_names or tuple(str(i) for i in range(data.groups.shape[1]))
    members = data.groups.tocsc()
    sizes = np.diff(members.indptr)
    order = [i for i in np.argsort(-sizes, kind="stable").tolist() if sizes[i]]
    parts: list[PartOfRowsFacts] = []
    for i in order[:PARTS_LISTED]:
        rows = np.sort(members.indices[members.indptr[i] : members.indptr[i + 1]])
        found = evaluate(Y[rows], top[rows], ks=ks, n_bootstrap=n_bootstrap)["metrics"]
        parts.append({"value": names[i], "rows": len(rows), "metrics": found})
    without = int((np.diff(data.groups.indptr) == 0).sum())
    return {"column": column, "parts": parts, "rows_without": without, "parts_left_out": len(order) - len(parts)}


def _worst(labels: Sequence[LabelRowFacts]) -> list[LabelRowFacts]:
    """Return the labels with the lowest recall, of those with some test rows; the more frequent first."""
    judged = [row for row in labels if row["test_count"] >= ROWS_TO_JUDGE and (row["recall"] or 0.0) < 1]
    worst = sorted(judged, key=lambda row: (row["recall"] or 0.0, -row["test_count"]))[:WORST_LISTED]
    out: list[LabelRowFacts] = []
    for row in worst:
        low, high = share_interval(round((row["recall"] or 0.0) * row["test_count"]), row["test_count"])
        out.append({**row, "recall_low": low, "recall_high": high})
    return out


def _label_table(Y: Any, top: TopK, names: Sequence[str], counts: np.ndarray | None) -> list[LabelRowFacts]:
    """Return one record per label, those of most test rows first, then of most training rows."""
    n = len(names)
    true = np.bincount(Y.indices, minlength=n)
    predicted = np.bincount(top.ids[top.ids >= 0], minlength=n)
    right = np.bincount(top.ids[binary_hits(top, Y)], minlength=n)
    trained = np.zeros(n, dtype=np.int64) if counts is None else counts
    order = np.lexsort((np.arange(n), -trained, -true))
    columns = (order, true[order], predicted[order], right[order], trained[order])
    out: list[LabelRowFacts] = []
    for i, n_true, n_predicted, n_right, n_trained in zip(*(column.tolist() for column in columns), strict=True):
        row: LabelRowFacts = {"label": names[i]} if counts is None else {"label": names[i], "train_count": n_trained}
        row["test_count"] = n_true
        row["precision"] = n_right / n_predicted if n_predicted else None
        row["recall"] = n_right / n_true if n_true else None
        row["f1"] = 2 * n_right / (n_true + n_predicted) if n_true else None
        out.append(row)
    return out


def _examples(
    tagger: Tagger, data: Dataset, Y: Any, names: Sequence[str], n: int, limit: LabelLimit
) -> list[ExplanationFacts]:
    """Return a few rows spread over the data, with the words behind each suggestion."""
    if data.texts is None or not tagger.model_.explains_words(tagger.features_):
        return []
    out: list[ExplanationFacts] = []
    may = {of: None if some is None else sorted(some) for of, some in limit._asdict().items()}
    readable = [row for row, text in enumerate(data.texts) if len(text) <= LETTERS_OF_AN_EXAMPLE]
    for at in np.unique(np.linspace(0, len(readable) - 1, num=min(n, len(readable))).astype(int)):
        row = readable[at]
        true = [names[i] for i in Y.indices[Y.indptr[row] : Y.indptr[row + 1]]]
        suggested = tagger.explain(data.texts[row], k=5, **may)["predicted"]
        text = _cut(data.texts[row], LETTERS_KEPT)
        out.append({"text": text, "true": true, "predicted": [_suggestion(tag, true) for tag in suggested]})
    return out


def _suggestion(suggestion: SuggestionFacts, true: Sequence[str]) -> SuggestionFacts:
    """Return an explained suggestion of an example, with the most telling words only."""
    words: list[WordFacts] = [
        {"word": _cut(word["word"], WORD_LETTERS_KEPT), "weight": word["weight"]}
        for word in suggestion["words"][:WORDS_SHOWN]
    ]
    out: SuggestionFacts = {
        "label": suggestion["label"],
        "score": suggestion["score"],
        "probability": suggestion["probability"],
        "correct": suggestion["label"] in true,
        "words": words,
        "path": suggestion["path"],
    }
    if suggestion.get("experts"):
        out["experts"] = suggestion["experts"]
    return out


def _cut(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[:letters] + " …"
