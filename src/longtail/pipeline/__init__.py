"""Text in, tags out: the Tagger, and planning, evaluating, explaining and auditing any model.

Where to read, in the order in which a tagger is used:

registry           the models and features that are known, by kind and by method
plan               time, memory and size of a training, before it is begun
tagger             `Tagger`: texts and label names in; label names, scores and probabilities out
label_names        labels by name: numbers of known ones, names and texts of new ones
held_out           rows held out of a training, and how good the model is on them
held_out_thresholds  what every threshold gives on these rows, and the threshold that suits a target
saved_models       models read back from their folders
evaluation         one tagger, or two compared, on data: the facts that reports show
drift              new rows compared with those held out of the training; the reference that a training leaves
explain            the words for and against each label
tree_description   a tagger's label tree as facts; label_slots: the leaf slots of one label
auditing           which label sets a model can never give; output_layer: the layer that is audited
imputation         labels of rows from labels of groups; imputation_facts: what was done, in numbers and words
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
