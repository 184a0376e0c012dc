"""Time, memory and size of a training before it is begun: a short probe on a sample of the rows, scaled up."""

from __future__ import annotations

from longtail.data import Dataset, rows_per_label
from longtail.errors import LongtailError, Parameter, ParameterError
from longtail.facts import MemoryFacts, PlanFacts
from longtail.pipeline.choose_method import AUTO
from longtail.pipeline.held_out import held_out_rows
from longtail.pipeline.tagger import Tagger
from longtail.planning import shape_of
from longtail.validate import available_memory, memory_limit, private_memory, resolve_jobs, used_memory
from longtail.vocabulary import Vocabulary

CLEARLY = 1.5  # how far an estimate of memory may be off
KERNELS = 90_000_000  # bytes of compiled code
LESS = "train on fewer rows or features"


def plan_training(
    data: Dataset,
    tagger: Tagger | None = None,
    *,
    vocabulary: Vocabulary | None = None,
    probe: bool = True,
    read_seconds: float = 0.0,
) -> PlanFacts:
    """Return what `tagger.fit_dataset(data)` and saving it will take, as JSON-able facts; only a probe is trained.

    Time is for this machine as it is now, with the tagger's threads; `read_seconds`, the time it took to read the data,
    is added; a `vocabulary` gives texts to labels, which may decide which method suits. Without `probe`, which takes up
    to two seconds, there is an estimate of memory alone. Estimates are right within a factor of two.

    >>> from longtail.data.synthetic.generate import make_topics
    >>> facts = plan_training(make_topics(300, 10)[0], Tagger(random_state=0))
    >>> facts["rows"], facts["labels"], facts["features"], facts["memory"]["fits"]
    (300, 10, 130, True)
    """
    data, given = data.compact_labels(), Tagger() if tagger is None else tagger
    choice = given.choose_method(data, vocabulary) if probe or given.method == AUTO else None
    tagger = given if choice is None else given.chosen(choice)
    model, used = tagger.new_model(), used_memory() if memory_limit() is None else private_memory()
    held = held_out_rows(data.n_rows, tagger.calibrate, model.held_out_at_most)
    cost = model.plan(data, lambda: shape_of(data, tagger.features), held, probe)
    facts: PlanFacts = {
        "method": tagger.method_name,
        "model": type(model).__name__,
        "threads": resolve_jobs(model.n_jobs),
        "rows": data.n_rows,
        "labels": data.n_labels,
        "labels_used": rows_per_label(data.Y).size,
        "labels_per_row": data.Y.nnz / max(data.n_rows, 1),
        "features": cost.n_features,
        "features_estimated": cost.features_estimated,
        "nonzeros": cost.nonzeros,
        "calibration_rows": held,
        "trainings": 2 if held and model.trained_twice else 1,
        "tree": cost.tree,
        "memory": _fits(used + KERNELS + cost.memory_bytes, used),
        "train_seconds": None,
        "model_bytes": None,
        "predict_us_per_row": None,
        "sample": {
            "rows": cost.sampled_rows,
            "probed_rows": cost.probed_rows,
            "probe_seconds": cost.probe_seconds,
        },
    }
    if choice is not None:
        facts["choice"] = choice
    if cost.network is not None:
        facts["network"] = cost.network
    if probe:
        facts["train_seconds"] = read_seconds + cost.seconds
        facts["model_bytes"] = round(cost.model_bytes + sum(len(name) + 30 for name in data.names()) + 4000)
        facts["predict_us_per_row"] = cost.predict_us
    return facts


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
    if "network" not in facts:
        raise LongtailError("{said}; {less}{or_else}.", said=said, less=LESS, or_else="")
    raise LongtailError(
        "{said}; use a smaller {first}, {second} or {third}{or_else}.",
        said=said,
        first=Parameter("batch_size"),
        second=Parameter("max_length"),
        third=Parameter("encoder"),
        or_else="",
    )


def threads_within_limit(data: Dataset, tagger: Tagger) -> int:
    """Return how many threads a training may have under the limit on memory that is set; refuse it if not one fits.

    Fewer threads take less memory, and the model is the same.
    """
    limit, jobs = memory_limit(), resolve_jobs(tagger.n_jobs)
    if not tagger.new_model().trains_in_files:
        raise ParameterError(name="memory", allowed="left out for methods other than 'tree'", got=tagger.method_name)
    while limit is not None:
        tagger.n_jobs = jobs
        needed = plan_training(data, tagger, probe=False)["memory"]["peak_bytes"]
        if needed <= limit:
            break
        if jobs == 1:
            raise ParameterError(
                "{name} must be at least {needed} for this training, with one thread; got {got}.",
                name=Parameter("memory"),
                needed=f"{needed / 1e9 + 0.005:.2f}GB",
                got=f"{limit / 1e9:.2f}GB" if limit >= 1e7 else f"{limit} bytes",
            )
        jobs = max(1, jobs // 2)
    return jobs


def _fits(peak: float, used: int) -> MemoryFacts:
    """Return a peak of memory beside what there is: what a limit allows, or else the machine has."""
    free, limit = available_memory(), memory_limit()
    available = None if free is None else free + used
    available = available if limit is None else limit
    return {
        "peak_bytes": round(peak),
        "used_now_bytes": used,
        "available_bytes": available,
        "fits": available is None or peak <= available,
    }
