"""Training PRIME: one loop over batches of like queries, readable from top to bottom."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longtail.encoder import TokenRows
from longtail.errors import ModelError
from longtail.prime.losses import PrimeLoss
from longtail.prime.network import PrimeNetwork
from longtail.prime.query_clusters import balanced_clusters
from longtail.prime.sampling import Curriculum, LabelPool, PositiveSampler, cut_batches, label_weights
from longtail.training import Checkpoint, Position, Several, State, copy_weights, send

ADAM_EPS = 1e-6
ALONE = Several()
NOT_PART_OF_IDENTITY = ("patience", "checkpoint", "checkpoint_minutes", "compile")


@dataclass(frozen=True)
class PrimeTraining:
    """How to train.

    n_positives : labels shown per query. sampling : "propensity" shows rare ones more often, "uniform" does not.
    warmup : steps until the learning rate is full; it then falls to 0 at the end.
    accumulate : batches whose gradients make one step of the optimiser; negatives come from each batch alone.
    mixed : on a GPU, run the networks in bfloat16. patience : judgements without a better one before training stops.
    checkpoint : folder for a checkpoint every `checkpoint_minutes`; None for none.
    """

    epochs: int = 20
    batch_size: int = 1600
    lr: float = 2e-4
    n_positives: int = 1
    sampling: str = "propensity"
    weight_decay: float = 0.01
    warmup: int = 100
    accumulate: int = 1
    mixed: bool = True
    compile: bool = False
    seed: int = 0
    patience: int = 5
    curriculum: Curriculum = field(default_factory=Curriculum)
    checkpoint: str | Path | None = None
    checkpoint_minutes: float = 10.0


class Progress(nn.Module):
    """What changes in training and is saved in checkpoints: the network, the latest query vectors, their clusters."""

    bank: Tensor
    cluster: Tensor

    def __init__(self, network: PrimeNetwork, bank: Tensor) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("bank", bank)
        self.register_buffer("cluster", torch.full((bank.shape[0],), -1, dtype=torch.int64))


def train_prime(
    network: PrimeNetwork,
    queries: TokenRows,
    labels: TokenRows,
    Y: sp.csr_array,
    bank: Tensor,
    loss: PrimeLoss,
    how: PrimeTraining,
    *,
    judge: Callable[[], float] | None = None,
    identity: Any = None,
    on_step: Callable[[int, int], None] | None = None,
    on_epoch: Callable[[dict[str, Any]], None] | None = None,
    seconds: dict[str, float] | None = None,
) -> tuple[list[dict[str, Any]], Checkpoint | None]:
    """Train the network in place; return a record per epoch and the checkpoint, which the caller removes at the end.

    `judge` says how good the network is (P@1 on held-out rows, higher is better) after every epoch; with it, training
    stops after `patience` epochs without a better one and the network gets its best weights back. `seconds` is filled
    with the time of sampling, of clustering and of all the training. Called again after it was stopped, it goes on from
    the checkpoint; on a CPU it ends with the same weights, to the last bit. Started by `torchrun`, every process takes
    its share of each batch (negatives come from the share), and all end with the same network; the first one writes
    checkpoints.
    """
    device = network.encoder.device
    several = Several.start(device)
    optimizer = make_optimizer(network, how)
    checkpoint = open_checkpoint(network, identity, how, device) if how.checkpoint is not None else None
    state = State(Progress(network, bank), [optimizer], Position(), None, torch.zeros((), device=device))
    sampler = PositiveSampler(Y, label_weights(Y, how.sampling), how.n_positives)
    n_batches = -(-Y.shape[0] // how.batch_size)
    n_steps = -(-n_batches // how.accumulate)
    clock, begun = seconds if seconds is not None else {}, time.perf_counter()
    if how.compile:
        network.encoder.compile()
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(how.seed)
        if checkpoint is not None:
            checkpoint.restore(state)
        at, written = state.at, time.monotonic()
        while at.epoch < how.epochs and at.worse < how.patience:
            if at.step == 0:
                refresh_clusters(state.model, at.epoch, how, clock)
            batches = epoch_batches(state.model, at.epoch, how)
            network.train()
            for step in range(at.step, n_steps):
                set_lr(optimizer, how, at.epoch * n_steps + step, how.epochs * n_steps)
                optimizer.zero_grad(set_to_none=True)
                part = batches[step * how.accumulate : (step + 1) * how.accumulate]
                for number, rows in enumerate(part):
                    started = time.perf_counter()
                    own = several.share(rows)
                    pool = sampler(own, np.random.default_rng([how.seed, 1, at.epoch, step, number, several.rank]))
                    _add(clock, "sampling", started)
                    found = batch_loss(state.model, queries, labels, own, pool, loss, how, several)
                    (found / len(part)).backward()
                    state.loss_sum += several.mean(found.detach()) / len(part)
                several.average_gradients(network.parameters())
                optimizer.step()
                at.step = step + 1
                if on_step is not None:
                    on_step(at.epoch * n_steps + step + 1, how.epochs * n_steps)
                due = time.monotonic() - written >= 60 * how.checkpoint_minutes
                if checkpoint is not None and due and not several.rank:
                    checkpoint.save(state)
                    written = time.monotonic()
            record = end_epoch(state, n_steps, network, judge)
            if on_epoch is not None:
                on_epoch(record)
        if checkpoint is not None and not several.rank:
            checkpoint.save(state)  # what comes after training may be stopped as well
    if state.best is not None:
        network.load_state_dict(state.best)
    network.eval()
    _add(clock, "training", begun)
    return at.history, checkpoint


def batch_loss(
    progress: Progress,
    queries: TokenRows,
    labels: TokenRows,
    rows: np.ndarray,
    pool: LabelPool,
    loss: PrimeLoss,
    how: PrimeTraining,
    several: Several = ALONE,
) -> Tensor:
    """Return the loss of one batch; the centroids and the latest query vectors follow."""
    network, device = progress.network, queries.device
    unique, place, own = (send(array, device) for array in (pool.unique, pool.place, rows))
    with torch.autocast(device.type, torch.bfloat16, enabled=how.mixed and device.type == "cuda"):
        q, texts = network.encoder.embed_together((queries, rows), (labels, pool.unique))
        prototypes = network.prototypes_of(texts, unique)
    q, texts, prototypes = (F.normalize(v.float(), dim=1) for v in (q, texts, prototypes))
    target = true_pairs(pool, rows.size, device)
    # a label is encoded once and stands in the pool as often as it was sampled
    found = loss(q, prototypes[place], texts[place], target[:, place]).total
    with torch.no_grad():
        latest = several.gather(q.detach())
        progress.bank[several.gather(own)] = latest.to(progress.bank.dtype)
        if network.centroids is not None:  # after their use: a query does not see itself in this step's centroid
            shown = q.detach()[send(pool.rows, device)]
            if several.world == 1:
                network.centroids.move(unique, place, shown)
            else:
                network.centroids.update(several.gather(unique[place]), several.gather(shown))
    return found


def true_pairs(pool: LabelPool, n_rows: int, device: torch.device) -> Tensor:
    """Return which of the pool's different labels are true for which row, bool (n_rows, n_unique)."""
    target = torch.zeros(n_rows, pool.unique.size, dtype=torch.bool, device=device)
    target[send(pool.true_rows, device), send(pool.true_places, device)] = True
    return target


def refresh_clusters(progress: Progress, epoch: int, how: PrimeTraining, clock: dict[str, float]) -> None:
    """Put like queries together anew, where the curriculum asks for it."""
    if not how.curriculum.refresh(epoch, how.epochs):
        return
    started = time.perf_counter()
    size = how.curriculum.size(epoch, how.epochs)
    progress.cluster.copy_(balanced_clusters(progress.bank, size, seed=how.seed + epoch))
    _add(clock, "clustering", started)


def epoch_batches(progress: Progress, epoch: int, how: PrimeTraining) -> list[np.ndarray]:
    """Return the batches of an epoch, from the seed, the epoch and the clusters alone."""
    cluster = progress.cluster.cpu().numpy()
    rng = np.random.default_rng([how.seed, 0, epoch])
    return cut_batches(cluster.size, how.batch_size, rng, cluster if cluster[0] >= 0 else None)


def end_epoch(state: State, n_steps: int, network: PrimeNetwork, judge: Callable[[], float] | None) -> dict[str, Any]:
    """Judge the epoch, keep its weights if they are the best so far, and move on to the next."""
    at, found = state.at, float(state.loss_sum) / n_steps
    if not math.isfinite(found) or not all(bool(p.isfinite().all()) for p in network.parameters()):
        raise ModelError(f"training diverged: loss or weights are not finite in epoch {at.epoch + 1}; lower lr.")
    record: dict[str, Any] = {"epoch": at.epoch + 1, "loss": found}
    if judge is not None:
        record["p@1"] = judge()
        record["best"] = at.best_loss is None or -record["p@1"] < at.best_loss
        at.worse = 0 if record["best"] else at.worse + 1
        if record["best"]:
            at.best_loss, state.best = -record["p@1"], copy_weights(network)
    at.history.append(record)
    at.epoch, at.step = at.epoch + 1, 0
    state.loss_sum = torch.zeros_like(state.loss_sum)
    return record


def make_optimizer(network: PrimeNetwork, how: PrimeTraining) -> torch.optim.Optimizer:
    """Return AdamW; biases, norms and free vectors are not decayed."""
    free = {id(p) for p in network.free.parameters()} if network.free is not None else set()
    decayed = [p for p in network.parameters() if p.ndim > 1 and id(p) not in free]
    others = [p for p in network.parameters() if p.ndim <= 1 or id(p) in free]
    groups = [{"params": decayed, "weight_decay": how.weight_decay}, {"params": others, "weight_decay": 0.0}]
    fused = network.encoder.device.type == "cuda"
    return torch.optim.AdamW(groups, lr=how.lr, eps=ADAM_EPS, fused=fused)


def set_lr(optimizer: torch.optim.Optimizer, how: PrimeTraining, step: int, total: int) -> None:
    """Raise the learning rate over the first steps, then let it fall to 0 at the last."""
    warmup = min(how.warmup, total // 10)
    share = (step + 1) / (warmup + 1) if step < warmup else (total - step) / max(1, total - warmup)
    for group in optimizer.param_groups:
        group["lr"] = how.lr * share


def open_checkpoint(network: PrimeNetwork, identity: Any, how: PrimeTraining, device: torch.device) -> Checkpoint:
    """Return the checkpoint of this training; a folder that holds that of another is refused."""
    settings = {k: v for k, v in asdict(how).items() if k not in NOT_PART_OF_IDENTITY}
    found = Checkpoint(str(how.checkpoint), [identity, settings, device.type], network)
    if others := found.others():
        raise ModelError(
            f"{found.path.parent} holds the checkpoint of a training on other data or with other settings "
            f"({others[0].name}); give another folder or remove that one."
        )
    return found


def _add(clock: dict[str, float], name: str, started: float) -> None:
    clock[name] = clock.get(name, 0.0) + time.perf_counter() - started
