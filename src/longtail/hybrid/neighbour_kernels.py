"""Compiled: the training texts nearest to a text, among the cells nearest to it, and what labels they carry."""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit


@njit(nogil=True, cache=True)
def quantize_row(
    row,          # IN   a vector (width,)
    out,          # OUT  int8 (width,)
):  # fmt: skip
    """Round a vector to whole numbers from -127 to 127; return what they are to be multiplied with."""
    largest = np.float32(0.0)
    for j in range(row.size):
        largest = max(largest, abs(row[j]))
    scale = max(largest, np.float32(1e-30)) / np.float32(127.0)
    for j in range(row.size):
        out[j] = np.int8(np.rint(row[j] / scale))
    return scale


@njit(nogil=True, cache=True)
def insert_ranked(
    ids, scores,  # BOTH best first, equal scores by number, -1 where none (k,)
    number, score,
):  # fmt: skip
    """Put a number where its score belongs; the last one falls out."""
    rank = ids.size
    while rank > 0 and (
        ids[rank - 1] < 0 or score > scores[rank - 1] or (score == scores[rank - 1] and number < ids[rank - 1])
    ):
        rank -= 1
    if rank == ids.size:
        return
    for j in range(ids.size - 1, rank, -1):
        ids[j] = ids[j - 1]
        scores[j] = scores[j - 1]
    ids[rank] = number
    scores[rank] = score


@njit(nogil=True, cache=True)
def nearest_rows(
    queries,                  # IN   vectors of texts (n, width), float32
    centres, starts,          # IN   centres of the cells (n_cells, width); where the rows of each begin (n_cells + 1,)
    vectors, scales,          # IN   vectors of the rows, cell after cell, int8 (n_rows, width), and their scales
    n_scanned,                # IN   cells are looked through until they hold so many rows
    out_rows, out_products,   # OUT  the nearest rows, best first, -1 and -inf where none (n, k)
):  # fmt: skip
    """Find the rows with the largest inner products; of equal ones the earlier row comes first."""
    n, k = out_rows.shape
    width = queries.shape[1]
    n_cells = centres.shape[0]
    query = np.empty(width, dtype=np.int8)
    near = np.empty(n_cells, dtype=np.float32)
    for i in range(n):
        scale = quantize_row(queries[i], query)
        for cell in range(n_cells):
            total = np.float32(0.0)
            for j in range(width):
                total += queries[i, j] * centres[cell, j]
            near[cell] = -total
        out_rows[i, :] = -1
        out_products[i, :] = -np.inf
        scanned = 0
        for cell in np.argsort(near, kind="mergesort"):
            if scanned >= n_scanned:
                break
            scanned += starts[cell + 1] - starts[cell]
            for row in range(starts[cell], starts[cell + 1]):
                dot = np.int32(0)
                for j in range(width):
                    dot += np.int32(query[j]) * np.int32(vectors[row, j])
                product = np.float32(dot) * (scale * scales[row])
                if product >= out_products[i, k - 1]:
                    insert_ranked(out_rows[i], out_products[i], row, product)


@njit(nogil=True, cache=True)
def label_shares(
    rows, products,           # IN   nearest rows of every text, best first, -1 where none (n, k), and how near they are
    indptr, indices,          # IN   labels of the rows
    temperature,              # IN   how fast a row counts less as it is farther
    out_ids, out_shares,      # OUT  labels and their shares, largest first, -1 and 0 where none (n, m)
):  # fmt: skip
    """Add up, per label, what the nearest rows that carry it weigh: weight = exp(product / temperature), sum 1."""
    n, k = rows.shape
    for i in range(n):
        out_ids[i, :] = -1
        out_shares[i, :] = 0.0
        n_pairs = 0
        total = 0.0
        for j in range(k):
            row = rows[i, j]
            if row >= 0:
                n_pairs += indptr[row + 1] - indptr[row]
                total += np.exp((products[i, j] - products[i, 0]) / temperature)
        labels = np.empty(n_pairs, dtype=np.int32)
        weights = np.empty(n_pairs, dtype=np.float32)
        at = 0
        for j in range(k):
            row = rows[i, j]
            if row >= 0:
                weight = np.float32(np.exp((products[i, j] - products[i, 0]) / temperature) / total)
                for p in range(indptr[row], indptr[row + 1]):
                    labels[at] = indices[p]
                    weights[at] = weight
                    at += 1
        order = np.argsort(labels, kind="mergesort")
        at = 0
        while at < n_pairs:
            label = labels[order[at]]
            share = np.float32(0.0)
            while at < n_pairs and labels[order[at]] == label:
                share += weights[order[at]]
                at += 1
            insert_ranked(out_ids[i], out_shares[i], label, share)


@njit(nogil=True, cache=True)
def quantize_rows(
    vectors,      # IN   (n, width), float32
    out, scales,  # OUT  int8 (n, width), and what each row is to be multiplied with (n,)
):  # fmt: skip
    """Round every row to int8."""
    for row in range(vectors.shape[0]):
        scales[row] = quantize_row(vectors[row], out[row])


@njit(nogil=True, cache=True)
def project(
    vectors, rows,  # IN   (n, width), and which of them
    direction,      # IN   (width,)
    out,            # OUT  inner products of these rows with the direction
):  # fmt: skip
    """Multiply some rows with a direction."""
    for i in range(rows.size):
        total = np.float32(0.0)
        for j in range(direction.size):
            total += vectors[rows[i], j] * direction[j]
        out[i] = total
