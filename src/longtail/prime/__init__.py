"""PRIME: a sentence encoder trained against label prototypes, alone or with a label tree.

Where to read, in the order in which a model comes to be:

estimator         `Prime`: parameters, fit, add labels, predict, explain, save
settings          presets, and the settings that follow from them, the data and the user's values
check_data        texts, labels and label texts that fit together
fit               the steps of a training: encoder, prototypes, training, classifier stage
network           the encoder with the prototypes of labels; prototypes: their components
train             the training: batches, labels, loss
batch_memory      batches that are too large for memory, in chunks
sampling          batches of similar queries (query_clusters) with their labels (sample_labels, compiled)
label_means       means of the texts of labels, and lengths that compare fairly; numpy alone
losses            triplet losses between queries and labels
classifier_stage  one vector per label, trained from its prototype on
search            the label vectors with the largest inner products
tree_stage        a label tree on words beside the encoder; sum_scores: both scores added, compiled
new_labels        prototypes of labels without training rows
explain           how much a score falls without each word
features          words and a trained encoder side by side, as rows for other models
store             the network saved and restored
plan              what a training will take
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
