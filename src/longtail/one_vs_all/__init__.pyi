from .estimator import LOSSES as LOSSES
from .estimator import OneVsAllClassifier as OneVsAllClassifier
from .plan import estimate_ova as estimate_ova
