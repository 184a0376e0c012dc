"""Labels of groups to labels of rows: EAGLE and multi-instance learning (MIML)."""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
