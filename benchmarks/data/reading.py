"""Measure how fast files are read, beside scikit-learn and a plain Python loop, and how long a stratified split takes.

    python benchmarks/data/reading.py --data FOLDER

FOLDER holds `eurlex-4k/train.txt.xz` (XMC text) and `yso-titles/train.jsonl.xz` (JSONL). Both are unpacked into plain
files first, so that all readers read the same bytes; the times through .xz are given too. Repeats of us and the peer
take turns; the figure is the median. Memory is the peak of a fresh process above its level before reading, as a
multiple of the size of what was read.
"""

from __future__ import annotations

import json
import lzma
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.terminal import show_table
from benchmarks.harness.timing import medians, memory
from longtail.data import Dataset, read, split_random, split_stratified


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


def measure_memory(reader: str, path: Path, warm: Path) -> None:
    """In a process of its own: read a small file first, to load all code, then print the peak of the real one."""
    READERS[reader](warm)
    before = memory("VmHWM")
    result = READERS[reader](path)
    print(json.dumps({"peak": memory("VmHWM") - before, "result": size_of(result)}))


def memory_of(reader: str, path: Path, warm: Path) -> dict[str, float]:
    """Return the peak and the size of the result in megabytes, and their ratio."""
    command = [sys.executable, __file__, "--memory", reader, str(path), str(warm)]
    used = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    mb = {key: round(value / 1e6, 1) for key, value in used.items()}
    return {"peak_mb": mb["peak"], "result_mb": mb["result"], "multiple": round(used["peak"] / used["result"], 2)}


def unpack(source: Path, target: Path) -> Path:
    """Write the plain bytes of an .xz file."""
    with lzma.open(source) as packed, target.open("wb") as plain:
        shutil.copyfileobj(packed, plain)
    return target


def head(source: Path, target: Path, lines: int, header: bytes | None = None) -> Path:
    """Write the first lines of a file, with another header if one is given."""
    with source.open("rb") as file, target.open("wb") as out:
        if header is not None:
            file.readline()
            out.write(header)
        out.writelines(file.readline() for _ in range(lines))
    return target


def without_header(source: Path, target: Path) -> Path:
    """Write all lines of a file but the first."""
    with source.open("rb") as file, target.open("wb") as out:
        file.readline()
        shutil.copyfileobj(file, out)
    return target


def bench_xmc(data: Path, scratch: Path, repeats: int) -> Facts:
    """Time reading XMC text, and check that both readers read the same."""
    packed = data / "eurlex-4k" / "train.txt.xz"
    plain = unpack(packed, scratch / "eurlex.txt")
    bare = without_header(plain, scratch / "eurlex.svm")
    ours, (X, labels) = read(plain), read_with_sklearn(bare)
    rows = sp.csr_array(ours.X)
    same = np.array_equal(rows.data, X.data) and np.array_equal(rows.indices, X.indices)
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
        "memory": {"longtail": memory_of("longtail", plain, warm), "sklearn": memory_of("sklearn", bare, warm_bare)},
    }


def bench_jsonl(data: Path, scratch: Path, repeats: int) -> tuple[Facts, Dataset]:
    """Time reading JSONL, and check that both readers read the same; return the data too."""
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
        "memory": {name: memory_of(name, plain, warm) for name in ("longtail", "loop")},
    }
    return facts, ours


def bench_split(data: Dataset, repeats: int) -> Facts:
    """Time both splits and tell how far labels are from their share of test rows, and which are lost to train."""
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


def ratios_of(xmc: Facts, jsonl: Facts, split: Facts) -> Facts:
    """Return the figures that the documentation quotes."""
    return {
        "xmc_vs_sklearn": round(xmc["seconds"]["sklearn"] / xmc["seconds"]["longtail"], 2),
        "jsonl_vs_loop": round(jsonl["seconds"]["loop"] / jsonl["seconds"]["longtail"], 2),
        "xmc_peak_over_result": xmc["memory"]["longtail"]["multiple"],
        "sklearn_peak_over_result": xmc["memory"]["sklearn"]["multiple"],
        "jsonl_peak_over_result": jsonl["memory"]["longtail"]["multiple"],
        "loop_peak_over_result": jsonl["memory"]["loop"]["multiple"],
        "stratified_split_seconds": round(split["seconds"]["stratified"], 3),
    }


def show(facts: Facts) -> None:
    """Print times and memory of every reader, and the ratios."""
    for result in facts["results"].values():
        rows = []
        for name, seconds in result["seconds"].items():
            used = result.get("memory", {}).get(name)
            rows.append([name, f"{seconds:.3f}", *([used["peak_mb"], used["multiple"]] if used else ["", ""])])
        title = f"{result['file']}, {result['rows']:,} rows"
        show_table(title, ["", "seconds", "peak MB", "times the result"], rows)
    show_table("ratios", ["", ""], list(facts["ratios"].items()))


def main() -> None:
    if sys.argv[1:2] == ["--memory"]:
        measure_memory(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
        return
    parser = make_parser(__doc__, "reading.json", data="required")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    about = "eurlex-4k (XMC repository) and yso-titles (library titles with YSO subjects), training files"
    facts = start_facts(args, {"data": about})
    with tempfile.TemporaryDirectory() as folder:
        xmc = bench_xmc(args.data, Path(folder), args.repeats)
        jsonl, data = bench_jsonl(args.data, Path(folder), args.repeats)
        split = bench_split(data, args.repeats)
    facts["results"] = {"xmc": xmc, "jsonl": jsonl, "split": split}
    facts["ratios"] = ratios_of(xmc, jsonl, split)
    write_results(facts, args.output)
    show(facts)


if __name__ == "__main__":
    main()
