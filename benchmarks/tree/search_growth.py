"""Measure prediction alone against the number of labels, for this source and, by --name, for others beside it.

    python benchmarks/tree/search_growth.py --work FOLDER --name NAME

The trees are those of `growth.py` by labels, with 200,000 rows; they are trained once and kept in FOLDER. 5,000 rows
that were held out, top 5, processor microseconds a row on one thread, least of several passes. `--name` keeps the
result under a name beside those of earlier runs, which other sources may have made (PYTHONPATH): `same` tells whether
all predict the same.
"""

from __future__ import annotations

import hashlib
import sys
import time
from pathlib import Path
from typing import cast

import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import longtail as lt
from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.tree.growth import FIXED_ROWS, HELD_OUT, LABELS, slope
from longtail.data.synthetic.generate import make_extreme

PASSES = 7


def prepared(n_labels: int, work: Path) -> tuple[lt.LabelTreeClassifier, sp.csr_array]:
    """Return the tree for so many labels and the rows to predict, trained if they are not there yet."""
    folder, rows = work / f"m{n_labels}", work / f"xt{n_labels}.npz"
    if not (folder.exists() and rows.exists()):
        data = make_extreme(FIXED_ROWS + HELD_OUT, n_labels)
        X = sp.csr_array(data.X)
        lt.LabelTreeClassifier(random_state=0).fit(X[:FIXED_ROWS], data.Y[:FIXED_ROWS]).save(folder)
        sp.save_npz(rows, sp.csr_matrix(X[FIXED_ROWS:]))
    return cast("lt.LabelTreeClassifier", lt.load(folder)), sp.csr_array(sp.load_npz(rows))


def measure(model: lt.LabelTreeClassifier, X: sp.csr_array) -> Facts:
    """Return the processor time of a row and a digest of what is predicted."""
    model.n_jobs = 1
    top = model.predict_topk(X, k=5)
    seconds = []
    for _ in range(PASSES):
        started = time.process_time()
        model.predict_topk(X, k=5)
        seconds.append(time.process_time() - started)
    digest = hashlib.sha256(top.ids.tobytes() + top.scores.tobytes()).hexdigest()[:16]
    return {"cpu_us_per_row": round(1e6 * min(seconds) / X.shape[0], 1), "digest": digest}


def main() -> None:
    parser = make_parser(__doc__, "search_growth.json", resume=True)
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps the trees")
    parser.add_argument("--name", default="now")
    args = parser.parse_args()
    facts = start_facts(args, {"rows": HELD_OUT, "runs": {}, "slopes": {}})
    args.work.mkdir(parents=True, exist_ok=True)
    run = facts["runs"][args.name] = {}
    for n_labels in LABELS:
        run[f"{n_labels} labels"] = measure(*prepared(n_labels, args.work))
        print(args.name, n_labels, run[f"{n_labels} labels"], flush=True)
    facts["slopes"][args.name] = slope(LABELS, [cell["cpu_us_per_row"] for cell in run.values()])
    facts["same"] = len({tuple(cell["digest"] for cell in cells.values()) for cells in facts["runs"].values()}) == 1
    write_results(facts, args.output)


if __name__ == "__main__":
    main()
