"""Measure what stems, stop words, pairs of words and runs of letters do to accuracy, beside words alone.

    python benchmarks/text/analyzers.py --data FOLDER --translations FOLDER

FOLDER of --data holds `yso-titles` and `pubmed-mesh`; the bundled debtags come along. All are English.
--translations holds Debian's translated package descriptions, `Translation-de.bz2` and `Translation-it.bz2` (from
`dists/bookworm/main/i18n` of any Debian mirror): debtags again, for the packages that have one, in German and Italian.

Each case trains the default label tree on some thousand training rows, drawn anew for every seed. The part "weights"
asks rows held out of the training rows how much pairs of words should count; the part "analyzers" asks the test rows.
Both report means over seeds.
"""

from __future__ import annotations

import bz2
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.data_sets import read_parts
from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.scores import mean_of, precisions, spread
from benchmarks.harness.terminal import show_table
from longtail.data import Dataset, load_bundled
from longtail.text import TfidfFeatures
from longtail.tree import LabelTreeClassifier

TRANSLATED = {"debtags-de": "german", "debtags-it": "italian"}
N_ROWS = {"debtags": 5_000, "debtags-de": 5_000, "debtags-it": 5_000, "yso-titles": 10_000, "pubmed-mesh": 2_500}
N_TEST = 2_000
FULL: dict[str, Any] = {"ngrams": (1, 2), "ngram_weight": 1, "ngram_min_df": 1}  # pairs as scikit-learn weighs them
WEIGHTS: dict[str, dict[str, Any]] = {
    "words": {},
    "pairs, full weight": FULL,
    "pairs in 2 rows, less weight": {"ngrams": (1, 2), "ngram_weight": 0.35},
    "pairs in 2 rows, full weight": {"ngrams": (1, 2), "ngram_weight": 1},
}
WEIGHED = ("debtags", "yso-titles", "pubmed-mesh")


def analyzers(language: str) -> dict[str, dict[str, Any]]:
    """Return the settings that are compared, by name."""
    return {
        "words": {},
        "stop words": {"stop_words": language},
        "stems": {"analyzer": f"snowball:{language}"},
        "pairs": {"ngrams": (1, 2)},
        "stems, pairs": {"analyzer": f"snowball:{language}", "ngrams": (1, 2)},
        "letters 3-5": {"analyzer": "char_wb", "ngrams": (3, 5), "min_df": 3},
    }


def translated(folder: Path, name: str, data: Dataset) -> Dataset:
    """Return the rows of debtags whose packages have a translated description, with that as their text."""
    code, texts = name.removeprefix("debtags-"), {}
    with bz2.open(folder / f"Translation-{code}.bz2", "rt", encoding="utf-8") as lines:
        for package, text in _paragraphs(lines, f"Description-{code}:"):
            texts[package] = text
    rows = [i for i, package in enumerate(data.ids or ()) if package in texts]
    some = data.take(rows)
    return replace(some, texts=tuple(texts[package] for package in some.ids or ()))


def _paragraphs(lines: Iterator[str], key: str) -> Iterator[tuple[str, str]]:
    """Yield package and description of each paragraph of a file of translations."""
    package, inside = "", False
    text: list[str] = []
    for line in lines:
        if line.startswith("Package:"):
            package, text = line.split(":", 1)[1].strip(), []
        elif line.startswith(key):
            text, inside = [line[len(key) :].strip()], True
        elif inside and line.startswith(" "):
            text.append("" if line.strip() == "." else line.strip())
        else:
            if inside and package:
                yield package, "\n".join(text)
            inside = False


def read_case(name: str, data: Path, translations: Path) -> tuple[Dataset, Dataset]:
    """Return the training and the test rows of a case."""
    if not name.startswith("debtags"):
        return read_parts(data / name)
    parts = tuple(load_bundled("debtags", split) for split in ("train", "test"))
    if name in TRANSLATED:
        parts = tuple(translated(translations, name, part) for part in parts)
    return parts[0], parts[1]


def some_rows(data: Dataset, n_rows: int, seed: int) -> Dataset:
    """Return some of the rows, drawn at random."""
    return data.take(np.sort(np.random.default_rng(seed).permutation(data.n_rows)[:n_rows]))


def measure(train: Dataset, test: Dataset, settings: dict[str, Any], seed: int) -> Facts:
    """Train on some rows and return precision on others, with times and the number of columns."""
    features = TfidfFeatures(**settings)
    started = time.perf_counter()
    X = features.fit_transform(list(train.texts or ()))
    words = time.perf_counter()
    model = LabelTreeClassifier(random_state=seed).fit(X, train.Y)
    trained = time.perf_counter()
    rows = features.transform(list(test.texts or ()))
    read = time.perf_counter()
    top = model.predict_topk(rows, k=5)
    return {
        "seed": seed,
        **{name: round(value, 3) for name, value in precisions(test.Y, top).items()},
        "columns": features.n_features_,
        "nonzeros_per_row": round(X.nnz / X.shape[0], 1),
        "features_s": round(words - started, 2),
        "train_s": round(trained - words, 2),
        "transform_us_per_row": round(1e6 * (read - trained) / max(test.n_rows, 1), 1),
    }


def summary(runs: list[Facts], words: list[Facts]) -> Facts:
    """Return means over seeds, and what they gain over words alone on the same rows."""
    names = ("p@1", "p@3", "p@5")
    out: Facts = {name: round(mean_of(runs, name) or 0.0, 2) for name in (*names, *list(runs[0])[4:])}
    for name in names:
        gains = [run[name] - base[name] for run, base in zip(runs, words, strict=True)]
        out[f"gain_{name}"] = round(sum(gains) / len(gains), 2)
        out[f"gain_{name}_sd"] = round(spread(gains) or 0.0, 2)
    return out


def compare(name: str, part: str, settings: dict[str, dict[str, Any]], args: Any) -> Facts:
    """Return the measurements of one case with all settings."""
    train, test = read_case(name, args.data, args.translations)
    runs: dict[str, list[Facts]] = {kind: [] for kind in settings}
    for seed in args.seeds:
        learned, asked = some_rows(train, N_ROWS[name], seed), some_rows(test, N_TEST, seed)
        if part == "weights":
            n = learned.n_rows
            order = np.random.default_rng(seed).permutation(n)
            learned, asked = (learned.take(np.sort(some)) for some in (order[: n * 4 // 5], order[n * 4 // 5 :]))
        for kind, chosen in settings.items():
            runs[kind].append(measure(learned, asked, chosen, seed))
    out: Facts = {
        "train_rows": learned.n_rows,
        "asked_rows": asked.n_rows,
        "labels": int((np.bincount(learned.Y.indices, minlength=1) > 0).sum()),
        "mean": {kind: summary(found, runs["words"]) for kind, found in runs.items()},
        "runs": runs,
    }
    rows = [
        [kind, *(f"{m[k]:.2f}" for k in ("p@1", "p@3", "p@5", "gain_p@1", "gain_p@5")), m["columns"]]
        for kind, m in out["mean"].items()
    ]
    show_table(f"{part}: {name}", ["", "P@1", "P@3", "P@5", "gain P@1", "gain P@5", "columns"], rows)
    return out


def main() -> None:
    parser = make_parser(__doc__, "analyzers.json", data="required", seeds=(0, 1, 2), resume=True)
    parser.add_argument("--translations", type=Path, required=True, metavar="FOLDER", help="of Translation-*.bz2")
    parser.add_argument("--only", nargs="+", choices=sorted(N_ROWS), default=list(N_ROWS), help="cases")
    args = parser.parse_args()
    about = "some thousand rows of bundled debtags (English; German and Italian by Debian's translators), yso-titles "
    about += "and pubmed-mesh (English)"
    facts = start_facts(args, {"data": about, "weights": {}, "analyzers": {}}, "snowballstemmer")
    for name in args.only:
        if name in WEIGHED and name not in facts["weights"]:
            facts["weights"][name] = compare(name, "weights", WEIGHTS, args)
            write_results(facts, args.output)
    for name in args.only:
        if name not in facts["analyzers"]:
            language = TRANSLATED.get(name, "english")
            facts["analyzers"][name] = compare(name, "analyzers", analyzers(language), args)
            write_results(facts, args.output)


if __name__ == "__main__":
    main()
