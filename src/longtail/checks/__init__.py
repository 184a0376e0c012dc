"""Conformance checks: what every estimator must do, whoever wrote it.

>>> from longtail.models import OneVsAllClassifier
>>> for check in CHECKS:
...     check(OneVsAllClassifier(max_iter=5))
"""

from longtail.checks.estimators import CHECKS, CheckFailed, all_estimators, check_estimator

__all__ = ["CHECKS", "CheckFailed", "all_estimators", "check_estimator"]
