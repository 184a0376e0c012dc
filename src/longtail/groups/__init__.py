"""Labels of groups to labels of rows: EAGLE, and multi-instance multi-label learning (MIML).

EAGLE gives every label of a group to the rows that have it. In the order in which to read:

1. `eagle`: the estimator, `Eagle(...).fit(X, groups, Y_groups)`.
2. `grouped_rows`: rows, groups and labels checked and laid out; `propagate` is the baseline, all labels to all rows.
3. `likeness`: how alike the rows of a group are, and the row counts and feature weights that follow from it.
4. `learn_vectors`: the vectors of all labels on threads. `eagle_kernel` learns those of a block of labels, with
   `score_members` (dot products), `choose_rows` (best rows and shares), `vector_sums` (dense label vectors) and the
   arrays of `kernel_arrays`.
5. `ask_model`: optionally, a trained model ranks the rows of a group again.
6. `confidence`: how likely the labels found are right, judged by vectors of other groups (`held_out_shares`,
   `held_out_kernel`).

MIML trains one network on the groups themselves, and predicts labels of rows or of groups. In the order in which to
read: `miml` (the estimator), `bags` (groups as bags of rows), `miml_network` (the network and its losses).
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
