"""The protocol every model follows: parameters, ranked labels, probabilities, saving, what the Tagger asks."""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
