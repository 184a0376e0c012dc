"""Five tags scored from two numbers of a package: which of their sets can come out, beside a DFT layer with k = 1.

And the wave by which a DFT layer with k = 3 gives three of the twelve most used tags.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression

from longtail.audit import argmaxable
from longtail.bottleneck import circle_order, dft_matrix
from longtail.data import Dataset, load_bundled
from longtail.text import TfidfFeatures

LABELS = ("works-with::text", "use::editing", "use::converting", "use::viewing", "works-with::image")
COMMON, K = 12, 3  # tags on the circle, and how many of them may be given at once
Facts = dict[str, Any]


def measure() -> Facts:
    """Train the layer, audit the sets that packages have, and do the same for the DFT layer."""
    train = load_bundled("debtags", "train")
    names = train.names()
    Y = train.Y[:, [names.index(label) for label in LABELS]].toarray() > 0
    rows = np.flatnonzero(Y.any(axis=1))
    Y = Y[rows]
    words = TfidfFeatures(min_df=2).fit_transform(train.texts or ())
    X = TruncatedSVD(2, random_state=0).fit_transform(sp.csr_matrix(words)[rows])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    fits = [LogisticRegression(C=10).fit(X, on) for on in Y.T]
    weights = np.array([fit.coef_[0] for fit in fits]).round(4)
    bias = np.array([fit.intercept_[0] for fit in fits]).round(4)
    order = circle_order(sp.csr_matrix(Y.astype(np.float32)))
    wave = dft_matrix(len(LABELS), 1)[order]  # a row for each label, wherever it stands on the circle
    counted = Counter(tuple(np.flatnonzero(row).tolist()) for row in Y)
    sets = sorted(counted, key=lambda members: (-counted[members], members))
    possible = {"learned": reachable(weights, sets, bias), "dft": reachable(wave, sets, None)}
    every = [members for size in range(6) for members in itertools.combinations(range(len(LABELS)), size)]
    return {
        "data": "debtags",
        "labels": list(LABELS),
        "rows": len(rows),
        "order": order.tolist(),
        "weights": weights.tolist(),
        "bias": bias.tolist(),
        "sets": [
            {"labels": list(members), "rows": counted[members], **{name: on[i] for name, on in possible.items()}}
            for i, members in enumerate(sets)
        ],
        "of_all_32": {"learned": sum(reachable(weights, every, bias)), "dft": sum(reachable(wave, every, None))},
        "rows_that_never_come_out": {
            name: sum(counted[members] for i, members in enumerate(sets) if not on[i]) for name, on in possible.items()
        },
        "wave": wave_of_a_set(train),
    }


def wave_of_a_set(train: Dataset) -> Facts:
    """Return the recipe of the wave that gives the most frequent set of K tags, none of which stand side by side."""
    used = np.argsort(-np.bincount(train.Y.indices, minlength=train.n_labels), kind="stable")[:COMMON]
    Y = train.Y[:, np.sort(used)].toarray() > 0
    names = [train.names()[label] for label in np.sort(used)]
    places = circle_order(sp.csr_matrix(Y.astype(np.float32)))
    counted = Counter(tuple(np.flatnonzero(row).tolist()) for row in Y if row.sum() == K)
    members = next(found for found, _ in counted.most_common() if not neighbours(places[list(found)]))
    wanted = np.zeros((1, COMMON), dtype=np.int8)
    wanted[0, list(members)] = 1
    recipe = np.asarray(argmaxable(dft_matrix(COMMON, K)[places], wanted).certificates[0].x)
    recipe /= np.linalg.norm(recipe)
    return {
        "labels": names,
        "places": places.tolist(),
        "k": K,
        "set": list(members),
        "rows": counted[members],
        "recipe": recipe.round(6).tolist(),
        "scores": (dft_matrix(COMMON, K)[places] @ recipe).round(6).tolist(),
    }


def neighbours(places: np.ndarray) -> bool:
    """Say whether two of the places on the circle are side by side."""
    return any(abs(int(a) - int(b)) in (1, COMMON - 1) for a, b in itertools.combinations(places, 2))


def reachable(weights: np.ndarray, sets: list[tuple[int, ...]], bias: np.ndarray | None) -> list[bool]:
    """Return which label sets can come out of a layer."""
    wanted = np.zeros((len(sets), len(weights)), dtype=np.int8)
    for row, members in enumerate(sets):
        wanted[row, list(members)] = 1
    found = argmaxable(weights, wanted, bias=bias)
    return [bool(on) for on in found.reachable[found.set_of_row]]
