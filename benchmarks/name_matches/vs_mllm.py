"""Measure labels found by their names, alone and against MLLM, Annif's lexical matching.

    python benchmarks/name_matches/vs_mllm.py --data FOLDER --annif ENVIRONMENT/bin/annif

`alone` trains on all rows of every data set, once with all labels and once with 5% of the labels taken out of the
training rows, which are then known by their names only: R@10 of these. The names are what a cataloguer would call a
label (benchmarks/hybrid/peer_data.py). `against` has the same rows for both, some thousand, again with 5% of the labels
taken out: MLLM by Annif's own commands with its default settings and Snowball stems, ours with and without the package
of stems. R@10 and R@100 are means over rows; recall of hidden labels is pooled. Seconds are of the processor; ours of
one thread, after compiling. Without --annif only our half is measured.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.scores import rounded
from benchmarks.harness.terminal import show_table
from benchmarks.hybrid.annif_ensemble import CHARACTERS, Annif, write_corpus
from benchmarks.hybrid.peer_data import DATA, PeerData, read_data, top_of_pairs
from longtail.data import TopK, binary_hits
from longtail.metrics import f1_at_k, precision_at_k, recall_at_k
from longtail.name_matches import NameMatches
from longtail.text.stemmer import stemmer_of

K = 100
HIDDEN = 0.05  # share of the labels that are taken out of the training rows
AGAINST = {"yso-titles": (20_000, 5_000), "eurlex57k": (5_000, 2_000), "pubmed-mesh": (5_000, 2_000)}  # rows
SHOWN = ("p@1", "p@5", "f1@5", "r@10", "r@100", "hidden_r@10", "train_cpu_seconds", "rows_per_cpu_second")


def hidden_labels(n_labels: int) -> np.ndarray:
    """Return which labels are taken out of the training rows."""
    return np.random.default_rng(1).random(n_labels) < HIDDEN


def without(Y: sp.csr_array, gone: np.ndarray) -> sp.csr_array:
    """Return labels of rows without some of the labels."""
    out = sp.csr_array(Y @ sp.diags_array((~gone).astype(np.float32)))
    out.eliminate_zeros()
    return out


def some(data: PeerData, n_train: int, n_test: int) -> PeerData:
    """Return some of the rows, drawn at random, with texts as far as both programs read them."""
    train, test = (
        np.sort(np.random.default_rng(2).permutation(n)[:wanted])
        for n, wanted in ((len(data.texts), n_train), (len(data.test_texts), n_test))
    )
    return data._replace(
        texts=[data.texts[i][:CHARACTERS] for i in train],
        Y=sp.csr_array(data.Y[train]),
        test_texts=[data.test_texts[i][:CHARACTERS] for i in test],
        Y_test=sp.csr_array(data.Y_test[test]),
    )


def scores(top: TopK, Y: sp.csr_array, hidden: np.ndarray | None) -> Facts:
    """Return the measures of predictions, in percent."""
    facts: Facts = {f"p@{k}": 100 * precision_at_k(Y, top, k) for k in (1, 5)}
    facts |= {"f1@5": 100 * f1_at_k(Y, top, 5)}
    facts |= {f"r@{k}": 100 * recall_at_k(Y, top, k) for k in (10, K)}
    if hidden is not None:
        truth = without(Y, ~hidden)
        facts["hidden_r@10"] = 100 * binary_hits(top.head(10), truth).sum() / max(truth.nnz, 1)
    return rounded(facts, 2)


def ours(data: PeerData, hidden: np.ndarray | None) -> Facts:
    """Train, predict and measure."""
    Y = data.Y if hidden is None else without(data.Y, hidden)
    stemmer_of.cache_clear()  # words that were cut before would cost nothing
    start = time.process_time()
    model = NameMatches(n_jobs=1).fit(data.texts, Y, data.names)
    trained = time.process_time()
    top = model.predict_topk(data.test_texts, K)
    done = time.process_time()
    facts = scores(top, data.Y_test, hidden)
    facts |= {"rows": len(data.texts), "train_cpu_seconds": round(trained - start, 1)}
    return facts | {"rows_per_cpu_second": round(len(data.test_texts) / (done - trained))}


def mllm(data: PeerData, hidden: np.ndarray, program: Path, folder: Path) -> Facts:
    """Let Annif train and predict, and measure."""
    write_corpus(data._replace(Y=without(data.Y, hidden)), folder)
    annif = Annif(program, folder, {"min_df": 1, "ngram": 1, "characters": CHARACTERS})
    annif.settings()
    annif.run("vocabulary", "load-vocab", "labels", "labels.ttl")
    training = annif.run("mllm", "train", "mllm", "rest.tsv", "held.tsv", "-j", "1")
    prediction, found = annif.predictions("mllm")
    facts = scores(top_of_pairs(found, K), data.Y_test, hidden)
    facts |= {"rows": len(data.texts), "train_cpu_seconds": round(training["cpu_seconds"], 1)}
    return facts | {"rows_per_cpu_second": round(len(data.test_texts) / prediction["cpu_seconds"], 1)}


def measure(args: argparse.Namespace, facts: Facts) -> None:
    """Measure what is wanted and not there yet."""
    for name in args.only:
        data = read_data(name, args.data)
        hidden = hidden_labels(data.Y.shape[1])
        for case, gone in (("all labels", None), ("5% hidden", hidden)):
            if case not in facts["alone"].setdefault(name, {}):
                facts["alone"][name][case] = ours(data, gone)
                write_results(facts, args.output)
        if name not in AGAINST:
            continue
        part, kept = some(data, *AGAINST[name]), facts["against"].setdefault(name, {})
        kept["ours"] = ours(part, hidden)
        with patch("longtail.text.stemmed_words.importlib.util.find_spec", lambda _: None):
            kept["ours, simple stems"] = ours(part, hidden)
        write_results(facts, args.output)
        if args.annif is not None and "mllm" not in kept:
            with TemporaryDirectory() as folder:
                kept["mllm"] = mllm(part, hidden, args.annif.absolute(), Path(folder))
            write_results(facts, args.output)


def main() -> None:
    parser = make_parser(__doc__, "name_matches.json", data="required", resume=True)
    parser.add_argument("--annif", type=Path, help="the program annif of the environment it is installed in")
    parser.add_argument("--only", nargs="+", choices=DATA, default=list(DATA), help="data sets")
    args = parser.parse_args()
    facts = start_facts(args, {"alone": {}, "against": {}}, "snowballstemmer")
    NameMatches(n_jobs=1).fit(["a cat"], np.ones((1, 1)), ["cats"]).predict_topk(["cat"], 1)  # compiles
    measure(args, facts)
    for title in ("alone", "against"):
        rows = [
            [f"{name}, {case}", *(str(one.get(column, "")) for column in SHOWN)]
            for name, cases in facts[title].items()
            for case, one in cases.items()
        ]
        show_table(title, ["", *SHOWN], rows)


if __name__ == "__main__":
    main()
