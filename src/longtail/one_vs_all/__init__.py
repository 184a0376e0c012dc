"""One linear classifier per label: the exact baseline.

`estimator.py` trains and predicts, `topk_kernels.py` finds the k best labels of many rows, `plan.py` estimates what
a training will take. The solver is `longtail.kernels.coordinate_descent`, shared with the label tree.
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
