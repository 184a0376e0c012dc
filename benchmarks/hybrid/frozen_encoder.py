"""One logistic regression per label on the vectors of a frozen sentence encoder, as scikit-learn would train them."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.linear_model import LogisticRegression

from benchmarks.harness.program import Facts
from benchmarks.harness.timing import timed
from benchmarks.hybrid.measure import K
from benchmarks.hybrid.peer_data import Found, PeerData
from longtail.data import TopK
from longtail.encoder import TextEncoder, load_text_encoder

LENGTH = 128  # tokens of a text that are read
C = 1.0  # scikit-learn's default
ITERATIONS = 1000
FEW = 1_000  # up to so many labels scikit-learn itself trains them
ROWS = 4096  # of a block of texts or of scores
COMPARED = 10  # labels that scikit-learn trains too: its time, and whether its ranking is the same


def run_encoder(data: PeerData, folder: Path, encoder: str) -> Found:
    """Return facts and predictions of one classifier per label on frozen vectors."""
    X, X_test, spent = vectors(data, folder, encoder)
    few = data.Y.shape[1] <= FEW
    training, (W, b) = timed(scikit_learn_regressions if few else logistic_regressions, X, data.Y)
    prediction, top = timed(best_labels, X_test, W, b)
    facts = {
        "device": _device().type,
        **spent,
        "train_seconds": training.wall,
        "train_cpu_seconds": training.cpu,
        "predict_seconds": prediction.wall,
        "predict_cpu_seconds": prediction.cpu,
        "solver": "scikit-learn" if few else "L-BFGS on all labels at once",
    }
    if not few:
        facts["scikit_learn"] = against_scikit_learn(X, data, W, b)
    return [("encoder-one-vs-all", facts, top)]


def vectors(data: PeerData, folder: Path, encoder: str) -> tuple[np.ndarray, np.ndarray, Facts]:
    """Return unit vectors of training and test texts, and the seconds that took; blocks that are there are kept."""
    frozen = load_text_encoder(encoder, LENGTH).eval().to(_device())
    blocks, spent = [], np.zeros(2)
    texts = [*data.texts, *data.test_texts]
    (folder / "vectors").mkdir(parents=True, exist_ok=True)
    for at in range(0, len(texts), ROWS):
        kept = folder / "vectors" / f"{at}.npz"
        if not kept.exists():
            seconds, X = timed(_unit_vectors, frozen, texts[at : at + ROWS])
            np.savez(kept, X=X, seconds=np.array(seconds))
        with np.load(kept) as file:
            blocks.append(file["X"])
            spent += file["seconds"]
    X = np.concatenate(blocks)
    facts = {"encode_seconds": float(spent[0]), "encode_cpu_seconds": float(spent[1]), "tokens": LENGTH}
    return X[: len(data.texts)], X[len(data.texts) :], facts


def scikit_learn_regressions(X: np.ndarray, Y: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Return weights (n_features, n_labels) and intercepts, label after label; those without rows come last."""
    columns = Y.tocsc()
    W = np.zeros((X.shape[1], Y.shape[1]), dtype=np.float32)
    b = np.full(Y.shape[1], -np.inf, dtype=np.float32)
    for label in np.flatnonzero(np.diff(columns.indptr)).tolist():
        true = np.zeros(X.shape[0], dtype=bool)
        true[columns.indices[columns.indptr[label] : columns.indptr[label + 1]]] = True
        model = LogisticRegression(C=C, max_iter=1000).fit(X, true)
        W[:, label], b[label] = model.coef_[0], model.intercept_[0]
    return W, b


def logistic_regressions(X: np.ndarray, Y: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Return weights (n_features, n_labels) and intercepts of all labels, by L-BFGS on all of them at once.

    What is minimised for each label is scikit-learn's C · loss + ½ ‖w‖², the intercept free.
    """
    where = _device()
    rows = torch.as_tensor(X, device=where)
    share = (np.bincount(Y.indices, minlength=Y.shape[1]) + 0.5) / (Y.shape[0] + 1)
    start = torch.zeros(X.shape[1] + 1, Y.shape[1], device=where)
    start[-1] = torch.as_tensor(np.log(share / (1 - share)), dtype=torch.float32)
    weights = torch.nn.Parameter(start)
    labels = torch.as_tensor(Y.indices.astype(np.int64), device=where)
    row_of = torch.as_tensor(np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr)), device=where)
    steps = torch.optim.LBFGS([weights], max_iter=ITERATIONS, history_size=10, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        W = weights.detach()
        loss, grad = 0.5 * (W[:-1] ** 2).sum(), torch.cat([W[:-1], torch.zeros_like(W[-1:])])
        for at in range(0, rows.shape[0], ROWS):
            block = rows[at : at + ROWS]
            first, last = int(Y.indptr[at]), int(Y.indptr[min(at + ROWS, Y.shape[0])])
            scores = block @ W[:-1] + W[-1]
            true = (row_of[first:last] - at, labels[first:last])
            loss = loss + C * (torch.nn.functional.softplus(scores).sum() - scores[true].sum())
            error = torch.sigmoid(scores)
            error[true] -= 1.0
            grad[:-1] += C * (block.T @ error)
            grad[-1] += C * error.sum(0)
        weights.grad = grad
        return loss

    steps.step(closure)
    found = weights.detach().cpu().numpy()
    return found[:-1], found[-1]


def best_labels(X: np.ndarray, W: np.ndarray, b: np.ndarray) -> TopK:
    """Return the 100 best labels of every row."""
    where = _device()
    weights, free = torch.as_tensor(W, device=where), torch.as_tensor(b, device=where)
    ids, scores = [], []
    for at in range(0, X.shape[0], ROWS):
        best = torch.topk(torch.as_tensor(X[at : at + ROWS], device=where) @ weights + free, min(K, W.shape[1]))
        ids.append(best.indices.cpu().numpy())
        scores.append(best.values.cpu().numpy())
    return TopK(np.concatenate(ids), np.concatenate(scores))


def against_scikit_learn(X: np.ndarray, data: PeerData, W: np.ndarray, b: np.ndarray) -> Facts:
    """Return what scikit-learn takes for some labels and for all, and how far its scores are from ours."""
    counts = data.counts()
    seen = np.flatnonzero(counts)
    chosen = seen[np.argsort(counts[seen])][np.linspace(0, seen.size - 1, COMPARED).astype(int)]
    started, apart = time.perf_counter(), []
    for label in chosen.tolist():
        theirs = LogisticRegression(C=C, max_iter=1000)
        theirs.fit(X, data.Y[:, [label]].toarray().ravel() > 0)
        apart.append(np.abs(theirs.decision_function(X) - (X @ W[:, label] + b[label])).max())
    seconds = (time.perf_counter() - started) / COMPARED
    return {
        "labels": COMPARED,
        "seconds_per_label": seconds,
        "hours_for_all": seconds * seen.size / 3600,
        "largest_difference": float(max(apart)),
    }


def _unit_vectors(encoder: TextEncoder, texts: list[str]) -> np.ndarray:
    with torch.no_grad():
        X = encoder.encode(texts)
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)


def _device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
