"""Model folders: a manifest and plain arrays; written atomically, verified and memory-mapped when read."""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
