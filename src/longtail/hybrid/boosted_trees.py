"""Boosted trees beside the weights: what experts say together, where sums of what each says do not tell it.

    log-odds = start + sum over trees of the value of the leaf that a label reaches

Each tree asks for features of the label, one after the other. The log-odds never fall when a feature of an expert
rises: no expert speaks against a label. They are trained by scikit-learn (gradient boosting on histograms, on one
thread, so that the model does not depend on the number of threads), and kept as plain arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from longtail.hybrid.boosted_kernels import add_leaves

TREES, LEAVES, FEWEST_IN_LEAF, RATE = 200, 15, 200, 0.05
LEAF = -1  # in place of a feature


@dataclass(frozen=True)
class BoostedTrees:
    """Trees over the features of labels of rows; the first is one leaf, what all start from.

    Attributes
    ----------
    starts : ndarray of int32 (n_trees + 1,)
        The first node of every tree; the last entry is the number of nodes.
    feature : ndarray of int32 (n_nodes,)
        The feature that a node asks for; -1 at a leaf.
    threshold : ndarray of float32 (n_nodes,)
        What is at most as large goes to the left child, which is the next node.
    right : ndarray of int32 (n_nodes,)
        The right child; 0 at a leaf.
    value : ndarray of float32 (n_nodes,)
        What a leaf adds to the log-odds; 0 of other nodes.
    """

    starts: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    right: np.ndarray
    value: np.ndarray

    @property
    def n_trees(self) -> int:
        """Number of trees after the first."""
        return self.starts.size - 2

    @classmethod
    def fit(cls, features: np.ndarray, hits: np.ndarray, worth: np.ndarray, rising: np.ndarray) -> Self:
        """Train trees on examples.

        Parameters
        ----------
        features : ndarray of float32 (n, n_features)
            What is known of every example.
        hits : ndarray of bool (n,)
            Which are right; some are, and some are not.
        worth : ndarray (n,)
            How many examples each stands for.
        rising : ndarray of bool (n_features,)
            The features with which log-odds never fall.
        """
        from sklearn.ensemble import HistGradientBoostingClassifier  # slow to import, and only training needs it
        from threadpoolctl import threadpool_limits

        boosting = HistGradientBoostingClassifier(
            learning_rate=RATE,
            max_iter=TREES,
            max_leaf_nodes=LEAVES,
            min_samples_leaf=FEWEST_IN_LEAF,
            monotonic_cst=rising.astype(int),
            early_stopping=False,
            random_state=0,
        )
        with threadpool_limits(1, user_api="openmp"):
            boosting.fit(features, hits, sample_weight=worth)
        return cls._of_nodes([one.nodes for (one,) in boosting._predictors], float(boosting._baseline_prediction[0, 0]))

    @classmethod
    def _of_nodes(cls, trees: list[Any], start: float) -> Self:
        """Return the trees of scikit-learn's tables of nodes, each in the order node, left part, right part."""
        feature, right, starts = [np.array([LEAF])], [np.array([0])], [0, 1]
        threshold, value = [np.array([0.0])], [np.array([start])]
        for nodes in trees:
            order, own_right = _in_order(nodes)
            leaf = nodes["is_leaf"][order].astype(bool)
            feature.append(np.where(leaf, LEAF, nodes["feature_idx"][order]))
            threshold.append(np.where(leaf, 0.0, nodes["num_threshold"][order]))
            right.append(np.where(leaf, 0, own_right + starts[-1]))
            value.append(np.where(leaf, nodes["value"][order], 0.0))
            starts.append(starts[-1] + len(order))
        return cls(
            np.array(starts, dtype=np.int32),
            np.concatenate(feature).astype(np.int32),
            _rounded_down(np.concatenate(threshold)),
            np.concatenate(right).astype(np.int32),
            np.concatenate(value).astype(np.float32),
        )

    def on_features(self, of: np.ndarray) -> BoostedTrees:
        """Return the same trees where feature number i of the training is number `of[i]`."""
        feature = np.where(self.feature == LEAF, LEAF, of[self.feature]).astype(np.int32)
        return BoostedTrees(self.starts, feature, self.threshold, self.right, self.value)

    def log_odds(self, features: np.ndarray) -> np.ndarray:
        """Return the log-odds of labels with these features (n, n_features), float32."""
        out = np.empty(features.shape[0], dtype=np.float32)
        features = np.ascontiguousarray(features, dtype=np.float32)
        add_leaves(features, self.starts, self.feature, self.threshold, self.right, self.value, out)
        return out

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return what is saved."""
        return dict(vars(self))

    def problem(self) -> str | None:
        """Return why these arrays are no trees, or None: whoever asks them checks no bounds.

        >>> arrays = {"threshold": np.zeros(3), "value": np.zeros(3, np.float32)}
        >>> starts, feature = np.array([0, 3], np.int32), np.array([0, -1, -1], np.int32)
        >>> BoostedTrees(starts, feature, right=np.array([2, 0, 0], np.int32), **arrays).problem()
        >>> BoostedTrees(starts, feature, right=np.array([1, 0, 0], np.int32), **arrays).problem()
        'node 0 of its boosted trees has 1 as its right child, not one from 2 to 2'
        """
        n = self.feature.size
        if self.starts.size < 2 or self.starts[0] != 0 or self.starts[-1] != n or (np.diff(self.starts) < 1).any():
            return f"its boosted trees do not begin one after the other, from 0 to {n}"
        at, inner = np.arange(n), self.feature != LEAF
        lasts = np.repeat(self.starts[1:], np.diff(self.starts)) - 1
        wrong = np.flatnonzero(np.where(inner, (self.right <= at + 1) | (self.right > lasts), self.right != 0))
        if wrong.size:
            node = int(wrong[0])
            allowed = f"one from {node + 2} to {int(lasts[node])}" if inner[node] else "0, for it is a leaf"
            return f"node {node} of its boosted trees has {int(self.right[node])} as its right child, not {allowed}"
        parents = np.bincount(np.concatenate([at[inner] + 1, self.right[inner]]), minlength=n)
        parents[self.starts[:-1]] += 1
        if (parents != 1).any():
            node = int(np.argmax(parents != 1))
            return f"node {node} of its boosted trees is the child of {int(parents[node])} nodes, not of one"
        return None


def _rounded_down(values: np.ndarray) -> np.ndarray:
    """Return the largest float32 numbers that are not above the values: the same float32 features are below them.

    >>> bool(_rounded_down(np.array([0.1]))[0] <= 0.1), _rounded_down(np.array([0.5])).tolist()
    (True, [0.5])
    """
    near = values.astype(np.float32)
    return np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near)


def _in_order(nodes: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes of a tree in the order node, left part, right part, and the places of their right children."""
    order: list[int] = []
    place, waiting = np.zeros(len(nodes), dtype=np.int64), [0]
    while waiting:
        node = waiting.pop()
        place[node] = len(order)
        order.append(node)
        if not nodes["is_leaf"][node]:
            waiting += [int(nodes["right"][node]), int(nodes["left"][node])]
    return np.array(order), place[nodes["right"][order]]
