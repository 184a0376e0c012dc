"""Estimates before a training: the shape of data judged from a sample."""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
