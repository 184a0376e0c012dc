"""Which label sets, classes and top-k sets a linear output layer can never produce, with proofs."""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
