"""Conformance checks: what every estimator must do, whoever wrote it.

>>> from longtail import OneVsAllClassifier, checks
>>> checks.check_estimator(OneVsAllClassifier(max_iter=5))
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
