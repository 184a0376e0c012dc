"""From labels of groups to labels of rows: EAGLE on texts and names, with the facts of what was done and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.data import Dataset, GroupedDataset, GroupsOfRow, LabelsOfGroup
from longtail.errors import DataError, Keyword, ParameterError
from longtail.facts import ImputationFacts
from longtail.groups import Eagle, calibrated_confidence, group_likeness, group_shares, propagate
from longtail.model import RowClassifier, Stages, TextFeatures, rows_of_dataset
from longtail.pipeline.imputation_facts import imputing_facts
from longtail.pipeline.registry import new_features
from longtail.pipeline.shown import imputation_card
from longtail.tree import LabelTreeClassifier
from longtail.validate import RandomState, check_choice, check_integer, make_csr, resolve_seed

ASSIGNS = ("auto", "argmax", "top", "soft", "propagate")
DEFAULT_ASSIGN = "auto"
DEFAULT_ITERATIONS = 20


@dataclass(frozen=True, eq=False)
class Imputed:
    """All rows with the labels found for them, how likely each is right, and the facts of how they were found."""

    data: Dataset  # Y holds ones, or shares with assign="soft"
    confidence: sp.csr_array  # (n_rows, n_labels), one value for each label in Y
    facts: ImputationFacts

    def __repr__(self) -> str:
        return f"Imputed({self.data.name or 'unnamed'}: {self.facts['assigned']} labels for {self.data.n_rows} rows)"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what was done, and the first rows with the labels found for them."""
        return imputation_card(self.facts, self.data, self.confidence)

    @property
    def labels(self) -> list[tuple[str, ...]]:
        """The names of the labels of every row."""
        return [self.data.labels_of(row) for row in range(self.data.n_rows)]

    def labelled(self) -> Dataset:
        """Return the rows that got a label, to train on: that a row got none does not say that it has none."""
        return self.data.take(np.diff(self.data.Y.indptr) > 0)


def impute(
    texts: Iterable[str],
    groups: Iterable[GroupsOfRow],
    group_labels: Mapping[Any, LabelsOfGroup],
    **settings: Any,
) -> Imputed:
    """Find the labels of texts from the labels of groups of texts; settings are those of `impute_dataset`.

    `groups` has the name (or the number) of the group of every text, a list of them, or None. A label that stands twice
    among a group's labels belongs to two of its texts; counts, `{"fruit": 2}`, say the same.

    >>> texts = ["red apple", "fast car", "an old car", "green apple", "apple", "car"]
    >>> tags = {"1": ["fruit", "vehicle"], "2": ["vehicle", "fruit"], "3": ["fruit"], "4": ["vehicle"]}
    >>> impute(texts, ["1", "1", "2", "2", "3", "4"], tags).labels
    [('fruit',), ('vehicle',), ('vehicle',), ('fruit',), ('fruit',), ('vehicle',)]
    """
    return impute_dataset(GroupedDataset.from_lists(texts, groups, group_labels), **settings)


def impute_dataset(
    data: GroupedDataset,
    *,
    assign: str = DEFAULT_ASSIGN,
    n_iter: int = DEFAULT_ITERATIONS,
    rounds: int = 0,
    features: TextFeatures | None = None,
    model: RowClassifier | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    progress: Stages | None = None,
) -> Imputed:
    """Find the labels of the rows of a GroupedDataset.

    Parameters
    ----------
    assign : one of Eagle's ways, or "propagate", which gives every row all labels of its groups.
    n_iter : how often a label's vector is refined at most.
    rounds : how often a model is trained on the labels found and asked where they belong.
    features : how texts become rows; None for `TfidfFeatures()`.
    model : the model that is asked; None for a label tree.

    >>> data = GroupedDataset.from_lists(["red apple", "old car"], ["1", "2"], {"1": ["fruit"], "2": ["vehicle"]})
    >>> found = impute_dataset(data)
    >>> found.labels, found.facts["rows_without_labels"]
    ([('fruit',), ('vehicle',)], 0)
    """
    check_choice("assign", assign, ASSIGNS)
    n_iter, rounds = check_integer("n_iter", n_iter, low=0), check_integer("rounds", rounds, low=0)
    _refuse_idle(assign, n_iter, rounds, model)
    seed = resolve_seed(random_state)
    Y_groups = _with_rows(data)
    X = rows_of_dataset(data.rows, new_features(features, n_jobs), progress)
    if assign == "propagate":
        found, confidence = propagate(data.groups, Y_groups), group_shares(data.groups, Y_groups)
        alike = group_likeness(X, data.groups)
    else:
        if rounds and model is None:
            model = LabelTreeClassifier(random_state=seed, n_jobs=n_jobs)
        eagle = Eagle(n_iter, assign=assign, model=model, rounds=rounds, random_state=seed, n_jobs=n_jobs)
        tell = None if progress is None else lambda done, total: progress("Assigning labels", done, total)
        eagle.fit(X, data.groups, Y_groups, progress=tell)
        found, confidence, alike = eagle.row_labels_, eagle.confidence_, eagle.likeness_
        if assign != "soft":  # whose weights are the result
            confidence = calibrated_confidence(eagle, X, data.groups, Y_groups, seed)
    facts = imputing_facts(data, X, found, confidence, Y_groups, alike, assign, n_iter, rounds)
    return Imputed(replace(data.rows, Y=found), confidence, facts)


def _refuse_idle(assign: str, n_iter: int, rounds: int, model: RowClassifier | None) -> None:
    """Refuse settings that were given and would do nothing."""
    given = {"n_iter": n_iter != DEFAULT_ITERATIONS, "rounds": rounds > 0, "model": model is not None}
    idle = [name for name in given if given[name]] if assign == "propagate" else []
    if idle:
        raise ParameterError(
            "{name} has no effect with {other}, which learns nothing.", name=idle[0], other=Keyword("assign", assign)
        )
    if model is not None and not rounds:
        raise ParameterError(
            "{name} has no effect with {other}: it is never asked.", name="model", other=Keyword("rounds", 0)
        )


def _with_rows(data: GroupedDataset) -> sp.csr_array:
    """Return the labels of the groups that have rows; those of the others have nowhere to go."""
    size = np.bincount(data.groups.indices, minlength=data.n_groups)
    counts = np.where(size > 0, np.diff(data.Y_groups.indptr), 0)
    keep = np.repeat(size > 0, np.diff(data.Y_groups.indptr))
    if not keep.any():
        raise DataError("no group has both rows and labels, so no row can get a label.")
    Y = data.Y_groups
    return make_csr(np.concatenate([[0], np.cumsum(counts)]), Y.indices[keep], Y.data[keep], Y.shape[1])
