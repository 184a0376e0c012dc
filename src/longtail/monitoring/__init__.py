"""Has the data changed since a model was trained? A batch of rows is compared with rows held out of the training.

Where to read:

row_measures   what is measured of every row: length, unknown words, probability, labels, hits
reference      `Profile`, the measures of many rows as histograms; `Reference`, the one that a model folder keeps
chance         how far two histograms of one kind of rows differ by chance alone
compare        what is compared, how, and from which difference on it matters
label_changes  labels that are assigned far more or less often than before
frequent       the most frequent names of a long stream, in bounded memory
wording        the verdicts in sentences

Rows are drawn, not words or labels, so every test deals rows out again: the labels or words of one row come together.
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
