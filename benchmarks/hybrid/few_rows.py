"""SetFit on as many rows as it can take here, beside one-vs-all on the words of the same rows."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.harness.program import Facts
from benchmarks.harness.timing import timed
from benchmarks.hybrid.measure import K
from benchmarks.hybrid.peer_data import Found, PeerData
from benchmarks.peers.environments import peer_versions
from longtail import OneVsAllClassifier
from longtail.data import TopK
from longtail.encoder import find_encoder
from longtail.text import TfidfFeatures

WORKER = Path(__file__).with_name("few_rows_worker.py")
PAIR_BYTES = 16  # two row numbers of 8 bytes: SetFit lists every pair of rows before it draws from them


class FewRows(NamedTuple):
    """What SetFit is given: its interpreter, the folder of the encoder, training rows, steps of training."""

    python: Path
    encoder: str
    rows: int
    steps: int


def run_few_rows(data: PeerData, folder: Path, given: FewRows) -> Found:
    """Return SetFit and one-vs-all on words, both trained on the same few rows."""
    chosen = data.split()[0][: given.rows]
    texts, Y = [data.texts[i] for i in chosen], sp.csr_array(data.Y[chosen])
    n = len(data.texts)
    about: Facts = {
        "rows": given.rows,
        "versions": peer_versions(given.python),
        "pairs_of_all_rows": n * (n + 1) // 2,
        "gigabytes_of_all_pairs": PAIR_BYTES * n * (n + 1) / 2e9,
    }
    theirs, top = _train_and_predict(data, texts, Y, folder / "setfit", given)
    spent, ours = timed(_words, texts, Y, data.test_texts)
    facts = {"train_and_predict_seconds": spent.wall, "train_and_predict_cpu_seconds": spent.cpu, "rows": given.rows}
    return [("setfit", {**theirs, **about}, top), ("few-rows-words", facts, ours)]


def _train_and_predict(
    data: PeerData, texts: list[str], Y: sp.csr_array, folder: Path, given: FewRows
) -> tuple[Facts, TopK]:
    """Run SetFit in its own environment, unless its predictions are there."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "facts.json").exists():
        spec = {
            "texts": texts,
            "labels": [Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist() for i in range(Y.shape[0])],
            "test_texts": data.test_texts,
            "encoder": str(find_encoder(given.encoder) or given.encoder),
            "steps": given.steps,
            "threads": 1,
            "k": K,
            "output": str(folder.absolute()),
        }
        (folder / "spec.json").write_text(json.dumps(spec), "utf-8")
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        variables |= {"HF_HUB_OFFLINE": "1"}
        subprocess.run([str(given.python), str(WORKER), str(folder / "spec.json")], check=True, env=variables)
    with np.load(folder / "top.npz") as file:
        return json.loads((folder / "facts.json").read_text()), TopK(file["ids"], file["scores"])


def _words(texts: list[str], Y: sp.csr_array, test_texts: list[str]) -> TopK:
    """Train one classifier per label on words weighted by TF-IDF, and predict."""
    words = TfidfFeatures()
    return (
        OneVsAllClassifier(n_jobs=1).fit(words.fit_transform(texts), Y).predict_topk(words.transform(test_texts), k=K)
    )
