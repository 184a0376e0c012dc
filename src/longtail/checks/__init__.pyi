from .estimators import CHECKS as CHECKS
from .estimators import CheckFailed as CheckFailed
from .estimators import all_estimators as all_estimators
from .estimators import check_estimator as check_estimator
