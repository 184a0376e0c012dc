"""Scores of a group's rows by label vectors of other groups, and the probabilities that follow from them."""

from __future__ import annotations

import numpy as np

from longtail.kernels import dot_row, njit

STEPS = 40  # of bisection


@njit(nogil=True, cache=True)
def spread_of_labels(
    first, last,                    # IN   labels
    x_indptr, x_ids, x_data,        # IN   rows
    v_indptr, v_ids, v_data,        # IN   label vectors
    sample,                         # IN   rows to measure on                 (n,) int64
    n_features,
    spread,                         # OUT  mean and variance of scores        (n_labels, 2) float64
):  # fmt: skip
    """Measure the scores of labels on a sample of rows."""
    vector = np.zeros(n_features, dtype=np.float32)
    for label in range(first, last):
        if v_indptr[label] == v_indptr[label + 1] or sample.size == 0:
            continue
        for t in range(v_indptr[label], v_indptr[label + 1]):
            vector[v_ids[t]] = v_data[t]
        total, squares = 0.0, 0.0
        for row in sample:
            score = float(dot_row(x_indptr, x_ids, x_data, row, vector))
            total += score
            squares += score * score
        mean = total / sample.size
        spread[label, 0] = mean
        spread[label, 1] = max(squares / sample.size - mean * mean, 1e-12)
        for t in range(v_indptr[label], v_indptr[label + 1]):
            vector[v_ids[t]] = 0


@njit(nogil=True, cache=True)
def shares_adding_up(logits, total, out):
    """Write σ(logit + b) with the b for which they add up to `total`, by bisection."""
    n = logits.size
    if total >= n:
        out[:] = 1
        return
    low, high = -60.0, 60.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        found = 0.0
        for i in range(n):
            found += 1 / (1 + np.exp(-(logits[i] + middle)))
        if found < total:
            low = middle
        else:
            high = middle
    for i in range(n):
        out[i] = 1 / (1 + np.exp(-(logits[i] + low)))


@njit(nogil=True, cache=True)
def judge_labels(
    first, last,                    # IN   labels
    x_indptr, x_ids, x_data,        # IN   rows
    v_indptr, v_ids, v_data,        # IN   label vectors
    group_indptr, group_rows,       # IN   rows of each group
    label_indptr, label_groups,     # IN   groups of each label
    judged,                         # IN   which groups to judge                        (n_groups,) bool
    expected,                       # IN   rows of the group that have the label        (n_pairs,) float64
    spread,                         # IN   mean and deviation of scores of each label   (n_labels, 2) float64
    n_features,
    found_indptr, found_ids,        # IN   labels found
    shares, base,                   # OUT  of each label found in a judged group        (nnz,) float64
):  # fmt: skip
    """Judge the labels found by vectors: of a label from several groups, the greatest share counts."""
    vector = np.zeros(n_features, dtype=np.float32)
    for label in range(first, last):
        for t in range(v_indptr[label], v_indptr[label + 1]):
            vector[v_ids[t]] = v_data[t]
        for pair in range(label_indptr[label], label_indptr[label + 1]):
            group = label_groups[pair]
            if not judged[group]:
                continue
            low, high = group_indptr[group], group_indptr[group + 1]
            logits, out = np.zeros(high - low), np.empty(high - low)
            if spread[label, 1] > 0:
                for member in range(low, high):
                    score = float(dot_row(x_indptr, x_ids, x_data, group_rows[member], vector))
                    logits[member - low] = np.arcsinh((score - spread[label, 0]) / spread[label, 1])
            shares_adding_up(logits, expected[pair], out)
            for member in range(low, high):
                row = group_rows[member]
                begin, end = found_indptr[row], found_indptr[row + 1]
                at = begin + np.searchsorted(found_ids[begin:end], label)
                if at < end and found_ids[at] == label and out[member - low] > shares[at]:
                    shares[at] = out[member - low]
                    base[at] = expected[pair] / (high - low)
        for t in range(v_indptr[label], v_indptr[label + 1]):
            vector[v_ids[t]] = 0
