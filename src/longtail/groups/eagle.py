"""EAGLE: finding the rows of a group to which each of the group's labels belongs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
import scipy.sparse as sp

from longtail.errors import Keyword
from longtail.groups.ask_model import TopKModel, check_model, rank_by_model
from longtail.groups.grouped_rows import GroupedRows
from longtail.groups.learn_vectors import BestRows, EaglePlan, best_of_rest, filled_up, learn, whole_rest
from longtail.groups.likeness import (
    ALIKE,
    DAMPING,
    FREQUENT,
    MUCH_ALIKE,
    damped,
    expected_counts,
    group_sums,
    likeness,
    more_of_large_groups,
    share_of_groups,
)
from longtail.kernels import Progress
from longtail.model import Estimator, Idle
from longtail.validate import (
    MatrixLike,
    RandomState,
    as_rows,
    check_choice,
    check_flag,
    check_integer,
    check_real,
    make_csr,
    resolve_jobs,
    resolve_seed,
)

if TYPE_CHECKING:
    from sklearn.utils import Tags

ASSIGNS = ("argmax", "top", "soft", "auto")
LEAST_SHARE = 0.1  # rows less likely than this get nothing from a soft assignment
ALMOST = 0.01  # of a row: an expected count so near to a whole number is that number
EXTRA = 8  # candidates beside twice the wanted rows that a model may choose from


class Eagle(Estimator):
    """Labels of rows from labels of groups: every label goes to the rows of a group nearest to the label's vector.

    Parameters
    ----------
    n_iter : int, default=20
        How often, at most, a label chooses rows and its vector moves towards them; 0 keeps the start. The start is the
        mean of all rows of the label's groups, a group counting as often as it has the label.
    step : float, default=0.1
        How far the vector moves at each turn (`assign="auto"` and `negatives=True` replace it instead).
    assign : {"argmax", "top", "soft", "auto"}, default="argmax"
        "argmax": one row per group and label, as published; "top": a label counted c times in a group goes to the c
        nearest rows; "soft": weights instead, which add up to c in a group; "auto": chosen by the data (see Notes).
    negatives : bool, default=None
        Whether groups without the label push its vector away: it starts as the mean of its groups' rows less the mean
        of all other rows, and moves to the mean of the chosen rows less that of the others. None: with "auto" only.
    damping : float, default=None
        Features are divided by this power of their standard deviation before rows are compared. None: 0.25 with
        "auto", else 0.
    temperature : float, default=1.0
        Higher spreads a label over more rows of a group.
    threshold : float, default=0.01
        Smaller values of a label's vector are dropped, so that at most 1 / threshold² remain.
    model : estimator, default=None
        A model with `fit` and `predict_topk`, for `rounds`.
    rounds : int, default=0
        How often `model` is trained on the labels found so far and asked which rows they suit.
    folds : int, default=2
        Parts of the groups; each is asked of a model trained on the others.
    random_state : int, Generator or RandomState, default=None
        Seed of the folds.
    n_jobs : int, default=None
        Threads; None for all cores. The result is the same for any number.

    Attributes
    ----------
    row_labels_ : csr_array of shape (n_rows, n_labels)
        Labels of the rows, 1 each; weights with "soft".
    confidence_ : csr_array of shape (n_rows, n_labels)
        For each entry of `row_labels_`, how likely it is right.
    label_vectors_ : csr_array of shape (n_labels, n_features)
        Vectors of the labels, in terms of the features given (damping included).
    likeness_ : float
        How alike the rows of a group are: 0 as different as rows anywhere, 1 the same.

    Notes
    -----
    "auto" uses negatives, damping and counts. Where rows of a group are alike, vectors are refined `n_iter` times; else
    the start is already unbiased and is kept. If no group has a label twice, counts are taken to be unknown and
    estimated: from the share of groups that have a label follows how many rows of such a group have it, if the labels
    of its rows are as alike as the rows are: one row in random groups, all rows (plain propagation) where they are the
    same. With a likeness of 0.01 to 0.15, labels that a fifth of the groups or more have are then not refined, and in
    groups of more than 8 rows get size / 8 times as many rows: that such a group has one says little about how many of
    its rows do.

    Rows in no group get no labels; a label in no group gets a zero vector. Rows of zeros are chosen only in groups
    that have no other row. A row that gets a label from two groups keeps the greater share.

    >>> X = [[1, 0], [0, 1], [1, 0.1], [0.1, 1]]
    >>> groups = [[1, 0], [1, 0], [0, 1], [0, 1]]      # rows 0 and 1, rows 2 and 3
    >>> Eagle(assign="auto").fit_transform(X, groups, [[1, 1], [1, 1]]).toarray().sum(axis=0).tolist()
    [2.0, 2.0]
    """

    row_labels_: sp.csr_array
    confidence_: sp.csr_array
    label_vectors_: sp.csr_array
    likeness_: float

    def __init__(
        self,
        n_iter: int = 20,
        *,
        step: float = 0.1,
        assign: str = "argmax",
        negatives: bool | None = None,
        damping: float | None = None,
        temperature: float = 1.0,
        threshold: float = 0.01,
        model: TopKModel | None = None,
        rounds: int = 0,
        folds: int = 2,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_iter = n_iter
        self.step = step
        self.assign = assign
        self.negatives = negatives
        self.damping = damping
        self.temperature = temperature
        self.threshold = threshold
        self.model = model
        self.rounds = rounds
        self.folds = folds
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _learned(self) -> list[tuple[str, object]]:
        if not hasattr(self, "row_labels_"):
            return []
        found = self.row_labels_
        return [
            ("rows", f"{found.shape[0]:,}"),
            ("labels", f"{found.shape[1]:,}"),
            ("labels given to rows", f"{found.nnz:,}"),
            ("rows without a label", f"{int((np.diff(found.indptr) == 0).sum()):,}"),
            ("likeness of the rows of a group", f"{self.likeness_:.2f}"),
        ]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # rows come with groups, which scikit-learn's tools do not know
        return tags

    def idle_params(self) -> dict[str, Idle]:
        out: dict[str, Idle] = {}
        if self.negatives or (self.negatives is None and self.assign == "auto"):
            why = Keyword("negatives", True) if self.negatives else Keyword("assign", "auto")
            out |= self._idle_among("step", word="with", other=why)
        if not self.rounds:
            out |= self._idle_among("model", "folds", word="with", other=Keyword("rounds", 0))
        return out

    def fit(self, X: MatrixLike, groups: MatrixLike, Y_groups: MatrixLike, *, progress: Progress | None = None) -> Self:
        """Learn the labels' vectors and the labels of the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows.
        groups : array-like or sparse matrix of shape (n_rows, n_groups)
            Not 0 where a row is in a group.
        Y_groups : array-like or sparse matrix of shape (n_groups, n_labels)
            How often each group has each label.
        progress : callable, default=None
            Called with (done, total) as labels are finished.
        """
        assign = check_choice("assign", self.assign, ASSIGNS)
        rounds, folds = check_integer("rounds", self.rounds, low=0), check_integer("folds", self.folds, low=2)
        seed, n_jobs = resolve_seed(self.random_state), resolve_jobs(self.n_jobs)
        model = check_model(self.model, rounds) if rounds else None
        self._warn_of_idle_params()
        damping = DAMPING if assign == "auto" else 0.0
        if self.damping is not None:
            damping = check_real("damping", self.damping, low=0, high=1)
        grouped = GroupedRows.make(X, groups, Y_groups)
        compared = damped(grouped.X, damping)
        sums = group_sums(compared, grouped.groups)
        self.likeness_ = likeness(compared, grouped.groups, sums)
        plan = self._plan(grouped, assign, rounds > 0)
        best, self.label_vectors_ = learn(grouped, compared, sums, plan, n_jobs, progress)
        self._assign(grouped, plan, best, assign)
        if model is not None:
            rows = as_rows(X, "X")
            for _ in range(rounds):
                best = rank_by_model(model, rows, self.row_labels_, grouped, best, folds, seed)
                self._assign(grouped, plan, best, assign)
        return self

    def fit_transform(
        self, X: MatrixLike, groups: MatrixLike, Y_groups: MatrixLike, *, progress: Progress | None = None
    ) -> sp.csr_array:
        """Learn and return the labels of the rows, CSR (n_rows, n_labels); a row that gets none is empty."""
        return self.fit(X, groups, Y_groups, progress=progress).row_labels_

    def _plan(self, grouped: GroupedRows, assign: str, candidates: bool) -> EaglePlan:
        """Check the parameters and work out how many rows each label of a group goes to."""
        n_iter = check_integer("n_iter", self.n_iter, low=0)
        contrast = assign == "auto"
        if self.negatives is not None:
            contrast = check_flag("negatives", self.negatives)
        if assign == "auto" and self.likeness_ < ALIKE:
            n_iter = 0
        counts = grouped.counts
        wanted, refined = counts.astype(np.float64), np.ones(grouped.n_labels, dtype=np.uint8)
        if assign == "argmax":
            wanted = np.ones_like(wanted)
        elif assign == "auto" and not grouped.counted:
            wanted = expected_counts(grouped, self.likeness_)
            if ALIKE <= self.likeness_ < MUCH_ALIKE:
                refined = (share_of_groups(grouped) < FREQUENT).astype(np.uint8)
                wanted = np.where(refined[grouped.labels] > 0, wanted, more_of_large_groups(wanted, grouped.sizes))
        take = np.floor(wanted + ALMOST).astype(np.int32)
        one = np.ones(counts.size, dtype=np.float32)
        n_best = np.where(wanted > take + ALMOST, 2 * take + 1, take).astype(np.int64)
        if assign == "soft":
            n_best = np.rint(take / LEAST_SHARE).astype(np.int64)
        if candidates:
            n_best = np.maximum(n_best, 2 * take + EXTRA)
        return EaglePlan(
            take=take,
            more=whole_rest(grouped.labels, wanted - take, grouped.n_labels),
            start=(wanted / grouped.sizes).astype(np.float32) if contrast else counts.astype(np.float32),
            weight=counts.astype(np.float32) if assign == "argmax" and not contrast else one,
            n_best=np.minimum(n_best, grouped.sizes),
            refined=refined,
            n_iter=n_iter,
            step=check_real("step", self.step, low=0, open_low=True),
            contrast=contrast,
            temperature=check_real("temperature", self.temperature, low=0, open_low=True),
            threshold=check_real("threshold", self.threshold, low=0, high=1),
        )

    def _assign(self, grouped: GroupedRows, plan: EaglePlan, best: BestRows, assign: str) -> None:
        """Give the labels of every group to its best rows: sets `row_labels_` and `confidence_`."""
        pairs, keep = best.pairs, best.ranks < plan.take[best.pairs]
        keep |= best_of_rest(grouped.labels[pairs], best.scores, keep, plan.more)
        if assign == "soft":
            keep |= best.shares >= LEAST_SHARE
        rows, labels, shares = best.rows[keep], grouped.labels[pairs[keep]], best.shares[keep]
        if assign == "soft":
            shares = filled_up(pairs[keep], shares, plan.take)
        order = np.lexsort((-shares, labels, rows))
        rows, labels, shares = rows[order], labels[order], shares[order]
        first = np.ones(rows.size, dtype=bool)
        first[1:] = (rows[1:] != rows[:-1]) | (labels[1:] != labels[:-1])
        rows, labels, shares = rows[first], labels[first], shares[first]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=grouped.X.shape[0]))])
        shares = np.maximum(shares, np.float32(1e-6))
        self.confidence_ = make_csr(indptr, labels, shares, grouped.n_labels)
        values = shares.copy() if assign == "soft" else np.ones_like(shares)
        self.row_labels_ = make_csr(indptr, labels.copy(), values, grouped.n_labels)
