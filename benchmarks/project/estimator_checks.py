"""Run scikit-learn's check_estimator for every estimator of longtail and report how many checks each passes.

    python benchmarks/project/estimator_checks.py FACTS.json

A process of its own for `house.py`, which sets PYTHONPATH to the code that is measured.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

NAMES = (  # estimators and transformers; those that a version does not have are left out
    "LabelTreeClassifier",
    "OneVsAllClassifier",
    "BottleneckClassifier",
    "MIMLClassifier",
    "Prime",
    "Eagle",
    "TfidfFeatures",
    "EncoderFeatures",
)


def make(name: str) -> Any:
    """Return an estimator that trains quickly, or None where this version has no such name."""
    import longtail

    kind = getattr(longtail, name, None)
    if kind is None:
        return None
    quick = {"BottleneckClassifier": {"epochs": 1}, "MIMLClassifier": {"epochs": 1}, "Prime": {"epochs": 1}}
    return kind(**quick.get(name, {}))


def check(estimator: Any) -> dict[str, Any]:
    """Return how many checks pass, fail and are skipped, and the names of those that fail."""
    from sklearn.utils.estimator_checks import check_estimator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_fail=None, on_skip=None)
    by_status: dict[str, list[str]] = {}
    for result in results:
        by_status.setdefault(result["status"], []).append(result["check_name"])
    counts = {status: len(names) for status, names in by_status.items()}
    return {"checks": len(results), **counts, "names_of_failed": by_status.get("failed", [])}


def main() -> None:
    facts: dict[str, Any] = {}
    for name in sys.argv[2:] or NAMES:
        estimator = make(name)
        if estimator is None:
            continue
        try:
            facts[name] = check(estimator)
        except Exception as error:  # the checks refuse to begin, as for an estimator without tags
            facts[name] = {"checks": 0, "passed": 0, "refused": f"{type(error).__name__}: {error}"[:200]}
        Path(sys.argv[1]).write_text(json.dumps(facts))
        print(name, {key: value for key, value in facts[name].items() if key != "names_of_failed"}, flush=True)


if __name__ == "__main__":
    main()
