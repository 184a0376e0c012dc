"""Facts of an imputation (labels of rows from labels of groups): what was done, and why, in numbers and words."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from longtail.data import GroupedDataset
from longtail.facts import ImputationFacts
from longtail.groups import ALIKE
from longtail.validate import MatrixLike, as_sparse

MUCH_ALIKE = 0.5
CONFIDENCE_MEANS = {  # by assign; the first for all others
    "auto": "how often a label of such a confidence is right, estimated by how well it suits the row by what other "
    "groups tell",
    "propagate": "the share of the group's rows that has the label, as counted or as to be expected",
    "soft": "the share of the label that went to the row",
}


def imputing_facts(
    data: GroupedDataset,
    X: MatrixLike,
    found: sp.csr_array,
    confidence: sp.csr_array,
    Y_groups: sp.csr_array,
    alike: float,
    assign: str,
    n_iter: int,
    rounds: int,
) -> ImputationFacts:
    """Return the sizes of the data and what was done with it, as a JSON-able dict."""
    groups = data.groups
    size = np.bincount(groups.indices, minlength=data.n_groups)
    in_group, has_label = np.diff(groups.indptr) > 0, np.diff(found.indptr) > 0
    group_has = (np.diff(Y_groups.indptr) > 0).astype(np.float32)
    could = np.asarray(groups @ group_has) > 0
    blank = np.diff(as_sparse(X).indptr) == 0
    of_pair = np.repeat(size, np.diff(Y_groups.indptr))
    counted = bool(Y_groups.data.max() > 1)
    facts: ImputationFacts = {
        "rows": data.n_rows,
        "groups": data.n_groups,
        "labels": data.n_labels,
        "group_size": {
            "smallest": int(size[size > 0].min()),
            "mean": float(size[size > 0].mean()),
            "largest": int(size.max()),
        },
        "groups_without_rows": int((size == 0).sum()),
        "groups_without_labels": int((np.diff(data.Y_groups.indptr) == 0).sum()),
        "labels_in_no_group": int((np.bincount(Y_groups.indices, minlength=data.n_labels) == 0).sum()),
        "counts_known": counted,
        "counts_above_size": int((Y_groups.data > of_pair).sum()),
        "likeness": alike,
        "alike": describe_likeness(alike),
        "assign": assign,
        "n_iter": n_iter,
        "rounds": rounds if assign != "propagate" else 0,
        "assigned": int(found.nnz),
        "rows_per_label_of_group": found.nnz / Y_groups.nnz,
        "share_of_group": min(found.nnz / int(of_pair.sum()), 1.0),
        "mean_confidence": float(confidence.data.mean()),
        "confidence_means": CONFIDENCE_MEANS.get(assign, CONFIDENCE_MEANS["auto"]),
        "rows_without_labels": int((~has_label).sum()),
        "rows_in_no_group": int((~in_group).sum()),
        "rows_in_groups_without_labels": int((in_group & ~could).sum()),
        "rows_without_words": int((blank & could & ~has_label).sum()),
        "rows_not_chosen": int((could & ~blank & ~has_label).sum()),
    }
    facts["why"] = reasons(facts)
    return facts


def reasons(facts: ImputationFacts) -> str:
    """Return in a sentence or two which way of assigning was taken, and why.

    >>> reasons({"assign": "propagate", "rounds": 0})
    'propagate: every row got all labels of its groups.'
    """
    assign, often = facts["assign"], facts.get("rows_per_label_of_group", 0.0)
    told = {
        "propagate": "every row got all labels of its groups",
        "argmax": "every label of a group went to one row of it",
        "top": "every label of a group went to as many of its rows as it is counted",
        "soft": "every label of a group was shared out among its rows",
    }
    if assign != "auto":
        sentence = f"{assign}: {told[assign]}."
    else:
        many = f"{often:.1f} rows on average" if often >= 1.05 else "one row"
        many = "all rows" if often >= 1.05 and facts["share_of_group"] > 0.999 else many
        sentence = (
            "auto: some groups have a label more than once, so a label went to as many rows as it is counted."
            if facts["counts_known"]
            else f"auto: no group has a label twice, so how many rows it belongs to was estimated: {many} of a group."
        )
        refined = facts["likeness"] >= ALIKE
        whose = "The labels' vectors" if facts["counts_known"] else "The vectors of labels of few groups"
        sentence += (
            f" {whose} were refined, up to {facts['n_iter']} times, since rows of a group are alike."
            if refined
            else " The labels' vectors were not refined: where rows of a group differ, their start is best."
        )
    if facts["rounds"]:
        times = "once" if facts["rounds"] == 1 else f"{facts['rounds']} times"
        sentence += f" A model trained on the labels found was then asked {times} where they belong."
    return sentence


def describe_likeness(alike: float) -> str:
    """Return in words how alike the rows of a group are.

    >>> describe_likeness(0.002)
    'as different as rows anywhere'
    """
    if alike < ALIKE:
        return "as different as rows anywhere"
    return "much alike" if alike >= MUCH_ALIKE else "somewhat alike"
