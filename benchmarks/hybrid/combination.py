"""What the combination of experts brings: the same experts with weights alone, and with boosted trees beside them.

    python benchmarks/hybrid/combination.py TASK... --data FOLDER --work FOLDER

A TASK is `data:seed` with settings after it, as in study.py; without any, the encoder is the multilingual one, which is
left as it is and needs no torch. Everything runs on the CPU. What the experts of a task say is kept in the work folder,
and not computed again where it is there: another way to combine them is tried in a minute.

"before" has weights learned without boosted trees, without the cube root of the tree's log probability and without how
far a label is behind the classifier's best; "weights alone" lacks the boosted trees. The favour for rare labels is
chosen anew for each.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.terminal import show_table
from benchmarks.hybrid.measure import K, measures
from benchmarks.hybrid.study import LENGTH, StudyData, file_of, over_seeds, parse, read, rounded, train
from longtail.encoder import UNIVERSAL_ENCODER, UniversalEncoder, is_universal
from longtail.hybrid import EXPERTS
from longtail.hybrid.combine import FEATURES_BEFORE, HeldOutCandidates
from longtail.hybrid.experts import AT
from longtail.hybrid.fit import RANKS_BY, learn_from, own_split, ranked

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


def keep_evidence(task: str, given: StudyData, file: Path) -> None:
    """Train the experts of a task, and keep what they say of held-out rows and of test rows."""
    name, seed, settings, _ = parse(task)
    settings = {"encoder": UNIVERSAL_ENCODER, **settings}
    if not is_universal(settings["encoder"]):
        settings = {"max_length": LENGTH.get(name, 128), "device": "cpu", **settings}
    fit, seconds = train(given, given.Y, seed, settings, n_jobs=-1)
    examples, as_new, split = fit.weighing.examples, fit.weighing.as_new, own_split(given.Y, seed)
    if examples is None or as_new is None or split is None:
        raise SystemExit(f"{task}: there are too few rows to learn weights")
    of_test = fit.experts.evidence(fit.experts.read(given.test_texts))
    np.savez(
        file,
        features=examples.features,
        features_as_new=as_new.features,
        candidates=examples.candidates,
        hits=examples.hits,
        worth=examples.worth,
        counts=np.bincount(given.Y[split[0]].indices, minlength=given.Y.shape[1]),
        test_features=of_test.features,
        test_candidates=of_test.candidates,
        seconds=seconds["all"],
    )


def without_the_last(features: np.ndarray) -> np.ndarray:
    """Return features in which the two that came last say nothing."""
    out = features.copy()
    out[:, :, FEATURES_BEFORE:] = 0
    return out


def compared(task: str, given: StudyData, file: Path) -> Facts:
    """Measure the ways to combine what the experts of a task say, and every expert alone."""
    seed = parse(task)[1]
    with np.load(file) as kept:
        of = {name: kept[name] for name in kept.files}
    counts = given.counts()

    def judge(scores: np.ndarray) -> dict[str, Any]:
        candidates = of["test_candidates"]
        top = ranked(candidates, np.where(candidates >= 0, scores, -np.inf), K)
        found = measures(top, given.Y_test, counts, len(given.texts))
        return {measure: found[measure] for measure in SHOWN}

    out: Facts = {"task": task, "seconds of training": float(of["seconds"])}
    for version, boosted, change in (
        ("now", True, np.asarray),
        ("weights alone", False, np.asarray),
        ("before", False, without_the_last),
    ):
        examples = HeldOutCandidates(change(of["features"]), of["candidates"], of["hits"], of["worth"])
        as_new = replace(examples, features=change(of["features_as_new"]))
        weighing = learn_from(examples, as_new, of["counts"], EXPERTS, None, seed, boosted=boosted)
        combination, features = weighing.combination, change(of["test_features"])
        out[version] = judge(combination.scores(features, of["test_candidates"], counts))
        plain = replace(combination, tail=0.0)
        out[f"{version}, rare labels not favoured"] = judge(plain.scores(features, of["test_candidates"], counts))
        out[f"tail {version}"] = combination.tail
        out[f"held out {version}"] = weighing.facts["together"]
    for expert in EXPERTS:
        out[f"alone: {expert}"] = judge(of["test_features"][:, :, AT[RANKS_BY[expert]]])
    return out


def main() -> None:
    parser = make_parser(__doc__, "hybrid_combination.json", data="optional", resume=True)
    parser.add_argument("tasks", nargs="+", metavar="TASK")
    parser.add_argument("--work", type=Path, required=True, metavar="FOLDER", help="where the evidence is kept")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    read_texts_once()
    facts = start_facts(args, {"summary": {}, "tasks": {}})
    for task in args.tasks:
        if task in facts["tasks"]:
            continue
        file = args.work / file_of(task).replace(".json", ".npz")
        data = read(parse(task)[0], args.data)
        if not file.exists():
            keep_evidence(task, data, file)
        facts["tasks"][task] = rounded(compared(task, data, file))
        runs: dict[str, list[Facts]] = {}
        for name, found in sorted(facts["tasks"].items()):
            title, _, *settings = name.split(":")
            runs.setdefault(" ".join([title, *settings]), []).append(found)
        facts["summary"] = {name: {"seeds": len(found), **over_seeds(found)} for name, found in runs.items()}
        write_results(facts, args.output)
        measured = {name: of for name, of in facts["tasks"][task].items() if isinstance(of, dict) and "p@1" in of}
        show_table(task, ["", *SHOWN], [[name, *(f"{of[m]:.2f}" for m in SHOWN)] for name, of in measured.items()])


if __name__ == "__main__":
    main()
