"""Train networks of one shape side by side, on a GPU in one batch of matrix products: a grid of settings, or seeds.

What `BottleneckClassifier` does, for S networks at once: its networks with their first weights (`make_network`), binary
cross-entropy over all labels, Adam with the same constants, shuffled batches by seed and epoch, a tenth of the rows
held out, and the same rule for the best epoch and for stopping. It differs in that all rows are taken as dense ones,
the encoder is not computed in 16 bits, dropout draws other numbers, and the fixed columns of the DFT layer are a matrix
product. Without dropout the losses of an epoch agree to about four digits (pubmed-mesh, on a CPU).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from benchmarks.bottleneck.layer_features import Prepared
from benchmarks.harness.scores import precisions
from longtail.bottleneck import dft_matrix
from longtail.bottleneck.network import make_network
from longtail.bottleneck.output_layers import DFTOutput
from longtail.data import TopK, split_random
from longtail.metrics import precision_at_k, recall_at_k

Facts = dict[str, Any]
ADAM = (0.9, 0.999, 1e-12)
DEPTHS = (1, 3, 5)
TOP = 10
ROWS_AT_ONCE = 1024  # when rows are scored


class Networks:
    """S networks of one shape, stacked: (S, ...) weights, learning rates and dropout rates."""

    def __init__(self, settings: list[Facts], shape: Facts, device: torch.device) -> None:
        made = [make_network(**shape, **{n: one[n] for n in ("seed", "prior", "dropout")}) for one in settings]
        states = [dict(network.state_dict()) for network in made]
        self.k = made[0].head.k if isinstance(made[0].head, DFTOutput) else 0
        names = ["encoder.0.weight", "encoder.0.bias", "head.projection.weight", "head.projection.bias"]
        if not self.k:
            names.append("head.scores.weight")
        elif shape["width"]:
            names.append("head.slack")
        self.weights = {n: torch.stack([s[n] for s in states]).to(device).requires_grad_() for n in names}
        self.parameters = sum(p.numel() for p in made[0].head.parameters())
        self.waves = None
        if self.k:
            places = None if shape["order"] is None else np.asarray(shape["order"], dtype=np.int64)
            gain = float(made[0].head.gains[0])
            self.waves = torch.from_numpy(dft_matrix(shape["n_labels"], self.k, places) * gain).float().to(device).T
        self.dropout = torch.tensor([one["dropout"] for one in settings], device=device)[:, None, None]
        self.rates = [
            torch.tensor([one["lr"] for one in settings], device=device).view(-1, *[1] * (w.dim() - 1))
            for w in self.weights.values()
        ]
        self.means, self.squares = ([torch.zeros_like(w) for w in self.weights.values()] for _ in range(2))
        self.n_steps = 0

    def scores(self, x: Tensor, training: bool = False) -> Tensor:
        """Return the scores (S, rows, labels) of rows (S, rows, features) or (rows, features)."""
        w = self.weights
        x = torch.relu(x @ w["encoder.0.weight"] + w["encoder.0.bias"][:, None])
        if training:
            x = x * (torch.rand_like(x) >= self.dropout) / (1 - self.dropout)
        x = x @ w["head.projection.weight"].mT + w["head.projection.bias"][:, None]
        if self.waves is None:
            return x @ w["head.scores.weight"].mT
        scores = x[..., : 2 * self.k + 1] @ self.waves
        return scores + x[..., 2 * self.k + 1 :] @ w["head.slack"].mT if "head.slack" in w else scores

    @torch.no_grad()
    def step(self, gradients: list[Tensor]) -> None:
        """Make a step of Adam."""
        first, second, eps = ADAM
        self.n_steps += 1
        torch._foreach_lerp_(self.means, gradients, 1 - first)
        torch._foreach_mul_(self.squares, second)
        torch._foreach_addcmul_(self.squares, gradients, gradients, 1 - second)
        sizes = torch._foreach_sqrt(self.squares)
        torch._foreach_div_(sizes, (1 - second**self.n_steps) ** 0.5)
        torch._foreach_add_(sizes, eps)
        steps = torch._foreach_div(self.means, sizes)
        torch._foreach_div_(steps, 1 - first**self.n_steps)
        torch._foreach_mul_(steps, self.rates)
        torch._foreach_sub_(list(self.weights.values()), steps)


class Rows:
    """Rows and their label sets on a device."""

    def __init__(self, X: np.ndarray, Y: sp.csr_array, device: torch.device) -> None:
        counts = np.diff(Y.indptr)
        listed = np.full((Y.shape[0], max(int(counts.max(initial=1)), 1)), -1, dtype=np.int64)
        listed[np.repeat(np.arange(Y.shape[0]), counts), np.arange(Y.nnz) - np.repeat(Y.indptr[:-1], counts)] = (
            Y.indices
        )
        self.X, self.labels = torch.from_numpy(X).to(device), torch.from_numpy(listed).to(device)

    def take(self, numbers: np.ndarray) -> Rows:
        """Return some of the rows."""
        out = object.__new__(Rows)
        at = torch.from_numpy(numbers).to(self.X.device)
        out.X, out.labels = self.X[at], self.labels[at]
        return out


def loss_of(scores: Tensor, labels: Tensor) -> Tensor:
    """Return binary cross-entropy with logits, a mean over rows and labels, per network: (S,)."""
    on = labels >= 0
    hit = torch.gather(scores, 2, labels.clamp(min=0)) * on
    return (torch.nn.functional.softplus(scores).sum((1, 2)) - hit.sum((1, 2))) / (scores.shape[1] * scores.shape[2])


def train(settings: list[Facts], shape: Facts, data: Prepared, how: Facts, device: torch.device) -> list[Facts]:
    """Train one network per setting (`lr`, `dropout`, `seed`) and return the scores of each at its best epoch."""
    rows = Rows(data.X, data.Y, device)
    splits = [_split(data.Y, one["seed"]) for one in settings]
    prior = {"prior": float(np.clip(data.Y.nnz / np.prod(data.Y.shape), 1e-7, 0.9))}
    networks = Networks([{**prior, **one} for one in settings], shape, device)  # a setting may bring its own prior
    held_out = [rows.take(out) for _, out in splits]
    floors = [_floor(data.Y, *split) for split in splits]
    out: list[Facts] = [
        {"valid_loss": [], "valid_precision": [], "best": -1.0, "since": 0, "epochs": 0} for _ in settings
    ]
    started, seconds = time.perf_counter(), []
    for epoch in range(how["epochs"]):
        order = np.stack([kept[_permutation(one, epoch, kept.size)] for one, (kept, _) in zip(settings, splits)])
        for at in torch.from_numpy(order).to(device).split(how["batch_size"], dim=1):
            loss = loss_of(networks.scores(rows.X[at], training=True), rows.labels[at]).sum()
            networks.step(list(torch.autograd.grad(loss, list(networks.weights.values()))))
        seconds.append(time.perf_counter() - started)
        better = _judge(networks, held_out, out, floors, how)
        if better:
            _keep(networks, better, data, out, device)
        if all(one["since"] >= how["patience"] for one in out):
            break
    for one in out:
        one.pop("since"), one.pop("best")
        one |= {"k": networks.k, "parameters": networks.parameters, "seconds": seconds[one["epochs"] - 1]}
    return out


def _permutation(one: Facts, epoch: int, n: int) -> np.ndarray:
    return np.random.default_rng([one["seed"], epoch]).permutation(n)


def _split(Y: sp.csr_array, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train on and those that decide when to stop, as `BottleneckClassifier` takes them."""
    return split_random(Y, test_size=max(1, round(0.1 * Y.shape[0])), random_state=seed)


def _floor(Y: sp.csr_array, kept: np.ndarray, out: np.ndarray) -> float:
    """Return the mean precision of the most frequent labels, and one standard error."""
    best = np.argsort(-np.bincount(Y[kept].indices, minlength=Y.shape[1]), kind="stable")[: max(DEPTHS)]
    right = np.cumsum(np.bincount(Y[out].indices, minlength=Y.shape[1])[best])
    prior = float(np.mean([right[depth - 1] / (depth * out.size) for depth in DEPTHS]))
    return prior + float(np.sqrt(prior * (1 - prior) / out.size))


@torch.no_grad()
def _judge(networks: Networks, held_out: list[Rows], out: list[Facts], floors: list[float], how: Facts) -> list[int]:
    """Note loss and precision of every network on its held-out rows; return those that are better than ever."""
    better = []
    losses, hits = 0.0, torch.zeros(len(out), max(DEPTHS), device=held_out[0].X.device)
    X, labels = (torch.stack([getattr(rows, part) for rows in held_out]) for part in ("X", "labels"))
    for x, y in zip(X.split(ROWS_AT_ONCE, dim=1), labels.split(ROWS_AT_ONCE, dim=1), strict=True):
        scores = networks.scores(x)
        losses = losses + loss_of(scores, y) * x.shape[1]
        best = torch.topk(scores, max(DEPTHS), dim=2).indices
        hits += (best[..., None] == y[:, :, None, :]).any(-1).sum(1)
    right, n_rows = hits.cumsum(1).double().cpu().numpy(), X.shape[1]
    losses = (losses / n_rows).cpu().numpy()
    for s, one in enumerate(out):
        if one["since"] >= how["patience"]:
            continue
        precision = float(np.mean([right[s, depth - 1] / (depth * n_rows) for depth in DEPTHS]))
        one["epochs"] += 1
        one["valid_loss"].append(float(losses[s]))
        one["valid_precision"].append(precision)
        if precision > one["best"]:
            one |= {"best": precision, "since": 0, "best_epoch": one["epochs"]}
            better.append(s)
        elif one["best"] > floors[s]:
            one["since"] += 1
    return better


@torch.no_grad()
def _keep(networks: Networks, better: list[int], data: Prepared, out: list[Facts], device: torch.device) -> None:
    """Note the scores on the rows set aside of the networks that have just become better."""
    ids: dict[int, list[np.ndarray]] = {s: [] for s in better}
    for x in torch.from_numpy(data.Xt).split(ROWS_AT_ONCE):
        best = torch.topk(networks.scores(x.to(device)), TOP, dim=2).indices.int().cpu().numpy()
        for s in better:
            ids[s].append(best[s])
    for s in better:
        found = np.concatenate(ids[s])
        top = TopK(found, np.tile(np.linspace(1, 0.1, TOP, dtype=np.float32), (found.shape[0], 1)))
        out[s] |= accuracy(data.Yt, top)


def accuracy(Y: sp.csr_array, top: TopK) -> Facts:
    """Return precision and F1 in percent."""
    facts: Facts = precisions(Y, top)
    for k in (5, 10):
        p, r = (100 * float(metric(Y, top, k)) for metric in (precision_at_k, recall_at_k))
        facts[f"f1@{k}"] = 2 * p * r / (p + r) if p + r else 0.0
    return facts
