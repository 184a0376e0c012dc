"""Estimates before a training: the shape of data judged from a sample, and the memory of this machine."""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
