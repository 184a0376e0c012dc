"""Which labels of a dataset look wrong: `check_labels` and its parts.

Where to read:

check         `check_labels`: everything that is found, as facts
folds         probabilities of every row's likeliest labels, by models that were not trained on the row
other_labels  the same by a row's other labels too
suspects      labels that look wrong or missing, by confident learning
duplicates    rows that say the same and have different labels
synonyms      labels that may mean the same
findings      the facts as a table for a spreadsheet

Everything follows the labels given and the likeliest labels of every row; nothing of size rows × labels is made.
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
