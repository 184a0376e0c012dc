"""The label tree: labels clustered into a tree, linear classifiers at every node, beam search to predict."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from longtail.data import TopK
from longtail.errors import DataError, Keyword, ModelError, ParameterError
from longtail.kernels import Progress, row_squares, scale_rows
from longtail.model import MOST_PLACES, Explanation, XMCEstimator, allowed_labels, row_scale
from longtail.one_vs_all import LOSSES
from longtail.storage import Part
from longtail.text import pifa
from longtail.tree.assign_positives import assign_rows, without_idle_places
from longtail.tree.chunks import NO_LABELS, Chunks, Link, Plan
from longtail.tree.edit import add_to_leaves, drop_labels, learn_rows, place_labels, silenced
from longtail.tree.explain import explain_place
from longtail.tree.grow.build import build_tree
from longtail.tree.label_tree import LabelTree
from longtail.tree.membership import matches
from longtail.tree.merge import is_one_row, labels_of, merge
from longtail.tree.overlap import check_overlap, disentangle
from longtail.tree.settings import (
    BEAM,
    BEAM_OVERLAP,
    ENTRIES_OF_A_VECTOR,
    FAST,
    LEAST,
    LINKS,
    MERGED_AT_LEAST,
    MERGES,
    NEARLY_ONE,
    NEGATIVES,
    PATH_WEIGHT,
    ROOM,
    ROUGH,
    SLOPE,
    errors_weight,
)
from longtail.tree.train import Rows, Solver, Task, train_levels
from longtail.validate import (
    as_labels,
    as_rows,
    as_sparse,
    check_choice,
    check_flag,
    check_integer,
    check_real,
    check_same_rows,
    check_width,
    make_csr,
    resolve_jobs,
    resolve_seed,
)


class LabelTreeClassifier(XMCEstimator):
    """Labels clustered into a tree; a row walks down to the few leaves where its labels may be.

    Parameters
    ----------
    branching : children per inner node.
    max_leaf : labels per leaf, at most (about, where clusters are not balanced).
    balanced : cut clusters into halves of equal size; otherwise let k-means find clusters of any size.
    beam : nodes kept at every level; more finds more and takes longer. None for 10, or 7 where labels overlap.
    C : weight of the errors against the size of the weights; None for 1, less where there are many rows with few
        features: the shorter a row, the more each feature says, and the sooner it is learned by heart.
    loss, positive_weight, bias, tol, max_iter : the solver, as in `OneVsAllClassifier`.
    negatives : rows a node learns from: "tfn" those with a label below it; "man" those that the levels above send
        there; "tfn+man" both, which is slower to train and more accurate.
    threshold : weights smaller than this are dropped.
    link : how margins become scores: "l3-hinge" (also l1, l2, l4) -max(0, 1 - margin)³, "sigmoid", or "noop".
    path_weight : how much the score of the path counts beside the leaf's own; None for 1 with "tfn", else 0.3.
    cost_sensitive : a row's positives share its weight, so that rows with many labels count less for each.
    n_trees : trees in the ensemble; their probabilities are averaged.
    overlap : leaves a label may stand in, for labels with several meanings; "auto": as many as pay.
    rounds : how often the places are found and everything is trained again; 0 to train the leaves only.
    merge : what counts of a label in several leaves: "max" its best place, "mean" the mean of those that were found.
    split_positives : a row's label counts in one of its places, the one that suits the row best, so that each place
        learns a meaning of its own and the beam is not spent on two ways to the same label; False for all places, as
        published.
    normalize : scale every row to length 1 first.
    random_state, n_jobs : seed and threads; the same seed gives the same model for any number of threads.

    >>> import numpy as np
    >>> model = LabelTreeClassifier(max_leaf=2, branching=2).fit(np.eye(6), np.eye(6))
    >>> model.predict_topk(np.eye(6), k=1).ids.ravel().tolist()
    [0, 1, 2, 3, 4, 5]
    """

    kind: ClassVar[str] = "label-tree.v1"

    def __init__(
        self,
        branching: int = 128,
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
        rounds: int = 1,
        merge: str = "max",
        split_positives: bool = True,
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

    def fit(
        self,
        X: Any,
        Y: Any,
        progress: Progress | None = None,
        *,
        label_vectors: Any = None,
        tree: LabelTree | None = None,
    ) -> Self:
        """Cluster the labels and train a classifier for every node and label.

        `label_vectors` (n_labels, any width) are clustered instead of the labels' mean rows; `tree` is taken as it is.
        """
        self._solver(1.0)  # so that bad parameters are refused before bad data
        n_jobs = resolve_jobs(self.n_jobs)
        negatives = check_choice("negatives", self.negatives, NEGATIVES)
        beam = self.beam_width
        n_trees = check_integer("n_trees", self.n_trees, low=1)
        cost_sensitive = check_flag("cost_sensitive", self.cost_sensitive)
        overlap = check_overlap(self.overlap)
        rounds = check_integer("rounds", self.rounds, low=0)
        check_choice("merge", self.merge, MERGES)
        check_flag("split_positives", self.split_positives)
        if cost_sensitive and self.loss != "squared_hinge":
            raise ParameterError(
                "{setting} needs {needed}; got {got!r}.",
                setting=Keyword("cost_sensitive", True),
                needed=Keyword("loss", "squared_hinge"),
                got=self.loss,
            )
        X, Y = self._begin_fit(X, Y)
        X = as_sparse(X)
        self.C_ = errors_weight(X.shape[0], X.nnz / X.shape[0])
        solver = self._solver(self.C_)
        rows = self._rows(X, solver.bias)
        binary = make_csr(Y.indptr, Y.indices, np.ones_like(Y.data), Y.shape[1])
        relevance = Y if cost_sensitive else None
        trees = self._grow(rows, binary, label_vectors, tree, n_trees, solver.seed, n_jobs)
        nodes, places = (sum(sum(map(len, t.parents)) for t in trees), sum(t.n_places for t in trees))
        total = nodes + places if overlap == 1 else (2 if rounds else 1) * nodes + 2 * places
        finished = 0

        def done(n: int) -> None:
            nonlocal finished
            finished += n
            if progress is not None:
                progress(min(finished, total), total)

        task = Task(rows, binary, relevance, solver, negatives, beam, n_jobs)
        found = [self._train(tree, task, overlap, rounds, done) for tree in trees]
        self.trees_, self.chunks_ = [tree for tree, _ in found], [chunks for _, chunks in found]
        return self

    def _train(
        self, tree: LabelTree, task: Task, overlap: int | str, rounds: int, done: Callable[[int], None]
    ) -> tuple[LabelTree, Chunks]:
        """Train one tree; with overlap, find the places of the labels first and train again."""
        links, known, assigned = self._links(tree), [], None
        if overlap != 1:
            rough = replace(task, solver=replace(task.solver, tol=max(task.solver.tol, ROUGH))) if rounds else task
            for turn in range(max(rounds, 1)):
                turn_done = done if turn == 0 else None
                known = train_levels(tree, rough, links, leaves=False, assigned=assigned, done=turn_done)
                nodes, scores = task.search(known, links)
                sent = matches(nodes, tree.n_leaves)
                places = disentangle(sent, task.Y, overlap, start=tree, least=LEAST, room=ROOM, n_jobs=task.n_jobs)
                tree = tree.with_places(places)
                if self.split_positives:
                    tree = without_idle_places(tree, assign_rows(tree, task.Y, nodes, scores, task.n_jobs), LEAST)
                    assigned = assign_rows(tree, task.Y, nodes, scores, task.n_jobs)
        levels = train_levels(tree, task, links, known=known if rounds == 0 else (), assigned=assigned, done=done)
        return tree, Chunks.join(levels, task.rows.n_features)

    def partial_fit(self, X: Any, Y: Any) -> Self:
        """Learn new rows without the old ones; labels and clusters stay. Returns self.

        The classifiers of labels and nodes that the new rows have move towards them, the less the fewer the rows are
        against all rows seen. Rows of a tenth or more of what was seen improve a model; a few rows at a time do not,
        and training anew is always more accurate (benchmarks/results/tree_updates.json). A calibration is kept, and
        grows stale.
        """
        if not hasattr(self, "trees_"):
            return self.fit(X, Y)
        rows, Y, solver, n_jobs = self._new_rows(X, Y, self.n_labels_)
        # the old weights stand for the old rows: the fewer the new ones, the less they may move them
        solver = replace(solver, C=solver.C * 0.5 * rows.n / (rows.n + self.n_rows_))
        self.chunks_ = [
            learn_rows(tree, chunks, rows, Y, solver, self._plan(tree, 1), n_jobs)
            for tree, chunks in zip(self.trees_, self.chunks_, strict=True)
        ]
        self.label_counts_ = self.label_counts_ + np.bincount(Y.indices, minlength=self.n_labels_)
        self.n_rows_ += rows.n
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
            plan = self._plan(tree, 1)
            leaves = place_labels(tree, chunks, rows, Y, plan, n_jobs)
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
        given = np.asarray(labels)
        if given.size and given.dtype.kind not in "iu":
            raise ParameterError(name="labels", allowed=f"whole numbers from 0 to {self.n_labels_ - 1}", got=labels)
        gone = np.unique(given.astype(np.int64))
        if gone.size and (gone[0] < 0 or gone[-1] >= self.n_labels_):
            worst = gone[0] if gone[0] < 0 else gone[-1]
            raise ParameterError(name="labels", problem=f"must be numbers from 0 to {self.n_labels_ - 1}; got {worst}.")
        if gone.size == self.n_labels_:
            raise ParameterError(name="labels", problem="must leave at least one label; got all of them.")
        keep = np.ones(self.n_labels_, dtype=bool)
        keep[gone] = False
        found = [drop_labels(tree, chunks, keep) for tree, chunks in zip(self.trees_, self.chunks_, strict=True)]
        self.trees_, self.chunks_ = [tree for tree, _ in found], [chunks for _, chunks in found]
        self.label_counts_ = self.label_counts_[keep]
        self.n_labels_ = int(keep.sum())
        return self

    def _new_rows(self, X: Any, Y: Any, n_labels: int) -> tuple[Rows, sp.csr_array, Solver, int]:
        """Check rows that come after training."""
        solver = self._solver(self.C_)
        X, Y = as_sparse(self._check_rows(X)), as_labels(Y, "Y")
        check_same_rows(X, Y)
        check_width(Y, n_labels, "Y", "labels")
        if Y.nnz == 0:
            raise DataError(input="Y", problem="must hold at least one label; every row is empty.")
        binary = make_csr(Y.indptr, Y.indices, np.ones_like(Y.data), Y.shape[1])
        return self._rows(X, solver.bias), binary, solver, resolve_jobs(self.n_jobs)

    def _rows(self, X: sp.csr_array, bias: float) -> Rows:
        """Scale the rows and note what the solver needs of each."""
        scale = row_scale(X, check_flag("normalize", self.normalize))
        indptr = X.indptr.astype(np.int64, copy=False)
        as_they_are = bool((np.abs(scale - 1) <= NEARLY_ONE).all())  # most features come at unit length: no copy then
        data, norms = X.data if as_they_are else np.empty_like(X.data), np.empty(X.shape[0], dtype=np.float32)
        if as_they_are:
            row_squares(indptr, data, bias**2, norms)
        else:
            scale_rows(indptr, X.data, scale, bias**2, data, norms)
        return Rows(indptr, X.indices, data, norms, X.shape[1])

    def _solver(self, C: float) -> Solver:
        return Solver(
            loss=check_choice("loss", self.loss, LOSSES),
            C=C if self.C is None else check_real("C", self.C, low=0, open_low=True),
            positive_weight=check_real("positive_weight", self.positive_weight, low=0, open_low=True),
            bias=check_real("bias", self.bias, low=0),
            tol=check_real("tol", self.tol, low=0, open_low=True),
            max_iter=check_integer("max_iter", self.max_iter, low=1),
            threshold=check_real("threshold", self.threshold, low=0),
            seed=resolve_seed(self.random_state),
        )

    def _grow(
        self, rows: Rows, Y: sp.csr_array, vectors: Any, tree: LabelTree | None, n_trees: int, seed: int, n_jobs: int
    ) -> list[LabelTree]:
        branching = check_integer("branching", self.branching, low=2)
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

        def grow(i: int) -> LabelTree:
            return build_tree(
                vectors,
                branching=branching,
                max_leaf=max_leaf,
                balanced=balanced,
                random_state=(seed + i) % (2**31),
                n_jobs=n_jobs,
            )

        return [grow(i) for i in range(n_trees)]

    def _links(self, tree: LabelTree) -> list[Link]:
        power = LINKS[check_choice("link", self.link, tuple(LINKS))]
        weight = PATH_WEIGHT[self.negatives] if self.path_weight is None else self.path_weight
        weight = check_real("path_weight", weight, low=0)
        return [Link(power, SLOPE, 1.0) for _ in range(tree.n_levels)] + [Link(power, SLOPE, weight)]

    def predict_topk(self, X: Any, k: int = 5, *, allow: Any = None, deny: Any = None) -> TopK:
        """Return the k best labels of every row with their scores (logarithms), best first.

        `allow` (only these labels) and `deny` (none of these) are lists of label numbers. The search passes by clusters
        in which nothing is allowed, so that the beam is spent on the others.
        """
        self._check_fitted()
        if type(k) is not int or not 0 < k <= MOST_PLACES:
            k = check_integer("k", k, low=1, high=MOST_PLACES)
        if allow is not None or deny is not None:
            return self._restricted(allow, deny).predict_topk(X, k)
        if is_one_row(X, self.n_features_in_):
            row = self._predict_row(X, k)
            if row is not None:
                return row
        X = as_sparse(self._check_rows(X))
        scale, n_jobs, places = row_scale(X, self.normalize), resolve_jobs(self.n_jobs), self._places(k)
        tops = []
        for tree, chunks in zip(self.trees_, self.chunks_, strict=True):
            once = tree.leaf_labels if self.merge == "max" and tree.n_places > self.n_labels_ else NO_LABELS
            found, scores = chunks.search(X, scale, self._plan(tree, places), n_jobs, once)
            tops.append((labels_of(tree, chunks, found), scores))
        return self._merged(tops, k)

    def _places(self, k: int) -> int:
        """Return how many places to take from every tree so that the k best labels are right after merging."""
        copies = max(-(-tree.n_places // self.n_labels_) for tree in self.trees_) if self.merge == "mean" else 1
        if len(self.trees_) == 1 and copies == 1:
            return min(k, self.n_labels_)
        return min(MOST_PLACES, copies * max(min(k, self.n_labels_), MERGED_AT_LEAST))

    def _merged(self, tops: list[tuple[np.ndarray, np.ndarray]], k: int) -> TopK:
        """Bring the lists of all trees down to one of k labels."""
        if self.merge == "mean" and any(tree.n_places > self.n_labels_ for tree in self.trees_):
            tops = [merge(*top, 0, top[0].shape[1]) for top in tops]  # each tree's copies of a label first
        if len(tops) > 1:
            ids, scores = (np.concatenate(parts, axis=1) for parts in zip(*tops, strict=True))
            return TopK(*merge(ids, scores, len(tops), k))
        ids, scores = tops[0]
        if ids.shape[1] == k:
            return TopK(ids, scores)
        out_ids = np.full((ids.shape[0], k), -1, dtype=np.int32)
        out_scores = np.full((ids.shape[0], k), -np.inf, dtype=np.float32)
        out_ids[:, : ids.shape[1]], out_scores[:, : ids.shape[1]] = ids[:, :k], scores[:, :k]
        return TopK(out_ids, out_scores)

    def _restricted(self, allow: Any, deny: Any) -> Self:
        """Return a view of this model in which some labels, and clusters without any other, are silent."""
        allowed = allowed_labels(self.n_labels_, allow, deny)
        view = copy(self)
        view.chunks_ = [silenced(tree, chunks, allowed) for tree, chunks in zip(self.trees_, self.chunks_, strict=True)]
        return view

    def _predict_row(self, X: sp.csr_array, k: int) -> TopK | None:
        """Predict one row without the ado of a batch, the same to the last bit; None if it needs to be looked at."""
        ids, values = X.indices.astype(np.int32, copy=False), X.data.astype(np.float32, copy=False)
        places = self._places(k)
        tops = []
        for tree, chunks in zip(self.trees_, self.chunks_, strict=True):
            once = self.merge == "max" and tree.n_places > self.n_labels_
            plan, room = self._plan(tree, places), k if len(self.trees_) == 1 and places <= k else places
            found = chunks.search_row(ids, values, self.normalize, plan, tree.leaf_labels, once, room)
            if found is None:
                return None
            tops.append(found)
        return self._merged(tops, k)

    @property
    def beam_width(self) -> int:
        """Nodes kept at every level: `beam`, or what stands for None."""
        if self.beam is None:
            return BEAM if self.overlap == 1 else BEAM_OVERLAP
        return check_integer("beam", self.beam, low=1, high=MOST_PLACES)

    def _plan(self, tree: LabelTree, places: int) -> Plan:
        key = (tree.n_levels, places, self.beam, self.overlap, self.link, self.path_weight, self.negatives)
        if getattr(self, "_planned", (None,))[0] != key:
            self._planned = (key, Plan.of([self.beam_width] * tree.n_levels + [places], self._links(tree)))
        return self._planned[1]

    def chosen(self, topk: TopK) -> np.ndarray:
        """Return which predictions belong to the label set of their row; without a calibration, those above ½."""
        if hasattr(self, "calibration_"):
            return self.calibration_.chosen(topk)
        return (topk.ids >= 0) & (topk.scores >= np.log(0.5))

    def explain(self, X: Any, labels: Any) -> list[Explanation]:
        """Return for the one row X, per label, its path through the tree and the features for and against it.

        In an ensemble, or where a label stands in several leaves, the place that scores highest is explained. The
        score is the path's own, whether or not the beam reached it.
        """
        ids, values = self._one_row(X)
        out = []
        for label in labels:
            ways = [
                explain_place(tree, chunks, self._plan(tree, 1), int(place), ids, values)
                for tree, chunks in zip(self.trees_, self.chunks_, strict=True)
                for place in np.flatnonzero(tree.leaf_labels == label)
            ]
            out.append(max(ways, key=lambda way: way.score))
        return out

    def to_part(self) -> Part:
        arrays: dict[str, np.ndarray] = {"label_counts": self.label_counts_}
        for i, (tree, chunks) in enumerate(zip(self.trees_, self.chunks_, strict=True)):
            arrays |= {f"{i}.tree.{name}": a for name, a in tree.to_part().arrays.items()}
            arrays |= chunks.arrays(f"{i}.")
        params = {**self.saved_params(), "n_rows": self.n_rows_, "n_features": self.n_features_in_, "C_": self.C_}
        return Part(self.kind, {**params, "levels": [tree.n_levels for tree in self.trees_]}, arrays)

    @classmethod
    def from_part(cls, part: Part) -> Self:
        params = dict(part.params)
        n_rows, n_features, levels = (params.pop(name) for name in ("n_rows", "n_features", "levels"))
        weight = params.pop("C_", 1.0)  # folders written before it was kept have C=1.0 in their parameters
        model = cls(**params)
        model.C_ = float(weight)
        model.label_counts_ = part.array("label_counts")
        if model.label_counts_.ndim != 1 or model.label_counts_.min(initial=0) < 0:
            raise ModelError(f"the model's part '{part.kind}' is inconsistent: its label counts are not counts.")
        model.n_labels_, model.n_rows_, model.n_features_in_ = model.label_counts_.size, int(n_rows), int(n_features)
        model.trees_, model.chunks_ = [], []
        for i, n_levels in enumerate(levels):
            prefix = f"{i}.tree."
            arrays = part.under(prefix)
            tree = LabelTree.from_part(Part(part.kind, {"n_labels": model.n_labels_, "n_levels": n_levels}, arrays))
            model.trees_.append(tree)
            model.chunks_.append(Chunks.from_part(part, f"{i}.", tree, model.n_features_in_))
        if not model.trees_:
            raise ModelError(f"the model's part '{part.kind}' has no tree.")
        return model
