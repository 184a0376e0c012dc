"""Texts to sparse rows by TF-IDF, and vectors for labels."""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
