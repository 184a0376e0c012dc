"""Measure how often monitoring raises false alarms, from which batch size on it notices drift, and what it costs.

    python benchmarks/monitoring/monitor.py --data FOLDER

`false_alarms`: rows of the bundled debtags (its training rows), and of FOLDER `yso-titles` (its test rows) and
`eurlex-4k`, are split at random; a tagger is trained on one part, and batches are drawn from the other. Nothing has
changed, so every "watch" or "changed" is a false alarm. One tagger per seed.

`drift`: batches of debtags rows that something was done to; `changed` is the share of batches that are "changed":
another data set (titles of `yso-titles`) in place of a share of the rows; rows of one label in place of a share of the
rows; texts cut to their first words; letters of some words exchanged; labels of some rows exchanged (these batches
have labels, all others have none); rows of other source packages (the test rows of debtags). `eurlex57k` (first 200
words) is split by year: trained on laws up to 2003, with batches of later years, and of the same years as control.

`cost`: seconds of measuring the reference against the whole training, bytes of it in the model folder, and rows a
second of monitoring against predicting.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import longtail as lt
from benchmarks.harness.data_sets import read_parts
from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.terminal import show_table
from benchmarks.harness.timing import timed
from longtail.data import Dataset, load_bundled, read
from longtail.monitoring import Profile, Reference, RowMeasures, compare_profiles, worst_verdict
from longtail.pipeline import Monitor, monitor_dataset

SIZES = (20, 100, 300, 1000)
STEADY_SIZES = (20, 100, 500, 2000)
BATCHES = 50  # of a size and a seed, of rows that have not changed
CHANGED_BATCHES = 40  # of those that have
WORDS = 200
LAST_YEAR = 2003
TRAINED = {"debtags": 0.6, "yso-titles": 0.6, "eurlex-4k": 0.6, "pubmed-mesh": 0.6}


def load(name: str, data: Path) -> Dataset:
    """Return all rows of a data set; of yso-titles the test rows, which are enough."""
    if name == "debtags":
        return load_bundled("debtags", "train")
    if name == "yso-titles":
        return read(data / name / "test.jsonl.xz").compact_labels()
    return read_parts(data / name)[0].compact_labels()


def split(rows: Dataset, seed: int, share: float) -> tuple[Dataset, Dataset]:
    """Return rows to train on and the others, at random."""
    order = np.random.default_rng(seed).permutation(rows.n_rows)
    first, rest = np.split(order, [round(share * rows.n_rows)])
    return used(rows.take(np.sort(first))), rows.take(np.sort(rest))


def used(rows: Dataset) -> Dataset:
    """Return rows with the labels they have and no others."""
    return rows.align([rows.names()[i] for i in np.unique(rows.Y.indices)])[0]


def measured(tagger: lt.Tagger, rows: Dataset) -> RowMeasures:
    """Return the measures of all rows."""
    return Monitor(tagger).measure(rows)


def unlabelled(measures: RowMeasures) -> RowMeasures:
    """Return measures without what needs labels."""
    return replace(measures, labelled=None, hits=None, chances=None, given=None, unknown_label=None)


Draw = Callable[[int, np.random.Generator], tuple[RowMeasures, np.ndarray]]
"""Draws a batch of so many rows: the measures, and the rows among them."""
Verdicts = dict[str, list[dict[str, str]]]
"""The verdicts of all comparisons of every batch, by the size of the batches."""


def verdicts(reference: Reference | None, measures: RowMeasures, rows: np.ndarray, n_labels: int) -> dict[str, str]:
    """Return the verdict of every comparison of a batch."""
    if reference is None:
        raise SystemExit("the training held out no rows")
    profile = Profile(n_labels)
    profile.add(measures.take(rows))
    return {one["what"]: one["verdict"] for one in compare_profiles(reference, profile)[0]}


def shares(found: list[dict[str, str]]) -> Facts:
    """Return the share of batches with each verdict, and of those that each comparison called changed."""
    worst = Counter(worst_verdict(one.values()) for one in found)
    off = Counter(f"{what}: {verdict}" for one in found for what, verdict in one.items() if verdict != "steady")
    return {
        "batches": len(found),
        "changed": worst["changed"] / len(found),
        "watch": worst["watch"] / len(found),
        "by": {what: n / len(found) for what, n in off.most_common()},
    }


def false_alarms(name: str, data: Path, seeds: list[int]) -> Facts:
    """Return the share of batches of unchanged rows that raise an alarm, by size."""
    rows = load(name, data)
    found: dict[int, list[dict[str, str]]] = {size: [] for size in STEADY_SIZES}
    for seed in seeds:
        train, rest = split(rows, seed, TRAINED[name])
        tagger = lt.Tagger(random_state=seed).fit_dataset(train)
        measures, rng = measured(tagger, rest), np.random.default_rng(seed)
        for size in STEADY_SIZES:
            for _ in range(BATCHES):
                batch = rng.choice(rest.n_rows, size, replace=False)
                found[size].append(verdicts(tagger.reference_, measures, batch, tagger.n_labels_))
    out: Facts = {str(size): shares(one) for size, one in found.items()}
    everything = [one for of_size in found.values() for one in of_size]
    return {
        "rows": rows.n_rows,
        "reference_rows": getattr(tagger.reference_, "rows", 0),
        "sizes": out,
        "all": shares(everything),
    }


def noticed(tagger: lt.Tagger, draw: Draw, seed: int) -> Verdicts:
    """Return the verdicts of batches of every size."""
    rng = np.random.default_rng(seed)
    return {
        str(size): [verdicts(tagger.reference_, *draw(size, rng), tagger.n_labels_) for _ in range(CHANGED_BATCHES)]
        for size in SIZES
    }


def mixed(own: RowMeasures, other: RowMeasures, share: float) -> Draw:
    """Return a drawing of batches in which a share of the rows is from elsewhere."""
    joined = joined_measures(own, other)

    def draw(size: int, rng: np.random.Generator) -> tuple[RowMeasures, np.ndarray]:
        n = round(share * size)
        ours = rng.choice(own.n_rows, size - n, replace=False)
        return joined, np.concatenate([ours, own.n_rows + rng.choice(other.n_rows, n, replace=other.n_rows < n)])

    return draw


def any_of(measures: RowMeasures) -> Draw:
    """Return a drawing of batches of some rows."""
    return lambda size, rng: (measures, rng.choice(measures.n_rows, size, replace=False))


def joined_measures(own: RowMeasures, other: RowMeasures) -> RowMeasures:
    """Return the measures of the rows of both."""
    given = [np.zeros((m.n_rows, 0)) if m.assigned is None else m.assigned for m in (own, other)]
    width = max(one.shape[1] for one in given)
    wide = [np.pad(one, ((0, 0), (0, width - one.shape[1])), constant_values=-1) for one in given]
    both: Facts = {
        name: np.concatenate([getattr(own, name), getattr(other, name)])
        for name in ("length", "unknown_words", "probability")
    }
    return RowMeasures(**both, assigned=np.vstack(wide))


def exchanged_letters(texts: tuple[str, ...], share: float, seed: int) -> tuple[str, ...]:
    """Return texts in which two letters next to each other are exchanged in a share of the longer words."""
    rng, out = np.random.default_rng(seed), []
    for text in texts:
        words = text.split(" ")
        for i in np.flatnonzero(rng.random(len(words)) < share).tolist():
            word = words[i]
            if len(word) > 4:
                at = int(rng.integers(1, len(word) - 2))
                words[i] = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        out.append(" ".join(words))
    return tuple(out)


def exchanged_labels(rows: Dataset, share: float, seed: int) -> Dataset:
    """Return rows of which a share has the labels of other rows."""
    rng = np.random.default_rng(seed)
    order = np.arange(rows.n_rows)
    some = rng.choice(rows.n_rows, round(share * rows.n_rows), replace=False)
    order[some] = np.roll(some, 1)
    return replace(rows, Y=sp.csr_array(rows.Y[order]))


def drifts_of_debtags(data: Path, seed: int) -> dict[str, Verdicts]:
    """Return the verdicts of batches of every kind of drift and size."""
    rows = load("debtags", data)
    train, rest = split(rows, seed, TRAINED["debtags"])
    tagger = lt.Tagger(random_state=seed).fit_dataset(train)
    own = measured(tagger, rest)
    plain, texts = unlabelled(own), rest.texts or ()
    titles = read(data / "yso-titles" / "test.jsonl.xz").take(slice(0, 3000))
    strangers = unlabelled(measured(tagger, titles))
    out = {}
    for share in (0.1, 0.3, 1.0):
        out[f"{share:.0%} of rows from other data"] = noticed(tagger, mixed(plain, strangers, share), seed)
    counts = np.bincount(rest.Y.indices, minlength=rest.n_labels)
    topic = int(np.argmin(np.abs(counts - 0.03 * rest.n_rows)))  # a label of 3% of the rows
    of_topic = plain.take(np.flatnonzero(np.diff(rest.Y[:, [topic]].indptr)))
    for share in (0.1, 0.3):
        out[f"{share:.0%} more rows of one topic"] = noticed(tagger, mixed(plain, of_topic, share), seed)
    for words in (20, 5):
        cut = replace(rest, texts=tuple(" ".join(text.split()[:words]) for text in texts))
        out[f"first {words} words only"] = noticed(tagger, mixed(plain, unlabelled(measured(tagger, cut)), 1.0), seed)
    for share in (0.05, 0.2):
        odd = replace(rest, texts=exchanged_letters(texts, share, seed))
        found = noticed(tagger, mixed(plain, unlabelled(measured(tagger, odd)), 1.0), seed)
        out[f"letters exchanged in {share:.0%} of words"] = found
    for share in (0.1, 0.2, 0.4):
        wrong = measured(tagger, exchanged_labels(rest, share, seed))
        found = noticed(tagger, any_of(wrong), seed)
        out[f"labels of {share:.0%} of rows exchanged"] = found
    others = unlabelled(measured(tagger, load_bundled("debtags", "test")))
    out["rows of other sources"] = noticed(tagger, mixed(plain, others, 1.0), seed)
    return out


def drifts_of_years(data: Path, seed: int) -> dict[str, Verdicts]:
    """Return the verdicts of batches of laws of later years."""
    rows = read(data / "eurlex57k" / "train.jsonl.xz").compact_labels()
    rows = replace(rows, texts=tuple(" ".join(text[:2000].split()[:WORDS]) for text in rows.texts or ()))
    years = np.array([int(name[1:5]) for name in rows.ids or ()])
    old = np.random.default_rng(seed).permutation(np.flatnonzero(years <= LAST_YEAR))
    tagger = lt.Tagger(random_state=seed).fit_dataset(used(rows.take(np.sort(old[:8000]))))
    out = {}
    later = {f"laws up to {LAST_YEAR}": old[8000:11_000]}
    for low, high in ((2004, 2005), (2006, 2008), (2009, 2012), (2013, 2018)):
        later[f"laws of {low} to {high}"] = np.flatnonzero((years >= low) & (years <= high))[:4000]
    for name, at in later.items():
        measures = unlabelled(measured(tagger, rows.take(np.sort(at))))
        out[name] = noticed(tagger, any_of(measures), seed)
    return out


def cost(name: str, data: Path) -> Facts:
    """Return what monitoring costs: time of a training, bytes in the folder, rows a second."""
    from longtail.pipeline import tagger as module

    rows, spent = load(name, data), []
    measure = module.reference_of_held_out

    def watched(*given: Any, **how: Any) -> Reference:
        seconds, reference = timed(lambda: measure(*given, **how))
        spent.append(seconds.wall)
        return reference

    lt.Tagger(random_state=0).fit_dataset(rows.take(slice(0, 2000)))  # kernels are compiled
    module.reference_of_held_out = watched
    spent.clear()
    try:
        whole, tagger = timed(lambda: lt.Tagger(random_state=0).fit_dataset(rows))
    finally:
        module.reference_of_held_out = measure
    with tempfile.TemporaryDirectory() as folder:
        saved = tagger.save(Path(folder) / "model")
        sizes = {file.name.split(".")[0]: file.stat().st_size for file in saved.iterdir()}
    some = rows.take(slice(0, 4000))
    predicted = timed(lambda: tagger.predict(some.texts if some.texts is not None else some.X))[0].wall
    seen = timed(lambda: monitor_dataset(tagger, some))[0].wall
    return {
        "train_s": whole.wall,
        "reference_s": spent[0],
        "reference_share_of_training": spent[0] / whole.wall,
        "reference_bytes": sizes["reference"],
        "model_bytes": sum(sizes.values()),
        "predict_rows_per_s": some.n_rows / predicted,
        "monitor_rows_per_s": some.n_rows / seen,
    }


def add(found: dict[str, Verdicts], more: dict[str, Verdicts]) -> None:
    """Add the batches of one seed to those of others."""
    for kind, sizes in more.items():
        for size, batches in sizes.items():
            found.setdefault(kind, {}).setdefault(size, []).extend(batches)


def main() -> None:
    parser = make_parser(__doc__, "monitor.json", data="required", seeds=(0, 1, 2, 3), resume=True)
    parser.add_argument("--only", nargs="+", default=["cost", "false_alarms", "drift"])
    parser.add_argument("--sets", nargs="+", default=list(TRAINED), help="data sets for false alarms")
    args = parser.parse_args()
    facts = start_facts(args, {"seeds": args.seeds, "batches_of_a_size_and_seed": BATCHES})
    if "cost" in args.only:
        facts["cost"] = {name: cost(name, args.data) for name in ("debtags", "yso-titles")}
        write_results(facts, args.output)
    if "drift" in args.only:
        found: dict[str, Verdicts] = {}
        for seed in args.seeds[:1]:
            for measure in (drifts_of_debtags, drifts_of_years):
                add(found, measure(args.data, seed))
                facts["drift"] = {kind: {n: shares(one) for n, one in sizes.items()} for kind, sizes in found.items()}
                write_results(facts, args.output)
        rows = [
            [kind, *(f"{100 * one['changed']:.0f}" for one in sizes.values())] for kind, sizes in facts["drift"].items()
        ]
        show_table("noticed, % of batches", ["", *map(str, SIZES)], rows)
    for name in args.sets if "false_alarms" in args.only else ():
        facts.setdefault("false_alarms", {})[name] = false_alarms(name, args.data, args.seeds)
        write_results(facts, args.output)
        show_alarms(name, facts["false_alarms"][name])
    facts["percent"] = in_percent(facts)
    write_results(facts, args.output)


def in_percent(facts: Facts) -> Facts:
    """Return what the docs show: batches with an alarm and drift noticed, in percent."""
    alarms = [one["all"] for one in facts.get("false_alarms", {}).values()]
    batches = sum(one["batches"] for one in alarms)
    out: Facts = {"steady_batches": batches}
    for verdict in ("changed", "watch"):
        out[verdict] = 100 * sum(one["batches"] * one[verdict] for one in alarms) / max(batches, 1)
    if "cost" in facts:
        out["reference_share_of_training"] = 100 * facts["cost"]["debtags"]["reference_share_of_training"]
    out["noticed"] = {
        kind: {size: 100 * one["changed"] for size, one in sizes.items()}
        for kind, sizes in facts.get("drift", {}).items()
    }
    return out


def show_alarms(name: str, facts: Facts) -> None:
    """Print the share of batches with an alarm."""
    rows = [
        [size, f"{100 * one['changed']:.1f}", f"{100 * one['watch']:.1f}", str(one["by"])]
        for size, one in facts["sizes"].items()
    ]
    show_table(f"{name}: false alarms, % of batches", ["rows", "changed", "watch", "by"], rows)


if __name__ == "__main__":
    main()
