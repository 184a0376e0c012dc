"""Which labels a row is given: from the probabilities of its candidates to a label set.

Where to read:

decision       `Decision`, the rule itself, and the one function that applies it; saved with a model
purposes       the words of targets, guarantees and goals
learn          one function that chooses a decision on rows with known labels
thresholds     thresholds for precision, recall, labels per row, F1, macro-F1; per band and per label
conformal      thresholds with a guarantee
block_ascent   k labels for every row of a batch, for goals over labels such as macro-F1@k
frank_wolfe    the same goals for single rows, by gains learned on many
tradeoff       P@k against macro-F1@k

Everything works on the likeliest labels of every row, its candidates; nothing of size rows × labels is made.
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
