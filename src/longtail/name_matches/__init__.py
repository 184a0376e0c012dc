"""Label names that stand in a text: which labels they name, and how likely each label is then.

Where to start reading:

- `estimator.py`: `NameMatches`, the story from names and tagged texts to log-odds of labels.
- `name_forms.py`: the forms in which a name may stand in a text; `name_index.py` keeps them by their stems.
- `find_kernel.py`: the compiled search of texts for all names; `candidates.py` runs it over many texts.
- `fit.py`: what is learned from texts with labels. `link_rates.py`: how often a label belongs to the texts that name
  it; `features.py`: what is known of a candidate; `logistic.py`: the weights of that.

Words and stems come from `longtail.text`.
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
