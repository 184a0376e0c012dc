"""Compare TfidfFeatures with scikit-learn's TfidfVectorizer: that the matrices are the same, and how long each takes.

    python benchmarks/text/vectoriser.py --data FOLDER

FOLDER holds `eurlex57k` (long texts) and `yso-titles` (short ones) with `train.jsonl.xz` and `test.jsonl.xz`. Both fit
on training texts and then transform the test texts, with the same settings (sublinear tf, scikit-learn's defaults
otherwise); longtail with one thread and with all cores, scikit-learn as it is (one thread). Repeats take turns and the
figure is the median. The latency of one text is the median over test texts, also in turns. Compiling the kernels is
left out: it happens once per installation.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.scores import rounded
from benchmarks.harness.terminal import show_table
from benchmarks.harness.timing import medians
from longtail.data import read
from longtail.text import TfidfFeatures

# name, folder, training texts used (None: all), n-grams
CASES: list[tuple[str, str, int | None, tuple[int, int]]] = [
    ("eurlex57k, words", "eurlex57k", None, (1, 1)),
    ("eurlex57k, words and pairs", "eurlex57k", 15_000, (1, 2)),
    ("yso-titles, words", "yso-titles", None, (1, 1)),
    ("yso-titles, words and pairs", "yso-titles", None, (1, 2)),
]
LATENCY_TEXTS = 500


def read_texts(folder: Path, n_train: int | None) -> tuple[list[str], list[str]]:
    """Return training texts, so many of them drawn at random, and test texts."""
    train, test = (list(read(folder / f"{part}.jsonl.xz").texts or ()) for part in ("train", "test"))
    if n_train is not None:
        train = [train[i] for i in np.random.default_rng(0).choice(len(train), n_train, replace=False)]
    return train, test


def latencies(tasks: dict[str, Callable[[list[str]], Any]], texts: list[str]) -> dict[str, float]:
    """Return the median microseconds for one text; the tasks take turns."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for text in texts:
        for name, task in tasks.items():
            start = time.perf_counter()
            task([text])
            times[name].append(time.perf_counter() - start)
    return {name: round(median(seconds) * 1e6, 1) for name, seconds in times.items()}


def bench(train: list[str], test: list[str], ngrams: tuple[int, int], repeats: int) -> Facts:
    """Time fitting, transforming and single texts; refuse to go on if the vocabularies differ."""
    same: dict[str, Any] = {"ngram_weight": 1, "ngram_min_df": 1}  # pairs count as in scikit-learn
    models: dict[str, Any] = {
        "longtail": TfidfFeatures(ngrams, **same),
        "longtail, 1 thread": TfidfFeatures(ngrams, n_jobs=1, **same),
        "scikit-learn": TfidfVectorizer(ngram_range=ngrams, sublinear_tf=True),
    }
    TfidfFeatures(ngrams).fit(train[:100]).transform(test[:100])  # compile before timing
    fit = medians({name: partial(m.fit_transform, train) for name, m in models.items()}, repeats)
    transform = medians({name: partial(m.transform, test) for name, m in models.items()}, repeats)
    ours, theirs = models["longtail"], models["scikit-learn"]
    if ours.vocabulary_ != theirs.get_feature_names_out().tolist():
        raise SystemExit("longtail and scikit-learn found different terms")
    difference = max(float(abs(ours.transform(texts) - theirs.transform(texts)).max()) for texts in (train, test))
    single = {name: model.transform for name, model in models.items() if name != "longtail, 1 thread"}
    one_text = latencies(single, test[:LATENCY_TEXTS])
    return {
        "train_texts": len(train),
        "test_texts": len(test),
        "train_megabytes": round(sum(map(len, train)) / 1e6, 1),
        "terms": len(ours.vocabulary_),
        "largest_difference": difference,
        "fit_transform_s": rounded(fit),
        "transform_s": rounded(transform),
        "one_text_us": one_text,
        "ratios": {
            "fit_transform": round(fit["scikit-learn"] / fit["longtail"], 1),
            "fit_transform_1_thread": round(fit["scikit-learn"] / fit["longtail, 1 thread"], 1),
            "transform": round(transform["scikit-learn"] / transform["longtail"], 1),
            "transform_1_thread": round(transform["scikit-learn"] / transform["longtail, 1 thread"], 1),
            "one_text": round(one_text["scikit-learn"] / one_text["longtail"], 1),
        },
    }


def show(name: str, case: Facts) -> None:
    """Print the times of one case, each with how many times faster it is than scikit-learn."""
    rows = []
    for model in case["fit_transform_s"]:
        row = [model]
        for times in (case["fit_transform_s"], case["transform_s"]):
            row += [f"{times[model]:.3f}", f"{times['scikit-learn'] / times[model]:.1f}x"]
        rows.append([*row, f"{case['one_text_us'].get(model, float('nan')):.0f}"])
    title = f"{name}: {case['terms']:,} terms, largest difference {case['largest_difference']:.1e}"
    show_table(title, ["", "fit_transform s", "ratio", "transform s", "ratio", "one text µs"], rows)


def main() -> None:
    parser = make_parser(__doc__, "vectoriser.json", data="required", resume=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=[case[0] for case in CASES], default=[case[0] for case in CASES])
    args = parser.parse_args()
    about = "eurlex57k (EU laws) and yso-titles (library titles): training texts to fit, test texts to transform"
    facts = start_facts(args, {"data": about, "results": {}})
    for name, folder, n_train, ngrams in CASES:
        if name in args.only and name not in facts["results"]:
            texts = read_texts(args.data / folder, n_train)
            facts["results"][name] = bench(*texts, ngrams, args.repeats)
            write_results(facts, args.output)
            show(name, facts["results"][name])


if __name__ == "__main__":
    main()
