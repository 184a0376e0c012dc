"""From runs to facts: medians, ratios to the best peer, and which goals are reached."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.harness.scores import spread
from benchmarks.tree.compared_methods import METHODS

Facts = dict[str, Any]
COSTS: dict[str, str] = {  # ratio -> what it is a ratio of
    "train": "train_seconds",
    "train CPU": "train_cpu_seconds",
    "batch": "batch_us_per_row",
    "single row": "single_p50_us",
    "model size": "model_bytes",
    "peak memory": "peak_bytes",
    "memory added": "added_bytes",
}
MEDIANS = (
    *COSTS.values(),
    "single_p99_us",
    "peak_in_training_bytes",
    "before_training_bytes",
    "load_seconds",
    "save_seconds",
    "import_seconds",
    "warm_seconds",
    "others_cores",
)
PRECISIONS = ("p@1", "p@3", "p@5")
EURLEX_GOAL = {"p@1": 82.7, "p@3": 69.4, "p@5": 58.1}
# method -> (cost, how many times better than the best single-tree peer)
COST_GOALS: dict[str, dict[str, float]] = {
    "longtail": {"train": 1.5, "batch": 5.0, "single row": 5.0, "model size": 2.0, "peak memory": 1.0},
    "longtail-fast": {"train": 3.0},
}
GOAL_WORDS = {
    "train": "trains {times:g}x as fast as the fastest",
    "batch": "predicts batches {times:g}x as fast as the fastest",
    "single row": "predicts one row {times:g}x as fast as the fastest",
    "model size": "model {times:g}x as small as that of the smallest",
    "peak memory": "peak memory at most that of the smallest",
}


def summarise(runs: list[Facts]) -> dict[str, dict[str, Facts]]:
    """Return data set -> method -> medians of costs, mean and standard deviation of accuracy over the runs."""
    grouped: dict[str, dict[str, list[Facts]]] = {}
    for run in runs:
        grouped.setdefault(run["data"], {}).setdefault(run["method"], []).append(run)
    return {
        data: {name: _of_method(methods[name]) for name in METHODS if name in methods}
        for data, methods in grouped.items()
    }


def _of_method(runs: list[Facts]) -> Facts:
    finished = [run for run in runs if run["status"] == "ok"]
    if not finished:
        return {"runs": 0, "status": runs[-1]["status"], "message": runs[-1]["message"]}
    facts: Facts = {"runs": len(finished), "status": "ok", "seeds": sorted({run["seed"] for run in finished})}
    for name in MEDIANS:
        values = [run[name] for run in finished if run.get(name) is not None]
        facts[name] = statistics.median(values) if values else None
    scores = {name: [run["accuracy"][name] for run in finished] for name in finished[0]["accuracy"]}
    facts["accuracy"] = {name: statistics.fmean(values) for name, values in scores.items()}
    facts["accuracy_sd"] = {name: spread(values) for name, values in scores.items()}
    return facts


def finished_peers(methods: dict[str, Facts], trees: int) -> dict[str, Facts]:
    """Return the facts of the peers with as many trees that ended well."""
    return {
        name: facts
        for name, facts in methods.items()
        if facts["status"] == "ok" and not METHODS[name].ours and METHODS[name].trees == trees
    }


def ratios(methods: dict[str, Facts]) -> list[Facts]:
    """Return how many times cheaper each of our methods is than the cheapest peer with as many trees."""
    rows = []
    for name, facts in methods.items():
        peers = finished_peers(methods, METHODS[name].trees)
        if not METHODS[name].ours or facts["status"] != "ok" or not peers:
            continue
        for cost, key in COSTS.items():
            best = min(peers, key=lambda peer: peers[peer][key])
            row = {"method": name, "cost": cost, "value": facts[key], "peer": best, "peer_value": peers[best][key]}
            rows.append({**row, "ratio": peers[best][key] / facts[key]})
    return rows


def verdicts(summary: dict[str, dict[str, Facts]]) -> list[Facts]:
    """Return every goal with what was found; `reached` is None where something is missing."""
    goals = []
    for data, methods in summary.items():
        for name in ("longtail", "longtail-fast", "longtail-3"):
            goals += [{"data": data, **row} for row in _accuracy_goals(name, methods)]
            goals += [{"data": data, **row} for row in _cost_goals(name, methods)]
        if data == "eurlex-4k":
            goals += [{"data": data, **row} for row in _published_goals(methods)]
    return goals


def _accuracy_goals(name: str, methods: dict[str, Facts]) -> list[Facts]:
    peers = finished_peers(methods, METHODS[name].trees)
    kind = "single-tree peer" if METHODS[name].trees == 1 else f"{METHODS[name].trees}-tree peer"
    rows = []
    for metric in PRECISIONS:
        row: Facts = {"goal": f"{METHODS[name].title}: {metric.upper()} at or above the best {kind}", "method": name}
        if _ended(methods, name) and peers:
            best = max(peers, key=lambda peer: peers[peer]["accuracy"][metric])
            ours, theirs = methods[name]["accuracy"][metric], peers[best]["accuracy"][metric]
            row |= {"value": ours, "peer": best, "peer_value": theirs, "difference": ours - theirs}
        rows.append({**row, "reached": row["difference"] >= 0 if "difference" in row else None})
    return rows


def _cost_goals(name: str, methods: dict[str, Facts]) -> list[Facts]:
    by_cost = {row["cost"]: row for row in ratios(methods) if row["method"] == name}
    rows = []
    for cost, times in COST_GOALS.get(name, {}).items():
        wanted = GOAL_WORDS[cost].format(times=times)
        goal = f"{METHODS[name].title}: {wanted} single-tree peer"
        row: Facts = {"goal": goal, "method": name, **by_cost.get(cost, {})}
        rows.append({**row, "reached": row["ratio"] >= times if "ratio" in row else None})
    return rows


def _published_goals(methods: dict[str, Facts]) -> list[Facts]:
    rows = []
    for metric, least in EURLEX_GOAL.items():
        row: Facts = {"goal": f"longtail: {metric.upper()} at least {least}", "method": "longtail"}
        if _ended(methods, "longtail"):
            ours = methods["longtail"]["accuracy"][metric]
            row |= {"value": ours, "difference": ours - least}
        rows.append({**row, "reached": row["difference"] >= 0 if "difference" in row else None})
    return rows


def _ended(methods: dict[str, Facts], name: str) -> bool:
    return name in methods and methods[name]["status"] == "ok"
