"""The cost of training a `Hybrid`: its encoder, reading all texts with it, the tree and names, twice, and weights."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from longtail.data import Dataset
from longtail.encoder import UniversalEncoder, is_universal
from longtail.hybrid.fit import HELD_OUT, HELD_OUT_AT_MOST
from longtail.hybrid.frozen_encoder import MOST_EPOCHS
from longtail.hybrid.logistic_vectors import LABELS_AT_ONCE
from longtail.hybrid.settings import classifier_epochs, encoder_device, needs_encoder, prime_params, tree_words
from longtail.model import Shape, TrainingPlan, plan_row_training
from longtail.planning import shape_of
from longtail.prime import Prime, label_texts_of, texts_of
from longtail.tree import LabelTreeClassifier

if TYPE_CHECKING:
    from longtail.hybrid.estimator import Hybrid

SAMPLE = 32  # texts of the probe
UNIVERSAL_BYTES = 100_000_000  # of the weights of the encoder that needs no torch, and of its words
LABEL_COPIES = 6  # texts, prototypes, classifier vectors, and what trains these
WEIGHING_SECONDS = 6e-3  # to learn weights and boosted trees, for every row held out, of which there are some thousand
NAMES_SECONDS = 2e-4  # to learn from the names in a text
FLOPS = 2e10  # multiplications and additions a second, of a core or two


def plan_hybrid(data: Dataset, model: Hybrid, n_held_out: int, probe: bool) -> TrainingPlan:
    """Return the expected cost of `fit_dataset`; without a probe, memory alone."""
    experts = model._check_params()
    read = data.texts is not None and "tree" in experts
    shape = shape_of(data, tree_words(model.get_params(deep=False)) if read else None)
    tree = LabelTreeClassifier(n_jobs=model.n_jobs)
    words = plan_row_training(data, shape, tree.estimate_fit(data, shape, probe), n_held_out)
    with_tree = "tree" in experts
    held = n_held_out or min(round(HELD_OUT * data.n_rows), HELD_OUT_AT_MOST)
    more = WEIGHING_SECONDS * held + ("names" in experts) * 2 * NAMES_SECONDS * data.n_rows
    if not needs_encoder(experts):
        return replace(words, seconds=probe * (with_tree * 2 * words.seconds + more))
    encoder = plan_encoder(data, model, shape, n_held_out, probe)
    width = encoder.n_features or 0
    return replace(
        encoder,
        memory_bytes=max(encoder.memory_bytes, with_tree * words.memory_bytes + 4 * data.n_rows * width),
        model_bytes=encoder.model_bytes
        + with_tree * words.model_bytes
        + ("neighbours" in experts) * data.n_rows * width
        + ("classifier" in experts) * 4 * data.n_labels * width,
        seconds=encoder.seconds
        + probe * (with_tree * 2 * words.seconds + more)  # the tree and names are trained again with all rows
        + data.n_rows * encoder.predict_us / 1e6,
        predict_us=encoder.predict_us + with_tree * words.predict_us,
        tree=words.tree if with_tree else None,
    )


def plan_encoder(data: Dataset, model: Hybrid, shape: Shape, n_held_out: int, probe: bool) -> TrainingPlan:
    """Return the expected cost of the encoder alone."""
    params = model.get_params(deep=False)
    if is_universal(model.encoder):
        return plan_frozen(data, model, probe)
    device = encoder_device(model.device)
    prime = Prime(**prime_params(params, data.n_rows - n_held_out, device))
    return prime.plan(data, lambda: shape, n_held_out, probe)


def plan_frozen(data: Dataset, model: Hybrid, probe: bool) -> TrainingPlan:
    """Return the cost of an encoder that stays as it is, beside that of reading the texts, judged by some of them."""
    texts, labels = texts_of(model, data), label_texts_of(model, data)
    width, loading, each = UniversalEncoder.width, 0.0, 0.0
    sample = [texts[i] for i in np.random.default_rng(0).permutation(len(texts))[:SAMPLE]]
    if probe:
        begun = time.perf_counter()
        encoder = UniversalEncoder()
        encoder.encode(sample[:1])  # which loads its weights
        loading = time.perf_counter() - begun
        encoder.encode(sample)
        each = (time.perf_counter() - begun - loading) / len(sample)
    steps = min(MOST_EPOCHS, classifier_epochs(data.n_rows, "cpu")) * data.n_rows * min(data.n_labels, LABELS_AT_ONCE)
    sizes = {
        "weight_bytes": UNIVERSAL_BYTES,
        "optimizer_bytes": 0,
        "query_vector_bytes": 4 * data.n_rows * width,
        "label_vector_bytes": 4 * LABEL_COPIES * data.n_labels * width,
        "token_bytes": 0,
        "batch_bytes": 0,
    }
    about = {"device": "cpu", "width": width, "encoder_known": True, "batch_size": 0}
    return TrainingPlan(
        n_features=width,
        features_estimated=False,
        nonzeros=None,
        memory_bytes=sum(sizes.values()),
        model_bytes=4 * data.n_labels * width + sum(map(len, labels)),
        seconds=probe * (loading + 2 * data.n_labels * each + 4 * steps * width / FLOPS),
        predict_us=1e6 * each,
        sampled_rows=len(sample) if probe else 0,
        probed_rows=len(sample) if probe else 0,
        probe_seconds=loading + len(sample) * each,
        network={**about, **sizes},
    )
