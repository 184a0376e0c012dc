from .estimator import OneVsAllClassifier as OneVsAllClassifier
from .schema import LOSSES as LOSSES
