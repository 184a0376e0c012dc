"""Training of PRIME's encoder and prototypes: batches of similar queries, their labels, the loss."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.encoder import TokenRows
from longtail.prime.batch_memory import BatchEncoder, fitting_tokens
from longtail.prime.losses import PrimeLoss
from longtail.prime.network import PrimeNetwork
from longtail.prime.prototypes import Centroids
from longtail.prime.query_clusters import balanced_clusters
from longtail.prime.sampling import Curriculum, LabelPool, LabelRows, PositiveSampler, cut_batches, label_weights
from longtail.prime.time_budget import TimeBudget
from longtail.training import (
    ALONE,
    Checkpoint,
    Epoch,
    ProcessGroup,
    Training,
    TrainingState,
    to_device,
    train,
    warmup_and_decay,
)

ADAM_EPS = 1e-6
NOT_PART_OF_IDENTITY = ("patience", "checkpoint", "checkpoint_minutes", "compile", "minutes")
Record = dict[str, Any]  # of an epoch: epoch, loss and, with held-out rows, p@1 and best


@dataclass(frozen=True)
class PrimeTraining(Training):
    """Settings of a training of PRIME.

    Negatives of a query come from its own batch alone, also where `accumulate` batches make one step.

    Parameters
    ----------
    epochs : int, default=20
        Passes over the queries, at most.
    batch_size : int, default=1600
        Queries of a batch.
    lr : float, default=2e-4
        Largest learning rate.
    n_positives : int, default=1
        Labels shown per query.
    sampling : {"propensity", "uniform"}, default="propensity"
        Whether rare labels are shown more often.
    weight_decay : float, default=0.01
        Weight decay of AdamW.
    warmup : int, default=100
        Steps until the learning rate is at its largest; it then falls to 0 at the end.
    compile : bool, default=False
        Compile the encoder.
    curriculum : Curriculum, default=Curriculum()
        Sizes of the clusters of similar queries as training goes on.
    checkpoint : str or Path, default=None
        Folder of checkpoints; None for none.
    checkpoint_minutes : float, default=10.0
        Minutes between two checkpoints.
    minutes : float, default=None
        About how long the training may take: as many epochs as fit are made, at least 1; None for all of them.
    """

    epochs: int = 20
    batch_size: int = 1600
    lr: float = 2e-4
    n_positives: int = 1
    sampling: str = "propensity"
    weight_decay: float = 0.01
    warmup: int = 100
    compile: bool = False
    curriculum: Curriculum = field(default_factory=Curriculum)
    checkpoint: str | Path | None = None
    checkpoint_minutes: float = 10.0
    minutes: float | None = None
    MIXED_ON_CPU: ClassVar[bool] = True  # where training is several times as fast by it


class Examples(NamedTuple):
    """Queries and labels as tokens, and which queries have which labels."""

    queries: TokenRows
    labels: TokenRows
    Y: sp.csr_array  # (n_queries, n_labels)


class PrimeBatch(NamedTuple):
    """Queries of a batch, by row number, and the labels shown with them.

    Where a batch is shared by processes, `rows` and `pool` are this process's, `every` and `labels` the whole batch's.
    """

    rows: np.ndarray
    pool: LabelPool
    every: np.ndarray
    labels: LabelRows | None  # None where there are no centroids
    begins_step: bool = True  # or goes on with one that batches before it have begun


class Changes:
    """What the batches of a step have changed beside gradients, so that the step can begin again."""

    def __init__(self) -> None:
        self._before: list[tuple[Tensor, Tensor, Tensor]] = []

    def note(self, values: Tensor, rows: Tensor) -> None:
        """Keep some rows of values that are about to change."""
        self._before.append((values, rows, values[rows]))

    def forget(self) -> None:
        """Let the changes stand."""
        self._before.clear()

    def take_back(self) -> None:
        """Make all values what they were when the step began."""
        while self._before:
            values, rows, before = self._before.pop()
            values[rows] = before


class QueryBank:
    """The latest vectors of all queries and the clusters of similar ones; both follow the training.

    Parameters
    ----------
    vectors : Tensor
        Vectors of all queries (n_rows, width).
    """

    def __init__(self, vectors: Tensor) -> None:
        self.vectors = vectors
        # -1: none yet
        self.cluster: torch.Tensor = torch.full((len(vectors),), -1, dtype=torch.int64, device=vectors.device)

    def form_clusters(self, size: int, seed: int) -> None:
        """Cluster the queries anew, about `size` of them in each."""
        self.cluster.copy_(balanced_clusters(self.vectors, size, seed=seed))

    def batches(self, batch_size: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the row numbers of all queries in batches, those of a cluster together."""
        cluster = self.cluster.cpu().numpy()
        return cut_batches(cluster.size, batch_size, rng, cluster if cluster[0] >= 0 else None)


class Stopwatch:
    """Adds up the seconds that named stages take."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def add(self, stage: str, started: float) -> None:
        """Add the time since `started`, a value of `time.perf_counter`."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - started


def train_prime(
    network: PrimeNetwork,
    examples: Examples,
    vectors: Tensor,
    loss: PrimeLoss,
    how: PrimeTraining,
    *,
    precision_at_1: Callable[[], float] | None = None,
    identity: object = None,
    on_step: Callable[[int, int], None] | None = None,
    on_epoch: Callable[[Record], None] | None = None,
    stopwatch: Stopwatch | None = None,
    budget: TimeBudget | None = None,
) -> tuple[list[Record], Checkpoint | None]:
    """Train the network in place; return a record per epoch and the checkpoint, which the caller removes some day.

    Started by `torchrun`, every process takes its share of each batch (negatives come from the share), and all end
    with the same network.

    Parameters
    ----------
    network : PrimeNetwork
        Encoder and prototypes.
    examples : Examples
        What it is trained on.
    vectors : Tensor
        Vectors of all queries (n_rows, width) by the network as it is now.
    loss : PrimeLoss
        The loss of a batch.
    how : PrimeTraining
        Settings of the training.
    precision_at_1 : callable () -> float, default=None
        P@1 on held-out rows, higher is better. With it, training stops after `how.patience` epochs without a better
        one and the network gets its best weights back.
    identity : JSON, default=None
        Tells this training from others: a digest of its data.
    on_step : callable (done, n_steps) -> None, default=None
        Called after every step.
    on_epoch : callable (record) -> None, default=None
        Called after every epoch.
    stopwatch : Stopwatch, default=None
        Gets the time of "sampling", of "clustering" and of all the "training".
    budget : TimeBudget, default=None
        The minutes there are; the epochs that fit are planned before the first one. None for `how.epochs`.
    """
    started = time.perf_counter()
    watch = Stopwatch() if stopwatch is None else stopwatch
    processes = ProcessGroup.start(network.encoder.device)
    bank = QueryBank(vectors)
    sampler = PositiveSampler(examples.Y, label_weights(examples.Y, how.sampling), how.n_positives)
    checkpoint = None if how.checkpoint is None else _open_checkpoint(network, identity, how)
    if how.compile:
        network.encoder.compile()
    encode, changes = BatchEncoder(network.encoder, _tokens_at_once(network, examples, how)), Changes()

    def out_of_memory() -> bool:
        changes.take_back()
        return encode.halve()

    def begin_epoch(epoch: int) -> None:
        if how.curriculum.refresh(epoch, how.epochs):
            began = time.perf_counter()
            bank.form_clusters(how.curriculum.size(epoch, how.epochs), seed=how.seed + epoch)
            watch.add("clustering", began)

    def epoch_batches(epoch: int) -> Iterator[PrimeBatch]:
        for number, rows in enumerate(bank.batches(how.batch_size, np.random.default_rng([how.seed, 0, epoch]))):
            began = time.perf_counter()
            step, within = divmod(number, how.accumulate)
            rng = np.random.default_rng([how.seed, 1, epoch, step, within, processes.rank])
            own = processes.share(rows)
            labels = None if network.centroids is None else sampler.label_rows(rows)
            batch = PrimeBatch(own, sampler(own, rng), rows, labels, begins_step=within == 0)
            watch.add("sampling", began)
            yield batch

    n_batches = -(-len(examples.queries) // how.batch_size)

    def run(how: PrimeTraining, **more: Any) -> TrainingState:
        return train(
            network,
            [make_optimizer(network, how)],
            n_batches,
            epoch_batches,
            lambda batch: batch_loss(network, bank, examples, batch, loss, processes, encode, changes),
            how,
            processes=processes,
            out_of_memory=out_of_memory if processes.world == 1 else None,  # else the others would wait for this one
            **more,
        )

    if budget is not None and how.epochs:
        planned = None if checkpoint is None else checkpoint.planned_epochs()
        if planned is None:
            planned = _epochs_that_fit(budget, how, n_batches, run, changes, processes)
        budget.planned, budget.asked = planned, how.epochs
        how = replace(how, epochs=planned)
        if checkpoint is not None:
            checkpoint.planned = planned
    state = run(
        how,
        begin_epoch=begin_epoch,
        learning_rate=warmup_and_decay(how.lr, how.warmup),
        validate=None if precision_at_1 is None else lambda: -precision_at_1(),
        extra={"bank": bank.vectors, "cluster": bank.cluster},
        checkpoint=checkpoint,
        on_step=on_step,
        on_epoch=None if on_epoch is None else lambda record: on_epoch(_record(record)),
    )
    if checkpoint is not None and processes.is_first:
        checkpoint.save(state)  # what comes after training may be interrupted as well
    if budget is not None and state.history:
        budget.epoch_seconds = sum(record.seconds for record in state.history) / len(state.history)
    watch.add("training", started)
    return [_record(record) for record in state.history], checkpoint


def _epochs_that_fit(
    budget: TimeBudget,
    how: PrimeTraining,
    n_batches: int,
    run: Callable[..., TrainingState],
    changes: Changes,
    processes: ProcessGroup,
) -> int:
    """Return how many epochs fit into the minutes; the steps that are timed leave nothing behind.

    They have the learning rate 0, `train` gives the random numbers back, and changes are taken back after each.
    """

    def time_steps(after_step: Callable[[int, int], None]) -> None:
        def on_step(done: int, total: int) -> None:
            changes.take_back()
            after_step(done, total)

        run(replace(how, epochs=1), learning_rate=lambda step, n_steps: 0.0, on_step=on_step)

    n_steps = -(-n_batches // how.accumulate)
    budget.alone = processes.world == 1
    fit = torch.tensor(budget.plan(n_steps, budget.time_steps(time_steps), how.epochs), device=budget.device)
    return int(processes.mean(fit))  # all processes make as many


def batch_loss(
    network: PrimeNetwork,
    bank: QueryBank,
    examples: Examples,
    batch: PrimeBatch,
    loss: PrimeLoss,
    processes: ProcessGroup = ALONE,
    encode: BatchEncoder | None = None,
    changes: Changes | None = None,
) -> Tensor:
    """Return the loss of one batch; afterwards centroids and bank hold its query vectors.

    The networks run in the precision that is set; the loss is always computed in float32. `encode` encodes the texts,
    None for all at once; `changes` gets what centroids and bank were before.
    """
    if changes is not None and batch.begins_step:
        changes.forget()
    device, pool = examples.queries.device, batch.pool
    unique, position, rows = (to_device(array, device) for array in (pool.unique, pool.position, batch.every))
    embed = network.encoder.embed_together if encode is None else encode
    queries, texts = embed((examples.queries, batch.rows), (examples.labels, pool.unique))
    prototypes = network.prototypes_of(texts, unique)
    with torch.autocast(device.type, enabled=False):
        queries, texts, prototypes = (F.normalize(v.float(), dim=1) for v in (queries, texts, prototypes))
        target = true_pairs(pool, batch.rows.size, device)
        # a label is encoded once and stands in the pool as often as it was sampled
        total = loss(queries, prototypes[position], texts[position], target[:, position]).total
        with torch.no_grad():
            latest = processes.gather(queries.detach())[: rows.numel()]  # each process has all of too small a batch
            if changes is not None:
                changes.note(bank.vectors, rows)
            if network.centroids is not None and batch.labels is not None:
                # after their use: a query does not see itself in this step's centroid
                _move_centroids(network.centroids, batch.labels, latest, bank.vectors[rows], changes)
            bank.vectors[rows] = latest.to(bank.vectors.dtype)
    return total


def _move_centroids(
    centroids: Centroids, labels: LabelRows, latest: Tensor, before: Tensor, changes: Changes | None = None
) -> None:
    """Move the centroids of all labels of a batch by its queries, whose vectors were `before` and are `latest`."""
    numbers, counts, rows = (to_device(array, latest.device) for array in labels)
    if changes is not None:
        changes.note(centroids.values, numbers)
    if centroids.rule == "mean":  # of the vectors as they are kept
        centroids.move(numbers, counts, latest.to(before.dtype)[rows], before[rows])
    else:
        centroids.move(numbers, counts, latest[rows])


def true_pairs(pool: LabelPool, n_rows: int, device: torch.device) -> Tensor:
    """Return which of the pool's different labels are true for which row, bool (n_rows, n_unique)."""
    target = torch.zeros(n_rows, pool.unique.size, dtype=torch.bool, device=device)
    target[to_device(pool.true_rows, device), to_device(pool.true_positions, device)] = True
    return target


def make_optimizer(network: PrimeNetwork, how: PrimeTraining) -> torch.optim.Optimizer:
    """Return AdamW; biases, norms and free vectors are not decayed."""
    free = {id(p) for p in network.free.parameters()} if network.free is not None else set()
    decayed = [p for p in network.parameters() if p.ndim > 1 and id(p) not in free]
    others = [p for p in network.parameters() if p.ndim <= 1 or id(p) in free]
    groups = [{"params": decayed, "weight_decay": how.weight_decay}, {"params": others, "weight_decay": 0.0}]
    fused = network.encoder.device.type == "cuda"
    return torch.optim.AdamW(groups, lr=how.lr, eps=ADAM_EPS, fused=fused)


def _tokens_at_once(network: PrimeNetwork, examples: Examples, how: PrimeTraining) -> int:
    """Return how many tokens of a batch are encoded at once."""
    longest = max(int(tokens.lengths.max(initial=1)) for tokens in (examples.queries, examples.labels))
    n_rows = min(how.batch_size, len(examples.queries))
    n_scores = n_rows * min(n_rows * how.n_positives, examples.Y.nnz)
    return fitting_tokens(network, longest, n_scores, how.mixed)


def _open_checkpoint(network: PrimeNetwork, identity: object, how: PrimeTraining) -> Checkpoint:
    """Return the checkpoint of this training; a folder that holds that of another is refused."""
    settings = {name: value for name, value in asdict(how).items() if name not in NOT_PART_OF_IDENTITY}
    if how.minutes is not None:
        settings["minutes"] = how.minutes
    identity = [identity, settings, network.encoder.device.type]
    checkpoint = Checkpoint(str(how.checkpoint), identity, network, how.checkpoint_minutes)
    checkpoint.refuse_others()
    return checkpoint


def _record(record: Epoch) -> Record:
    """Return the record of an epoch as `Prime.history_` keeps it."""
    out: Record = {"epoch": record.epoch, "loss": record.loss}
    if record.valid_loss is not None:
        out |= {"p@1": -record.valid_loss, "best": record.best}
    return out
