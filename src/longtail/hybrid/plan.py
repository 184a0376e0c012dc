"""The cost of training a `Hybrid`: that of its encoder, of reading all texts with it, and of the tree, twice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longtail.data import Dataset
from longtail.hybrid.settings import needs_encoder, prime_params
from longtail.model import TrainingPlan, plan_row_training
from longtail.planning import shape_of
from longtail.prime import Prime
from longtail.tree import LabelTreeClassifier

if TYPE_CHECKING:
    from longtail.hybrid.estimator import Hybrid


def plan_hybrid(data: Dataset, model: Hybrid, n_held_out: int, probe: bool) -> TrainingPlan:
    """Return the expected cost of `fit_dataset`; without a probe, memory alone."""
    shape = shape_of(data)
    tree = LabelTreeClassifier(n_jobs=model.n_jobs)
    words = plan_row_training(data, shape, tree.estimate_fit(data, shape, probe), n_held_out)
    experts = model._check_params()
    if not needs_encoder(experts):
        return words
    params = model.get_params(deep=False)
    device = str(Prime(device=model.device).torch_device().type)
    prime = Prime(**prime_params(params, data.n_rows - n_held_out, device))
    encoder = prime.plan(data, lambda: shape, n_held_out, probe)
    width = encoder.n_features or 0
    with_tree = "tree" in experts
    return replace(
        encoder,
        memory_bytes=max(encoder.memory_bytes, with_tree * words.memory_bytes + 4 * data.n_rows * width),
        model_bytes=encoder.model_bytes
        + with_tree * words.model_bytes
        + ("neighbours" in experts) * data.n_rows * width
        + ("classifier" in experts) * 4 * data.n_labels * width,
        seconds=encoder.seconds + with_tree * words.seconds + data.n_rows * encoder.predict_us / 1e6,
        predict_us=encoder.predict_us + with_tree * words.predict_us,
        tree=words.tree if with_tree else None,
    )
