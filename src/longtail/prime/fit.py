"""Fit PRIME step by step: encoder, prototypes, training, classifier stage; imported when a training begins."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch

from longtail.data import TopK, binary_hits, split_random
from longtail.encoder import TextEncoder, TokenRows, load_text_encoder, new_text_encoder
from longtail.kernels import Progress
from longtail.model import plain_value
from longtail.prime.classifier_stage import ClassifierTraining, train_classifier
from longtail.prime.label_means import compared_queries
from longtail.prime.losses import ConsistencyRegulariser, DynamicMarginLoss, PrimeLoss
from longtail.prime.network import PrimeNetwork, start_network
from longtail.prime.new_labels import text_scale
from longtail.prime.search import LabelSearch, quantize
from longtail.prime.settings import PrimeSettings
from longtail.prime.time_budget import BudgetFacts, TimeBudget
from longtail.prime.train import Examples, PrimeTraining, Record, Stopwatch, train_prime
from longtail.training import (
    Checkpoint,
    ProcessGroup,
    check_folder,
    computes_bfloat16,
    gpu_memory_errors,
    seeded,
    torch_threads,
)
from longtail.validate import resolve_seed

HELD_OUT_AT_MOST = 5000
FUSIONS = (0.0, 0.25, 0.5, 0.75, 1.0)
DEFAULT_FUSION = 0.5


@dataclass(frozen=True)
class FitOptions:
    """Parameters of `Prime` that decide how it is fitted.

    Attributes
    ----------
    encoder : str, Path, dict or None
        Name or folder of the encoder, or sizes of a new one.
    max_length : int
        Tokens of a text that are read.
    long_texts : str
        How longer texts are read when the encoder is trained.
    settings : PrimeSettings
        The preset with the user's own values in it.
    training : PrimeTraining
        Settings of the training loop.
    momentum : float
        Momentum of the centroids.
    warm_start : bool
        Whether prototypes begin as averages.
    classifier : bool
        Whether the classifier stage follows.
    fusion : float or None
        Share of the classifier's vectors; None for the best on the held-out rows.
    validation : float
        Share of the rows held out.
    precision : str
        How label vectors are stored.
    device : torch.device
        Where to train.
    n_jobs : int or None
        Threads on a CPU.
    """

    encoder: str | Path | dict[str, Any] | None
    max_length: int
    long_texts: str
    settings: PrimeSettings
    training: PrimeTraining
    momentum: float
    warm_start: bool
    classifier: bool
    fusion: float | None
    validation: float
    precision: str
    device: torch.device
    n_jobs: int | None

    @classmethod
    def of(cls, params: dict[str, Any], settings: PrimeSettings, device: torch.device) -> FitOptions:
        """Return the options from the constructor parameters of `Prime`."""
        names = (
            "encoder",
            "max_length",
            "long_texts",
            "momentum",
            "warm_start",
            "classifier",
            "fusion",
            "validation",
            "precision",
            "n_jobs",
        )
        chosen = {name: params[name] for name in names}
        return cls(**chosen, settings=settings, training=loop_settings(params, settings), device=device)

    @property
    def mixed(self) -> bool:
        """Whether the networks run in bfloat16."""
        return bool(self.training.mixed) and computes_bfloat16(self.device)


class PrimeFit(NamedTuple):
    """Result of a training."""

    network: PrimeNetwork
    stored: dict[str, np.ndarray]  # label vectors, as `quantize` returns them
    history: list[Record]
    fusion: float | None  # share of the classifier's vectors in the label vectors
    text_scale: float  # length of the vectors of labels that are added later
    seconds: dict[str, float]
    checkpoint: Checkpoint | None  # to be removed when the model is saved
    budget: BudgetFacts | None  # what was planned for the minutes that were given
    read: tuple[np.ndarray, np.ndarray] | None  # of an encoder that stays as it is: rows, and their vectors


class TokenisedRows(NamedTuple):
    """Texts as tokens, with their labels."""

    tokens: TokenRows  # of their beginnings, which the encoder is trained on
    Y: sp.csr_array
    texts: list[str] | None = None  # the texts themselves, where long ones are read in chunks

    def vectors(self, network: PrimeNetwork, mixed: bool, rows: np.ndarray | None = None) -> torch.Tensor:
        """Return the vectors of all texts, or of some, as a trained network reads them."""
        if self.texts is None:
            return network.queries(self.tokens, mixed, rows)
        return network.read(self.texts if rows is None else [self.texts[i] for i in rows], mixed)


def tokenised(encoder: TextEncoder, texts: list[str], Y: sp.csr_array) -> TokenisedRows:
    """Return texts as tokens, and as texts where the encoder reads long ones in chunks."""
    return TokenisedRows(encoder.tokens(texts), Y, None if encoder.long_texts == "beginning" else texts)


def fit_prime(
    options: FitOptions,
    texts: list[str],
    Y: sp.csr_array,
    label_texts: list[str],
    progress: Progress | None = None,
    on_epoch: Callable[[Record], None] | None = None,
) -> PrimeFit:
    """Train encoder and prototypes on texts, labels and label texts; then the classifier stage, if asked for."""
    how, mixed = options.training, options.mixed
    if how.checkpoint is not None:
        check_folder(how.checkpoint)
    budget = None if how.minutes is None else TimeBudget(how.minutes, options.device)
    ProcessGroup.start(options.device)  # before anything lies on a GPU: each process has its own
    with torch_threads(options.n_jobs), seeded(how.seed, options.device), gpu_memory_errors():
        encoder = named_or_new_encoder(options.encoder, [*texts, *label_texts], options.max_length).to(options.device)
        encoder.long_texts = options.long_texts
        held_out, train = _split(Y, options.validation, how.seed)
        labels = encoder.tokens(label_texts)
        rows = tokenised(encoder, [texts[i] for i in train], sp.csr_array(Y[train]))
        loaded = None if budget is None else budget.passed()
        network, vectors = _start(encoder, rows, labels, options)
        valid = None
        if held_out.size:
            valid = tokenised(encoder, [texts[i] for i in held_out], sp.csr_array(Y[held_out]))
        if budget is not None and loaded is not None:
            _set_aside(
                budget, budget.passed() - loaded, len(rows.tokens), held_out.size, len(labels), options.classifier
            )
        watch = Stopwatch()
        history, checkpoint = train_prime(
            network,
            Examples(rows.tokens, labels, rows.Y),
            vectors,
            prime_loss(options.settings),
            how,
            precision_at_1=None if valid is None else lambda: precision_at_1(network, labels, valid, mixed),
            identity=[
                _digest(rows.tokens, labels, rows.Y),
                {**vars(options.settings), "momentum": options.momentum, "warm_start": options.warm_start},
                *([] if options.long_texts == "beginning" else [options.long_texts]),
            ],
            on_step=progress,
            on_epoch=on_epoch,
            stopwatch=watch,
            budget=budget,
        )
        prototypes, fusion = network.prototypes(labels, mixed), None
        if options.classifier:
            queries = rows.vectors(network, mixed)
            classes = train_classifier(queries, rows.Y, prototypes, ClassifierTraining(seed=how.seed))
            fusion = options.fusion
            if fusion is None:
                fusion = DEFAULT_FUSION if valid is None else best_fusion(network, prototypes, classes, valid, mixed)
            prototypes = (1 - fusion) * prototypes + fusion * classes
        scale = scale_of_texts(network, rows, labels, prototypes, mixed)
    stored = quantize(prototypes.cpu().numpy(), options.precision)
    facts = None if budget is None else budget.facts()
    read = None if history else (train, vectors.float().cpu().numpy())
    return PrimeFit(network, stored, history, fusion, scale, watch.seconds, checkpoint, facts, read)


def _set_aside(
    budget: TimeBudget, seconds: float, n_rows: int, n_held_out: int, n_labels: int, classifier: bool
) -> None:
    """Set aside the time of all encoding but that of steps, from the seconds that rows and labels once have taken."""
    each = seconds / (n_rows + n_labels)
    budget.each = each * (n_held_out + n_labels) if n_held_out else 0.0
    budget.after = each * (2 * n_labels + (2 * n_rows if classifier else 0))


def _start(
    encoder: TextEncoder, rows: TokenisedRows, labels: TokenRows, options: FitOptions
) -> tuple[PrimeNetwork, torch.Tensor]:
    """Return the network before training and the vectors of all queries."""
    settings = options.settings
    frozen_in_chunks = not options.training.epochs and rows.texts is not None
    return start_network(
        encoder,
        rows.tokens,
        labels,
        rows.Y,
        prototype=settings.prototype,
        centroids=settings.centroids,
        momentum=options.momentum,
        rule=settings.centroid_rule,
        n_free=settings.n_free,
        n_private=settings.n_private,
        warm=options.warm_start,
        mixed=options.mixed,
        seed=options.training.seed,
        n_jobs=options.n_jobs,
        bank=encoder.read(rows.texts or [], options.mixed) if frozen_in_chunks else None,
    )


def scale_of_texts(
    network: PrimeNetwork, queries: TokenisedRows, labels: TokenRows, vectors: torch.Tensor, mixed: bool
) -> float:
    """Return the length of the vectors of labels that come later, by their texts alone."""
    rows = compared_queries(len(queries.tokens))
    texts = torch.nn.functional.normalize(network.encoder.embed_all(labels, mixed), dim=1)
    return text_scale(queries.vectors(network, mixed, rows), vectors, texts)


def named_or_new_encoder(encoder: str | Path | dict[str, Any] | None, texts: list[str], max_length: int) -> TextEncoder:
    """Return the encoder of a name or folder, or a new one for the texts."""
    if isinstance(encoder, str | Path):
        loaded = load_text_encoder(encoder)
        loaded.max_length = min(max_length, loaded.longest)
        return loaded
    return new_text_encoder(texts, max_length=int(max_length), **plain_value(encoder or {}))


def loop_settings(params: dict[str, Any], settings: PrimeSettings) -> PrimeTraining:
    """Return the settings of the training loop, from the constructor parameters of `Prime`."""
    return PrimeTraining(
        epochs=params["epochs"],
        batch_size=settings.batch_size,
        lr=settings.lr,
        n_positives=settings.n_positives,
        sampling=settings.sampling,
        accumulate=params["accumulate"],
        mixed=params["mixed_precision"],
        compile=params["compile"],
        seed=resolve_seed(params["random_state"]),
        patience=params["patience"],
        checkpoint=params["checkpoint"],
        checkpoint_minutes=params["checkpoint_minutes"],
        minutes=params["minutes"],
    )


def prime_loss(settings: PrimeSettings) -> PrimeLoss:
    """Return the loss that the settings describe."""
    triplet = DynamicMarginLoss(settings.n_negatives, *settings.margin, inverted=settings.inverted_zone)
    regulariser = ConsistencyRegulariser(settings.n_negatives, hinge=settings.regulariser == "hinge")
    return PrimeLoss(triplet, regulariser, *settings.loss_weights)


def precision_at_1(network: PrimeNetwork, labels: TokenRows, valid: TokenisedRows, mixed: bool) -> float:
    """Return P@1 on held-out texts."""
    stored = {"vectors": network.prototypes(labels, mixed).cpu().numpy()}
    search = LabelSearch(stored, device=str(network.encoder.device))
    ids, scores = search.topk(valid.vectors(network, mixed).cpu().numpy(), 1)
    return float(binary_hits(TopK(ids, scores), valid.Y).mean())


def best_fusion(
    network: PrimeNetwork, prototypes: torch.Tensor, classes: torch.Tensor, valid: TokenisedRows, mixed: bool
) -> float:
    """Return the share of the classifier's vectors that ranks held-out texts best, by P@1 plus P@5."""
    queries = valid.vectors(network, mixed).cpu().numpy()

    def quality(fusion: float) -> float:
        stored = {"vectors": ((1 - fusion) * prototypes + fusion * classes).cpu().numpy()}
        ids, scores = LabelSearch(stored, device=str(prototypes.device)).topk(queries, 5)
        hits = binary_hits(TopK(ids, scores), valid.Y)
        return float(hits[:, 0].mean() + hits.mean())

    return max(FUSIONS, key=quality)


def fit_classifier_stage(
    network: PrimeNetwork,
    vectors: np.ndarray,
    label_texts: list[str],
    texts: list[str],
    Y: sp.csr_array,
    *,
    fusion: float,
    how: ClassifierTraining,
    mixed: bool,
    n_jobs: int | None,
) -> tuple[np.ndarray, float]:
    """Return `(1 - fusion) * prototype + fusion * classifier vector` of every label, for a network trained already.

    `vectors` (n_labels, width) are the label vectors before. The second result is the length of the vectors of labels
    that are added later by their texts.
    """
    with torch_threads(n_jobs):
        prototypes = torch.nn.functional.normalize(torch.from_numpy(vectors).to(network.encoder.device), dim=1)
        rows = np.flatnonzero(np.diff(Y.indptr))
        some = tokenised(network.encoder, [texts[i] for i in rows], sp.csr_array(Y[rows]))
        classes = train_classifier(some.vectors(network, mixed), some.Y, prototypes, how)
        mix = (1 - fusion) * prototypes + fusion * classes
        scale = scale_of_texts(network, some, network.encoder.tokens(label_texts), mix, mixed)
    return mix.cpu().numpy(), scale


def _split(Y: sp.csr_array, validation: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return held-out and training rows, those that have labels."""
    rows = np.flatnonzero(np.diff(Y.indptr))
    n_held_out = min(round(validation * rows.size), HELD_OUT_AT_MOST)
    if not n_held_out:
        return np.empty(0, dtype=np.int64), rows
    train, test = split_random(sp.csr_array(Y[rows]), test_size=n_held_out, random_state=seed)
    return rows[test], rows[train]


def _digest(queries: TokenRows, labels: TokenRows, Y: sp.csr_array) -> str:
    """Return a digest of everything that a training learns from."""
    digest = hashlib.sha256()
    for tokens in (queries, labels):
        digest.update(tokens.lengths.tobytes())
        digest.update(tokens.flat.cpu().numpy().tobytes())
    for array in (Y.indptr.astype(np.int64), Y.indices):
        digest.update(array.tobytes())
    return digest.hexdigest()
