"""The label tree: grow it, let labels overlap, train its classifiers, search it, change it, explain it."""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
