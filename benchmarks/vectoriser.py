"""TfidfFeatures beside scikit-learn's TfidfVectorizer: the same matrices, and how long each takes.

    python benchmarks/vectoriser.py --data FOLDER

FOLDER holds `eurlex57k` (long texts) and `yso-titles` (short ones) with `train.jsonl.xz` and `test.jsonl.xz`. Both fit
on training texts and then transform the test texts, with the same settings (sublinear tf, scikit-learn's defaults
otherwise); longtail with one thread and with all cores, scikit-learn as it is (one thread). Repeats take turns and the
figure is the median. The latency of one text is the median over test texts, also in turns. Compiling the kernels is
left out: it happens once per installation.
"""

from __future__ import annotations

import argparse
import gc
import json
import lzma
import os
import platform
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from longtail.text import TfidfFeatures

# name, folder, training texts used (None: all), n-grams
CASES: list[tuple[str, str, int | None, tuple[int, int]]] = [
    ("eurlex57k, words", "eurlex57k", None, (1, 1)),
    ("eurlex57k, words and pairs", "eurlex57k", 15_000, (1, 2)),
    ("yso-titles, words", "yso-titles", None, (1, 1)),
    ("yso-titles, words and pairs", "yso-titles", None, (1, 2)),
]
LATENCY_TEXTS = 500


def read_texts(path: Path) -> list[str]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in file]


def medians(tasks: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the median seconds of each task; the tasks take turns."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeats):
        for name, task in tasks.items():
            gc.collect()
            start = time.perf_counter()
            task()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def latencies(tasks: dict[str, Callable[[list[str]], Any]], texts: list[str]) -> dict[str, float]:
    """Return the median microseconds for one text; the tasks take turns."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for text in texts:
        for name, task in tasks.items():
            start = time.perf_counter()
            task([text])
            times[name].append(time.perf_counter() - start)
    return {name: round(statistics.median(found) * 1e6, 1) for name, found in times.items()}


def bench(train: list[str], test: list[str], ngrams: tuple[int, int], repeats: int) -> dict[str, Any]:
    models = {
        "longtail": TfidfFeatures(ngrams),
        "longtail, 1 thread": TfidfFeatures(ngrams, n_jobs=1),
        "scikit-learn": TfidfVectorizer(ngram_range=ngrams, sublinear_tf=True),
    }
    TfidfFeatures(ngrams).fit(train[:100]).transform(test[:100])  # compile before timing
    fit = medians({name: lambda m=m: m.fit_transform(train) for name, m in models.items()}, repeats)  # type: ignore[misc]
    transform = medians({name: lambda m=m: m.transform(test) for name, m in models.items()}, repeats)  # type: ignore[misc]
    ours, theirs = models["longtail"], models["scikit-learn"]
    if ours.vocabulary_ != theirs.get_feature_names_out().tolist():
        raise SystemExit("longtail and scikit-learn found different terms")
    difference = max(float(abs(ours.transform(texts) - theirs.transform(texts)).max()) for texts in (train, test))
    single = {name: model.transform for name, model in models.items() if name != "longtail, 1 thread"}
    return {
        "train_texts": len(train),
        "test_texts": len(test),
        "train_megabytes": round(sum(map(len, train)) / 1e6, 1),
        "terms": len(ours.vocabulary_),
        "largest_difference": difference,
        "fit_transform_s": {k: round(v, 4) for k, v in fit.items()},
        "transform_s": {k: round(v, 4) for k, v in transform.items()},
        "one_text_us": latencies(single, test[:LATENCY_TEXTS]),
        "ratios": {
            "fit_transform": round(fit["scikit-learn"] / fit["longtail"], 1),
            "fit_transform_1_thread": round(fit["scikit-learn"] / fit["longtail, 1 thread"], 1),
            "transform": round(transform["scikit-learn"] / transform["longtail"], 1),
            "transform_1_thread": round(transform["scikit-learn"] / transform["longtail, 1 thread"], 1),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("LONGTAIL_DATA"), help="folder with the data (LONGTAIL_DATA)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", default="benchmarks/results/vectoriser.json")
    options = parser.parse_args()
    if not options.data:
        parser.error("give --data FOLDER or set LONGTAIL_DATA")
    results: dict[str, Any] = {}
    print(f"{'':<30}{'fit_transform s':>20}{'ratio':>8}{'transform s':>18}{'ratio':>8}{'one text µs':>16}")
    for name, folder, n_train, ngrams in CASES:
        train, test = (read_texts(Path(options.data) / folder / f"{part}.jsonl.xz") for part in ("train", "test"))
        if n_train is not None:
            picked = np.random.default_rng(0).choice(len(train), n_train, replace=False)
            train = [train[i] for i in picked]
        found = bench(train, test, ngrams, options.repeats)
        found["ratios"]["one_text"] = round(found["one_text_us"]["scikit-learn"] / found["one_text_us"]["longtail"], 1)
        results[name] = found
        for model in found["fit_transform_s"]:
            fit, transform = found["fit_transform_s"][model], found["transform_s"][model]
            faster = found["fit_transform_s"]["scikit-learn"] / fit, found["transform_s"]["scikit-learn"] / transform
            single = f"{found['one_text_us'][model]:16.0f}" if model in found["one_text_us"] else ""
            print(f"{name + ': ' if model == 'longtail' else '':<30}", end="")
            print(f"{fit:20.3f}{faster[0]:7.1f}x{transform:18.3f}{faster[1]:7.1f}x{single}  {model}")
        print(f"{'':<30}{found['terms']:,} terms, largest difference {found['largest_difference']:.1e}", flush=True)
    facts = {
        "command": f"python benchmarks/vectoriser.py --data FOLDER --repeats {options.repeats}",
        "data": "eurlex57k (EU laws) and yso-titles (library titles): training texts to fit, test texts to transform",
        "machine": {"cores": os.cpu_count(), "system": platform.system(), "processor": platform.machine()},
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("longtail", "numpy", "scipy", "scikit-learn", "numba")},
        },
        "results": results,
    }
    output = Path(options.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(facts, indent=1) + "\n")
    print(f"\nwritten to {output}")


if __name__ == "__main__":
    main()
