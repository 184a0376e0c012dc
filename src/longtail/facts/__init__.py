"""Typed facts: the JSON-able dicts that models, metrics and audits produce and that reports render."""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
