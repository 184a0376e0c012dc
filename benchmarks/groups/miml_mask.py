"""Measure what EAGLE's mask adds to Deep-MIML in groups of 50 images, from lists and from sets of labels.

    python benchmarks/groups/miml_mask.py --fashion FOLDER [--stages choose test] [--seeds 0 1 ...] [--jobs 1]

The experiment of Table 3 of the EAGLE paper (Shen et al. 2020) with the largest gain: Fashion-MNIST, random groups of
50. Nearly all of them have all ten labels. The paper has lists, in which a label stands as often as rows have it; of
sets, only those of the one group in twenty that lacks a label say anything. Four problems, "loss from what is known":

- list from lists: softmax over labels of the best rows' scores, every entry of the list an answer (the paper's, likely)
- list from sets: the same, every label of the set an answer
- presence from sets: for each label whether the group has it
- sets from sets: our loss, for rows with one label each

Stage "choose", on 10,000 images held out of train: as in the paper, learning rate and number of epochs are those
best for Deep-MIML (mean of three seeds) and hold for every mask; then tau for each mask (one seed). Stage "test": all
of train, accuracy on the test images after the chosen number of epochs. Groups, start and order of batches depend on
the seed only, so that a gain is measured between two models of the same seed. Loss and accuracy after every epoch are
written too.
"""

from __future__ import annotations

import argparse
import itertools
import math
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from statistics import mean

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.groups.miml import HELD_OUT, PAPER, read_images
from benchmarks.harness.program import Deadline, Facts, make_parser, start_facts, write_results
from benchmarks.harness.scores import mean_and_sd
from benchmarks.harness.timing import timed
from longtail.data import group_randomly
from longtail.groups import MIMLClassifier

PROBLEMS = {  # loss, what is known of groups
    "list from lists": ("list", "lists"),
    "list from sets": ("list", "sets"),
    "presence from sets": ("presence", "sets"),
    "sets from sets": ("sets", "sets"),
}
MASKS = ("none", "eagle-0", "eagle", "auto")
RATES = (1e-4, 3e-4, 1e-3)
TAUS = (1.0, 4.0)
CHOOSING_SEEDS = (100, 101, 102)  # the first of them alone for tau
SETTINGS: Facts = {"hidden": 256, "concepts": 5, "batch_size": 32, "valid": 0}


def main() -> None:
    args = options()
    facts = start_facts(args, {"settings": {**SETTINGS, "size": args.size, "epochs": args.epochs}, "runs": []}, "torch")
    deadline = Deadline(args.minutes)
    for stage in args.stages:
        for todo in batches(stage, facts, args):
            known = {key(run) for run in facts["runs"]}
            for run in run_all([cell for cell in todo if key(cell) not in known], args, deadline):
                facts["runs"].append(run)
                print(line(run), flush=True)
                facts["chosen"], facts["summary"] = chosen(facts["runs"]), summarise(facts["runs"], args.size)
                write_results(facts, args.output)
            if deadline.passed():
                return
    show(summarise(facts["runs"], args.size))


def batches(stage: str, facts: Facts, args: argparse.Namespace) -> Iterator[list[Facts]]:
    """Yield lists of models to train, each after the one before is done."""
    if stage == "choose":
        head = {"stage": "choose", "epochs": args.epochs}
        yield [
            {**head, "problem": problem, "mask": "none", "tau": 0.0, "lr": lr, "seed": seed}
            for seed, problem, lr in itertools.product(CHOOSING_SEEDS[: args.choosing], args.problems, RATES)
        ]
        best = chosen(facts["runs"])
        yield [
            {**head, "problem": problem, "mask": mask, "tau": tau, "lr": best[problem]["lr"], "seed": seed}
            for seed, problem, tau, mask in itertools.product(CHOOSING_SEEDS[:1], args.problems, TAUS, MASKS[1:])
        ]
        return
    best = chosen(facts["runs"])
    yield [
        {
            "stage": "test",
            "problem": problem,
            "mask": mask,
            "tau": best[problem]["tau"].get(mask, 0.0),
            "lr": best[problem]["lr"],
            "epochs": best[problem]["epochs"],
            "seed": seed,
        }
        for seed, problem, mask in itertools.product(args.seeds, args.problems, MASKS)
        if mask == "none" or mask in best[problem]["tau"]
    ]


def run_all(todo: list[Facts], args: argparse.Namespace, deadline: Deadline) -> Iterator[Facts]:
    """Train the models, some side by side, and yield the results as they come."""
    if args.jobs == 1:
        for cell in todo:
            if deadline.passed():
                return
            yield train_one(cell, args)
        return
    with ProcessPoolExecutor(args.jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = [pool.submit(train_one, cell, args) for cell in todo]
        for done in as_completed(waiting):
            if not done.cancelled():
                yield done.result()
            if time.monotonic() > deadline.end:
                for other in waiting:
                    other.cancel()


def train_one(cell: Facts, args: argparse.Namespace) -> Facts:
    """Train one model, and measure accuracy on single images after every epoch."""
    import torch

    torch.set_num_threads(args.threads)
    X, y = read_images(args.fashion, "train")
    if cell["stage"] == "choose":
        order = np.random.default_rng(cell["seed"]).permutation(y.size)
        X, y, X_test, y_test = X[order[HELD_OUT:]], y[order[HELD_OUT:]], X[order[:HELD_OUT]], y[order[:HELD_OUT]]
    else:
        X_test, y_test = read_images(args.fashion, "t10k")
    groups, counts = group_randomly(sp.csr_array(np.eye(10, dtype=np.float32)[y]), args.size, random_state=cell["seed"])
    loss, known = PROBLEMS[cell["problem"]]
    how = {name: cell[name] for name in ("mask", "tau", "lr", "epochs")}
    model = MIMLClassifier(**SETTINGS, **how, loss=loss, random_state=cell["seed"], device=args.device)
    curve: list[list[float]] = []

    def measure(epoch: object) -> None:
        right = model.predict_topk(X_test, k=1).ids[:, 0] == y_test
        curve.append([round(epoch.loss, 5), round(100 * float(right.mean()), 2)])  # type: ignore[attr-defined]

    spent, _ = timed(lambda: model.fit(X, groups, counts.sign() if known == "sets" else counts, on_epoch=measure))
    device = str(next(model.network_.parameters()).device.type)
    return {**cell, "accuracy": curve[-1][1], "curve": curve, "seconds": round(spent.wall, 1), "on": device}


def chosen(runs: list[Facts]) -> Facts:
    """Return, for each problem, learning rate and epochs best for Deep-MIML, and the best tau of every mask then."""
    held_out = [run for run in runs if run["stage"] == "choose"]
    out: Facts = {}
    for problem in dict.fromkeys(run["problem"] for run in held_out):
        plain = [run for run in held_out if run["problem"] == problem and run["mask"] == "none"]
        if not plain:
            continue
        best: tuple[float, float, int] = max(
            (accuracy_after(same, epoch), lr, epoch)
            for lr, same in by(plain, "lr")
            for epoch in range(1, len(plain[0]["curve"]) + 1)
        )
        facts: Facts = {"lr": best[1], "epochs": best[2], "accuracy": {"none": round(best[0], 2)}, "tau": {}}
        for mask in MASKS[1:]:
            masked = [run for run in held_out if run["problem"] == problem and run["mask"] == mask]
            found = max(((accuracy_after(same, best[2]), tau) for tau, same in by(masked, "tau")), default=None)
            if found is not None:
                facts["accuracy"][mask], facts["tau"][mask] = round(found[0], 2), found[1]
        out[problem] = facts
    return out


def by(runs: Iterable[Facts], name: str) -> Iterator[tuple[float, list[Facts]]]:
    """Yield the runs by one of their settings."""
    runs = list(runs)
    for value in sorted({run[name] for run in runs}):
        yield value, [run for run in runs if run[name] == value]


def accuracy_after(runs: list[Facts], epoch: int) -> float:
    """Return the mean accuracy after so many epochs."""
    return mean(run["curve"][epoch - 1][1] for run in runs)


def summarise(runs: list[Facts], size: int) -> Facts:
    """Return accuracy on the test images, and the gain of every mask over Deep-MIML of the same seed."""
    tested = [run for run in runs if run["stage"] == "test"]
    out: Facts = {}
    for problem in dict.fromkeys(run["problem"] for run in tested):
        of = {(run["mask"], run["seed"]): run["accuracy"] for run in tested if run["problem"] == problem}
        for mask in MASKS:
            seeds = sorted(seed for name, seed in of if name == mask)
            if not seeds:
                continue
            facts: Facts = {"seeds": len(seeds), "accuracy": mean_and_sd([of[mask, seed] for seed in seeds], 2)}
            facts["range"] = [min(of[mask, seed] for seed in seeds), max(of[mask, seed] for seed in seeds)]
            gains = [of[mask, seed] - of["none", seed] for seed in seeds if mask != "none" and ("none", seed) in of]
            if len(gains) > 1:
                facts["gain"] = mean_and_sd(gains, 2)
                facts["gain"]["error"] = round(facts["gain"]["sd"] / math.sqrt(len(gains)), 2)
                facts["gain"]["seeds above 0"] = sum(gain > 0 for gain in gains)
            paper = PAPER.get(f"fashion {size}", {}).get("deep-miml" if mask == "none" else mask)
            if problem == "list from lists" and paper is not None:
                facts["paper"] = paper
            out.setdefault(problem, {})[mask] = facts
    return out


def show(summary: Facts) -> None:
    """Print accuracy and gain."""
    for problem, masks in summary.items():
        print(f"\n{problem}")
        for mask, facts in masks.items():
            gain = facts.get("gain", {})
            more = f", gain {gain['mean']} ± {gain['error']} ({gain['seeds above 0']} seeds above 0)" if gain else ""
            print(f"  {mask:<8} {facts['accuracy']['mean']} ± {facts['accuracy']['sd']} ({facts['seeds']} seeds){more}")


def line(run: Facts) -> str:
    """Return one run in one line."""
    return f"{', '.join(str(part) for part in key(run))}: {run['accuracy']} in {run['seconds']} s on {run['on']}"


def key(run: Facts) -> tuple[object, ...]:
    """Return what tells a run from all others."""
    return tuple(run[name] for name in ("stage", "problem", "mask", "tau", "lr", "epochs", "seed"))


def options() -> argparse.Namespace:
    parser = make_parser(__doc__, "miml_mask.json", seeds=range(10), resume=True)
    parser.add_argument("--fashion", type=Path, default=Path("/usr/share/datasets/fashion-mnist"))
    parser.add_argument("--stages", nargs="+", choices=("choose", "test"), default=["choose", "test"])
    parser.add_argument("--problems", nargs="+", choices=tuple(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--size", type=int, default=50, help="rows of a group")
    parser.add_argument("--epochs", type=int, default=20, help="at most, when choosing")
    parser.add_argument("--choosing", type=int, default=len(CHOOSING_SEEDS), help="seeds to choose on")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of torch, for each job")
    parser.add_argument("--device", default=None)
    parser.add_argument("--minutes", type=float, default=None, help="begin nothing new after these")
    return parser.parse_args()


if __name__ == "__main__":
    main()
