from .estimators import CHECKS as CHECKS
from .estimators import all_estimators as all_estimators
from .estimators import check_estimator as check_estimator
from .estimators import checks_of as checks_of
from .failing import CheckFailed as CheckFailed
from .row_classifiers import ROW_CHECKS as ROW_CHECKS
