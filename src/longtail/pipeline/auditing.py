"""Audit the output layer of a model: which label sets it can never give, as facts for reports."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.audit import (
    IMPOSSIBLE,
    LONG,
    UNDECIDED,
    Audit,
    AuditedLayer,
    ReachableScores,
    argmaxable,
    capacity,
    distinct_sets,
    general_position,
    retrievable,
    save_certificates,
    winnable,
)
from longtail.data import Dataset
from longtail.errors import DataError, Parameter, ParameterError
from longtail.facts import (
    AuditFacts,
    CapacityFacts,
    ConflictFacts,
    LayerFacts,
    PositionFacts,
    RadiiFacts,
    SetSizeFacts,
    UnknownFacts,
)
from longtail.model import XMCEstimator
from longtail.pipeline.labels_in_vocabulary import with_ids
from longtail.pipeline.output_layer import Layer, model_layer
from longtail.pipeline.tagger import Tagger
from longtail.validate import check_integer, resolve_seed
from longtail.vocabulary import add_names

Progress = Callable[[int, int], None]
MOST_BINS = 18
SIZES = (0, 1, 2, 3, 4, 5, 7, 10, 15, 25, 50, 100)  # first size of each group of label sets


@dataclass(frozen=True, eq=False)
class Audited:
    """Facts of an audit, and the layer and result from which certificates are saved."""

    facts: AuditFacts
    layer: Layer
    audit: Audit | None

    def __repr__(self) -> str:
        return f"Audited({self.layer.source}: {self.audit!r})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the verdicts, the label sets that never come out, and what to do."""
        from longtail.report import audit_html

        return audit_html(self.facts)

    @property
    def all_reachable(self) -> bool:
        """Whether every set that was asked for is proved to be possible."""
        unknown = self.facts.get("unknown")
        return not (unknown and unknown["sets"]) and (self.audit is None or bool(self.audit.reachable.all()))

    def save_certificates(self, path: str | Path) -> Path:
        """Write every certificate, with the layer, to an .npz file."""
        if self.audit is None:
            raise ParameterError("there are no certificates to write: no set was audited.")
        layer = self.layer
        return save_certificates(path, self.audit, layer.W, layer.bias, layer.names, layer.circle)


def audit_model(
    model: Tagger | XMCEstimator | Layer,
    data: Dataset | None = None,
    *,
    classes: bool = False,
    top_k: int | None = None,
    box: float = 1e4,
    eps: float = 1e-8,
    radius: str | None = None,
    rows: int | None = None,
    seconds: float | None = None,
    limit: int = 10,
    random_state: Any = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Audited:
    """Audit a Tagger, an estimator or a `Layer`: the label sets of the data it can never give.

    Without data: how many of all sets it can give. `classes` asks instead which labels can have the highest score of
    all, `top_k` which sets of exactly k labels of the data can be the k highest. Of a layer that only ranks (`Prime`:
    its inputs have length 1, so no score has a meaning of its own) each set is asked for as the top of the ranking.
    `rows` audits a random sample of the rows, `limit` is how many sets are listed; the other parameters are those of
    `lt.audit.argmaxable`.

    >>> layer = Layer(np.array([[1.0, 0], [0, 1], [-1, -1]]), None, ("a", "b", "c"), "an example")
    >>> data = Dataset(Y=np.array([[1, 1, 0], [1, 1, 1]]), texts=["x", "y"], label_names=("a", "b", "c"))
    >>> found = audit_model(layer, data).facts
    >>> found["audit"]["sets"]["not argmaxable"], found["audit"]["impossible"][0]["labels"]
    (1, ['a', 'b', 'c'])
    """
    layer = model if isinstance(model, Layer) else model_layer(model)
    limit = check_integer("limit", limit, low=0)
    if classes and top_k is not None:
        raise ParameterError("give one of {name} and {other}.", name="classes", other=Parameter("top_k"))
    if classes and data is not None:
        raise ParameterError(
            "{name} takes no {other}: it looks at every label.", name="classes", other=Parameter("data")
        )
    if top_k is not None and data is None:
        raise ParameterError(
            "{name} needs {other}: it looks at label sets of rows.", name="top_k", other=Parameter("data")
        )
    if sp.issparse(layer.W) and (classes or top_k is not None):
        raise ParameterError(
            "{name} and {other} take layers of at most {most:,} dimensions; this one has {got:,}.",
            name="classes",
            other=Parameter("top_k"),
            most=LONG,
            got=layer.width,
        )
    facts: AuditFacts = {"layer": layer_facts(layer), "capacity": capacity_facts(layer)}
    names = layer.names
    asked: dict[str, Any] = {"box": box, "eps": eps, "seconds": seconds, "n_jobs": n_jobs, "progress": progress}
    as_top = top_k is not None or layer.ranked
    asked["radius"] = radius if radius is not None else "bound" if classes or as_top else "exact"
    started = time.perf_counter()
    audit: Audit | None = None
    if classes:
        audit = winnable(layer.linear, **asked)
    elif data is not None:
        Y = _label_sets(layer, data, facts, rows, random_state, limit)
        if names is None and facts["data"].get("labels_in_order"):
            names = data.label_names
        audit = _audit_rows(layer, Y, top_k, facts, asked)
    else:
        facts["position"] = position_facts(layer)
    if audit is not None:
        facts["audit"] = audit.facts(names, most=limit)
        for listed in facts["audit"]["impossible"]:
            listed["conflict"] = conflict(audit, listed["set"], names)
        facts["audit"]["radius"] = "bound" if sp.issparse(layer.W) else asked["radius"]
        facts["radii"] = radius_bins(audit)
        facts["sizes"] = by_size(audit) if not classes and top_k is None else []
        if layer.guaranteed:
            beyond = sum(members.size > layer.guaranteed for members in audit.members)
            facts["layer"]["sets_beyond_guarantee"] = int(beyond)
    if assumed := assumptions(facts, data):
        facts["assumed"] = assumed
    facts["timings"] = {"audit_seconds": time.perf_counter() - started}
    return Audited(add_names(facts, layer.vocabulary), layer, audit)


def _audit_rows(
    layer: Layer, Y: sp.csr_array, top_k: int | None, facts: AuditFacts, asked: dict[str, Any]
) -> Audit | None:
    """Audit the label sets of the rows, as sets or as the top of a ranking; None if no row is left."""
    if top_k is not None:
        top_k = check_integer("top_k", top_k, low=1, high=max(layer.n_labels - 1, 1))
        sizes = np.diff(Y.indptr)
        facts["top_k"] = {"k": top_k, "rows_of_other_size": int((sizes != top_k).sum())}
        Y = Y[np.flatnonzero(sizes == top_k)]
    elif layer.ranked:  # no label, or all of them, is the top of any ranking
        sizes = np.diff(Y.indptr)
        Y = Y[np.flatnonzero((sizes > 0) & (sizes < layer.n_labels))]
    if Y.shape[0] == 0:
        return None
    if top_k is not None or layer.ranked:
        return retrievable(layer.linear, Y, **asked)
    return argmaxable(layer.linear, Y, **asked)


def _label_sets(
    layer: Layer, data: Dataset, facts: AuditFacts, rows: int | None, random_state: Any, limit: int
) -> sp.csr_array:
    """Return the label sets of the rows in the layer's numbering; rows with labels it never gives are told apart."""
    if layer.names is not None and data.n_labels != layer.n_labels:
        data = data.compact_labels()
    data = with_ids(data, layer.vocabulary, layer.deprecated)
    Y = data.Y
    facts["data"] = {"name": data.name, "rows": int(Y.shape[0])}
    if rows is not None and check_integer("rows", rows, low=1) < Y.shape[0]:
        chosen = np.random.default_rng(resolve_seed(random_state)).choice(Y.shape[0], rows, replace=False)
        Y = Y[np.sort(chosen)]
        facts["data"]["rows_audited"] = int(rows)
    number_of = np.arange(Y.shape[1])  # of each label of the data in the layer, -1 if it is unknown
    if layer.names is not None and (data.label_names is not None or Y.shape[1] != layer.n_labels):
        number = {name: i for i, name in enumerate(layer.names)}
        number_of = np.array([number.get(name, -1) for name in data.names()], dtype=np.int64)
        if Y.nnz and (number_of < 0).all():
            raise DataError(
                f"none of the {Y.shape[1]:,} labels of the data is one of the model's; the first is "
                f"{data.names()[0]!r}."
            )
    elif Y.shape[1] != layer.n_labels:
        raise DataError(
            "the data has {n_labels:,} labels and the weights have {n_rows:,} rows; name the label of each row with "
            "{names}.",
            n_labels=Y.shape[1],
            n_rows=layer.n_labels,
            names=Parameter("labels_file"),
        )
    elif layer.names is None:
        facts["data"]["labels_in_order"] = True
    columns = number_of[Y.indices]
    row = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    strange = np.zeros(Y.shape[0], dtype=bool)
    strange[row[columns < 0]] = True
    facts["unknown"] = _unknown(layer, data, Y, strange, number_of, limit)
    good = ~strange[row]
    shape = (Y.shape[0], layer.n_labels)
    out = sp.csr_array((np.ones(int(good.sum()), np.float32), (row[good], columns[good])), shape=shape)
    return out[np.flatnonzero(~strange)]


def _unknown(
    layer: Layer, data: Dataset, Y: sp.csr_array, strange: np.ndarray, number_of: np.ndarray, limit: int
) -> UnknownFacts | None:
    """Return the facts about rows whose labels the model never gives; None if there are none."""
    if not strange.any():
        return None
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    missing = np.flatnonzero((number_of < 0) & (counts > 0))
    names, silent = data.names(), set(layer.silent)
    order = missing[np.argsort(-counts[missing], kind="stable")]
    return {
        "labels": int(missing.size),
        "without_training_row": sum(names[i] in silent for i in missing),
        "rows": int(strange.sum()),
        "sets": len(distinct_sets(Y[np.flatnonzero(strange)], Y.shape[1])),
        "listed": [{"label": names[i], "rows": int(counts[i])} for i in order[:limit]],
    }


def assumptions(facts: AuditFacts, data: Dataset | None) -> list[str]:
    """Return what an audit of weights from a file had to take for granted, a sentence each."""
    out = []
    if data is not None and data.label_names and facts["data"].get("labels_in_order"):
        first, last = data.label_names[0], data.label_names[-1]
        out.append(
            f"The weights name no labels, so their rows were taken for the labels of the data in order, from {first!r} "
            f"to {last!r}: if that is not their order, the verdicts are wrong; labels_file= names them."
        )
    if facts["layer"].get("bias_missing"):
        out.append("No bias was found: the weights were audited without one.")
    return out


def layer_facts(layer: Layer) -> LayerFacts:
    """Return the shape and the rules of an output layer."""
    return {
        "source": layer.source,
        "n_labels": layer.n_labels,
        "width": layer.width,
        "bias": layer.bias is not None,
        "bias_missing": layer.bias_missing,
        "sparse": sp.issparse(layer.W),
        "score_above": layer.cut,
        "labels_never_given": len(layer.silent),
        "guaranteed": layer.guaranteed,
        "ranked": layer.ranked,
    }


def capacity_facts(layer: Layer) -> CapacityFacts:
    """Return how many of all label sets a layer of this shape can give, in powers of ten too."""
    width = layer.width + layer.ranked  # where a ranking is cut is one more dimension
    facts = capacity(layer.n_labels, width, bias=layer.bias is not None).to_facts()
    tenth = math.log10(2)
    facts["width"] = layer.width
    facts["log10_sets"], facts["log10_share"] = facts["log2_sets"] * tenth, facts["log2_share"] * tenth
    return facts


def position_facts(layer: Layer) -> PositionFacts:
    """Return the rank of the weights and whether their rows are as independent as they can be."""
    if not sp.issparse(layer.W):
        return general_position(layer.W)
    bias = np.ones(layer.n_labels) if layer.bias is None else layer.bias
    rank = ReachableScores(AuditedLayer.read(layer.W, bias)).rank
    general = True if rank == layer.n_labels else None if layer.n_labels > layer.width else False
    return {"n_labels": layer.n_labels, "width": layer.width, "rank": rank, "general_position": general}


def conflict(audit: Audit, number: int, names: Sequence[str] | None) -> ConflictFacts:
    """Return the labels of the proof that a set is impossible: they cannot be on and off like this at once."""
    certificate = audit.certificates[number]
    if certificate.labels is None or certificate.weights is None:
        return {"on": [], "off": []}
    used = np.sort(certificate.labels[certificate.weights > 0])
    inside = np.isin(used, audit.members[number])
    on, off = used[inside].tolist(), used[~inside].tolist()
    if names is None:
        return {"on": on, "off": off}
    return {"on": [names[i] for i in on], "off": [names[i] for i in off]}


def radius_bins(audit: Audit) -> RadiiFacts:
    """Return how many sets have a radius in each range, ranges of equal size by powers of ten.

    `zero` counts sets with an input and no ball around it.
    """
    radii = audit.radius[audit.reachable]
    some = radii[radii > 0]
    if some.size == 0:
        return {"edges": [], "counts": [], "zero": int(radii.size)}
    low, high = (math.log10(float(v)) for v in (some.min(), some.max()))
    step = next(s for s in (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 1000.0) if (high - low) / s <= MOST_BINS - 1)
    first, last = math.floor(low / step), math.floor(high / step) + 1
    logs = np.log10(some) / step
    counts = np.bincount(np.clip(np.floor(logs).astype(int) - first, 0, last - first - 1), minlength=last - first)
    edges = [10.0 ** (i * step) for i in range(first, last + 1)]
    return {"edges": edges, "counts": counts.tolist(), "zero": int(radii.size - some.size)}


def by_size(audit: Audit) -> list[SetSizeFacts]:
    """Return how many sets of few and of many labels are impossible, with their median radius."""
    sizes = np.array([members.size for members in audit.members])
    ends: Sequence[float] = (*SIZES[1:], np.inf)
    out: list[SetSizeFacts] = []
    for low, high in zip(SIZES, ends, strict=True):
        chosen = (sizes >= low) & (sizes < high)
        if not chosen.any():
            continue
        verdicts, reached = audit.verdicts[chosen], audit.radius[chosen & audit.reachable]
        out.append(
            {
                "smallest": int(sizes[chosen].min()),
                "largest": int(sizes[chosen].max()),
                "sets": int(chosen.sum()),
                "impossible": int((verdicts == IMPOSSIBLE).sum()),
                "undecided": int((verdicts == UNDECIDED).sum()),
                "median_radius": float(np.median(reached)) if reached.size else None,
            }
        )
    return out
