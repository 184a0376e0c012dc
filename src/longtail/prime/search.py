"""Search for the label vectors with the largest inner products: exact, or by an approximate index of faiss."""

from __future__ import annotations

import importlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.errors import MissingExtraError
from longtail.kernels import blocks
from longtail.prime.settings import INDEXES, PRECISIONS
from longtail.validate import check_choice

if TYPE_CHECKING:
    from torch import Tensor

LABELS_AT_ONCE = 65_536
SCORES_AT_ONCE = {"cpu": 2**22, "cuda": 2**24}
GROUP = 64  # labels of which the best is looked at first
LINKS, BUILD_WIDTH, SEARCH_WIDTH = 32, 200, 128  # of the graph "hnsw"
INT8_MAX = 127


def quantize(vectors: np.ndarray, precision: str) -> dict[str, np.ndarray]:
    """Return vectors in a precision, as they are stored: `vectors`, and for "int8" also `scales`, one per row.

    >>> stored = quantize(np.array([[0.5, -1.0]], dtype=np.float32), "int8")
    >>> stored["vectors"].tolist(), dequantize(stored).round(2).tolist()
    ([[64, -127]], [[0.5, -1.0]])
    """
    check_choice("precision", precision, PRECISIONS)
    if precision != "int8":
        return {"vectors": np.asarray(vectors, dtype=precision)}
    scales = np.maximum(np.abs(vectors).max(axis=1, initial=0.0), 1e-30).astype(np.float32) / INT8_MAX
    return {"vectors": np.rint(vectors / scales[:, None]).astype(np.int8), "scales": scales}


def dequantize(stored: dict[str, np.ndarray]) -> np.ndarray:
    """Return vectors that `quantize` has stored, as float32."""
    out = stored["vectors"].astype(np.float32)
    return out * stored["scales"][:, None] if "scales" in stored else out


class LabelSearch:
    """Finds the labels whose vectors have the largest inner products with a query.

    Parameters
    ----------
    stored : dict of str to ndarray
        Label vectors as `quantize` returns them.
    index : {"exact", "hnsw", "ivf"}, default="exact"
        Exact search, or an index of the faiss library.
    device : str, default="cpu"
        Where exact search runs; on a GPU ("cuda") it needs torch.

    Examples
    --------
    >>> search = LabelSearch(quantize(np.eye(3, dtype=np.float32), "float32"))
    >>> ids, scores = search.topk(np.array([[0.2, 0.9, 0.1]], dtype=np.float32), k=2)
    >>> ids.tolist()
    [[1, 0]]
    """

    device: str
    stored: dict[str, np.ndarray]

    def __init__(self, stored: dict[str, np.ndarray], index: str = "exact", device: str = "cpu") -> None:
        check_choice("index", index, INDEXES)
        self.stored, self.device = stored, device
        self.n_labels: int = stored["vectors"].shape[0]
        self.index: Any | None = _build(dequantize(stored), index) if index != "exact" else None
        self._on_gpu = _GpuSearch(stored, device) if str(device).startswith("cuda") else None

    def topk(self, queries: np.ndarray, k: int, allowed: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return ids (int32) and inner products of the k best labels, best first; -1 and -inf where there are none.

        Of labels with equal products the lower one is first. With `allowed` (bool per label) the search is always
        exact.
        """
        ids = np.full((queries.shape[0], k), -1, dtype=np.int32)
        scores = np.full((queries.shape[0], k), -np.inf, dtype=np.float32)
        used = min(k, self.n_labels)
        if self.index is not None and allowed is None:
            _set_search_width(self.index, used)
            scores[:, :used], ids[:, :used] = self.index.search(np.ascontiguousarray(queries, np.float32), used)
            scores[ids < 0] = -np.inf
        else:
            search = self._exact if self._on_gpu is None else self._on_gpu.exact
            at_once = SCORES_AT_ONCE["cpu" if self._on_gpu is None else "cuda"]
            for at in blocks(queries.shape[0], max(1, at_once // max(1, min(self.n_labels, LABELS_AT_ONCE)))):
                rows = np.ascontiguousarray(queries[at], np.float32)
                scores[at, :used], ids[at, :used] = search(rows, used, allowed)
            ids[np.isneginf(scores)] = -1
        order = np.lexsort((ids, -scores), axis=1)  # equal scores: the lower label first
        return np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1)

    def _exact(self, rows: np.ndarray, k: int, allowed: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return scores and ids of the k best labels of every row, block after block of labels."""
        scores = np.empty((rows.shape[0], 0), dtype=np.float32)
        ids = np.empty((rows.shape[0], 0), dtype=np.int32)
        for at in blocks(self.n_labels, LABELS_AT_ONCE):
            products = rows @ self.stored["vectors"][at].astype(np.float32, copy=False).T
            if "scales" in self.stored:
                products *= self.stored["scales"][at]
            if allowed is not None:
                products[:, ~allowed[at]] = -np.inf
            best = best_columns(products, k)
            scores = np.concatenate([scores, np.take_along_axis(products, best, axis=1)], axis=1)
            ids = np.concatenate([ids, best.astype(np.int32) + np.int32(at.start)], axis=1)
            if at.start:
                kept = best_columns(scores, k)
                scores, ids = np.take_along_axis(scores, kept, axis=1), np.take_along_axis(ids, kept, axis=1)
        return scores, ids


def best_columns(values: np.ndarray, k: int) -> np.ndarray:
    """Return the columns of the k largest values of every row, in rising order; the lower column of equal values.

    >>> best_columns(np.float32([[1, 3, 2, 3], [5, 0, 5, 5]]), 2).tolist()
    [[1, 3], [0, 2]]
    """
    n_rows, n_columns = values.shape
    k = min(k, n_columns)
    if k == n_columns:
        return np.broadcast_to(np.arange(n_columns), (n_rows, n_columns))
    # k groups have a best value of at least `least`, so k values are at least that: few others are looked at
    n_groups = n_columns // GROUP
    if k < n_groups:
        best = values[:, : n_groups * GROUP].reshape(n_rows, n_groups, GROUP).max(axis=2)
        least = np.partition(best, n_groups - k, axis=1)[:, n_groups - k]
    else:
        least = np.partition(values, n_columns - k, axis=1)[:, n_columns - k]
    row, column = np.nonzero(values >= least[:, None])
    order = np.lexsort((column, -values[row, column], row))
    starts = np.searchsorted(row, np.arange(n_rows))
    return np.sort(column[order[starts[:, None] + np.arange(k)]], axis=1)


class _GpuSearch:
    """Exact search on a GPU, by torch."""

    def __init__(self, stored: dict[str, np.ndarray], device: str) -> None:
        import torch

        self.device = torch.device(device)
        self.vectors = torch.from_numpy(np.array(stored["vectors"])).to(self.device)
        scales = stored.get("scales")
        self.scales = None if scales is None else torch.from_numpy(np.array(scales)).to(self.device)

    def exact(self, queries: np.ndarray, k: int, allowed: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return scores and ids of the k best labels of every row, block after block of labels."""
        import torch

        rows = torch.from_numpy(queries).to(self.device)
        mask = None if allowed is None else torch.from_numpy(allowed).to(self.device)
        best: tuple[Tensor, Tensor] | None = None
        for at in blocks(len(self.vectors), LABELS_AT_ONCE):
            products = rows @ self.vectors[at].to(torch.float32).T
            if self.scales is not None:
                products *= self.scales[at]
            if mask is not None:
                products = products.masked_fill(~mask[at], -torch.inf)
            scores, ids = products.topk(min(k, products.shape[1]), dim=1)
            ids = ids + at.start
            if best is not None:
                scores, ids = torch.cat([best[0], scores], dim=1), torch.cat([best[1], ids], dim=1)
                scores, kept = scores.topk(min(k, scores.shape[1]), dim=1)
                ids = ids.gather(1, kept)
            best = scores, ids
        if best is None:
            empty = np.empty((len(queries), 0), dtype=np.float32)
            return empty, empty.astype(np.int32)
        return best[0].cpu().numpy(), best[1].cpu().numpy()


def import_faiss(index: str) -> Any:
    """Return the faiss library, or say in one sentence how to install it."""
    try:
        return importlib.import_module("faiss")
    except ImportError as error:
        raise MissingExtraError(f"The index '{index}'", "faiss-cpu", "ann") from error


def _build(vectors: np.ndarray, index: str) -> Any:
    faiss = import_faiss(index)
    n, width = vectors.shape
    if index == "hnsw":
        made = faiss.IndexHNSWFlat(width, LINKS, faiss.METRIC_INNER_PRODUCT)
        made.hnsw.efConstruction = BUILD_WIDTH
    else:
        cells = max(1, min(n // 40, 4 * math.isqrt(n)))  # at least 40 labels for each, as faiss wants for its k-means
        made = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, cells, faiss.METRIC_INNER_PRODUCT)
        made.nprobe = max(8, cells // 16)
        made.train(vectors)
    made.add(vectors)
    return made


def _set_search_width(index: Any, k: int) -> None:
    if hasattr(index, "hnsw"):
        index.hnsw.efSearch = max(SEARCH_WIDTH, 2 * k)
