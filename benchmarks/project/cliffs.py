"""Measure whether odd but honest data makes longtail slow or large: time and memory of each step at size n and 2n.

    python benchmarks/project/cliffs.py

Each case is a file with some hundred ordinary rows and one oddity: a row with 100,000 features, one label in all rows,
a document of 50 MB, a row with 100,000 labels, a million empty rows. A process of its own reads it, trains a label
tree, predicts and evaluates, each timed, with the peak of its memory less what it takes on ordinary rows alone. Size
2n is the one named above, n half of it. `growth` is how often as long, or as much, size 2n takes as size n: 2 is in
proportion, 4 is quadratic; `largest_growth` has the largest of each. `--scale 0.02` tries it on small sizes.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import ROOT, Facts, make_parser, start_facts, write_results
from benchmarks.harness.terminal import show_table

ORDINARY = 400  # rows
STEPS = ("read", "train", "predict", "evaluate")
TIMEOUT = 3600


def ordinary_rows() -> Iterator[tuple[str, list[str]]]:
    """Yield texts of invented words with their labels."""
    words = random.Random(0)
    for row in range(ORDINARY):
        yield " ".join(f"word{words.randrange(2000)}" for _ in range(20)), [f"label {row % 40}", f"label {row % 7}"]


def write_rows(file: Path, odd: Iterator[tuple[str, list[str]]] | list[tuple[str, list[str]]], label: str = "") -> None:
    """Write ordinary rows and odd ones as JSONL; `label` is given to all of them."""
    with file.open("w", encoding="utf-8") as out:
        for rows in (ordinary_rows(), odd):
            for text, labels in rows:
                out.write(json.dumps({"text": text, "labels": [*labels, *([label] if label else [])]}) + "\n")


def row_with_features(file: Path, n: int) -> None:
    """One row with n features, in XMC text."""
    draw = random.Random(0)
    with file.open("w", encoding="utf-8") as out:
        out.write(f"{ORDINARY + 1} {n} 40\n")
        for row in range(ORDINARY):
            ids = sorted(draw.sample(range(n), 20))
            out.write(f"{row % 40} " + " ".join(f"{i}:1" for i in ids) + "\n")
        out.write("1 " + " ".join(f"{i}:1" for i in range(n)) + "\n")


def label_in_all_rows(file: Path, n: int) -> None:
    """n rows that all have one label, beside another."""
    words = random.Random(1)
    odd = ((" ".join(f"word{words.randrange(2000)}" for _ in range(20)), [f"label {i % 40}"]) for i in range(n))
    write_rows(file, odd, "everywhere")


def long_document(file: Path, n: int) -> None:
    """One document of n bytes."""
    words = random.Random(1)
    vocabulary = [f"word{words.randrange(100_000)} " for _ in range(100_000)]
    text = "".join(vocabulary)
    write_rows(file, [((text * (n // len(text) + 1))[:n], ["label 1"])])


def row_with_labels(file: Path, n: int) -> None:
    """One row with n labels."""
    write_rows(file, [("some words", [f"only here {i}" for i in range(n)])])


def empty_rows(file: Path, n: int) -> None:
    """n rows without a word and without a label."""
    write_rows(file, [("", [])] * n)


CASES: dict[str, tuple[Callable[[Path, int], None], int, str]] = {  # how to write, 2n, suffix
    "row_with_features": (row_with_features, 100_000, ".xmc"),
    "label_in_all_rows": (label_in_all_rows, 100_000, ".jsonl"),
    "long_document": (long_document, 50_000_000, ".jsonl"),
    "row_with_labels": (row_with_labels, 100_000, ".jsonl"),
    "empty_rows": (empty_rows, 1_000_000, ".jsonl"),
}
GROWTH = ("seconds", "peak_bytes", "peak_bytes_more_than_ordinary")


def measure(file: Path) -> Facts:
    """Return the seconds of every step and the peak of memory; runs in a process of its own."""
    import resource

    import longtail as lt
    from longtail.pipeline import evaluate_tagger

    def steps(path: Path) -> tuple[dict[str, float], lt.Dataset]:
        times = [time.perf_counter()]
        data = lt.data.read(path)
        times.append(time.perf_counter())
        tagger = lt.Tagger(random_state=0, n_jobs=1).fit_dataset(data)
        times.append(time.perf_counter())
        for batch in lt.data.iter_texts(path):
            tagger.model_.predict_topk(tagger.dataset_rows(batch), k=5)
        times.append(time.perf_counter())
        evaluate_tagger(tagger, data, n_bootstrap=100, n_examples=2)
        times.append(time.perf_counter())
        return {name: times[i + 1] - times[i] for i, name in enumerate(STEPS)}, data

    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    small = file.with_name(f"small{file.suffix}")
    (row_with_features(small, 2000) if file.suffix == ".xmc" else write_rows(small, []))
    steps(small)  # compiles, and takes what every process takes
    before = peak()
    seconds, data = steps(file)
    return {
        "rows": data.n_rows,
        "labels": data.n_labels,
        "file_bytes": file.stat().st_size,
        "seconds": {**seconds, "all": sum(seconds.values())},
        "peak_bytes": peak(),
        "peak_bytes_more_than_ordinary": peak() - before,
    }


def measure_apart(file: Path) -> Facts:
    """Measure in a process of its own."""
    words = [sys.executable, str(Path(__file__).resolve()), "--measure", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT, cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = make_parser(__doc__, "cliffs.json", resume=True)
    parser.add_argument("--only", nargs="+", choices=tuple(CASES), default=list(CASES))
    parser.add_argument("--measure", type=Path, help="measure one file in this process and print the facts")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the sizes, to try the program")
    args = parser.parse_args()
    if args.measure is not None:
        print(json.dumps(measure(args.measure)))
        return
    facts = start_facts(args, {"ordinary_rows": ORDINARY, "cases": {}})
    for name in args.only:
        if name in facts["cases"]:
            continue
        write, size, suffix = CASES[name]
        n = max(1, round(args.scale * size / 2))
        with tempfile.TemporaryDirectory() as folder:
            found: Facts = {"n": n}
            for key, wanted in (("at_n", n), ("at_2n", 2 * n)):
                file = Path(folder) / f"{name}{suffix}"
                write(file, wanted)
                found[key] = measure_apart(file)
        found["growth"] = {kind: growth(found["at_n"], found["at_2n"], kind) for kind in GROWTH}
        facts["cases"][name] = found
        facts["largest_growth"] = {
            kind: max(case["growth"][kind] for case in facts["cases"].values()) for kind in GROWTH[:2]
        }
        write_results(facts, args.output)
    show(facts)


def growth(small: Facts, large: Facts, kind: str) -> float:
    """Return how often as long, or as much, the larger size takes."""
    before, after = ((at["seconds"]["all"] if kind == "seconds" else at[kind]) for at in (small, large))
    return after / max(before, 1e-9)


def show(facts: Facts) -> None:
    """Print a table."""
    rows = []
    for name, found in facts["cases"].items():
        for size in ("at_n", "at_2n"):
            seconds = [f"{found[size]['seconds'][step]:.1f}" for step in (*STEPS, "all")]
            rows.append([name, size.removeprefix("at_"), *seconds, f"{found[size]['peak_bytes'] / 1e6:,.0f}"])
        times, bytes_ = (f"{found['growth'][kind]:.2f}" for kind in GROWTH[:2])
        rows.append([name, "2n / n", *[""] * len(STEPS), times, bytes_])
    show_table("seconds, and MB at the peak", ["case", "size", *STEPS, "all", "MB"], rows, left=2)


if __name__ == "__main__":
    main()
