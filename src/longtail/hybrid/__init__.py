"""The hybrid: an encoder, a label tree, similar training texts and names of labels, with learned weights.

Where to read, in the order in which a model comes to be:

estimator          `Hybrid`: parameters, fit, predict, add labels, explain, save
settings           what follows from the parameters, the data and the device
fit                the steps of a training, and the rows held out of it
encoder_with_labels  what a hybrid asks of its encoder: a `Prime`, or, without torch, a `FrozenEncoder`
frozen_encoder     an encoder that stays as it is, with vectors of labels; logistic_vectors: these, trained
experts            what each expert lists and says of a label; candidate_kernels: compiled
neighbours         the labels of similar training texts; neighbour_kernels: compiled
combine            the weights of what the experts say, learned on rows held out
boosted_trees      trees beside these weights; boosted_kernels: compiled
explain            which expert brought a label
store, schema      saving and restoring
plan               what a training will take
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
