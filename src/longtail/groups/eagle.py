"""EAGLE: which row of a group does each of the group's labels belong to?"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from longtail.groups.layout import Problem
from longtail.groups.learning import Found, Plan, filled_up, learn
from longtail.groups.likeness import ALIKE, DAMPING, damped, estimated_counts, group_sums, likeness
from longtail.groups.refine import check_model, choose_again
from longtail.kernels import Progress
from longtail.model import Estimator
from longtail.validate import (
    as_rows,
    check_choice,
    check_flag,
    check_integer,
    check_real,
    make_csr,
    resolve_jobs,
    resolve_seed,
)

ASSIGNS = ("argmax", "top", "soft", "auto")
INITS = ("mean",)
LEAST_SHARE = 0.1  # rows less likely than this get nothing from a soft assignment
EXTRA = 8  # candidates beside twice the wanted rows that a model may choose from


class Eagle(Estimator):
    """Labels of rows from labels of groups: every label goes to the rows of a group nearest to the label's vector.

    Parameters
    ----------
    n_iter : how often, at most, a label chooses rows and its vector moves towards them; 0 for the start only.
    step : how far the vector moves at each turn (`assign="auto"` and `negatives=True` replace it instead).
    init : "mean", the vector's start: the mean of all rows of the label's groups, a group counting as often as it has
        the label.
    assign : "argmax" one row per group and label, as published; "top" a label counted c times in a group goes to the
        c nearest rows; "soft" gives weights instead, which add up to c in a group; "auto" works out what is best (see
        below).
    negatives : groups without the label push its vector away: it starts as the mean of its groups' rows less the mean
        of all other rows, and moves to the mean of the chosen rows less that of the others. None: with "auto" only.
    damping : features are divided by this power of their standard deviation before rows are compared; None: 0.25 with
        "auto", else 0.
    temperature : how soft shares are: higher spreads a label over more rows of a group.
    threshold : smaller values of a label's vector are dropped, so that at most 1 / threshold² remain.
    model, rounds, folds : with `rounds` > 0, `model` (fit, predict_topk) is trained on the labels found and asked
        where they belong, that many times; each of `folds` parts of the groups is asked about by a model trained on
        the others.
    random_state, n_jobs : seed of the folds; threads. The result is the same for any number of threads.

    "auto" uses negatives, damping and counts. It measures how alike the rows of a group are (`likeness_`, 0 random, 1
    the same). Alike: vectors are refined `n_iter` times; else the start is already unbiased and is kept. If no group
    has a label twice, counts are taken to be unknown and estimated: from the share of groups that have a label follows
    how many rows of such a group have it if rows are independent; of the others, likeness² get it too, so that a label
    goes to all rows (plain propagation) where they are the same.

    Rows in no group get no labels; a label in no group gets a zero vector. Rows of zeros are chosen only in groups
    that have no other row. A row that gets a label from two groups keeps the greater share.

    Learned: `row_labels_` CSR (n_rows, n_labels); `confidence_`, for each of its entries how likely it is right;
    `label_vectors_` CSR (n_labels, n_features), in terms of the features given (damping included); `likeness_`.

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
        step: float = 0.1,
        init: str = "mean",
        assign: str = "argmax",
        negatives: bool | None = None,
        damping: float | None = None,
        temperature: float = 1.0,
        threshold: float = 0.01,
        model: Any = None,
        rounds: int = 0,
        folds: int = 2,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_iter = n_iter
        self.step = step
        self.init = init
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

    def fit(self, X: Any, groups: Any, Y_groups: Any, progress: Progress | None = None) -> Self:
        """Learn the labels' vectors and the labels of the rows.

        `groups` (n_rows, n_groups) says which rows are in which groups, `Y_groups` (n_groups, n_labels) how often each
        group has each label. `progress(done, total)` is called as labels are finished.
        """
        assign, _ = check_choice("assign", self.assign, ASSIGNS), check_choice("init", self.init, INITS)
        rounds, folds = check_integer("rounds", self.rounds, low=0), check_integer("folds", self.folds, low=2)
        seed, n_jobs = resolve_seed(self.random_state), resolve_jobs(self.n_jobs)
        model = check_model(self.model, rounds) if rounds else None
        damping = DAMPING if assign == "auto" else 0.0
        if self.damping is not None:
            damping = check_real("damping", self.damping, low=0, high=1)
        problem = Problem.check(X, groups, Y_groups)
        compared = damped(problem.X, damping)
        sums = group_sums(compared, problem.groups)
        self.likeness_ = likeness(compared, problem.groups, sums)
        plan = self._plan(problem, assign, rounds > 0)
        found, self.label_vectors_ = learn(problem, compared, sums, plan, n_jobs, progress)
        self._assign(problem, plan, found, assign)
        rows = as_rows(X, "X") if rounds else None
        for _ in range(rounds):
            found = choose_again(model, rows, self.row_labels_, problem, found, folds, seed)
            self._assign(problem, plan, found, assign)
        return self

    def fit_transform(self, X: Any, groups: Any, Y_groups: Any, progress: Progress | None = None) -> sp.csr_array:
        """Learn and return the labels of the rows, CSR (n_rows, n_labels); a row that gets none is empty."""
        return self.fit(X, groups, Y_groups, progress).row_labels_

    def _plan(self, problem: Problem, assign: str, candidates: bool) -> Plan:
        n_iter = check_integer("n_iter", self.n_iter, low=0)
        contrast = assign == "auto"
        if self.negatives is not None:
            contrast = check_flag("negatives", self.negatives)
        if assign == "auto" and self.likeness_ < ALIKE:
            n_iter = 0
        counts = problem.counts
        if assign == "argmax":
            take = np.ones_like(counts)
        elif assign == "auto" and not problem.counted:
            take = estimated_counts(problem, self.likeness_)
        else:
            take = counts
        one = np.ones(counts.size, dtype=np.float32)
        room = take.astype(np.int64)
        if assign == "soft":
            room = np.rint(take / LEAST_SHARE).astype(np.int64)
        if candidates:
            room = np.maximum(room, 2 * take + EXTRA)
        return Plan(
            take=take,
            start=(take / problem.sizes).astype(np.float32) if contrast else counts.astype(np.float32),
            weight=counts.astype(np.float32) if assign == "argmax" and not contrast else one,
            room=np.minimum(room, problem.sizes),
            n_iter=n_iter,
            step=check_real("step", self.step, low=0, open_low=True),
            contrast=contrast,
            temperature=check_real("temperature", self.temperature, low=0, open_low=True),
            threshold=check_real("threshold", self.threshold, low=0, high=1),
        )

    def _assign(self, problem: Problem, plan: Plan, found: Found, assign: str) -> None:
        pairs, keep = found.pairs, found.ranks < plan.take[found.pairs]
        if assign == "soft":
            keep |= found.shares >= LEAST_SHARE
        rows, labels, shares = found.rows[keep], problem.labels[pairs[keep]], found.shares[keep]
        if assign == "soft":
            shares = filled_up(pairs[keep], shares, plan.take)
        order = np.lexsort((-shares, labels, rows))
        rows, labels, shares = rows[order], labels[order], shares[order]
        first = np.ones(rows.size, dtype=bool)
        first[1:] = (rows[1:] != rows[:-1]) | (labels[1:] != labels[:-1])
        rows, labels, shares = rows[first], labels[first], shares[first]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=problem.X.shape[0]))])
        shares = np.maximum(shares, np.float32(1e-6))
        self.confidence_ = make_csr(indptr, labels, shares, problem.n_labels)
        values = shares.copy() if assign == "soft" else np.ones_like(shares)
        self.row_labels_ = make_csr(indptr, labels.copy(), values, problem.n_labels)
