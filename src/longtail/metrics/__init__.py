"""Ranking metrics on predictions: they take a TopK and the truth, never a model."""

from longtail.metrics.bands import BAND_NAMES, LabelBands, by_band, label_bands
from longtail.metrics.calibration import calibration
from longtail.metrics.comparison import compare
from longtail.metrics.disentangle import disentanglement, share_apart, variation_of_information
from longtail.metrics.facts import evaluate
from longtail.metrics.filters import filter_topk
from longtail.metrics.labels import coverage_at_k, macro_f1_at_k, macro_precision_at_k, macro_recall_at_k
from longtail.metrics.propensity import PROPENSITY_CONSTANTS, label_counts, propensities
from longtail.metrics.ranking import f1_at_k, ndcg_at_k, precision_at_k, psndcg_at_k, psp_at_k, recall_at_k
from longtail.metrics.scorers import Scorer, scorer, scorers

__all__ = [
    "BAND_NAMES",
    "PROPENSITY_CONSTANTS",
    "LabelBands",
    "Scorer",
    "by_band",
    "calibration",
    "compare",
    "coverage_at_k",
    "disentanglement",
    "evaluate",
    "f1_at_k",
    "filter_topk",
    "label_bands",
    "label_counts",
    "macro_f1_at_k",
    "macro_precision_at_k",
    "macro_recall_at_k",
    "ndcg_at_k",
    "precision_at_k",
    "propensities",
    "psndcg_at_k",
    "psp_at_k",
    "recall_at_k",
    "scorer",
    "scorers",
    "share_apart",
    "variation_of_information",
]
