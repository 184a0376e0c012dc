"""Facts for the report tests: real ones from the metrics, so that a renamed key is noticed here."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from longtail.data import Dataset, TopK
from longtail.facts import tail_points
from longtail.metrics import compare, evaluate, label_counts, propensities


def _predictions(Y: np.ndarray, seed: int) -> TopK:
    rng = np.random.default_rng(seed)
    return TopK.from_scores(np.clip(0.45 * Y + 0.5 * rng.random(Y.shape), 0, 1), k=5)


@pytest.fixture(scope="module")
def truth() -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.random((120, 30)) < 1.5 / np.arange(2, 32)).astype(np.float32)


@pytest.fixture(scope="module")
def counts() -> np.ndarray:
    return np.array([4000 // (i + 1) ** 2 for i in range(28)] + [1, 0])


@pytest.fixture
def facts(truth: np.ndarray, counts: np.ndarray) -> dict[str, Any]:
    names = [f"label {i}" for i in range(30)]
    data = Dataset(Y=truth, texts=[f"text {i}" for i in range(120)], label_names=names, name="toy").summary()
    data["tail"] = tail_points(label_counts(truth).tolist())
    found = evaluate(
        truth,
        _predictions(truth, 1),
        propensity=propensities(counts, 5000),
        train_counts=counts,
        probabilities=True,
        n_bootstrap=50,
    )
    words = [{"word": "wine", "weight": 0.71}, {"word": "car", "weight": -0.33}]
    out = {
        "title": "Evaluation of toy",
        "model": {"method": "tree", "params": {"overlap": 2}, "seed": 7, "model_bytes": 1_250_000},
        "data": data,
        "evaluation": found,
        "labels": [{"label": "label 3", "train_count": 1234, "test_count": 17, "precision": 0.6251, "recall": 0.4177}],
        "examples": [
            {
                "text": "Red wine and a car",
                "true": ["drinks", "roads"],
                "predicted": [{"label": "drinks", "score": 2.5, "probability": 0.87, "words": words, "correct": True}],
            }
        ],
        "timings": {"predict_seconds": 12.4},
        "command": "longtail evaluate toy test.jsonl",
    }
    return json.loads(json.dumps(out))  # what is not JSON-able has no place in facts


@pytest.fixture
def comparison_facts(truth: np.ndarray, counts: np.ndarray) -> dict[str, Any]:
    found = compare(
        truth, _predictions(truth, 1), _predictions(truth, 2), train_counts=counts, n_bootstrap=50, n_permutations=50
    )
    out = {"title": "ova against tree", "a": {"name": "ova", "seed": 1}, "b": "tree", "comparison": found}
    return json.loads(json.dumps(out))
