"""Data: the Dataset, predictions, file formats, splits, synthetic data and the bundled real data."""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
