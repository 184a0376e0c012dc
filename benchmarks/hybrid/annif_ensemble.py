"""Annif's own ensemble by its own commands: Omikuji Bonsai and MLLM, averaged, or joined by its neural network."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import time
from pathlib import Path

import numpy as np

from benchmarks.harness.program import Facts
from benchmarks.hybrid.measure import K
from benchmarks.hybrid.peer_data import Found, PeerData, top_of_pairs

URI = "http://example.org/label/"
MLLM_DOCUMENTS = 5_000  # MLLM learns what a good match is: its authors train it on some thousand documents
TRIALS = 20  # of weights
AGAIN = 0.07  # where the held-out rows are a larger share, Omikuji is trained again on all
CHARACTERS = 5_000  # of a text that count
SETTINGS = """\
[bonsai]
name = Omikuji Bonsai
language = en
backend = omikuji
analyzer = snowball(english)
vocab = labels
cluster_balanced = False
cluster_k = 100
max_depth = 3
min_df = {min_df}
ngram = {ngram}
transform = limit({characters})
limit = 100

[mllm]
name = MLLM
language = en
backend = mllm
analyzer = snowball(english)
vocab = labels
transform = limit({characters})
limit = 100

[average]
name = mean of both
language = en
backend = ensemble
vocab = labels
sources = bonsai,mllm
limit = 100

[network]
name = neural network over both
language = en
backend = nn_ensemble
vocab = labels
sources = bonsai:{bonsai},mllm:{mllm}
limit = 100
"""


class Annif:
    """Annif in a folder of its own; every command is run once, and its times are kept beside its log."""

    def __init__(self, program: Path, folder: Path, words: Facts) -> None:
        self.program, self.folder, self.words = program, folder, words
        self.steps = folder / "steps"
        self.steps.mkdir(parents=True, exist_ok=True)

    def settings(self, bonsai: float = 0.5, mllm: float = 0.5) -> None:
        """Write the configuration of the projects, with the weights of the network's sources."""
        (self.folder / "projects.cfg").write_text(SETTINGS.format(**self.words, bonsai=bonsai, mllm=mllm))

    def run(self, step: str, *words: str) -> Facts:
        """Run a command, or return the facts of the run that is there: seconds, processor seconds, output."""
        kept = self.steps / f"{step}.json"
        if kept.exists():
            return json.loads(kept.read_text())
        print(f"  annif {' '.join(words)}", flush=True)
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        variables |= {"ANNIF_DATADIR": "annif-data", "ANNIF_PROJECTS": "projects.cfg"}
        wall, cpu = time.perf_counter(), _cpu_of_children()
        done = subprocess.run(
            [str(self.program), *words], cwd=self.folder, env=variables, capture_output=True, text=True
        )
        facts: Facts = {"seconds": time.perf_counter() - wall, "cpu_seconds": _cpu_of_children() - cpu}
        (self.steps / f"{step}.log").write_text(done.stdout + done.stderr)
        if done.returncode:
            raise RuntimeError(f"annif {' '.join(words)}: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
        facts["output"] = done.stdout[-2_000:]
        kept.write_text(json.dumps(facts))
        return facts

    def predictions(self, project: str) -> tuple[Facts, list[list[tuple[int, float]]]]:
        """Return the times and the 100 best labels of every test row."""
        output = f"{project}.jsonl"
        facts = self.run(
            f"index-{project}", "index", project, "test.tsv", "-l", str(K), "-O", output, "--no-include-doc"
        )
        with (self.folder / output).open(encoding="utf-8") as file:
            rows = [json.loads(line)["results"] for line in file]
        return facts, [[(int(r["uri"].rpartition("/")[2]), r["score"]) for r in row] for row in rows]


def run_annif(data: PeerData, folder: Path, program: Path, words: Facts, network: bool) -> Found:
    """Train all parts; return name, facts and predictions of each.

    Weights and network are learned on held-out rows, by sources that have not seen them. Where these are many, Omikuji
    is then trained on all rows.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "test.tsv").exists():
        write_corpus(data, folder)
    annif = Annif(program, folder, words)
    annif.settings()
    annif.run("vocabulary", "load-vocab", "labels", "labels.ttl")
    learned = {"mllm": [annif.run("mllm", "train", "mllm", "rest.tsv", "-d", str(MLLM_DOCUMENTS))]}
    learned["bonsai"] = [annif.run("bonsai-rest", "train", "bonsai", "rest.tsv", "-j", "2")]
    tuned = annif.run("weights", "hyperopt", "average", "held.tsv", "-T", str(TRIALS))
    weights = {name: float(value) for name, value in re.findall(r"(bonsai|mllm):([\d.]+)", tuned["output"])}
    annif.settings(**weights)
    if network:
        learned["network"] = [annif.run("network", "train", "network", "held.tsv"), tuned]
    rest, held = (len(rows) for rows in data.split())
    if held > AGAIN * (rest + held):
        learned["bonsai"] += [annif.run("bonsai-all", "train", "bonsai", "rest.tsv", "held.tsv", "-j", "2")]
    predicted = {name: annif.predictions(name) for name in learned}
    times = {name: facts for name, (facts, _) in predicted.items()}
    one, other = predicted["bonsai"][1], predicted["mllm"][1]
    both, asked = learned["bonsai"] + learned["mllm"], [times["bonsai"], times["mllm"]]
    equal, best = averaged(one, other, 0.5, 0.5), averaged(one, other, weights["bonsai"], weights["mllm"])
    found = [
        ("annif-bonsai", _spent(learned["bonsai"][-1:], [times["bonsai"]]), one),
        ("annif-mllm", _spent(learned["mllm"], [times["mllm"]]) | {"rows": min(MLLM_DOCUMENTS, rest)}, other),
        ("annif-equal", _spent(both[-2:], asked), equal),
        ("annif-tuned", _spent([*both, tuned], asked) | {"rows": held, "weights": weights}, best),
    ]
    if network:
        facts = _spent([*both, *learned["network"]], [times["network"]]) | {"rows": held}
        found.append(("annif-neural", facts, predicted["network"][1]))
    return [(name, facts, top_of_pairs(pairs, K)) for name, facts, pairs in found]


def averaged(
    one: list[list[tuple[int, float]]], other: list[list[tuple[int, float]]], weight: float, other_weight: float
) -> list[list[tuple[int, float]]]:
    """Return weighted means of scores, as Annif's `ensemble` makes them of what its sources suggest."""
    means = []
    for first, second in zip(one, other, strict=True):
        total: dict[int, float] = {label: weight * score for label, score in first}
        for label, score in second:
            total[label] = total.get(label, 0.0) + other_weight * score
        means.append([(label, score / (weight + other_weight)) for label, score in total.items()])
    return means


def write_corpus(data: PeerData, folder: Path) -> None:
    """Write labels as SKOS, training rows in random order, held-out rows, and the test rows last."""
    lines = ["@prefix skos: <http://www.w3.org/2004/02/skos/core#> ."]
    for label, names in enumerate(data.names):
        parts = ["a skos:Concept", *(f"skos:altLabel {_literal(name)}" for name in names[1:])]
        parts += [f"skos:prefLabel {_literal(names[0])}", *(f"skos:broader <{URI}{p}>" for p in data.parents[label])]
        lines.append(f"<{URI}{label}> {' ; '.join(parts)} .")
    (folder / "labels.ttl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for part, chosen in zip(("rest", "held"), data.split(), strict=True):
        _write_rows(data, chosen, folder / f"{part}.tsv")
    (folder / "test.tsv").write_text("\n".join(map(_line, data.test_texts)) + "\n", encoding="utf-8")


def _write_rows(data: PeerData, chosen: np.ndarray, file: Path) -> None:
    """Write texts with the labels of each, by Annif's tab separated format."""
    with file.open("w", encoding="utf-8") as out:
        for row in chosen.tolist():
            labels = data.Y.indices[data.Y.indptr[row] : data.Y.indptr[row + 1]]
            out.write(f"{_line(data.texts[row])}\t{' '.join(f'<{URI}{label}>' for label in labels)}\n")


def _line(text: str) -> str:
    """Return a text as one line without tabs."""
    return " ".join(text.split())


def _literal(name: str) -> str:
    """Return an English literal of Turtle."""
    return json.dumps(_line(name), ensure_ascii=False) + "@en"


def _spent(training: list[Facts], prediction: list[Facts]) -> Facts:
    """Return the seconds of all commands that a result needed."""
    return {
        "train_seconds": sum(facts["seconds"] for facts in training),
        "train_cpu_seconds": sum(facts["cpu_seconds"] for facts in training),
        "predict_seconds": sum(facts["seconds"] for facts in prediction),
        "predict_cpu_seconds": sum(facts["cpu_seconds"] for facts in prediction),
    }


def _cpu_of_children() -> float:
    """Return the processor seconds of all commands that have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime
