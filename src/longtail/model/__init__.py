"""The protocol every model follows: parameters, ranked labels, probabilities, saving, what the Tagger asks.

Where to read:

base           `XMCEstimator`, the base of all models, and `RowClassifier`, the base of those that are trained on rows
params         parameters as scikit-learn has them, without importing it: get, set, clone
text_features  the protocols of features: texts in, rows out
fitting        shared pieces of `fit_dataset`: row splits, progress, rows of a dataset, held-out predictions
calibration    from scores to probabilities, learned on held-out rows
answers        what a model tells about itself: explanations of labels, its linear output layer
cost           what a training costs: the shape of the data, the cost of one fit and of the whole

A new model subclasses `RowClassifier`, or `XMCEstimator` where it does not learn from rows alone, gives its `kind` and
at least `fit`, `predict_topk`, `to_part` and `from_part`, and is listed in `pipeline/registry.py`.
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
