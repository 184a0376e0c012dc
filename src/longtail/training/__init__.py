"""One training loop for torch models, with checkpoints, schedules, devices and several processes."""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
