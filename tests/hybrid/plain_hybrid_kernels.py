"""Slow twins of the compiled kernels of the hybrid, in plain numpy."""

import numpy as np


def nearest(queries, vectors, k):
    """Return the rows with the largest inner products, the earlier of equal ones first, and the products."""
    products = queries.astype(np.float64) @ vectors.astype(np.float64).T
    order = np.argsort(-products, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(products, order, axis=1)


def shares(rows, products, labels_of, temperature):
    """Return the share of every label among the nearest rows of one text, as a dict."""
    kept = [(row, product) for row, product in zip(rows, products, strict=True) if row >= 0]
    weights = np.exp(np.array([product for _, product in kept]) / temperature)
    weights /= weights.sum()
    out = {}
    for (row, _), weight in zip(kept, weights, strict=True):
        for label in labels_of[row]:
            out[label] = out.get(label, 0.0) + weight
    return out


def joined(lists, allowed):
    """Return the different labels of a list that may come, rising."""
    return sorted({int(label) for label in lists if label >= 0 and allowed[label]})


def sum_of_leaves(features, starts, feature, threshold, right, value):
    """Return the sum of the leaves that one row reaches."""
    total = 0.0
    for root in starts[:-1]:
        node = int(root)
        while feature[node] >= 0:
            node = node + 1 if features[feature[node]] <= threshold[node] else int(right[node])
        total += float(value[node])
    return total
