"""Text in, tags out: the Tagger, and planning, evaluating, explaining and auditing any model."""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
