"""Compiled loops that several methods share: vector lanes, linear solver, sparse scoring, balanced 2-means, threads."""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
