"""Time, memory and size of a training before it is begun: a short probe on a sample of the rows, scaled up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from longtail.bottleneck import BottleneckClassifier, estimate_network
from longtail.data import Dataset
from longtail.errors import LongtailError
from longtail.facts import MemoryFacts, PlanFacts
from longtail.model import XMCEstimator
from longtail.one_vs_all import OneVsAllClassifier, estimate_ova
from longtail.pipeline.held_out import held_out_rows
from longtail.pipeline.tagger import Tagger
from longtail.pipeline.text_models import takes_texts
from longtail.planning import Estimate, Shape, available_memory, shape_of, used_memory
from longtail.prime import plan_prime
from longtail.tree import LabelTreeClassifier, estimate_tree
from longtail.validate import resolve_jobs, resolve_seed

CLEARLY = 1.5  # how far an estimate of memory may be off
KERNELS = 90_000_000  # bytes of compiled code
LESS = "train on fewer rows or features"
TERM_BYTES = 150  # of memory for each term, beside its text


def plan_training(
    data: Dataset, tagger: Tagger | None = None, *, probe: bool = True, read_seconds: float = 0.0
) -> PlanFacts:
    """Return what `tagger.fit_dataset(data)` and saving it will take, as JSON-able facts; only a probe is trained.

    Time is for this machine as it is now, with the tagger's threads; `read_seconds`, the time it took to read the data,
    is added. Without `probe`, which takes up to two seconds, there is an estimate of memory alone. Estimates are right
    within a factor of two.

    >>> from longtail.data.synthetic.generate import make_topics
    >>> facts = plan_training(make_topics(300, 10)[0], Tagger(random_state=0))
    >>> facts["rows"], facts["labels"], facts["features"], facts["memory"]["fits"]
    (300, 10, 130, True)
    """
    tagger = Tagger() if tagger is None else tagger
    held = held_out_rows(data.n_rows, tagger.calibrate)
    model = tagger._new_model(resolve_seed(tagger.random_state))
    used = used_memory()
    if takes_texts(model):
        return _textual(data, tagger, model, probe, read_seconds, held, used)
    shape = shape_of(data, tagger.features)
    once = _estimate(data, shape, model, probe)
    facts: PlanFacts = {
        "method": tagger.method_name,
        "model": type(model).__name__,
        "threads": resolve_jobs(model.n_jobs),
        "rows": data.n_rows,
        "labels": data.n_labels,
        "labels_used": shape.n_used,
        "labels_per_row": shape.labels_per_row,
        "features": shape.n_features,
        "features_estimated": data.texts is not None,
        "nonzeros": round(shape.nonzeros),
        "calibration_rows": held,
        "tree": once.tree,
        "memory": _memory(data, shape, once, held, used),
        "train_seconds": None,
        "model_bytes": None,
        "predict_us_per_row": None,
        "sample": {"rows": int(shape.rows.size), "probed_rows": once.probed_rows, "probe_seconds": once.probe_seconds},
    }
    if probe:
        facts |= {
            "train_seconds": read_seconds + _seconds(data, shape, once, held),
            "model_bytes": round(once.model_bytes + _folder(data, shape)),
            "predict_us_per_row": once.predict_us + 1e6 * shape.text_seconds / max(data.n_rows, 1),
        }
    return facts


def _textual(
    data: Dataset, tagger: Tagger, model: Any, probe: bool, read_seconds: float, held: int, used: int
) -> PlanFacts:
    """Return the plan of a model that reads texts: it is trained once, on the rows that are not held out."""
    found = plan_prime(data, model, data.n_rows - held, probe)
    in_memory = found.network["in_memory_bytes"]
    stage = _tree_stage(data, model, probe) if model.tree else None
    if stage is not None:
        in_memory = max(in_memory, stage.memory_bytes)  # the tree comes when the encoder's optimiser is gone
    facts: PlanFacts = {
        "method": tagger.method_name,
        "model": type(model).__name__,
        "threads": resolve_jobs(model.n_jobs),
        "rows": data.n_rows,
        "labels": data.n_labels,
        "labels_used": int((np.bincount(data.Y.indices, minlength=data.n_labels) > 0).sum()),
        "labels_per_row": data.Y.nnz / max(data.n_rows, 1),
        "features": found.network["width"],
        "features_estimated": False,
        "nonzeros": None,
        "calibration_rows": held,
        "tree": None if stage is None else stage.tree,
        "network": found.network,
        "memory": _fits(used + KERNELS + in_memory, used),
        "train_seconds": None,
        "model_bytes": None,
        "predict_us_per_row": None,
        "sample": {"rows": found.probed_rows, "probed_rows": found.probed_rows, "probe_seconds": found.probe_seconds},
    }
    if probe:
        seconds = None if found.seconds is None else read_seconds + found.seconds + held * (found.predict_us or 0) / 1e6
        facts |= {
            "train_seconds": seconds,
            "model_bytes": round(found.model_bytes + sum(len(name) + 30 for name in data.names()) + 4000),
            "predict_us_per_row": found.predict_us,
        }
    if probe and stage is not None:
        if facts["train_seconds"] is not None:
            facts["train_seconds"] += stage.seconds
        if facts["model_bytes"] is not None:
            facts["model_bytes"] += round(stage.model_bytes)
        if facts["predict_us_per_row"] is not None:
            facts["predict_us_per_row"] += stage.predict_us
    return facts


def _tree_stage(data: Dataset, model: Any, probe: bool) -> Estimate:
    """Return what the tree beside an encoder takes, with the words it reads."""
    shape = shape_of(data)
    once = estimate_tree(data, shape, LabelTreeClassifier(n_jobs=model.n_jobs), probe)
    return replace(
        once,
        seconds=once.seconds + shape.text_seconds,
        model_bytes=once.model_bytes + shape.n_features * (shape.term_bytes + 12),
        memory_bytes=once.memory_bytes + 16 * shape.nonzeros + TERM_BYTES * shape.n_features,
    )


def refuse_without_memory(facts: PlanFacts) -> str | None:
    """Raise if a plan clearly needs more memory than there is; return a warning if it may, else None.

    >>> refuse_without_memory({"memory": {"peak_bytes": 12e9, "available_bytes": 10e9}})
    'training needs about 12.0 GB of memory, and 10.0 GB are available; it may fail.'
    """
    needed, there = facts["memory"]["peak_bytes"], facts["memory"]["available_bytes"]
    if there is None or needed <= there:
        return None
    said = f"training needs about {needed / 1e9:.1f} GB of memory, and {there / 1e9:.1f} GB are available"
    if needed <= CLEARLY * there:
        return f"{said}; it may fail."
    less = "use a smaller --batch-size, --max-length or --encoder" if "network" in facts else LESS
    raise LongtailError(f"{said}; {less}, or use --force to try all the same.")


def _estimate(data: Dataset, shape: Shape, model: XMCEstimator, probe: bool) -> Estimate:
    if isinstance(model, LabelTreeClassifier):
        return estimate_tree(data, shape, model, probe)
    if isinstance(model, OneVsAllClassifier):
        return estimate_ova(data, shape, model, probe)
    if isinstance(model, BottleneckClassifier):
        return estimate_network(data, shape, model, probe)
    raise LongtailError(f"there is no plan for {type(model).__name__}; there is one for the methods of a Tagger.")


def _seconds(data: Dataset, shape: Shape, once: Estimate, held: int) -> float:
    """Return the time from the data to the saved model."""
    first = (data.n_rows - held) / data.n_rows if held else 0.0  # a first model, without the rows held out
    judging = 0.1 + 3 * held * once.predict_us / 1e6 + held * 3e-5 if held else 0.0
    return shape.text_seconds + shape.loading_seconds + once.loading_seconds + (1 + first) * once.seconds + judging


def _folder(data: Dataset, shape: Shape) -> float:
    """Return the bytes of what is saved beside the model: terms with their weights, and the labels."""
    terms = shape.n_features * (shape.term_bytes + 12) if data.texts is not None else 0.0
    return terms + sum(len(name) + 30 for name in data.names()) + sum(map(len, data.label_texts or ())) + 4000


def _memory(data: Dataset, shape: Shape, once: Estimate, held: int, used: int) -> MemoryFacts:
    """Return the most memory training will use, and whether there is as much."""
    X = 8 * shape.nonzeros
    making, rows = 0.0, 0.0
    if data.texts is not None:
        making = 3 * X + TERM_BYTES * shape.n_features  # counts, blocks of rows, all rows
        rows = X + TERM_BYTES * shape.n_features
    first = X + once.memory_bytes if held else 0.0  # on a copy of the rows that are not held out
    last = once.memory_bytes + (once.kept_bytes if held else 0.0)  # the first model is still there
    peak = used + KERNELS + max(making, rows + max(first, last, once.kept_bytes + once.model_bytes))
    return _fits(peak, used)


def _fits(peak: float, used: int) -> MemoryFacts:
    """Return a peak of memory beside what there is."""
    free = available_memory()
    available = None if free is None else free + used
    return {
        "peak_bytes": round(peak),
        "used_now_bytes": used,
        "available_bytes": available,
        "fits": available is None or peak <= available,
    }
