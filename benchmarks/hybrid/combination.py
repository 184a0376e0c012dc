"""What two of the numbers that the hybrid's combination reads bring: the same experts, with and without them; on a CPU.

    python benchmarks/hybrid/combination.py TASK... --data FOLDER --out benchmarks/results/hybrid_combination.json

A TASK is `data:seed` with settings after it, as in study.py; without any, the encoder is the multilingual one, which is
left as it is and needs no torch. "before" has weights learned without the cube root of the tree's log probability and
without how far a label is behind the classifier's best; the favour for rare labels is chosen anew for each.
A text is read once, however many seeds there are. Results are joined to those of the file; a task that is there is not
run again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.hybrid.measure import K, measures
from benchmarks.hybrid.study import LENGTH, StudyData, over_seeds, parse, read, rounded, train
from longtail.encoder import UNIVERSAL_ENCODER, UniversalEncoder, is_universal
from longtail.hybrid import EXPERTS
from longtail.hybrid.combine import FEATURES_BEFORE
from longtail.hybrid.experts import AT, CandidateFeatures
from longtail.hybrid.fit import RANKS_BY, HybridFit, Weighing, learn_from, own_split, ranked

COMMAND = (
    "python benchmarks/hybrid/combination.py TASK... --data FOLDER --out benchmarks/results/hybrid_combination.json"
)
SHOWN = ("p@1", "p@3", "p@5", "psp@1", "psp@3", "psp@5", "r@100")


def read_texts_once() -> None:
    """Let the multilingual encoder keep the vector of every text that it has read."""
    known: dict[str, np.ndarray] = {}
    encode = UniversalEncoder.encode

    def remembering(self: UniversalEncoder, texts: Sequence[str], *args: Any, **kwargs: Any) -> np.ndarray:
        unknown = list(dict.fromkeys(text for text in texts if text not in known))
        known.update(zip(unknown, encode(self, unknown, *args, **kwargs), strict=True))
        return np.array([known[text] for text in texts], dtype=np.float32).reshape(len(texts), self.width)

    UniversalEncoder.encode = remembering  # type: ignore[method-assign]


def without_the_last(features: np.ndarray) -> np.ndarray:
    """Return features in which the two that came last say nothing."""
    out = features.copy()
    out[:, :, FEATURES_BEFORE:] = 0
    return out


def weighed_before(fit: HybridFit, given: StudyData, seed: int) -> Weighing:
    """Return weights learned without the two features that came last."""
    examples, as_new = fit.weighing.examples, fit.weighing.as_new
    split = own_split(given.Y, seed)
    if examples is None or as_new is None or split is None:
        raise SystemExit("there are too few rows to learn weights")
    examples = replace(examples, features=without_the_last(examples.features))
    as_new = replace(as_new, features=without_the_last(as_new.features))
    counts = np.bincount(given.Y[split[0]].indices, minlength=given.Y.shape[1])
    return learn_from(examples, as_new, counts, EXPERTS, None, seed)


def compared(task: str, given: StudyData) -> dict[str, Any]:
    """Train one hybrid, and measure it, it with weights learned without the two features, and its experts."""
    name, seed, settings, _ = parse(task)
    settings = {"encoder": UNIVERSAL_ENCODER, **settings}
    if not is_universal(settings["encoder"]):
        settings = {"max_length": LENGTH.get(name, 128), "device": "cpu", **settings}
    fit, seconds = train(given, given.Y, seed, settings, n_jobs=-1)
    evidence = fit.experts.evidence(fit.experts.read(given.test_texts))

    def judge(scores: np.ndarray, of: CandidateFeatures) -> dict[str, Any]:
        top = ranked(of.candidates, np.where(of.candidates >= 0, scores, -np.inf), K)
        found = measures(top, given.Y_test, given.counts(), len(given.texts))
        return {measure: found[measure] for measure in SHOWN}

    out: dict[str, Any] = {"task": task, "seconds": seconds["all"]}
    before = evidence._replace(features=without_the_last(evidence.features))
    for version, weighing, of in (
        ("now", fit.weighing, evidence),
        ("before", weighed_before(fit, given, seed), before),
    ):
        for rare, combination in (
            ("", weighing.combination),
            (", rare labels not favoured", replace(weighing.combination, tail=0.0)),
        ):
            out[version + rare] = judge(combination.scores(of.features, of.candidates, fit.experts.counts), of)
        out[f"tail {version}"] = weighing.combination.tail
    for expert in EXPERTS:
        out[f"alone: {expert}"] = judge(evidence.features[:, :, AT[RANKS_BY[expert]]], evidence)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    read_texts_once()
    tasks: dict[str, Any] = json.loads(given.out.read_text())["tasks"] if given.out.exists() else {}
    for task in given.tasks:
        if task in tasks:
            continue
        tasks[task] = rounded(compared(task, read(parse(task)[0], given.data)))
        shown = {name: [of["p@1"], of["p@5"], of["psp@5"]] for name, of in tasks[task].items() if isinstance(of, dict)}
        print(task, json.dumps(shown), flush=True)
        runs: dict[str, list[dict[str, Any]]] = {}
        for name, facts in sorted(tasks.items()):
            data, _, *settings = name.split(":")
            runs.setdefault(" ".join([data, *settings]), []).append(facts)
        summary = {name: {"seeds": len(of), **over_seeds(of)} for name, of in runs.items()}
        written = {"command": COMMAND, "summary": summary, "tasks": dict(sorted(tasks.items()))}
        given.out.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
