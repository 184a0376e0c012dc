"""Ranking metrics on predictions: they take a TopK and the truth, never a model.

Where to start reading:

- `ranking.py`: P@k, R@k, F1@k, nDCG@k, PSP@k, PSnDCG@k; `label_metrics.py`: coverage and macro averages over labels.
- `row_metrics.py`: predictions compared with the truth (`judge`), and the contribution of every row to a metric.
- `measures.py`: the metrics as functions of means over rows, by name in `ROW_METRICS`.
- `evaluation.py`, `comparison.py`: all metrics of one or two sets of predictions, with intervals and tests from
  `resample.py`, by frequency of labels from `bands.py`, with calibration from `reliability.py`.
- `propensity.py`: propensities of labels; `filter.py`: pairs that must not count.
- `sklearn_scorers.py`: scorers for scikit-learn's searches.
- `disentangle.py`: how well labels with several meanings were taken apart.

To add a metric over rows: write one function in `row_metrics.py` that returns a number per row, its formula in the
docstring, and add one line to `ROW_METRICS` in `measures.py`. To add a metric over labels: one line in `LABEL_METRICS`
of `label_metrics.py`. `evaluate` and `compare` know a new metric, and, for a metric over rows, `scorer("name@k")`.
For a function to call alone, add `name_at_k` beside the others and offer it in `__init__.pyi`. A slow loop in
`tests/metrics` must give the same number.
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
