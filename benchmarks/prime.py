"""PRIME beside its relatives on two data sets: accuracy, ablations, unseen labels, speed. Made for one GPU.

    python benchmarks/prime.py prepare --data FOLDER              # where the data is: writes the folder prime-carry
    python benchmarks/prime.py train --only yso-titles            # on the GPU, with prime-carry beside it
    python benchmarks/prime.py train --only yso-titles --parts ablation zero-shot free --resume
    python benchmarks/prime.py speed
    python benchmarks/prime.py trees --only yso-titles            # trees on words, and on words and PRIME's vectors
    python benchmarks/prime.py serve                              # on a CPU
    python benchmarks/prime.py new-labels                         # on a CPU
    python benchmarks/prime.py plot                               # draws docs/prime.svg from the file of results

`train` runs every model of the parts asked for: "main" the frozen encoder, siamese triplets with a fixed margin (as
NGAME), with free vectors (as DEXA), PRIME-lite, PRIME, and PRIME(W) on top of it; "ablation" PRIME-lite without one
part at a time; "free" by the number of free vectors; "zero-shot" with a tenth of the labels held out and added by their
texts. All share the encoder, the batch, the number of epochs and the learning rate; scores are on the test rows, and
nothing was chosen by them. Each model is a line in the file of results, written as it is found; `--resume` goes on.
The weights of PRIME's encoder are kept in pieces for `trees`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import longtail as lt
from longtail.metrics import precision_at_k, propensities, psp_at_k, recall_at_k
from longtail.prime.estimator import Prime
from peers.prime_data import LENGTH, Texts, held_out, load, prepare, prepare_encoder, write_pieces
from peers.prime_figure import draw

Facts = dict[str, Any]
HERE = Path(__file__).parent
DATA = tuple(LENGTH)
EPOCHS = {"yso-titles": 6, "eurlex57k": 12}
BATCH = {"yso-titles": 1600, "eurlex57k": 512}
LR = 5e-4  # better than 2e-4 for PRIME-lite and for the NGAME-like model, on held-out training rows
KS = (1, 3, 5)
# of trees on words and PRIME's vectors, from 4,000 held-out training rows of each data set (`trials` in the results):
# how much the vectors count, and which weights are dropped (the default of 0.1 drops most of those of dense features)
WEIGHT = {"yso-titles": 2.0, "eurlex57k": 0.5}
THRESHOLD = 0.0
# trees whose scores are also added to PRIME's, as `Prime(tree=True)` and `fit_tree(weight=...)` do
WITH_TREE = {name: f"PRIME with a {name}" for name in ("tree, words", "tree (overlap 2), words and PRIME")}
LITE = {"preset": "prime-lite"}
MAIN: dict[str, Facts] = {
    "frozen encoder": {"preset": "ngame", "lr": 1e-12, "epochs": 1},
    # rare labels are shown more often to all alike: on held-out rows the NGAME-like model is better for it
    "NGAME-like": {"preset": "ngame", "sampling": "propensity"},
    "DEXA-like": {"preset": "dexa", "sampling": "propensity"},
    "PRIME-lite": LITE,
    "PRIME": {"preset": "prime"},
}
ABLATION: dict[str, Facts] = {
    "PRIME-lite": LITE,
    "query to prototype only, fixed margin": {**LITE, "loss_weights": (0, 0, 0), "margin": 0.3},
    "+ query to label": {**LITE, "loss_weights": (1, 0, 0), "margin": 0.3},
    "+ dynamic margin": {**LITE, "loss_weights": (1, 0, 0)},
    "+ label to query": {**LITE, "loss_weights": (1, 1, 0)},
    "without centroids": {**LITE, "centroids": False},
    "without free vectors": {**LITE, "n_free": 0},
    "without warm start": {**LITE, "warm_start": False},
}
FREE = {f"{n} free vectors": {**LITE, "n_free": n, "n_private": 0} for n in (256, 2048, 16_384)}
MODES = ("neighbours", "text", "none")


def main() -> None:
    args = options()
    STAGES[args.stage](args)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=tuple(STAGES))
    data = os.environ.get("LONGTAIL_DATA")
    parser.add_argument("--data", type=Path, default=data and Path(data), help="default LONGTAIL_DATA")
    parser.add_argument("--work", type=Path, default=Path("prime-carry"), help="folder of prepared data and encoder")
    parser.add_argument("--only", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--parts", nargs="+", choices=("main", "ablation", "free", "zero-shot"), default=["main"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--epochs", type=int, help="instead of those of the data set")
    parser.add_argument("--lr", type=float, default=LR)
    parser.add_argument("--rows", type=int, help="train on so many rows, drawn at random")
    parser.add_argument("--held-out", type=int, default=0, help="score so many training rows in place of the test rows")
    parser.add_argument("--weight", type=float, help="in `trees`: of the vectors beside the words")
    parser.add_argument("--share", type=float, default=6.0, help="of PRIME's scores, added to those of a tree")
    parser.add_argument("--models", nargs="+", choices=tuple(MAIN), help='only these of the part "main"')
    parser.add_argument("--ours", action="store_true", help="in `speed`: do not time sentence-transformers again")
    parser.add_argument("--minutes", type=float, help="begin nothing new after so long")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--keep", type=Path, default=Path("prime-kept"), help="folder for the weights of encoders")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "prime.json")
    parser.add_argument("--figure", type=Path, default=HERE.parent / "docs" / "prime.svg", help="in `plot`")
    return parser.parse_args()


def run_prepare(args: argparse.Namespace) -> None:
    files = [prepare_encoder(args.work), *(prepare(name, args.data, args.work) for name in args.only)]
    for file in files:
        size = sum(f.stat().st_size for f in file.rglob("*")) if file.is_dir() else file.stat().st_size
        print(f"{file}: {size / 2**20:.1f} MiB")


def run_train(args: argparse.Namespace) -> None:
    facts = opened(args)
    known = {key(run) for run in facts["runs"]}
    loaded: dict[str, Texts] = {}
    for cell in cells(args):
        if key(cell) in known or (cell["part"] == "zero-shot" and any(k[:3] == key(cell)[:3] for k in known)):
            continue
        if args.minutes and time.monotonic() - STARTED > 60 * args.minutes:
            print("time is up; --resume goes on from here")
            break
        if cell["data"] not in loaded:
            texts = load(cell["data"], args.work)
            loaded = {cell["data"]: some(held_out(texts, args.held_out), args.rows)}
        for run in measured(cell, loaded[cell["data"]], args):
            facts["runs"].append(run)
            print(line(run), flush=True)
            write(facts, args.output)
    show(facts)


def cells(args: argparse.Namespace) -> Iterator[Facts]:
    for data in args.only:
        for seed in args.seeds:
            if "main" in args.parts:
                yield from ({"part": "main", "data": data, "seed": seed, "model": m} for m in args.models or MAIN)
            if "zero-shot" in args.parts:
                yield {"part": "zero-shot", "data": data, "seed": seed, "model": "PRIME-lite"}
            for part, models in (("ablation", ABLATION), ("free", FREE)):
                if part in args.parts:
                    yield from ({"part": part, "data": data, "seed": seed, "model": model} for model in models)


def measured(cell: Facts, texts: Texts, args: argparse.Namespace) -> Iterator[Facts]:
    if cell["part"] == "zero-shot":
        yield from unseen(cell, texts, args)
        return
    params = {**MAIN, **ABLATION, **FREE}[cell["model"]]
    model, facts = fitted(params, cell, texts, args)
    yield {**cell, **scores(model, texts), **facts}
    if cell["model"] == "PRIME":
        if cell["seed"] == args.seeds[0]:
            part = model.network_.encoder.to_part()
            kept = {"files": write_pieces(part.arrays, args.keep, f"encoder-{cell['data']}"), "params": part.params}
            (args.keep / f"encoder-{cell['data']}.json").write_text(json.dumps(kept))
            np.save(args.keep / f"prototypes-{cell['data']}.npy", model.output_weights()[0].astype(np.float16))
        started = time.perf_counter()
        model.fit_classifier(texts.texts, texts.Y, fusion=0.5)
        yield {**cell, "model": "PRIME(W)", **scores(model, texts), "train_s": time.perf_counter() - started}
        for precision in ("float16", "int8"):
            yield {**cell, "model": f"PRIME(W), {precision}", **scores(shrunk(model, precision), texts)}


def fitted(params: Facts, cell: Facts, texts: Texts, args: argparse.Namespace) -> tuple[Prime, Facts]:
    """Train one model and return it with what it took."""
    import torch

    name = cell["data"]
    epochs = args.epochs or EPOCHS[name]
    settings = {"epochs": epochs, "lr": args.lr, "batch_size": BATCH[name], "max_length": LENGTH[name], **params}
    model = Prime(str(args.work / "encoder"), **settings, random_state=cell["seed"])
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    model.fit(texts.texts, texts.Y, texts.label_texts)
    facts: Facts = {
        "rows": len(texts.texts),
        "epochs": settings["epochs"],
        "train_s": time.perf_counter() - started,
        "seconds": {name: round(value, 3) for name, value in model.seconds_.items()},
        "losses": [round(record["loss"], 4) for record in model.history_],
    }
    if torch.cuda.is_available():
        facts["gpu_gib"] = torch.cuda.max_memory_allocated() / 2**30
    return model, facts


def scores(model: Any, texts: Texts) -> Facts:
    return ranked(model.predict_topk(texts.test_texts, k=100), texts)


def ranked(top: lt.TopK, texts: Texts) -> Facts:
    """Return P@k, PSP@k and R@100 in percent."""
    counts = np.zeros(texts.Y_test.shape[1], dtype=np.int64)
    counts[: texts.Y.shape[1]] = np.bincount(texts.Y.indices, minlength=texts.Y.shape[1])
    weights = propensities(counts, texts.Y.shape[0])
    found = {f"p@{k}": 100 * precision_at_k(texts.Y_test, top, k) for k in KS}
    found |= {f"psp@{k}": 100 * psp_at_k(texts.Y_test, top, weights, k) for k in KS}
    return {name: float(value) for name, value in found.items()} | {
        "r@100": 100 * float(recall_at_k(texts.Y_test, top, 100))
    }


def shrunk(model: Prime, precision: str) -> Prime:
    """Return a copy whose label vectors take less room."""
    from longtail.prime.search import quantize

    copy = Prime.from_part(model.to_part()).set_params(precision=precision)
    copy.stored_ = quantize(model.output_weights()[0], precision)
    return copy


def unseen(cell: Facts, texts: Texts, args: argparse.Namespace) -> Iterator[Facts]:
    """Hold a tenth of the labels out of training, add them by text, and look for them among all labels."""
    rng = np.random.default_rng(cell["seed"])
    n = texts.Y.shape[1]
    held = np.sort(rng.choice(n, size=n // 10, replace=False))
    kept = np.setdiff1d(np.arange(n), held)
    Y = sp.csr_array(texts.Y[:, kept])
    rows = np.flatnonzero(np.diff(Y.indptr))
    names = [texts.label_texts[i] for i in kept], [texts.label_texts[i] for i in held]
    seen = Texts([texts.texts[i] for i in rows], sp.csr_array(Y[rows]), [], texts.Y_test, names[0])
    truth = sp.csr_array(texts.Y_test[:, held])
    asked = np.flatnonzero(np.diff(truth.indptr))
    questions = [texts.test_texts[i] for i in asked]
    for name, params in (("frozen encoder", MAIN["frozen encoder"]), ("PRIME-lite", LITE)):
        model, facts = fitted(params, cell, seen, args)
        rows_asked = model.encode(questions)
        state = model.stored_, model.label_texts_, model.label_counts_, model.n_labels_
        for mode in MODES if name == "PRIME-lite" else MODES[-1:]:
            model.stored_, model.label_texts_, model.label_counts_, model.n_labels_ = state
            model.add_labels(names[1], mode)
            new = np.arange(kept.size, n)
            among_all = model.predict_topk(rows_asked, k=10)
            among_new = model.predict_topk(rows_asked, k=10, allow=new)
            found = {
                f"r@10 among {where}": 100 * float(recall_at_k(truth[asked], renumbered(top, kept.size), 10))
                for where, top in (("all", among_all), ("new", among_new))
            }
            yield {**cell, "model": f"{name}, {mode}", "asked": int(asked.size), **found, **facts}


def renumbered(top: lt.TopK, first: int) -> lt.TopK:
    """Return the new labels among predictions, numbered from 0; the others become missing places."""
    new = top.ids >= first
    return lt.TopK(np.where(new, top.ids - first, -1), np.where(new, top.scores, -np.inf))


def run_speed(args: argparse.Namespace) -> None:
    """Compare training steps with those of sentence-transformers, same encoder, batch and texts."""
    from peers.prime_speed import speeds

    facts = opened(args)
    for name in args.only:
        texts = some(load(name, args.work), args.rows)
        known = facts.setdefault("speed", {}).get(name, {}) if args.ours else {}
        for found in speeds(texts, args.work / "encoder", BATCH[name], LENGTH[name], known):
            facts["speed"][name] = found
            write(facts, args.output)
        print(name, json.dumps(facts["speed"][name], indent=1), flush=True)


def run_trees(args: argparse.Namespace) -> None:
    """Train trees on words (of the whole texts, where --data is given), and on words and PRIME's vectors."""
    from longtail.text import hstack_rows, unit_rows
    from peers.prime_trees import encoded, whole_texts, with_scores

    facts = opened(args)
    known = {key(run) for run in facts["runs"]}
    for name in args.only:
        texts = some(held_out(load(name, args.work), args.held_out), args.rows)
        words = lt.TfidfFeatures(min_df=2)
        whole, whole_test = whole_texts(name, texts, None if args.rows else args.data, args.held_out)
        X, Xt = words.fit_transform(whole), words.transform(whole_test)
        D, Dt = (unit_rows(part) for part in encoded(name, texts, args.keep))
        weight = WEIGHT[name] if args.weight is None else args.weight
        joined = hstack_rows(X, D, weight=weight), hstack_rows(Xt, Dt, weight=weight)
        trees: list[tuple[str, tuple[Any, Any], Facts]] = [
            ("tree, words", (X, Xt), {}),
            ("tree, words and PRIME", joined, {"threshold": THRESHOLD}),
            ("tree (overlap 2), words and PRIME", joined, {"threshold": THRESHOLD, "overlap": 2}),
        ]
        prototypes = args.keep / f"prototypes-{name}.npy"
        for model, (rows, test), params in trees:
            for seed in args.seeds:
                cell = {"part": "main", "data": name, "seed": seed, "model": model}
                if key(cell) in known:
                    continue
                started = time.perf_counter()
                tree = lt.LabelTreeClassifier(**params, random_state=seed).fit(rows, texts.Y)
                trained = time.perf_counter() - started
                top = tree.predict_topk(test, k=100)
                runs = [{**cell, **ranked(top, texts), "train_s": trained}]
                if prototypes.exists() and model in WITH_TREE:
                    both = with_scores(top, Dt, np.load(prototypes).astype(np.float32), args.share)
                    runs.append({**cell, "model": WITH_TREE[model], **ranked(both, texts)})
                for run in runs:
                    facts["runs"].append(run)
                    print(line(run), flush=True)
                write(facts, args.output)
    show(facts)


def run_serve(args: argparse.Namespace) -> None:
    """Time one text at a time, and batches, on a CPU: the trained encoder, and the search over all labels."""
    from importlib.util import find_spec

    from longtail.prime.hybrid import TreeStage
    from peers.prime_trees import kept_encoder

    facts = opened(args)
    name = "yso-titles"
    texts = some(load(name, args.work), args.rows)
    encoder = kept_encoder(name, args.keep, "cpu")
    params = {**MAIN["frozen encoder"], "device": "cpu", "max_length": LENGTH[name]}
    model = Prime(str(args.work / "encoder"), **params)
    few = slice(0, 200)
    model.fit(texts.texts[few], texts.Y[few], texts.label_texts)
    model.network_.encoder = encoder
    vectors = encoder.encode(texts.label_texts)  # as far apart as label vectors are: that decides what HNSW misses
    model.stored_ = {"vectors": vectors / np.linalg.norm(vectors, axis=1, keepdims=True)}
    facts["serve"] = {"cores": len(os.sched_getaffinity(0)), "labels": len(vectors)}
    rows = model.encode(texts.test_texts[:2000])
    exact = model.set_params(index="exact").predict_topk(rows, k=10).ids
    for index in ("exact", "hnsw") if find_spec("faiss") else ("exact",):
        model.set_params(index=index)
        model.__dict__.pop("_search", None)
        found = timed_serving(lambda part: model.predict_topk(part, k=10), texts.test_texts)
        ids = model.predict_topk(rows, k=10).ids
        found["top_10_found"] = float(np.mean([np.isin(a, b).mean() for a, b in zip(exact, ids, strict=True)]))
        started = time.perf_counter()
        model.predict_topk(rows, k=10)
        found["search_only_rows_per_s"] = len(rows) / (time.perf_counter() - started)
        facts["serve"][index] = found
        print(index, json.dumps(found), flush=True)
    words = lt.TfidfFeatures()
    tree = lt.LabelTreeClassifier(random_state=0).fit(words.fit_transform(texts.texts), texts.Y)
    model.set_params(index="exact").tree_ = TreeStage(words, tree, 0.0, args.share)
    model.__dict__.pop("_search", None)
    facts["serve"]["exact, with a tree"] = timed_serving(lambda part: model.predict_topk(part, k=10), texts.test_texts)
    print("with a tree", json.dumps(facts["serve"]["exact, with a tree"]), flush=True)
    write(facts, args.output)


def timed_serving(predict: Callable[[list[str]], Any], texts: list[str]) -> Facts:
    predict(texts[:8])
    times = []
    for text in texts[:300]:
        started = time.perf_counter()
        predict([text])
        times.append(1e3 * (time.perf_counter() - started))
    started = time.perf_counter()
    predict(texts[:2000])
    rate = min(2000, len(texts)) / (time.perf_counter() - started)
    return {"p50_ms": statistics.median(times), "p99_ms": float(np.percentile(times, 99)), "rows_per_s": rate}


def run_plot(args: argparse.Namespace) -> None:
    draw(json.loads(args.output.read_text()), DATA, tuple(ABLATION), args.figure)


def some(texts: Texts, rows: int | None) -> Texts:
    """Return some of the training rows and the labels they have; the test rows stay, other labels come last."""
    if rows is None or rows >= len(texts.texts):
        return texts
    chosen = np.sort(np.random.default_rng(0).permutation(len(texts.texts))[:rows])
    Y = sp.csr_array(texts.Y[chosen])
    used = np.unique(Y.indices)
    rest = np.setdiff1d(np.arange(texts.Y_test.shape[1]), used)
    names = [texts.label_texts[i] for i in used]
    Y_test = sp.csr_array(texts.Y_test[:, np.concatenate([used, rest])])
    return Texts([texts.texts[i] for i in chosen], sp.csr_array(Y[:, used]), texts.test_texts, Y_test, names)


def device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def opened(args: argparse.Namespace) -> Facts:
    """Return the facts so far: those of the file, with --resume or in a stage that adds to it."""
    facts: Facts = {"command": [], "machine": "", "runs": []}
    if args.output.exists() and (args.resume or args.stage != "train"):
        facts = json.loads(args.output.read_text())
    words = f"python benchmarks/prime.py {args.stage} --only {' '.join(args.only)}"
    words += f" --parts {' '.join(args.parts)} --seeds {' '.join(map(str, args.seeds))}" * (args.stage == "train")
    words += f" --held-out {args.held_out}" * bool(args.held_out)
    facts["command"].append(words + (f" --rows {args.rows}" if args.rows else ""))
    if device() == "cuda":
        import torch

        versions = f"torch {torch.__version__}, Python {platform.python_version()}"
        facts["machine"] = f"{torch.cuda.get_device_name()}, {versions}"
    return facts


def key(run: Facts) -> tuple[Any, ...]:
    return tuple(run[name] for name in ("part", "data", "seed", "model"))


def line(run: Facts) -> str:
    numbers = {n: round(v, 2) for n, v in run.items() if isinstance(v, float)}
    return f"{run['data']}, seed {run['seed']}, {run['model']}: {json.dumps(numbers)}"


def write(facts: Facts, output: Path) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    part = output.with_suffix(".part")
    part.write_text(json.dumps(facts, indent=1) + "\n")
    part.replace(output)


def show(facts: Facts) -> None:
    """Print a table per data set: means over seeds."""
    columns = [f"p@{k}" for k in KS] + [f"psp@{k}" for k in KS] + ["r@100"]
    groups: dict[tuple[str, str, str], list[Facts]] = {}
    for run in facts["runs"]:
        if "p@1" in run:
            groups.setdefault((run["data"], run["part"], run["model"]), []).append(run)
    title = ""
    for (data, part, model), runs in sorted(groups.items(), key=lambda item: item[0][:2]):
        if title != f"{data}, {part}":
            title = f"{data}, {part}"
            print(f"\n{title:<44}" + "".join(f"{name:>8}" for name in columns) + "   seeds")
        means = [statistics.mean(run[name] for run in runs) for name in columns]
        print(f"  {model:<42}" + "".join(f"{value:8.2f}" for value in means) + f"{len(runs):8}")


def run_new_labels(args: argparse.Namespace) -> None:
    """Add held-out labels by their texts in every way, and see what becomes of all labels; on a CPU in minutes."""
    from peers.prime_new_labels import measure_new_labels

    facts = opened(args)
    name = "yso-titles"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        found = measure_new_labels(load(name, args.work), args.work / "encoder", LENGTH[name], folder)
    facts["new_labels"] = {**found, "data": f"{name}, {found['data']}"}
    print(json.dumps(facts["new_labels"], indent=1))
    write(facts, args.output)


STAGES: dict[str, Callable[[argparse.Namespace], None]] = {
    "prepare": run_prepare,
    "train": run_train,
    "speed": run_speed,
    "trees": run_trees,
    "serve": run_serve,
    "new-labels": run_new_labels,
    "plot": run_plot,
}
STARTED = time.monotonic()

if __name__ == "__main__":
    main()
