"""Compare two files of results, number by number: how far a result may be from the stored one depends on what it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.harness.program import Facts

Plain = str | float | bool | None
ABOUT_THE_RUN = ("command", "machine", "versions", "note", "python", "cores")  # of a file of results
MOST_SHOWN = 60  # disagreements of a rerun that are written down


@dataclass(frozen=True)
class Tolerance:
    """How far a new number may be from the stored one.

    Attributes
    ----------
    about : str
        The same in words.
    apart : float
        Allowed difference.
    share : float
        Allowed difference as a share of the stored number.
    times : float
        Allowed ratio of the larger to the smaller.
    """

    about: str
    apart: float = 0.0
    share: float = 0.0
    times: float = 1.0

    def allows(self, stored: float, found: float) -> bool:
        """Say whether two numbers agree.

        >>> TOLERANCES["time"].allows(2.0, 5.0), TOLERANCES["score"].allows(83.5, 83.1)
        (True, False)
        """
        if abs(stored - found) <= max(self.apart, self.share * abs(stored), 1e-9):
            return True
        smaller, larger = sorted((abs(stored), abs(found)))
        return stored * found > 0 and larger <= self.times * smaller


TOLERANCES = {
    "score": Tolerance("accuracies, in percent: 0.3 points", apart=0.3),
    "result": Tolerance("other results: 2 percent", share=0.02, apart=1e-6),
    "exact": Tolerance("counts, words, yes and no: the same"),
    "memory": Tolerance("memory and sizes: a ratio of 1.5", times=1.5, apart=1),
    "processor time": Tolerance("processor times: a ratio of 2, or 0.05 apart", times=2, apart=0.05),
    "time": Tolerance("times by the clock: a ratio of 3, or 0.05 apart", times=3, apart=0.05),
    "speed-up": Tolerance("ratios of two times: a ratio of 2", times=2),
}

Rules = Sequence[tuple[str, str | None]]  # a pattern of a path, and its tolerance; None: chance, not compared

USUAL: Rules = (
    (r"(^|[ _/])(goal|limit)_", "exact"),
    (r"cpu_", "processor time"),
    (r"(seconds|_s|_ms|_us|us_per_row|_us_per_row)( / (mean|median|low|high)| / \d+)?$", "time"),
    (r"(_mb|_bytes|_gb|megabytes|gigabytes|MB)$", "memory"),
    (r"(p|psp|ndcg|psndcg|f1|r)@\d", "score"),
)


def numbers(facts: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Plain]]:
    """Yield every plain value below some facts with its path."""
    if isinstance(facts, dict):
        for key, value in facts.items():
            yield from numbers(value, (*path, str(key)))
    elif isinstance(facts, list):
        for place, value in enumerate(facts):
            yield from numbers(value, (*path, str(place)))
    elif facts is None or isinstance(facts, str | int | float):
        yield " / ".join(path), facts


def kind_of(path: str, rules: Rules) -> str | None:
    """Return the name of the tolerance for a path, by the first pattern that is found in it.

    >>> kind_of("results / eurlex-4k / train_seconds", USUAL)
    'time'
    """
    return next((kind for pattern, kind in (*rules, *USUAL) if re.search(pattern, path)), "result")


def compare(stored: Facts, found: Facts, rules: Rules = (), parts: Sequence[str] = ()) -> Facts:
    """Return how many values agree, by tolerance, and those that do not.

    Parameters
    ----------
    stored, found : dict
        Contents of two files of results.
    rules : sequence of (str, str), default=()
        Patterns of paths and the tolerance for them, before the usual ones.
    parts : sequence of str, default=()
        Entries at the top that are compared; none stands for all.
    """
    old, new = (dict(numbers(_kept(facts, parts))) for facts in (stored, found))
    counts: dict[str, dict[str, Any]] = {}
    apart: list[Facts] = []
    chance = 0
    for path in old.keys() & new.keys():
        kind = kind_of(path, rules)
        if kind is None:
            chance += 1
            continue
        kind, agrees = _agreement(old[path], new[path], kind)
        count = counts.setdefault(kind, {"compared": 0, "agree": 0})
        count["compared"] += 1
        count["agree"] += agrees
        if not agrees:
            apart.append({"where": path, "tolerance": kind, "stored": old[path], "found": new[path]})
    apart.sort(key=lambda entry: str(entry["where"]))
    return {
        "compared": sum(count["compared"] for count in counts.values()),
        "agree": sum(count["agree"] for count in counts.values()),
        "by_tolerance": dict(sorted(counts.items())),
        "left_to_chance": chance,
        "not_measured_again": len(old.keys() - new.keys()),
        "new": len(new.keys() - old.keys()),
        "disagree": apart[:MOST_SHOWN],
        "more_that_disagree": max(0, len(apart) - MOST_SHOWN),
    }


def _agreement(stored: Plain, found: Plain, kind: str) -> tuple[str, bool]:
    """Return the tolerance that was used, and whether two values agree."""
    numbers = [value for value in (stored, found) if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < 2:
        return "exact", stored == found
    if kind == "result" and all(isinstance(number, int) for number in numbers):
        return "exact", stored == found
    return kind, TOLERANCES[kind].allows(float(numbers[0]), float(numbers[1]))


def _kept(facts: Facts, parts: Sequence[str]) -> Facts:
    return {key: value for key, value in facts.items() if key not in ABOUT_THE_RUN and (not parts or key in parts)}
