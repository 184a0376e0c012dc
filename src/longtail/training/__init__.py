"""One training loop for torch models, its checkpoints, processes and devices."""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
