"""The one door for inputs: arrays and parameters are checked here, and only here."""

from longtail.validate.arrays import (
    as_dense,
    as_labels,
    as_rows,
    as_sparse,
    check_same_rows,
    check_width,
    make_csr,
)
from longtail.validate.estimator import Estimator, clone, not_fitted
from longtail.validate.parameters import (
    check_choice,
    check_flag,
    check_integer,
    check_real,
    check_widths,
    resolve_jobs,
    resolve_seed,
)

__all__ = [
    "Estimator",
    "as_dense",
    "as_labels",
    "as_rows",
    "as_sparse",
    "check_choice",
    "check_flag",
    "check_integer",
    "check_real",
    "check_same_rows",
    "check_width",
    "check_widths",
    "clone",
    "make_csr",
    "not_fitted",
    "resolve_jobs",
    "resolve_seed",
]
