"""Compare two sets of predictions for the same rows: differences, their intervals and p-values."""

from __future__ import annotations

from collections.abc import Sequence

import scipy.sparse as sp

from longtail.data import TopK
from longtail.facts import DifferenceFacts, DifferencesFacts
from longtail.metrics.bands import BAND_NAMES, LabelBands, band_measures
from longtail.metrics.evaluation import (
    UNITS,
    check_frequencies,
    check_ks,
    check_level,
    counts_of,
    number,
    with_ancestors,
)
from longtail.metrics.label_metrics import label_measures
from longtail.metrics.measures import Measure, row_measures
from longtail.metrics.propensity import NumberPerLabel
from longtail.metrics.resample import paired_intervals, randomisation_p_values
from longtail.metrics.row_metrics import Judged, judge
from longtail.metrics.shown import ShownDifferences
from longtail.notebook import shown_as
from longtail.validate import MatrixLike, RandomState, check_integer, resolve_seed


def compare(
    Y_true: MatrixLike,
    topk_a: TopK,
    topk_b: TopK,
    *,
    ks: Sequence[int] = (1, 3, 5),
    propensity: NumberPerLabel | None = None,
    train_counts: NumberPerLabel | None = None,
    bands: LabelBands | None = None,
    ancestors: sp.sparray | None = None,
    n_bootstrap: int = 1000,
    n_permutations: int = 2000,
    level: float = 0.95,
    random_state: RandomState = 0,
    remove_empty: bool = False,
) -> DifferencesFacts:
    """Return for every metric the values of a and b, the difference b - a, its interval and a p-value.

    Both see the same resampled rows, so what makes a row easy or hard for both cancels. The p-value comes
    from a randomisation test: how often a difference this large arises when a and b are swapped at random,
    row by row (label by label for coverage and the macro averages). It is not corrected for looking at
    several metrics.

    Parameters
    ----------
    Y_true : matrix of shape (n_rows, n_labels)
        The truth; every non-zero is a true label.
    topk_a, topk_b : TopK
        The two sets of predictions for the same rows.
    n_permutations : int, default=2000
        Random swaps of the test; 0 leaves the p-values out.
    ks, propensity, train_counts, bands, ancestors, n_bootstrap, level, random_state, remove_empty
        As in `evaluate`.

    Returns
    -------
    facts : dict
        JSON-able; `metrics` holds `a`, `b`, `difference`, `low`, `high` and `p_value` of every metric.

    Examples
    --------
    >>> Y = [[1, 0, 0], [0, 1, 0]] * 10
    >>> a = TopK.from_scores([[0.9, 0.5, 0.1]] * 20, k=1)
    >>> b = TopK.from_scores(Y, k=1)
    >>> metric = compare(Y, a, b, ks=(1,))["metrics"]["p@1"]
    >>> metric["a"], metric["b"], metric["difference"], metric["p_value"] < 0.01
    (0.5, 1.0, 0.5, True)
    """
    ks = check_ks(topk_b, check_ks(topk_a, ks))
    n_bootstrap = check_integer("n_bootstrap", n_bootstrap, low=0)
    n_permutations = check_integer("n_permutations", n_permutations, low=0)
    level, seed = check_level(level), resolve_seed(random_state)
    judged = [
        judge(Y_true, topk, ks[-1], propensity=propensity, remove_empty=remove_empty) for topk in (topk_a, topk_b)
    ]
    a, b = (with_ancestors(one, ancestors) for one in judged)
    _, bands = check_frequencies(train_counts, bands, a.n_labels)

    def differences(of_a: list[Measure], of_b: list[Measure]) -> dict[str, DifferenceFacts]:
        bounds = paired_intervals(of_a, of_b, n_bootstrap, level, seed)
        p_values = randomisation_p_values(of_a, of_b, n_permutations, seed)
        out: dict[str, DifferenceFacts] = {}
        for ma, mb, (low, high), p in zip(of_a, of_b, bounds, p_values, strict=True):
            va, vb = ma.value(), mb.value()
            out[ma.name] = {
                "a": number(va),
                "b": number(vb),
                "difference": number(vb - va),
                "low": low,
                "high": high,
                "p_value": p,
            }
        return out

    by_rows = differences(_row_measures(a, ks, bands), _row_measures(b, ks, bands))
    of_labels = [[m for k in ks for m in label_measures(judged, k)] for judged in (a, b)]
    by_labels = differences(*of_labels)
    facts: DifferencesFacts = {
        **counts_of(a, ks),
        "remove_empty": bool(remove_empty),
        "interval": {
            "method": "paired percentile bootstrap",
            **UNITS,
            "level": level,
            "resamples": n_bootstrap,
            "seed": seed,
        },
        "test": {"method": "paired randomisation, two-sided", "permutations": n_permutations, "seed": seed},
        "metrics": {name: row for name, row in by_rows.items() if ":" not in name} | by_labels,
        "bands": None,
    }
    del facts["rows_short_of_predictions"]  # differs between a and b
    if bands is not None:
        facts["bands"] = [
            {**band, "metrics": {key.split(":")[1]: by_rows[key] for key in by_rows if key.startswith(f"{name}:")}}
            for name, band in zip(BAND_NAMES, bands.describe(), strict=True)
        ]
    return shown_as(ShownDifferences, facts)


def _row_measures(judged: Judged, ks: tuple[int, ...], bands: LabelBands | None) -> list[Measure]:
    of_bands = [m for k in ks for m in band_measures(judged, bands, k)] if bands is not None else []
    return [*row_measures(judged, ks), *of_bands]
