"""PRIME: a sentence encoder trained against label prototypes, alone or with a label tree."""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
