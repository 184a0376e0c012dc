"""The label tree: grow it, let labels overlap, train its classifiers, search it, change it, explain it.

Where to read, in the order in which a model comes to be:

estimator      `LabelTreeClassifier`: parameters, fit, partial_fit, add and remove labels, predict, explain, save
label_tree     `LabelTree`, the partition of the labels; hierarchy: a partition that the user brings
grow/          a partition grown from label vectors, balanced or by k-means
overlap        the leaf slots of labels with several meanings; its compiled loops are in overlap_kernels
train          the classifiers, from the root down; membership: which rows, labels and nodes belong together
train_level    those of one level, as tasks of an engine; solve: sixteen children of one node
chunks         the trained classifiers as flat arrays, saved and loaded; its compiled loops are in chunk_kernels
search         beam search for many rows or one, and merging of trees; its compiled loops are in beam
edit           new rows, new labels and removed labels, without training anew
explain        why a label, where rows are sent, what a leaf slot weighs
plan           what a training will take

A *leaf slot* is one position of a label in a leaf; an overlapping label has several. A *chunk* holds the classifiers
of all children of one node: the nodes below it or, in a leaf, its slots.
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
