"""Encode real texts by torch, by sentence-transformers and by ONNX Runtime in float32 and int8, all in one run.

Every round times each of them once, on the same texts and in turn, so that what else the machine does falls on all
alike; the ratios are medians over the rounds. "cpu" is the processor time of one thread, which other programs hardly
change, "wall" the time of two threads. Then: how far vectors differ, the P@1 that int8 costs, and the seconds and the
memory of fresh processes that load a model and tag one text; "hybrid" measures such processes for a hybrid of all
experts, from the start of Python to its first answer, with compiled kernels and byte code kept from the run before.

    python -m benchmarks.prime.serve_without_torch --data FOLDER
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from benchmarks.harness.data_sets import data_file
from benchmarks.harness.program import ROOT, Facts, make_parser, start_facts, write_results
from benchmarks.harness.timing import timed
from longtail.data import Dataset, load_bundled, read
from longtail.encoder import DEFAULT_ENCODER, OnnxEncoder, TextEncoder, load_text_encoder
from longtail.encoder.features import load_encoder
from longtail.hybrid import Hybrid
from longtail.one_vs_all import OneVsAllClassifier
from longtail.pipeline import Tagger
from longtail.prime import Prime, PrimeNetwork

LENGTH = 128  # tokens
SETS = {"eurlex57k": 16, "yso-titles": 128}  # texts of a round
THREADS = {"cpu": 1, "wall": 2}
SINGLE = 40  # texts that are encoded alone
LABELS = 20_000  # of the model that fresh processes load
ACCURACY = "eurlex57k"
Encode = Callable[[list[str]], np.ndarray]

FRESH = """
import json, sys, time
from pathlib import Path
wall, cpu = time.perf_counter(), time.process_time()
import longtail as lt
model = lt.load(sys.argv[1])
model.set_params(runtime=sys.argv[2], encoder_precision=sys.argv[3])
model.predict_topk(["Vessels and the law of the sea"], k=5)
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(json.dumps({"wall_s": wall, "cpu_s": cpu, "peak_mb": int(peak.split()[1]) * 1024 / 1e6}))
"""
FRESH_HYBRID = """
import sys, time
import longtail as lt
imported = time.process_time()
tagger = lt.load(sys.argv[1])
loaded = time.process_time()
tagger.model_.set_params(encoder_precision=sys.argv[2])
tagger.tag(["a chess game for the GNOME desktop"], k=5)
cpu = time.process_time()  # of the whole process, from the start of Python
print("tagged", flush=True)
import json
from pathlib import Path
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
facts = {"cpu_s": cpu, "cpu_until_loaded_s": loaded, "peak_mb": int(peak.split()[1]) * 1024 / 1e6}
print(json.dumps({**facts, "torch_imported": "torch" in sys.modules}))
"""
HYBRID_ROWS = 3000  # of the bundled debtags


def main() -> None:
    parser = make_parser(__doc__, "serving.json", data="required", resume=True)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--train", type=int, default=3000, help="rows that the classifier of the P@1 learns from")
    parser.add_argument("--test", type=int, default=3000, help="rows whose P@1 is compared")
    parser.add_argument("--clocks", nargs="+", default=["cpu", "wall"], help="wall means little on a busy machine")
    parser.add_argument("--stages", nargs="+", default=["speed", "loading", "hybrid", "accuracy"])
    parser.add_argument("--redo", nargs="+", default=[], help="with --resume: stages to measure again")
    parser.add_argument("--runs", type=int, default=7, help="fresh processes of each kind that load the hybrid")
    parser.add_argument("--work", type=Path, help="folder that keeps the trained hybrid for the next run")
    args = parser.parse_args()
    facts = start_facts(args, {}, "torch", "sentence-transformers", "onnxruntime", "tokenizers")
    trained = load_text_encoder(DEFAULT_ENCODER, LENGTH).eval()
    stages = {"speed": run_speed, "loading": run_loading, "hybrid": run_hybrid, "accuracy": run_accuracy}
    for stage in args.stages:
        if args.resume and stage in facts and stage not in args.redo:
            continue
        facts[stage] = stages[stage](args, trained)
        print(json.dumps({stage: facts[stage]}, indent=1), flush=True)
        write_results(facts, args.output)


def texts_of(args: argparse.Namespace, name: str, part: str, n: int) -> Dataset:
    """Return the first rows of a part of a data set."""
    file = data_file(args.data / name, part)
    if file is None:
        raise FileNotFoundError(f"no {part} rows of {name}")
    rows = read(file, labels_file=args.data / name / "labels.jsonl.xz")
    return rows.take(np.arange(min(n, rows.Y.shape[0])))


def encoders(trained: TextEncoder, threads: int) -> dict[str, Encode]:
    """Return what encodes texts: torch as this library uses it, sentence-transformers, ONNX Runtime."""
    peer = load_encoder(DEFAULT_ENCODER, "cpu")
    peer.max_seq_length = LENGTH
    part = trained.to_part()

    def by_torch(encode: Encode) -> Encode:
        def run(texts: list[str]) -> np.ndarray:
            torch.set_num_threads(threads)
            return encode(texts)

        return run

    return {
        "torch": by_torch(trained.encode),
        "sentence_transformers": by_torch(lambda texts: peer.encode(texts, show_progress_bar=False)),
        "onnx_float32": OnnxEncoder(part, n_jobs=threads).encode,
        "onnx_int8": OnnxEncoder(part, precision="int8", n_jobs=threads).encode,
    }


def run_speed(args: argparse.Namespace, trained: TextEncoder) -> Facts:
    """Time batches and single texts of every data set, and compare the vectors."""
    sides = {clock: encoders(trained, THREADS[clock]) for clock in args.clocks}
    out: Facts = {"rounds": args.rounds, "tokens_at_most": LENGTH}
    for name, size in SETS.items():
        texts = list(texts_of(args, name, "test", 4000).texts or ())
        few = texts[:: max(1, len(texts) // 64)][:64]
        vectors = {who: unit(encode(few)) for who, encode in sides[args.clocks[0]].items()}
        facts: Facts = {"texts_per_round": size, "batch": {}, "single": {}}
        facts["largest_difference"] = {
            who: float(np.abs(rows - vectors["torch"]).max()) for who, rows in vectors.items() if who != "torch"
        }
        facts["least_cosine_of_int8"] = float((vectors["onnx_int8"] * vectors["torch"]).sum(axis=1).min())
        for clock, who in sides.items():
            batches = [texts[at * size : (at + 1) * size] for at in range(args.rounds)]
            facts["batch"][clock] = summary(rounds(who, batches, clock), size)
            alone = [[text] for text in texts[-SINGLE:]]
            facts["single"][clock] = single_summary(rounds(who, alone, clock))
        out[name] = facts
        print(name, json.dumps(facts, indent=1), flush=True)
    return out


def rounds(who: dict[str, Encode], batches: list[list[str]], clock: str) -> dict[str, list[float]]:
    """Return the seconds of every batch by every encoder, which take turns; the first batch is also run once before."""
    for encode in who.values():
        encode(batches[0])
    seconds: dict[str, list[float]] = {name: [] for name in who}
    for batch in batches:
        for name, encode in who.items():
            spent, _ = timed(encode, batch)
            seconds[name].append(getattr(spent, clock))
    return seconds


def summary(seconds: dict[str, list[float]], size: int) -> Facts:
    """Return texts per second, and how many times as fast as torch, as medians."""
    return {
        name: {"rows_per_s": size / statistics.median(times), "times_torch": times_faster(seconds["torch"], times)}
        for name, times in seconds.items()
    }


def single_summary(seconds: dict[str, list[float]]) -> Facts:
    """Return milliseconds of one text, and how many times as fast as torch."""
    return {
        name: {
            "p50_ms": 1e3 * statistics.median(times),
            "p95_ms": 1e3 * float(np.percentile(times, 95)),
            "times_torch": times_faster(seconds["torch"], times),
        }
        for name, times in seconds.items()
    }


def times_faster(before: list[float], after: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(before, after, strict=True))


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def run_loading(args: argparse.Namespace, trained: TextEncoder) -> Facts:
    """Time fresh processes that load a model and tag one text; the encoder is real, the label vectors are random."""
    out: Facts = {"labels": LABELS}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        untrained_model(trained).save(folder)
        ways = {"torch": ("torch", "float32"), "onnx_float32": ("onnx", "float32"), "onnx_int8": ("onnx", "int8")}
        taken: dict[str, list[Facts]] = {name: [] for name in ways}
        for _ in range(3):
            for name, way in ways.items():
                command = [sys.executable, "-W", "ignore", "-c", FRESH, str(folder), *way]
                done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
                taken[name].append(json.loads(done.stdout))
    for name, runs in taken.items():
        out[name] = {key: min(run[key] for run in runs) for key in runs[0]}
    return out


def run_hybrid(args: argparse.Namespace, trained: TextEncoder) -> Facts:
    """Time fresh processes that load a hybrid trained on real rows and tag one text, from their start to the answer."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = (args.work or Path(scratch)) / "hybrid"
        if not folder.exists():
            data = load_bundled("debtags", "train").take(np.arange(HYBRID_ROWS))
            model = Hybrid(epochs=0, max_length=LENGTH, device="cpu", n_jobs=2)  # the encoder is left as it is
            Tagger("hybrid", model=model, random_state=0).fit_dataset(data).save(folder)
        size = sum(file.stat().st_size for file in folder.iterdir())
        out: Facts = {"rows": HYBRID_ROWS, "runs": args.runs, "folder_mb": size / 1e6}
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(Path(scratch) / "bytecode")
        taken: dict[str, list[Facts]] = {"float32": [], "int8": []}
        for run in range(args.runs + 1):
            for precision, runs in taken.items():
                facts = run_fresh(folder, precision, environment)
                if run:  # the first one compiles
                    runs.append(facts)
    for precision, runs in taken.items():
        numbers = [key for key, value in runs[0].items() if not isinstance(value, bool)]
        out[precision] = {
            "median": {key: statistics.median(run[key] for run in runs) for key in numbers},
            "least": {key: min(run[key] for run in runs) for key in numbers},
            "torch_imported": any(run["torch_imported"] for run in runs),
        }
    return out


def run_fresh(folder: Path, precision: str, environment: dict[str, str]) -> Facts:
    """Return what one process took from its start to its first answer."""
    command = [sys.executable, "-W", "ignore", "-c", FRESH_HYBRID, str(folder), precision]
    started = time.perf_counter()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment) as process:
        if process.stdout is None or process.stdout.readline() != "tagged\n":
            raise RuntimeError("the process that loads the hybrid gave no answer")
        wall = time.perf_counter() - started
        facts: Facts = json.loads(process.stdout.readline())
    return {"wall_s": wall, **facts}


def untrained_model(encoder: TextEncoder) -> Prime:
    """Return a model with a given encoder and random vectors for its labels."""
    model = Prime(preset="ngame", max_length=LENGTH)
    vectors = np.random.default_rng(0).normal(size=(LABELS, encoder.width)).astype(np.float32)
    model._network, model.stored_ = PrimeNetwork(encoder, "text").eval(), {"vectors": unit(vectors)}
    model.label_texts_ = tuple(f"label {number}" for number in range(LABELS))
    model.label_counts_ = np.ones(LABELS, dtype=np.int64)
    model.n_rows_, model.n_labels_, model.n_features_in_ = LABELS, LABELS, encoder.width
    model.history_, model.fusion_, model.text_scale_, model.tree_, model.budget_ = [], None, 1.0, None, None
    return model


def run_accuracy(args: argparse.Namespace, trained: TextEncoder) -> Facts:
    """Compare P@1 and P@5 of one classifier, learned from float32 vectors, on float32 and on int8 vectors."""
    train, test = (texts_of(args, ACCURACY, part, n) for part, n in (("train", args.train), ("test", args.test)))
    part = trained.to_part()
    exact, rounded = OnnxEncoder(part, n_jobs=2), OnnxEncoder(part, precision="int8", n_jobs=2)
    started = time.perf_counter()
    model = OneVsAllClassifier(random_state=0, n_jobs=2).fit(unit(exact.encode(list(train.texts or ()))), train.Y)
    texts, truth = list(test.texts or ()), test.Y.tocsr()
    tops = {name: model.predict_topk(unit(e.encode(texts)), k=5).ids for name, e in (("32", exact), ("8", rounded))}
    hits = {
        name: np.array([np.isin(row, truth.indices[slice(*truth.indptr[i : i + 2])]) for i, row in enumerate(ids)])
        for name, ids in tops.items()
    }
    first = 100 * (hits["8"][:, 0].astype(float) - hits["32"][:, 0])
    return {
        "data": ACCURACY,
        "training_rows": args.train,
        "test_rows": len(texts),
        "p1_float32": 100 * float(hits["32"][:, 0].mean()),
        "p1_int8": 100 * float(hits["8"][:, 0].mean()),
        "p1_gained_by_int8": float(first.mean()),
        "standard_error": float(first.std() / np.sqrt(len(texts))),
        "p5_gained_by_int8": 100 * float(hits["8"].mean() - hits["32"].mean()),
        "first_label_the_same": float((tops["8"][:, 0] == tops["32"][:, 0]).mean()),
        "seconds": time.perf_counter() - started,
    }


if __name__ == "__main__":
    main()
