"""How fast files are read, beside scikit-learn and a plain Python loop, and how long a stratified split takes.

    python benchmarks/reading.py --data FOLDER

FOLDER holds `eurlex-4k/train.txt.xz` (XMC text) and `yso-titles/train.jsonl.xz` (JSONL). Both are unpacked into plain
files first, so that all readers read the same bytes; the times through .xz are given too. Repeats of us and the peer
take turns; the figure is the median. Memory is the peak of a fresh process above its level before reading, as a
multiple of the size of what was read.
"""

from __future__ import annotations

import argparse
import gc
import json
import lzma
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from longtail.data import read
from longtail.data.dataset import Dataset
from longtail.data.splits import split_random, split_stratified


def read_with_sklearn(path: Path) -> tuple[sp.csr_matrix, Any]:
    """Read rows without the header; labels come as tuples, not as a matrix."""
    return load_svmlight_file(str(path), multilabel=True, zero_based=True, dtype=np.float32, n_features=5000)


def read_with_a_loop(path: Path) -> tuple[list[str], list[str], sp.csr_array, list[str]]:
    """Read JSONL the way one writes it by hand: json.loads line by line, then a CSR matrix of the labels."""
    texts, ids, labels = [], [], []
    with path.open(encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            texts.append(record["text"])
            ids.append(record["id"])
            labels.append(record["labels"])
    names = sorted({name for row in labels for name in row})
    number = {name: i for i, name in enumerate(names)}
    indptr, indices = [0], []
    for row in labels:
        indices.extend(sorted({number[name] for name in row}))
        indptr.append(len(indices))
    ones = np.ones(len(indices), dtype=np.float32)
    return texts, ids, sp.csr_array((ones, indices, indptr), shape=(len(labels), len(names))), names


READERS: dict[str, Callable[[Path], Any]] = {"longtail": read, "sklearn": read_with_sklearn, "loop": read_with_a_loop}


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


def size_of(result: Any) -> int:
    """Return the bytes of what a reader returned: arrays and strings."""
    if isinstance(result, Dataset):
        return sum(size_of(part) for part in (result.X, result.Y, result.texts, result.ids) if part is not None)
    if isinstance(result, str | int | float):
        return sys.getsizeof(result)
    if isinstance(result, list | tuple):
        return sys.getsizeof(result) + sum(size_of(part) for part in result)
    if isinstance(result, np.ndarray):
        return result.nbytes
    return sum(part.nbytes for part in (result.data, result.indices, result.indptr))


def peak_bytes() -> int:
    """Return this process's highest use of memory so far."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would include the parent's peak
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def measure_memory(reader: str, path: Path, warm: Path) -> None:
    """In a process of its own: read a small file first, to load all code, then print the peak of the real one."""
    READERS[reader](warm)
    before = peak_bytes()
    result = READERS[reader](path)
    print(json.dumps({"peak": peak_bytes() - before, "result": size_of(result)}))


def memory(reader: str, path: Path, warm: Path) -> dict[str, float]:
    """Return the peak and the size of the result in megabytes, and their ratio."""
    command = [sys.executable, __file__, "--memory", reader, str(path), str(warm)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    out = {key: round(value / 1e6, 1) for key, value in found.items()}
    return {"peak_mb": out["peak"], "result_mb": out["result"], "multiple": round(found["peak"] / found["result"], 2)}


def unpack(source: Path, target: Path) -> Path:
    with lzma.open(source) as packed, target.open("wb") as plain:
        shutil.copyfileobj(packed, plain)
    return target


def head(source: Path, target: Path, lines: int, header: bytes | None = None) -> Path:
    with source.open("rb") as file, target.open("wb") as out:
        if header is not None:
            file.readline()
            out.write(header)
        out.writelines(file.readline() for _ in range(lines))
    return target


def without_header(source: Path, target: Path) -> Path:
    with source.open("rb") as file, target.open("wb") as out:
        file.readline()
        shutil.copyfileobj(file, out)
    return target


def bench_xmc(data: Path, scratch: Path, repeats: int) -> dict[str, Any]:
    packed = data / "eurlex-4k" / "train.txt.xz"
    plain = unpack(packed, scratch / "eurlex.txt")
    bare = without_header(plain, scratch / "eurlex.svm")
    ours, (X, labels) = read(plain), read_with_sklearn(bare)
    found: Any = ours.X
    same = np.array_equal(found.data, X.data) and np.array_equal(found.indices, X.indices)
    same = same and [len(row) for row in labels] == np.diff(ours.Y.indptr).tolist()
    if not same:
        raise SystemExit("longtail and scikit-learn read different things from eurlex-4k")
    tasks = {"longtail": lambda: read(plain), "sklearn": lambda: read_with_sklearn(bare)}
    seconds = medians({**tasks, "longtail .xz": lambda: read(packed)}, repeats)
    warm, warm_bare = head(plain, scratch / "warm.txt", 20, b"20 5000 3993\n"), head(bare, scratch / "warm.svm", 20)
    return {
        "file": "eurlex-4k/train.txt",
        "rows": ours.n_rows,
        "megabytes": round(plain.stat().st_size / 1e6, 1),
        "seconds": seconds,
        "memory": {"longtail": memory("longtail", plain, warm), "sklearn": memory("sklearn", bare, warm_bare)},
    }


def bench_jsonl(data: Path, scratch: Path, repeats: int) -> tuple[dict[str, Any], Dataset]:
    packed = data / "yso-titles" / "train.jsonl.xz"
    plain = unpack(packed, scratch / "yso.jsonl")
    ours, theirs = read(plain), read_with_a_loop(plain)
    if ours.texts != tuple(theirs[0]) or (theirs[2] != ours.Y).nnz:
        raise SystemExit("longtail and the plain loop read different things from yso-titles")
    del theirs
    tasks = {"longtail": lambda: read(plain), "loop": lambda: read_with_a_loop(plain)}
    seconds = medians({**tasks, "longtail .xz": lambda: read(packed)}, repeats)
    warm = head(plain, scratch / "warm.jsonl", 20)
    facts = {
        "file": "yso-titles/train.jsonl",
        "rows": ours.n_rows,
        "megabytes": round(plain.stat().st_size / 1e6, 1),
        "seconds": seconds,
        "memory": {name: memory(name, plain, warm) for name in ("longtail", "loop")},
    }
    return facts, ours


def bench_split(data: Dataset, repeats: int) -> dict[str, Any]:
    """Time both splits and say how far labels are from their share of test rows, and which are lost to train."""
    seconds = medians({"stratified": lambda: split_stratified(data), "random": lambda: split_random(data)}, repeats)
    total = np.bincount(data.Y.indices, minlength=data.n_labels)
    quality = {}
    for name, (train, test) in {"stratified": split_stratified(data), "random": split_random(data)}.items():
        in_test = np.bincount(data.Y[test].indices, minlength=data.n_labels)
        in_train = np.bincount(data.Y[train].indices, minlength=data.n_labels)
        quality[name] = {
            "labels_lost_to_train": int(((in_train == 0) & (total > 0)).sum()),
            "rows_off_the_share": round(float(np.abs(in_test - 0.2 * total)[total >= 5].mean()), 3),
        }
    return {
        "file": "yso-titles/train.jsonl",
        "rows": data.n_rows,
        "labels": data.n_labels,
        "pairs": int(data.Y.nnz),
        "seconds": seconds,
        "quality": quality,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("LONGTAIL_DATA"), help="folder with the data (LONGTAIL_DATA)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", default="benchmarks/results/reading.json")
    parser.add_argument("--memory", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        measure_memory(options.memory[0], Path(options.memory[1]), Path(options.memory[2]))
        return
    if not options.data:
        parser.error("give --data FOLDER or set LONGTAIL_DATA")
    data = Path(options.data)
    with tempfile.TemporaryDirectory() as folder:
        xmc = bench_xmc(data, Path(folder), options.repeats)
        jsonl, rows = bench_jsonl(data, Path(folder), options.repeats)
        split = bench_split(rows, options.repeats)
    ratios = {
        "xmc_vs_sklearn": round(xmc["seconds"]["sklearn"] / xmc["seconds"]["longtail"], 2),
        "jsonl_vs_loop": round(jsonl["seconds"]["loop"] / jsonl["seconds"]["longtail"], 2),
        "xmc_peak_over_result": xmc["memory"]["longtail"]["multiple"],
        "sklearn_peak_over_result": xmc["memory"]["sklearn"]["multiple"],
        "jsonl_peak_over_result": jsonl["memory"]["longtail"]["multiple"],
        "loop_peak_over_result": jsonl["memory"]["loop"]["multiple"],
        "stratified_split_seconds": round(split["seconds"]["stratified"], 3),
    }
    facts = {
        "command": f"python benchmarks/reading.py --data FOLDER --repeats {options.repeats}",
        "data": "eurlex-4k (XMC repository) and yso-titles (library titles with YSO subjects), training files",
        "machine": {"cores": os.cpu_count(), "system": platform.system(), "processor": platform.machine()},
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("longtail", "numpy", "scipy", "scikit-learn", "numba")},
        },
        "results": {"xmc": xmc, "jsonl": jsonl, "split": split},
        "ratios": ratios,
    }
    output = Path(options.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(facts, indent=1) + "\n")
    for kind in ("xmc", "jsonl", "split"):
        print(f"\n{facts['results'][kind]['file']}, {facts['results'][kind]['rows']:,} rows")  # type: ignore[index]
        for name, seconds in facts["results"][kind]["seconds"].items():  # type: ignore[index]
            used = facts["results"][kind].get("memory", {}).get(name)  # type: ignore[index]
            note = f"   peak {used['peak_mb']:8.1f} MB = {used['multiple']:.2f} x the result" if used else ""
            print(f"  {name:<14}{seconds:9.3f} s{note}")
    print("\n" + "\n".join(f"  {name:<26}{value}" for name, value in ratios.items()))
    print(f"\nwritten to {output}")


if __name__ == "__main__":
    main()
