"""The schema of a saved reference: histograms of measures of rows held out, and their most frequent labels."""

from __future__ import annotations

import numpy as np

from longtail.storage import ArraySpec, CrossCheck, ParamSpec, Part, PartSchema, Sizes, SizeSpec, Whole

LABELS_KEPT = 200
MOST_ROWS = 1 << 40
BINS = {  # bins of every histogram, and what it is of
    "length": (96, "characters of a text, or features of a row; four bins for every doubling"),
    "unknown_words": (201, "share of the words of a text that were in no other text, in steps of 1/200"),
    "probability": (40, "probability of the first label, in steps of 1/40"),
    "assigned": (21, "labels assigned, the last bin for 20 and more"),
    "hits_at_1": (2, "right ones among the first suggestion"),
    "hits_at_5": (6, "right ones among the first five suggestions"),
    "gap": (201, "mean of probability less truth (1 or 0) of the labels given, from -1 in steps of 1/100"),
    "unknown_label": (2, "0: all labels are known without the row, 1: one is not"),
}  # fmt: skip


def _labels_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why the labels of a reference are no labels in rising order."""
    for name in ("drawn", "given"):
        if (np.diff(part.arrays[f"{name}.labels"]) <= 0).any():
            return f"the array '{name}.labels' must rise, each label once"
    return None


REFERENCE = PartSchema(
    kind="reference.v1",
    about="what rows held out of the training look like, for comparing later rows with them",
    params=(
        ParamSpec("drawn_other", Whole(0, MOST_ROWS), "rows whose drawn label is none of those listed"),
        ParamSpec("given_rows", Whole(0, MOST_ROWS), "rows that the labels given were counted in"),
        ParamSpec(
            "given_most_other", Whole(0, MOST_ROWS), "rows that a label that is not listed was given to, at most"
        ),
    ),
    sizes=(
        SizeSpec("n_drawn", "labels listed as drawn labels", high=LABELS_KEPT),
        SizeSpec("n_given", "labels listed as labels given", high=LABELS_KEPT),
    ),
    arrays=(
        *(
            ArraySpec(name, "int64", (bins,), f"rows by {about}", 0, MOST_ROWS, optional=True)
            for name, (bins, about) in BINS.items()
        ),
        ArraySpec("drawn.labels", "int32", ("n_drawn",), "labels most often drawn, one of those that a row gets", 0),
        ArraySpec("drawn.rows", "int64", ("n_drawn",), "rows of which each was drawn", 0, MOST_ROWS),
        ArraySpec("given.labels", "int32", ("n_given",), "labels most often assigned, by number", 0),
        ArraySpec("given.rows", "int64", ("n_given",), "rows with each", 0, MOST_ROWS),
    ),
    crosschecks=(CrossCheck("every listed label stands once, in rising order", _labels_problem),),
)
