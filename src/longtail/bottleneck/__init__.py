"""Networks with a narrow output layer, and the DFT output layer that can give every small label set."""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
