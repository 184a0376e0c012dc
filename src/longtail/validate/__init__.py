"""Checks of all inputs: arrays, parameters, seeds and numbers of threads."""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
