"""`LabelTreeClassifier`: labels clustered into a tree, linear classifiers at every node, beam search to predict."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from longtail.data import Dataset, TopK
from longtail.engine import Engine, engine_for, running_on
from longtail.errors import DataError, Keyword, ParameterError
from longtail.kernels import Progress
from longtail.model import (
    MAX_BIAS,
    MAX_K,
    Estimate,
    Explanation,
    Hold,
    Idle,
    LinearLayer,
    RowClassifier,
    Shape,
    TextReader,
    allowed_labels,
    check_new_truth,
    has_idle_columns,
    kept_labels,
    row_scale,
    take_columns,
    with_finite_scores,
)
from longtail.one_vs_all import LOSSES
from longtail.storage import Part, PartSchema, checked
from longtail.text import pifa
from longtail.tree.chunks import Chunks
from longtail.tree.edit import (
    add_to_leaves,
    drop_labels,
    leaves_for_labels,
    update_classifiers,
    with_new_labels,
    with_silent_labels,
)
from longtail.tree.explain import explain_slot, slots_of
from longtail.tree.grow.build import ENTRIES_OF_A_VECTOR, PASSES, build_tree, default_branching
from longtail.tree.grow.from_hierarchy import Hierarchy, hierarchy_tree
from longtail.tree.inside import TreeInside
from longtail.tree.label_tree import LabelTree
from longtail.tree.overlap import MOST, check_overlap
from longtail.tree.plan import estimate_tree
from longtail.tree.schema import LABEL_TREE_SCHEMA, LINKS, MAX_PATH_WEIGHT, MERGES, NEGATIVES, ONE_TREE, tree_of
from longtail.tree.search import (
    NO_LABELS,
    BeamPlan,
    LevelLink,
    Ranked,
    are_few_rows,
    labels_of,
    merge_slots,
    merge_trees,
    pad_lists,
    search_few,
    search_rows,
)
from longtail.tree.solve import Solver, TrainingRows
from longtail.tree.train import OverlapSettings, TrainingTask, train_tree
from longtail.validate import (
    LabelNumbers,
    MatrixLike,
    as_labels,
    as_rows,
    as_sparse,
    check_choice,
    check_flag,
    check_integer,
    check_real,
    check_same_rows,
    make_csr,
    resolve_jobs,
    resolve_seed,
)

SLOPE = 0.0  # of every link: margins beyond 1 do not count
PATH_WEIGHT = {"tfn": 1.0, "man": 0.3, "tfn+man": 0.3}  # default, by negatives
PATH_WEIGHT_OVERLAP = 0.5  # where labels overlap and rows that come in error are learned from
BEAM = 10
FAST: dict[str, Any] = {"beam": 8, "tol": 1.0}
# label disentanglement on XR-Linear, as published
PUBLISHED: dict[str, Any] = {
    "branching": 32,
    "max_leaf": 100,
    "balanced": True,
    "beam": 10,
    "C": 1.0,
    "tol": 0.1,
    "negatives": "tfn",
    "path_weight": 1.0,
    "overlap": 2,
    "rounds": 1,
    "merge": "mean",
    "split_positives": False,
    "keep_leaf": False,
    "slot_rows": 1,
    "balance": None,
}
# how models were trained, and how they predict, that were saved before these parameters existed
BEFORE_BALANCE: dict[str, Any] = {"keep_leaf": True, "slot_rows": 3, "balance": 2.0}
BEAM_BEFORE, PATH_WEIGHT_BEFORE = 7, 0.3  # of labels that overlap
SLOT_PARAMS = ("merge", "split_positives", "keep_leaf", "slot_rows", "balance")  # without effect where none are chosen
# read when predicting, and checked then
SEARCH_PARAMS = ("beam", "link", "merge", "negatives", "normalize", "path_weight")
MERGED_AT_LEAST = 10  # leaf slots taken from each tree of an ensemble before they are merged; with 20, P@k is the same


def default_C(n_rows: int, features_per_row: float) -> float:
    """Return the default of C: 1 for long rows or few of them, less for many short ones.

        C = min(1, max(0.2, 0.175 · features_per_row^(1/3)) · max(1, 10000 / n_rows)^(1/4))

    Fitted to what was best on held-out rows of four data sets with 8, 43, 184 and 237 features per row, and on parts of
    two others.

    >>> round(default_C(300_000, 8), 2), default_C(300_000, 500), default_C(1000, 44)
    (0.35, 1.0, 1.0)
    """
    few = max(1.0, 10_000 / max(n_rows, 1)) ** 0.25
    return float(min(1.0, max(0.2, 0.175 * features_per_row ** (1 / 3)) * few))


class LabelTreeClassifier(RowClassifier):
    """Labels clustered into a tree; a row walks down to the few leaves where its labels may be.

    At every level the children of the nodes in the beam are scored and the best are kept; scores add up on the path:

        score of a node         link(margin) + score of the node above
        score of a leaf slot    link(margin) + path_weight · score of its leaf

    Parameters
    ----------
    branching : int or None, default=None
        Children of an inner node. None for 128, but for all leaves below the root where there are at most 1,024 of
        them (about 40,000 labels) and labels have fewer than 30 rows on average.
    max_leaf : int, default=160
        Labels of a leaf, at most (about, where clusters are not balanced).
    balanced : bool, default=False
        Cut clusters into halves of equal size; otherwise k-means finds clusters of any size.
    beam : int or None, default=None
        Nodes kept at every level; more finds more and takes longer. None for 10.
    C : float or None, default=None
        Weight of the errors against the size of the weights; None for 1, less where there are many rows with few
        features: the shorter a row, the more each feature says, and the sooner it is learned by heart.
    loss : {"squared_hinge", "logistic"}, default="squared_hinge"
        Loss of the classifiers, as in `OneVsAllClassifier`.
    positive_weight : float, default=1.0
        Errors on rows that have the label cost this many times more.
    bias : float, default=1.0
        Value of the constant feature that carries the bias; 0 for no bias.
    tol : float, default=0.5
        A classifier is done when the spread of its projected gradient is at most this.
    max_iter : int, default=100
        Passes over the rows per classifier, at most.
    negatives : {"tfn", "man", "tfn+man"}, default="tfn+man"
        Rows a node learns from: "tfn" those with a label below it; "man" those that the levels above send there;
        "tfn+man" both, which is slower to train and more accurate.
    threshold : float, default=0.1
        Weights smaller than this are dropped.
    link : {"l1-hinge", "l2-hinge", "l3-hinge", "l4-hinge", "sigmoid", "noop"}, default="l3-hinge"
        How a margin becomes a score: "lp-hinge" is -max(0, 1 - margin)^p, "sigmoid" log σ(margin), "noop" the margin.
    path_weight : float or None, default=None
        Weight of the leaf's score beside the label's own; None for 1 with "tfn", else 0.3, or 0.5 where labels overlap.
    cost_sensitive : bool, default=False
        The positives of a row share its weight, so that rows with many labels count less for each.
    n_trees : int, default=1
        Trees in the ensemble: score = log(Σ exp(score) / n_trees).
    overlap : int or "auto", default=1
        Leaves a label may stand in; a label takes those that most of its rows are sent to. "auto" for 2 where the beam
        misses more than 2 % of the labels of the training rows, else 1; with positives split where the beam then
        reaches 5 % more of them.
    rounds : int or None, default=None
        Times the slots are chosen and everything is trained again; 0 to train the leaves only. None for 1 where labels
        overlap. With `overlap=1`, a number moves each label to the leaf that most of its rows are sent to.
    merge : {"max", "mean"}, default="max"
        Score of a label with several leaf slots: the best, or log(mean of exp(score)) of those that the beam reached.
    split_positives : bool, default=False
        A row's label counts in one of its slots, the one that suits the row best, so that each slot learns a meaning
        of its own; False for all slots, as published.
    keep_leaf : bool, default=False
        Every label keeps its leaf of the first clustering, and only further ones are chosen.
    slot_rows : int, default=1
        Rows of a label that must be sent to a leaf before the label takes it as a further one.
    balance : float or None, default=2.0
        Leaf slots that a leaf takes, at most, as a multiple of `overlap` · labels / leaves; None for any number, as
        published. Costs stay low where many labels would come together.
    normalize : bool, default=True
        Scale every row to length 1 first.
    random_state : int, RandomState instance or None, default=None
        Seed; the same seed gives the same model for any number of threads.
    n_jobs : int or None, default=None
        Threads; None for all cores.

    Attributes
    ----------
    trees_ : list of LabelTree
        The trees.
    chunks_ : list of Chunks
        The classifiers of every tree.
    C_ : float
        Default of C for the training data.
    label_counts_ : ndarray of shape (n_labels,)
        Training rows of every label.
    n_labels_, n_features_in_, n_rows_ : int
        Shape of the training data.

    See Also
    --------
    OneVsAllClassifier : The exact baseline, without a tree.
    LabelTree : The tree itself, also for trees of your own.

    Examples
    --------
    >>> import numpy as np
    >>> model = LabelTreeClassifier(max_leaf=2, branching=2).fit(np.eye(6), np.eye(6))
    >>> model.predict_topk(np.eye(6), k=1).ids.ravel().tolist()
    [0, 1, 2, 3, 4, 5]
    """

    trees_: list[LabelTree]
    chunks_: list[Chunks]

    kind: ClassVar[str] = LABEL_TREE_SCHEMA.kind
    schema: ClassVar[PartSchema | None] = LABEL_TREE_SCHEMA
    tagger_method: ClassVar[str | None] = "tree"
    trains_in_files: ClassVar[bool] = True
    prediction_params: ClassVar[tuple[str, ...]] = (*SEARCH_PARAMS, "n_jobs")
    _hierarchy: Hierarchy | None = None  # that the tree is made of, instead of clusters

    def __init__(
        self,
        *,
        branching: int | None = None,
        max_leaf: int = 160,
        balanced: bool = False,
        beam: int | None = None,
        C: float | None = None,
        loss: str = "squared_hinge",
        positive_weight: float = 1.0,
        bias: float = 1.0,
        tol: float = 0.5,
        max_iter: int = 100,
        negatives: str = "tfn+man",
        threshold: float = 0.1,
        link: str = "l3-hinge",
        path_weight: float | None = None,
        cost_sensitive: bool = False,
        n_trees: int = 1,
        overlap: int | str = 1,
        rounds: int | None = None,
        merge: str = "max",
        split_positives: bool = False,
        keep_leaf: bool = False,
        slot_rows: int = 1,
        balance: float | None = 2.0,
        normalize: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.branching = branching
        self.max_leaf = max_leaf
        self.balanced = balanced
        self.beam = beam
        self.C = C
        self.loss = loss
        self.positive_weight = positive_weight
        self.bias = bias
        self.tol = tol
        self.max_iter = max_iter
        self.negatives = negatives
        self.threshold = threshold
        self.link = link
        self.path_weight = path_weight
        self.cost_sensitive = cost_sensitive
        self.n_trees = n_trees
        self.overlap = overlap
        self.rounds = rounds
        self.merge = merge
        self.split_positives = split_positives
        self.keep_leaf = keep_leaf
        self.slot_rows = slot_rows
        self.balance = balance
        self.normalize = normalize
        self.random_state = random_state
        self.n_jobs = n_jobs

    @classmethod
    def fast(cls, **params: Any) -> Self:
        """Return the estimator with settings that train and predict faster, for a little accuracy.

        >>> LabelTreeClassifier.fast(C=2.0).beam
        8
        """
        return cls(**{**FAST, **params})

    @classmethod
    def published(cls, overlap: int = 2, **params: Any) -> Self:
        """Return label disentanglement as published, on a tree like XR-Linear's; `overlap` is the paper's λ.

        Slots are the λ largest entries of each row of Yᵀ M and nothing else, every slot learns from all rows of its
        label, scores are averaged, and nothing limits the size of a leaf. `rounds` counts the alternations.

        >>> model = LabelTreeClassifier.published(overlap=1)
        >>> model.merge, model.negatives, model.balance
        ('mean', 'tfn', None)
        """
        return cls(**{**PUBLISHED, "overlap": overlap, **params})

    def idle_params(self) -> dict[str, Idle]:
        if self.overlap != 1 or self.rounds is not None:
            return {}
        return self._idle_among(*SLOT_PARAMS, word="without", other=Keyword("overlap"))

    def use_hierarchy(self, parents: np.ndarray, node_of_label: np.ndarray) -> None:
        self._hierarchy = Hierarchy(parents, node_of_label)

    def _untrained(self) -> Self:
        out = super()._untrained()
        out._hierarchy = self._hierarchy
        return out

    def fit(
        self,
        X: MatrixLike,
        Y: MatrixLike,
        *,
        progress: Progress | None = None,
        label_vectors: MatrixLike | None = None,
        tree: LabelTree | None = None,
        engine: Engine | None = None,
    ) -> Self:
        """Cluster the labels and train a classifier for every node and label.

        `label_vectors` (n_labels, any width) are clustered instead of the labels' mean rows; `tree` is taken as it is.
        `engine` says where the classifiers are trained, on threads (None) or a cluster: it is no parameter, since the
        model is the same.
        """
        with running_on(engine):
            return self._fit(X, Y, progress, label_vectors, tree)

    def _fit(
        self,
        X: MatrixLike,
        Y: MatrixLike,
        progress: Progress | None,
        label_vectors: MatrixLike | None,
        tree: LabelTree | None,
    ) -> Self:
        """Train on the engine in use."""
        self._solver(1.0)  # so that bad parameters are refused before bad data
        n_jobs = resolve_jobs(self.n_jobs)
        negatives = check_choice("negatives", self.negatives, NEGATIVES)
        beam = self.beam_width
        n_trees = check_integer("n_trees", self.n_trees, low=1)
        cost_sensitive = check_flag("cost_sensitive", self.cost_sensitive)
        settings = self._overlap_settings()
        check_choice("merge", self.merge, MERGES)
        if cost_sensitive and self.loss != "squared_hinge":
            raise ParameterError(
                "{setting} needs {needed}; got {got!r}.",
                setting=Keyword("cost_sensitive", True),
                needed=Keyword("loss", "squared_hinge"),
                got=self.loss,
            )
        if tree is not None and label_vectors is not None:
            raise ParameterError("label_vectors have no effect where a tree is given; leave one of them out.")
        self._warn_of_idle_params("merge", "balance")  # which the published method sets, for its plain tree too
        X, Y = self._begin_fit(X, Y)
        X = as_sparse(X)
        self.C_ = default_C(X.shape[0], X.nnz / X.shape[0])
        solver = self._solver(self.C_)
        columns = np.unique(X.indices) if has_idle_columns(X.shape[1], X.nnz) else None
        X = X if columns is None else take_columns(X, columns)
        rows = TrainingRows.of(X, check_flag("normalize", self.normalize), solver.bias)
        ones = Y.data if Y.data.min() == Y.data.max() == 1 else np.ones_like(Y.data)
        binary = make_csr(Y.indptr, Y.indices, ones, Y.shape[1])
        relevance = Y if cost_sensitive else None
        trees = self._grow(rows, binary, label_vectors, tree, n_trees, solver.seed, n_jobs)
        task = TrainingTask(rows, binary, relevance, solver, negatives, beam, n_jobs, engine_for(n_jobs))
        done = _counted(trees, settings, progress)
        scoring = (False, self.link, self.path_weight, self.negatives)  # of the levels above the leaves: no path weight
        trained = [train_tree(tree, task, _links(tree.n_levels, *scoring), settings, done) for tree in trees]
        self.trees_, self.chunks_ = [tree for tree, _ in trained], [chunks for _, chunks in trained]
        if columns is not None:
            self.chunks_ = [chunks.over_columns(columns, self.n_features_in_) for chunks in self.chunks_]
        return self

    def partial_fit(
        self,
        X: MatrixLike,
        Y: MatrixLike,
        classes: LabelNumbers | None = None,
        *,
        replayed: int = 0,
        feature_rows: np.ndarray | None = None,
    ) -> Self:
        """Learn new rows without the old ones; clusters stay. Returns self.

        The classifiers of labels and nodes that the new rows have move towards them, held by the old weights the more
        firmly the more rows were seen: a few rows change little. Columns of Y after those of the known labels are new
        labels; each goes to the leaf to which the tree sends most of its rows.

        Where the last `replayed` rows of X were learned before, the old weights count for the less; with all old rows
        given again, these classifiers are trained anew. `feature_rows` tells how many old rows had each feature, where
        that is known. A calibration is kept, and grows stale.

        `classes` is ignored: scikit-learn's tools pass it, but labels are the columns of Y.
        """
        if not hasattr(self, "trees_"):
            return self.fit(X, Y)
        rows, Y, solver, n_jobs = self._new_rows(X, Y, self.n_labels_)
        new = rows.n - check_integer("replayed", replayed, low=0, high=rows.n)
        self._take_on_labels(rows, sp.csr_array(Y[:, self.n_labels_ :]), n_jobs)
        hold = Hold.of(solver.C, self.n_rows_, rows.n, replayed)
        self.chunks_ = [
            update_classifiers(tree, chunks, rows, Y, solver, self._beam_plan(tree, 1), n_jobs, hold, feature_rows)
            for tree, chunks in zip(self.trees_, self.chunks_, strict=True)
        ]
        self.label_counts_ = self.label_counts_ + np.bincount(Y[:new].indices, minlength=self.n_labels_)
        self.n_rows_ += new
        return self

    def _take_on_labels(self, rows: TrainingRows, Y: sp.csr_array, n_jobs: int) -> None:
        """Give new labels a place in every tree; they have learned nothing yet."""
        if not Y.shape[1]:
            return
        grown = []
        for tree, chunks in zip(self.trees_, self.chunks_, strict=True):
            leaves = leaves_for_labels(tree, chunks, rows, Y, self._beam_plan(tree, 1), n_jobs)
            grown.append(with_new_labels(tree, chunks, leaves))
        self.trees_, self.chunks_ = [tree for tree, _ in grown], [chunks for _, chunks in grown]
        self.label_counts_ = np.concatenate([self.label_counts_, np.zeros(Y.shape[1], self.label_counts_.dtype)])
        self.n_labels_ = int(self.label_counts_.size)

    def widen(self, n_features: int) -> Self:
        """Let rows have more columns, after the old ones; classifiers learn them with new rows. Returns self."""
        self._check_fitted()
        self.n_features_in_ = check_integer("n_features", n_features, low=self.n_features_in_, high=2**31 - 1)
        self.chunks_ = [replace(chunks, n_features=self.n_features_in_) for chunks in self.chunks_]
        return self

    def add_labels(self, X: Any, Y: Any) -> Self:
        """Add labels, one column of Y each, numbered after the old ones; nothing else is trained. Returns self.

        Each new label goes to the leaf to which the tree sends most of its rows, and learns from its rows in X against
        the other rows of X that come to that leaf: give rows without the new labels too.
        """
        self._check_fitted()
        Y = as_labels(Y, "Y")
        rows, Y, solver, n_jobs = self._new_rows(X, Y, Y.shape[1])
        trees, grown = [], []
        for tree, chunks in zip(self.trees_, self.chunks_, strict=True):
            plan = self._beam_plan(tree, 1)
            leaves = leaves_for_labels(tree, chunks, rows, Y, plan, n_jobs)
            new_tree, new_chunks = add_to_leaves(tree, chunks, rows, Y, leaves, solver, plan, n_jobs)
            trees.append(new_tree)
            grown.append(new_chunks)
        self.trees_, self.chunks_ = trees, grown
        self.label_counts_ = np.concatenate([self.label_counts_, np.bincount(Y.indices, minlength=Y.shape[1])])
        self.n_labels_ = int(self.label_counts_.size)
        return self

    def remove_labels(self, labels: Any) -> Self:
        """Remove labels by number; the rest keep their order and are numbered anew. Returns self."""
        self._check_fitted()
        keep = kept_labels(labels, self.n_labels_)
        smaller = [drop_labels(tree, chunks, keep) for tree, chunks in zip(self.trees_, self.chunks_, strict=True)]
        self.trees_, self.chunks_ = [tree for tree, _ in smaller], [chunks for _, chunks in smaller]
        self.label_counts_ = self.label_counts_[keep]
        self.n_labels_ = int(keep.sum())
        return self

    def _new_rows(self, X: Any, Y: Any, n_labels: int) -> tuple[TrainingRows, sp.csr_array, Solver, int]:
        """Check rows that come after training."""
        solver = self._solver(self.C_)
        X, truth = as_sparse(self._check_rows(X)), check_new_truth(Y, n_labels)
        check_same_rows(X, truth)
        rows = TrainingRows.of(X, check_flag("normalize", self.normalize), solver.bias)
        return rows, truth, solver, resolve_jobs(self.n_jobs)

    def _overlap_settings(self) -> OverlapSettings:
        """Return the checked settings of overlap."""
        return OverlapSettings(
            overlap=check_overlap(self.overlap),
            rounds=None if self.rounds is None else check_integer("rounds", self.rounds, low=0),
            split_positives=check_flag("split_positives", self.split_positives),
            keep_leaf=check_flag("keep_leaf", self.keep_leaf),
            slot_rows=check_integer("slot_rows", self.slot_rows, low=1, high=MOST),
            balance=None if self.balance is None else check_real("balance", self.balance, low=1),
        )

    def branching_of(self, n_labels: int, rows_per_label: float) -> tuple[int, int]:
        """Return the branching of a tree of so many labels, and the passes of k-means."""
        max_leaf, balanced = check_integer("max_leaf", self.max_leaf, low=1), check_flag("balanced", self.balanced)
        chosen = default_branching(n_labels, rows_per_label, max_leaf, balanced)
        return chosen if self.branching is None else (check_integer("branching", self.branching, low=2), PASSES)

    def _solver(self, C: float) -> Solver:
        """Return the checked settings of the solver; C where the parameter is None."""
        return Solver(
            loss=check_choice("loss", self.loss, LOSSES),
            C=C if self.C is None else check_real("C", self.C, low=0, open_low=True),
            positive_weight=check_real("positive_weight", self.positive_weight, low=0, open_low=True),
            bias=check_real("bias", self.bias, low=0, high=MAX_BIAS),
            tol=check_real("tol", self.tol, low=0, open_low=True),
            max_iter=check_integer("max_iter", self.max_iter, low=1),
            threshold=check_real("threshold", self.threshold, low=0),
            seed=resolve_seed(self.random_state),
        )

    def _grow(
        self,
        rows: TrainingRows,
        Y: sp.csr_array,
        vectors: Any,
        tree: LabelTree | None,
        n_trees: int,
        seed: int,
        n_jobs: int,
    ) -> list[LabelTree]:
        """Return the given tree, or grow trees from the label vectors."""
        branching, passes = self.branching_of(self.n_labels_, Y.nnz / max(np.count_nonzero(self.label_counts_), 1))
        max_leaf = check_integer("max_leaf", self.max_leaf, low=1)
        balanced = check_flag("balanced", self.balanced)
        if tree is not None:
            if not isinstance(tree, LabelTree) or tree.n_labels != self.n_labels_:
                raise DataError(f"tree must be a LabelTree of {self.n_labels_} labels; got {tree!r}.")
            if n_trees != 1:
                raise ParameterError(name="n_trees", allowed="1 where a tree is given", got=n_trees)
            return [tree]
        if vectors is None:
            vectors = pifa(rows.matrix, Y, keep=ENTRIES_OF_A_VECTOR, n_jobs=n_jobs)
        else:
            vectors = as_rows(vectors, "label_vectors")
            if vectors.shape[0] != self.n_labels_:
                n = vectors.shape[0]
                raise DataError(f"label_vectors must have one row per label ({self.n_labels_}); got {n}.")

        def grow(i: int, some: np.ndarray | None = None) -> LabelTree:
            return build_tree(
                vectors if some is None else vectors[some],
                branching=branching,
                max_leaf=max_leaf,
                balanced=balanced,
                max_iter=passes,
                random_state=(seed + i) % (2**31),
                n_jobs=n_jobs,
            )

        if self._hierarchy is None:
            return [grow(i) for i in range(n_trees)]
        if n_trees != 1:
            raise ParameterError(
                name="n_trees", allowed="1 where the hierarchy of a vocabulary is the tree", got=n_trees
            )
        if self._hierarchy.node_of_label.size != self.n_labels_:
            raise DataError(
                f"the hierarchy is that of {self._hierarchy.node_of_label.size} labels; Y has {self.n_labels_}."
            )

        def divide(some: np.ndarray) -> list[np.ndarray]:
            leaves = grow(0, some)
            return np.split(leaves.leaf_labels, leaves.leaf_indptr[1:-1])

        return [hierarchy_tree(self._hierarchy, max_leaf, branching, divide)]

    def predict_topk(self, X: Any, k: int = 5, *, allow: Any = None, deny: Any = None) -> TopK:
        """Return the k best labels of every row with their scores (logarithms), best first.

        `allow` (only these labels) and `deny` (none of these) are lists of label numbers. The search passes by clusters
        in which nothing is allowed, so that the beam is spent on the others.
        """
        self._check_fitted()
        if type(k) is not int or not 0 < k <= MAX_K:
            k = check_integer("k", k, low=1, high=MAX_K)
        if allow is not None or deny is not None:
            return self._restricted(allow, deny).predict_topk(X, k)
        n_jobs = resolve_jobs(self.n_jobs)
        if are_few_rows(X, self.n_features_in_):
            few = self._predict_few(X, k)
            if few is not None:
                return few
        X = self._check_rows(X)
        X = X if sp.issparse(X) else as_sparse(X)  # sparse rows are checked and in order by now
        scale, width = row_scale(X, self.normalize), self._slots_per_tree(k)
        ranked = []
        for tree, chunks in zip(self.trees_, self.chunks_, strict=True):
            once = tree.leaf_labels if self._counts_once(tree) else NO_LABELS
            slots, scores = search_rows(chunks, X, scale, self._beam_plan(tree, width), n_jobs, once)
            ranked.append((labels_of(tree, chunks, slots), scores))
        return self._merged(ranked, k, n_jobs)

    def _slots_per_tree(self, k: int) -> int:
        """Return how many slots to take from every tree so that the k best labels are right after merging."""
        copies = max(-(-tree.n_slots // self.n_labels_) for tree in self.trees_) if self.merge == "mean" else 1
        if len(self.trees_) == 1 and copies == 1:
            return min(k, self.n_labels_)
        return min(MAX_K, copies * max(min(k, self.n_labels_), MERGED_AT_LEAST))

    def _counts_once(self, tree: LabelTree) -> bool:
        """Say whether the search keeps a label that has several slots once, at its best slot."""
        return self.merge == "max" and tree.n_slots > self.n_labels_

    def _merged(self, ranked: list[Ranked], k: int, n_jobs: int = 1) -> TopK:
        """Bring the lists of all trees down to one of k labels."""
        if self.merge == "mean" and any(tree.n_slots > self.n_labels_ for tree in self.trees_):
            ranked = [merge_slots(lists, n_jobs) for lists in ranked]
        if len(ranked) > 1:
            return with_finite_scores(TopK(*merge_trees(ranked, k, n_jobs)))
        return with_finite_scores(TopK(*pad_lists(ranked[0], k)))

    def _restricted(self, allow: Any, deny: Any) -> Self:
        """Return a view of this model in which some labels, and clusters without any other, are silent."""
        allowed = allowed_labels(self.n_labels_, allow, deny)
        view = copy(self)
        pairs = zip(self.trees_, self.chunks_, strict=True)
        view.chunks_ = [with_silent_labels(tree, chunks, allowed) for tree, chunks in pairs]
        return view

    def _predict_few(self, X: sp.csr_array, k: int) -> TopK | None:
        """Fast path for a few CSR rows, the same to the last bit as a batch; None for rows that must be checked."""
        indptr = X.indptr.astype(np.int64, copy=False)
        ids, values = X.indices.astype(np.int32, copy=False), X.data.astype(np.float32, copy=False)
        width = self._slots_per_tree(k)
        size = k if len(self.trees_) == 1 and width <= k else width
        ranked = []
        for tree, chunks in zip(self.trees_, self.chunks_, strict=True):
            plan, once = self._beam_plan(tree, width), self._counts_once(tree)
            lists = search_few(chunks, indptr, ids, values, self.normalize, plan, tree.leaf_labels, once, size)
            if lists is None:
                return None
            ranked.append(lists)
        return self._merged(ranked, k)

    @property
    def beam_width(self) -> int:
        """Nodes kept at every level: `beam`, or its default where that is None."""
        return _beam_width(self.beam)

    def _beam_plan(self, tree: LabelTree, n_slots: int) -> BeamPlan:
        """Return the plan that keeps `n_slots` leaf slots."""
        beam = self.beam
        if type(beam) is int and tree.n_leaves < beam <= MAX_K:
            beam = tree.n_leaves  # no level has more nodes: a wider beam would only take memory
        key = (
            len(tree.parents),
            n_slots,
            beam,
            tree.n_slots > tree.n_labels,
            self.link,
            self.path_weight,
            self.negatives,
            self.merge,
            self.normalize,
        )
        try:
            return _remembered_plan(*key)
        except TypeError:  # a parameter set to something unhashable after fit: the checks refuse it
            return _plan(*key)

    def chosen(self, topk: TopK) -> np.ndarray:
        """Return which predictions belong to the label set of their row; without a calibration, those above ½."""
        if self.calibrated_:
            return self.calibration_.chosen(topk)
        return (topk.ids >= 0) & (topk.scores >= np.log(0.5))

    def explain(self, X: Any, labels: Any) -> list[Explanation]:
        """Return for the one row X, per label, its path through the tree and the features for and against it.

        In an ensemble, or where a label stands in several leaves, the slot that scores highest is explained. The
        score is the path's own, whether or not the beam reached it.
        """
        ids, values = self._one_row(X, self.normalize)
        out = []
        for label in self._explainable(labels):
            explanations = [
                explain_slot(tree, chunks, self._beam_plan(tree, 1), int(slot), ids, values)
                for tree, chunks in zip(self.trees_, self.chunks_, strict=True)
                for slot in slots_of(tree, label)
            ]
            out.append(max(explanations, key=lambda e: e.score if np.isfinite(e.score) else -np.inf).finite())
        return out

    def output_layer(self) -> LinearLayer:
        """Refuse: which labels are scored at all depends on the search."""
        raise self._no_output_layer(
            "a label tree has no single output layer: which labels it scores at all depends on the search"
        )

    def effective_params(self) -> dict[str, Any]:
        """Return the parameters as they were used, what the trees themselves tell included."""
        params = super().effective_params()
        slots = max(int(np.bincount(tree.leaf_labels).max()) for tree in self.trees_)
        chosen = {
            "C": self.C_,
            "branching": max(int(np.bincount(level).max()) for tree in self.trees_ for level in tree.parents),
            "beam": self.beam_width,
            "path_weight": round(float(self._beam_plan(self.trees_[0], 1).parent_weights[-1]), 6),
        }
        for name, value in chosen.items():
            params[name] = value if params[name] is None else params[name]
        if params["overlap"] == 1 and params["rounds"] is None:
            return {name: value for name, value in params.items() if name not in ("rounds", *SLOT_PARAMS)}
        params["rounds"] = 1 if params["rounds"] is None else params["rounds"]
        if params["overlap"] == "auto":
            params["overlap"] = slots
            del params["split_positives"]  # chosen too, by what the beam reaches, and not kept
        return params

    def estimate_fit(self, data: Dataset, shape: Shape, probe: bool) -> Estimate:
        return estimate_tree(data, shape, self, probe)

    def label_tree(self, features: TextReader | None) -> TreeInside:
        return TreeInside(self, features)

    def to_part(self) -> Part:
        """Return what is saved: the trees and their classifiers."""
        arrays: dict[str, np.ndarray] = {"label_counts": self.label_counts_}
        for i, (tree, chunks) in enumerate(zip(self.trees_, self.chunks_, strict=True)):
            arrays |= {f"{i}.tree.{name}": a for name, a in tree.to_part().arrays.items()}
            arrays |= chunks.arrays(f"{i}.")
        params = {**self.saved_params(), "n_rows": self.n_rows_, "n_features": self.n_features_in_, "C_": self.C_}
        return Part(self.kind, {**params, "levels": [tree.n_levels for tree in self.trees_]}, arrays)

    @classmethod
    def from_part(cls, part: Part) -> Self:
        """Return the saved model, checked."""
        part = checked(part, LABEL_TREE_SCHEMA)
        params = dict(part.params)
        n_rows, n_features, levels = (params.pop(name) for name in ("n_rows", "n_features", "levels"))
        weight = params.pop("C_", 1.0)  # folders written before it was kept have C=1.0 in their parameters
        model = cls(**(params if "balance" in params else _as_before_balance(params)))
        model.C_ = float(weight)
        model.label_counts_ = part.array("label_counts")
        model.n_labels_, model.n_rows_, model.n_features_in_ = model.label_counts_.size, n_rows, n_features
        model.trees_, model.chunks_ = [], []
        for i, n_levels in enumerate(levels):
            one = part.inner(f"{i}.", ONE_TREE.kind)
            model.trees_.append(tree_of(one, model.n_labels_, n_levels, checked=True))
            model.chunks_.append(Chunks.from_part(one, n_features))
        return model


def _as_before_balance(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a model saved before overlap had all of them, such that it does what it did."""
    if params.get("overlap", 1) == 1:
        return {name: value for name, value in params.items() if name not in ("rounds", *SLOT_PARAMS)}
    before = {**params, **BEFORE_BALANCE}
    if params.get("beam") is None:
        before["beam"] = BEAM_BEFORE
    if params.get("path_weight") is None and params.get("negatives") != "tfn":
        before["path_weight"] = PATH_WEIGHT_BEFORE
    return before


def _counted(trees: list[LabelTree], settings: OverlapSettings, progress: Progress | None) -> Callable[[int], None]:
    """Return the function that is told of finished classifiers and calls `progress(done, total)`."""
    nodes, slots = sum(sum(map(len, tree.parents)) for tree in trees), sum(tree.n_slots for tree in trees)
    total = nodes + slots if settings.plain else (2 if settings.n_rounds else 1) * nodes + 2 * slots
    finished = 0

    def done(n: int) -> None:
        nonlocal finished
        finished += n
        if progress is not None:
            progress(min(finished, total), total)

    return done


def _beam_width(beam: int | None) -> int:
    """Return the nodes to keep at every level."""
    return BEAM if beam is None else check_integer("beam", beam, low=1, high=MAX_K)


def _links(n_levels: int, overlaps: bool, link: str, path_weight: float | None, negatives: str) -> list[LevelLink]:
    """Return how the scores of every level are made."""
    power = LINKS[check_choice("link", link, tuple(LINKS))]
    default = PATH_WEIGHT[check_choice("negatives", negatives, NEGATIVES)]
    if overlaps and negatives != "tfn":
        default = PATH_WEIGHT_OVERLAP
    weight = check_real("path_weight", default if path_weight is None else path_weight, low=0, high=MAX_PATH_WEIGHT)
    return [LevelLink(power, SLOPE, 1.0) for _ in range(n_levels)] + [LevelLink(power, SLOPE, weight)]


def _plan(
    n_levels: int,
    n_slots: int,
    beam: int | None,
    overlaps: bool,
    link: str,
    path_weight: float | None,
    negatives: str,
    merge: str,
    normalize: bool,
) -> BeamPlan:
    """Return the plan of a search through all levels; every parameter that prediction reads is checked here."""
    check_choice("merge", merge, MERGES)
    check_flag("normalize", normalize)
    widths = [_beam_width(beam)] * n_levels + [n_slots]
    return BeamPlan.of(widths, _links(n_levels, overlaps, link, path_weight, negatives))


_remembered_plan = lru_cache(maxsize=256, typed=True)(_plan)  # single rows ask for the same plan again and again
