"""Measure the search for labels while someone types, over 500,000 names.

    python benchmarks/serve/label_search.py

Names are drawn from words of syllables, one to four words each, every fifth label with two names; words are as frequent
as words are (Zipf). An index is built; then names are typed letter by letter, and every keystroke is timed.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import make_parser, start_facts, write_results
from benchmarks.harness.timing import memory
from longtail.serve.label_search import LabelSearch

SYLLABLES = [
    "ba",
    "ro",
    "mi",
    "ta",
    "ke",
    "lo",
    "su",
    "ne",
    "vi",
    "da",
    "fo",
    "gu",
    "pe",
    "zi",
    "cha",
    "sto",
    "ma",
    "ter",
    "ion",
    "ing",
    "é",
    "ü",
    "ß",
    "ny",
]
WORDS = 120_000
GOAL_MS = 20.0


def main() -> None:
    parser = make_parser(__doc__, "serve_labels.json")
    parser.add_argument("--names", type=int, default=500_000)
    parser.add_argument("--typed", type=int, default=300, help="names that are typed")
    args = parser.parse_args()
    rng = random.Random(0)
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 5))) for _ in range(WORDS)]
    weights = [1 / (rank + 10) for rank in range(WORDS)]
    labels = int(args.names / 1.2)
    drawn = rng.choices(words, weights, k=4 * args.names)
    names = []
    for number in range(labels):
        for turn in range(2 if number % 5 == 0 else 1):
            at = (2 * number + turn) % (len(drawn) - 4)
            names.append((number, " ".join(drawn[at : at + rng.randint(1, 4)])))
    counts = np.random.default_rng(0).zipf(1.5, labels).clip(0, 10**6)
    ids = [f"http://example.org/concepts/p{number}" for number in range(labels)]
    before, began = memory("VmRSS"), time.process_time()
    search = LabelSearch(names, counts, ids)
    build, taken = time.process_time() - began, memory("VmRSS") - before
    gc.collect()
    gc.freeze()  # as the server does
    times: list[float] = []
    own_times: list[float] = []  # without the time that other programs took
    for _, name in rng.sample(names, args.typed):
        for end in range(len(name) + 1):
            began, own = time.perf_counter(), time.process_time()
            search.find(name[:end])
            own_times.append(1000 * (time.process_time() - own))
            times.append(1000 * (time.perf_counter() - began))
    worst: list[float] = []
    for letters in ("p", "m", "ba", "ma ba", "é"):  # what most names hold
        began = time.perf_counter()
        search.find(letters)
        worst.append(1000 * (time.perf_counter() - began))
    facts = start_facts(args, {}) | {
        "names": len(names),
        "labels": labels,
        "build_seconds": round(build, 2),
        "memory_mb": round(taken / 1e6, 1),
        "keystrokes": len(times),
        "p50_ms": round(float(np.percentile(times, 50)), 3),
        "p99_ms": round(float(np.percentile(times, 99)), 3),
        "worst_ms": round(max(times), 3),
        "processor_p99_ms": round(float(np.percentile(own_times, 99)), 3),
        "processor_worst_ms": round(max(own_times), 3),
        "commonest_letters_ms": round(max(worst), 3),
        "goal_ms": GOAL_MS,
    }
    write_results(facts, args.output)
    print(f"{len(names):,} names: built in {build:.1f} s and {taken / 1e6:.0f} MB; a keystroke takes")
    print(f"{facts['p50_ms']} ms (p50), {facts['p99_ms']} ms (p99), {facts['worst_ms']} ms at worst; goal {GOAL_MS} ms")


if __name__ == "__main__":
    main()
