"""The one door for inputs: arrays and parameters are checked here, and only here."""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
