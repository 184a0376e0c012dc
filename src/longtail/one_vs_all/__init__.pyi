from .estimator import LOSSES as LOSSES
from .estimator import OneVsAllClassifier as OneVsAllClassifier
