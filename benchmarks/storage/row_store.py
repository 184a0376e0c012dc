"""Train on a row store four times as large as the memory allowed, and hold the model against one without a limit.

    python benchmarks/storage/row_store.py

The store is made block by block: rows of about 2,000 features, two of 300 labels each. `longtail train` runs in a
process of its own, and the memory that is its own (RssAnon of /proc/PID/status: pages of mapped files do not count) is
looked up a hundred times a second, also while the data is read and the model is saved. Wall seconds, which depend on
what else the machine does.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.timing import folder_bytes
from longtail.data import Dataset, StoreWriter, fill_store

LABELS, FEATURES, OWN, BLOCK_ROWS = 300, 100_000, 400, 2000
GIGABYTE = 1e9


def main() -> None:
    parser = make_parser(__doc__, "row_store.json")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--row-features", type=int, default=2100, help="drawn for each row; some are the same")
    parser.add_argument("--memory", type=int, default=400, help="megabytes that are allowed")
    parser.add_argument("--work", type=Path, default=None, help="folder for the store, which is kept there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = args.work or Path(temporary)
        store = work / "long.store"
        if not store.exists():
            with StoreWriter(store, "long rows") as writer:
                fill_store(writer, make_blocks(args.rows, args.row_features))
        size, limit = folder_bytes(store), args.memory * 10**6
        facts = start_facts(args, {}) | {
            "store_gigabytes": size / GIGABYTE,
            "limit_gigabytes": limit / GIGABYTE,
            "times_the_limit": size / limit,
        }
        planned = subprocess.run(
            [*command("plan", store), "--memory", f"{args.memory}MB", "--jobs", "1", "--json"],
            capture_output=True,
            check=True,
        )
        facts["planned_gigabytes"] = json.loads(planned.stdout)["memory"]["peak_bytes"] / GIGABYTE
        write_results(facts, args.output)
        for name, more in (("within", ["--memory", f"{args.memory}MB"]), ("without", [])):
            model = Path(temporary) / name
            facts[name] = watched(
                [*command("train", store), "-o", str(model), "--calibrate", "0", "--jobs", "1", *more]
            )
            facts["model_megabytes"] = folder_bytes(model) / 1e6
            write_results(facts, args.output)
            print(name, facts[name], flush=True)
        facts["same_bytes"] = files_of(Path(temporary) / "within") == files_of(Path(temporary) / "without")
        write_results(facts, args.output)


def make_blocks(n_rows: int, row_features: int) -> Iterator[Dataset]:
    """Yield rows of unit length: features that their two labels are known by, and common ones."""
    rng = np.random.default_rng(0)
    own = rng.integers(0, FEATURES, size=(LABELS, OWN))
    for _ in range(0, n_rows, BLOCK_ROWS):
        labels = rng.integers(0, LABELS, size=(BLOCK_ROWS, 2))
        features = np.minimum((FEATURES * rng.random((BLOCK_ROWS, row_features)) ** 2).astype(np.int64), FEATURES - 1)
        for side in (0, 1):
            drawn = rng.integers(0, OWN, size=(BLOCK_ROWS, 40))
            features[:, 40 * side : 40 * side + 40] = own[labels[:, side : side + 1], drawn]
        X = rows_of(features, FEATURES)
        X.data = 1 + np.log(X.data)
        lengths = np.sqrt(np.add.reduceat(X.data.astype(np.float64) ** 2, X.indptr[:-1]))
        X.data = (X.data / np.repeat(lengths, np.diff(X.indptr))).astype(np.float32)
        Y = rows_of(labels, LABELS)
        Y.data[:] = 1
        yield Dataset(X=X, Y=Y)


def rows_of(ids: np.ndarray, width: int) -> sp.csr_array:
    """Return how often each row has each id."""
    n, per_row = ids.shape
    M = sp.csr_array(
        (np.ones(ids.size, np.float32), ids.ravel().astype(np.int32), np.arange(n + 1) * per_row), shape=(n, width)
    )
    M.sum_duplicates()
    return M


def command(name: str, store: Path) -> list[str]:
    return [sys.executable, "-m", "longtail", name, str(store)]


def watched(words: list[str]) -> Facts:
    """Run a command and return its time, and the most memory that was its own."""
    started, peak = time.perf_counter(), 0
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        try:
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            peak = max(peak, *(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon:")), 0)
        except OSError:
            pass
        time.sleep(0.01)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {process.returncode}")
    return {"seconds": time.perf_counter() - started, "peak_gigabytes": peak / GIGABYTE}


def files_of(model: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in model.iterdir()}


if __name__ == "__main__":
    main()
