"""What `Prime.fit` does, step by step; imported when a training begins, since it needs torch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch

from longtail.data import TopK, binary_hits, split_random
from longtail.encoder import TextEncoder, TokenRows, load_text_encoder, new_text_encoder
from longtail.kernels import Progress
from longtail.prime.classifier_stage import ClassifierTraining, classifier_settings, train_classifier
from longtail.prime.losses import ConsistencyRegulariser, DynamicMarginLoss, PrimeLoss
from longtail.prime.network import PrimeNetwork, start_network
from longtail.prime.new_labels import SAMPLE, text_scale
from longtail.prime.search import LabelSearch, shrink
from longtail.prime.settings import PrimeSettings
from longtail.prime.train import PrimeTraining, train_prime
from longtail.training import Checkpoint, Several, check_folder, torch_threads
from longtail.validate import resolve_seed

HELD_OUT_AT_MOST = 5000
FUSIONS = (0.0, 0.25, 0.5, 0.75, 1.0)
DEFAULT_FUSION = 0.5


class Fitted(NamedTuple):
    """What a training leaves behind."""

    network: PrimeNetwork
    stored: dict[str, np.ndarray]
    history: list[dict[str, Any]]
    fusion: float | None
    text_scale: float
    seconds: dict[str, float]
    checkpoint: Checkpoint | None  # to be removed when all is done


class Texts(NamedTuple):
    """Texts as tokens, with their labels."""

    tokens: TokenRows
    Y: sp.csr_array


def fit_prime(
    model: Any,
    settings: PrimeSettings,
    texts: list[str],
    Y: sp.csr_array,
    label_texts: list[str],
    progress: Progress | None,
    on_epoch: Callable[[dict[str, Any]], None] | None,
) -> Fitted:
    """Train encoder and prototypes, then the classifier stage if the model asks for it."""
    seed, device = resolve_seed(model.random_state), model.torch_device()
    mixed = bool(model.mixed_precision) and device.type == "cuda"
    if model.checkpoint is not None:
        check_folder(model.checkpoint)
    Several.start(device)  # before anything lies on a GPU: each process has its own
    with torch_threads(model.n_jobs), torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        encoder = make_encoder(model.encoder, [*texts, *label_texts], model.max_length).to(device)
        held, train = _split(Y, model.validation, seed)
        labels = encoder.tokens(label_texts)
        rows = Texts(encoder.tokens([texts[i] for i in train]), sp.csr_array(Y[train]))
        network, bank = start_network(
            encoder,
            rows.tokens,
            labels,
            rows.Y,
            prototype=settings.prototype,
            centroids=settings.centroids,
            momentum=model.momentum,
            n_free=settings.n_free,
            n_private=settings.n_private,
            warm=model.warm_start,
            mixed=mixed,
            seed=seed,
            n_jobs=model.n_jobs,
        )
        valid = Texts(encoder.tokens([texts[i] for i in held]), sp.csr_array(Y[held])) if held.size else None
        how = training(model, settings, seed)
        seconds: dict[str, float] = {}
        history, checkpoint = train_prime(
            network,
            rows.tokens,
            labels,
            rows.Y,
            bank,
            prime_loss(settings),
            how,
            judge=None if valid is None else lambda: judged(network, labels, valid, mixed),
            identity=[_digest(rows.tokens, labels, rows.Y), vars(settings)],
            on_step=progress,
            on_epoch=on_epoch,
            seconds=seconds,
        )
        prototypes, fusion = network.prototypes(labels, mixed), None
        if model.classifier:
            queries = network.queries(rows.tokens, mixed)
            classes = train_classifier(queries, rows.Y, prototypes, ClassifierTraining(seed=seed))
            fusion = DEFAULT_FUSION if valid is None else best_fusion(network, prototypes, classes, valid, mixed)
            prototypes = (1 - fusion) * prototypes + fusion * classes
        scale = scale_of_texts(network, rows.tokens, labels, prototypes, mixed)
    stored = shrink(prototypes.cpu().numpy(), model.precision)
    return Fitted(network, stored, history, fusion, scale, seconds, checkpoint)


def scale_of_texts(
    network: PrimeNetwork, queries: TokenRows, labels: TokenRows, vectors: torch.Tensor, mixed: bool
) -> float:
    """Return the length of the vectors of labels that come later, by their texts alone."""
    rows = np.unique(np.linspace(0, len(queries) - 1, min(SAMPLE, len(queries))).astype(np.int64))
    texts = torch.nn.functional.normalize(network.encoder.embed_all(labels, mixed), dim=1)
    return text_scale(network.queries(queries, mixed, rows), vectors, texts)


def make_encoder(given: Any, texts: list[str], max_length: int) -> TextEncoder:
    """Return the encoder that was named, or a new one for the texts."""
    if isinstance(given, str | Path):
        encoder = load_text_encoder(given)
        encoder.max_length = min(max_length, encoder.longest)
        return encoder
    return new_text_encoder(texts, max_length=max_length, **(given or {}))


def training(model: Any, settings: PrimeSettings, seed: int) -> PrimeTraining:
    """Return how the loop is to run."""
    return PrimeTraining(
        epochs=model.epochs,
        batch_size=settings.batch_size,
        lr=settings.lr,
        n_positives=settings.n_positives,
        sampling=settings.sampling,
        accumulate=model.accumulate,
        mixed=model.mixed_precision,
        compile=model.compile,
        seed=seed,
        patience=model.patience,
        checkpoint=model.checkpoint,
        checkpoint_minutes=model.checkpoint_minutes,
    )


def prime_loss(settings: PrimeSettings) -> PrimeLoss:
    """Return the loss that the settings describe."""
    triplet = DynamicMarginLoss(settings.n_negatives, *settings.margin)
    return PrimeLoss(triplet, ConsistencyRegulariser(settings.n_negatives), *settings.loss_weights)


def judged(network: PrimeNetwork, labels: TokenRows, valid: Texts, mixed: bool) -> float:
    """Return P@1 on held-out texts."""
    stored = {"vectors": network.prototypes(labels, mixed).cpu().numpy()}
    search = LabelSearch(stored, device=str(network.encoder.device))
    ids, scores = search.topk(network.queries(valid.tokens, mixed).cpu().numpy(), 1)
    return float(binary_hits(TopK(ids, scores), valid.Y).mean())


def best_fusion(
    network: PrimeNetwork, prototypes: torch.Tensor, classes: torch.Tensor, valid: Texts, mixed: bool
) -> float:
    """Return the share of the classifier's vectors that ranks held-out texts best, by P@1 plus P@5."""
    queries = network.queries(valid.tokens, mixed).cpu().numpy()

    def quality(fusion: float) -> float:
        stored = {"vectors": ((1 - fusion) * prototypes + fusion * classes).cpu().numpy()}
        ids, scores = LabelSearch(stored, device=str(prototypes.device)).topk(queries, 5)
        hits = binary_hits(TopK(ids, scores), valid.Y)
        return float(hits[:, 0].mean() + hits.mean())

    return max(FUSIONS, key=quality)


def classifier_stage(
    model: Any, texts: list[str], Y: sp.csr_array, fusion: float, settings: dict[str, Any]
) -> tuple[dict[str, np.ndarray], float]:
    """Return the mix of prototypes and classifier vectors for a model whose encoder is trained already.

    With it comes the length of the vectors of labels that are added by their texts.
    """
    network = model.network_
    mixed = bool(model.mixed_precision) and network.encoder.device.type == "cuda"
    how = classifier_settings({"seed": resolve_seed(model.random_state), **settings})
    with torch_threads(model.n_jobs):
        vectors, _ = model.output_weights()
        prototypes = torch.nn.functional.normalize(torch.from_numpy(vectors).to(network.encoder.device), dim=1)
        rows = np.flatnonzero(np.diff(Y.indptr))
        tokens = network.encoder.tokens([texts[i] for i in rows])
        queries = network.queries(tokens, mixed)
        classes = train_classifier(queries, sp.csr_array(Y[rows]), prototypes, how)
        mix = (1 - fusion) * prototypes + fusion * classes
        labels = network.encoder.tokens(list(model.label_texts_))
        scale = scale_of_texts(network, tokens, labels, mix, mixed)
    return shrink(mix.cpu().numpy(), model.precision), scale


def _split(Y: sp.csr_array, validation: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return held-out and training rows, those that have labels."""
    rows = np.flatnonzero(np.diff(Y.indptr))
    held = min(round(validation * rows.size), HELD_OUT_AT_MOST)
    if not held:
        return np.empty(0, dtype=np.int64), rows
    train, test = split_random(sp.csr_array(Y[rows]), test_size=held, random_state=seed)
    return rows[test], rows[train]


def _digest(queries: TokenRows, labels: TokenRows, Y: sp.csr_array) -> str:
    found = hashlib.sha256()
    for tokens in (queries, labels):
        found.update(tokens.lengths.tobytes())
        found.update(tokens.flat.cpu().numpy().tobytes())
    for array in (Y.indptr.astype(np.int64), Y.indices):
        found.update(array.tobytes())
    return found.hexdigest()
