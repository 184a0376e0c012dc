"""Settings of a model by search: many are tried on few rows, the better ones on more, the best on all.

space    which values a setting may take, and drawing from them
trial    one setting trained on some rows and judged on rows held out, as work of an engine
search   `tune`: successive halving over trials, and what it found
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
