"""How EAGLE finds the packages of a page that have a tag of the page, turn after turn; and what a MIML mask does.

Every eighth bundled package, on random pages of four whose tags are known as a set.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.decomposition import TruncatedSVD

from longtail import MIMLClassifier
from longtail.data import Dataset, group_randomly, load_bundled
from longtail.groups import Eagle
from longtail.text import TfidfFeatures

LABEL = "use::gameplaying"
TURNS = (0, 1, 5, 20)
PAGES = 4  # shown: half of them pages on which the start is wrong and the end right
MASKED = ("use::gameplaying", "role::documentation", "implemented-in::python", "role::shared-lib")
WIDTH, TAU, EPOCHS = 32, 5.0, 40  # numbers of a package, for the network; sharpness of its mask; its epochs
Facts = dict[str, Any]


def measure() -> Facts:
    """Run EAGLE for a few numbers of turns, and a network with its mask."""
    everything = load_bundled("debtags", "train")
    known = everything.take(slice(None, None, 8))
    X = sp.csr_array(TfidfFeatures(min_df=2).fit_transform(known.texts or ()))
    grouped = group_randomly(known.Y, size=4, random_state=0)
    groups, sets = sp.csr_array(grouped.groups), sp.csr_array(grouped.Y_groups)
    sets.data[:] = 1
    found = {turns: Eagle(n_iter=turns, threshold=0.0).fit(X, groups, sets) for turns in TURNS}
    label = known.names().index(LABEL)
    return {
        "data": "debtags, every eighth package, random pages of four",
        "rows": known.n_rows,
        "pages": groups.shape[1],
        "label": LABEL,
        "right": {
            str(turns): {"of_label": right(known, eagle, label), "of_all": right(known, eagle)}
            for turns, eagle in found.items()
        },
        "pages_with_label": int(sets[:, [label]].sum()),
        "shown": pages(known, X, groups, sets, {turns: cosines(X, found[turns], label) for turns in TURNS}, label),
        "mask": mask(everything.take(slice(None, None, 4))),
    }


def right(known: Dataset, eagle: Eagle, label: int | None = None) -> float:
    """Return the share of labels that went to a row which has them, in percent."""
    columns = slice(None) if label is None else [label]
    given, true = sp.csr_array(eagle.row_labels_[:, columns]), sp.csr_array(known.Y[:, columns])
    return round(100 * float((given.multiply(true) > 0).sum() / given.nnz), 1)


def cosines(X: sp.csr_array, eagle: Eagle, label: int) -> np.ndarray:
    """Return the cosine of every row with the label's vector."""
    vector = np.asarray(eagle.label_vectors_[[label]].toarray(), dtype=np.float64).ravel()
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel()) * np.linalg.norm(vector)
    return np.asarray((X @ vector) / np.maximum(lengths, 1e-12))


def pages(
    known: Dataset, X: sp.csr_array, groups: sp.csr_array, sets: sp.csr_array, near: dict[int, np.ndarray], label: int
) -> list[Facts]:
    """Return pages that have the label: their packages with the cosines after every number of turns."""
    has = np.asarray(known.Y[:, [label]].toarray()).ravel() > 0
    changed: list[tuple[int, np.ndarray]] = []
    others: list[tuple[int, np.ndarray]] = []
    for page in np.flatnonzero(sets[:, [label]].toarray().ravel()):
        rows = np.flatnonzero(groups[:, [int(page)]].toarray().ravel())
        chosen = {turns: rows[np.argmax(values[rows])] for turns, values in near.items()}
        mended = not has[chosen[TURNS[0]]] and has[chosen[TURNS[-1]]]
        (changed if mended else others).append((int(page), rows))
    shown = sorted(changed[: PAGES // 2] + others[: PAGES - PAGES // 2], key=lambda pair: pair[0])
    ids = known.ids or ()
    return [
        {
            "page": page,
            "rows": [
                {
                    "package": ids[row],
                    "has": bool(has[row]),
                    "cosine": {str(turns): round(float(values[row]), 3) for turns, values in near.items()},
                }
                for row in rows
            ],
        }
        for page, rows in shown
    ]


def mask(known: Dataset) -> Facts:
    """Return what a network with a mask says of the packages of one page, before the mask, of it, and after."""
    names, ids = known.names(), known.ids or ()
    columns = [names.index(label) for label in MASKED]
    words = TfidfFeatures(min_df=2).fit_transform(known.texts or ())
    rows = TruncatedSVD(WIDTH, random_state=0).fit_transform(sp.csr_matrix(words)).astype(np.float32)
    truth = known.Y[:, columns].toarray() > 0
    grouped = group_randomly(truth.astype(np.float32), size=4, random_state=0)
    groups, wanted = sp.csr_array(grouped.groups), sp.csr_array(grouped.Y_groups)
    wanted.data[:] = 1
    settings: Facts = {"hidden": 64, "mask": "eagle", "tau": TAU, "loss": "presence", "lr": 0.003}
    model = MIMLClassifier(epochs=EPOCHS, device="cpu", random_state=0, **settings).fit(rows, groups, wanted)
    network = model.network_.eval()
    inputs = torch.as_tensor(model.scale_.apply(rows))
    with torch.no_grad():
        near, scores = network.nearness(inputs), network.instances(inputs)
    seen = []
    for page in range(wanted.shape[0]):
        members = np.flatnonzero(groups[:, [page]].toarray().ravel())
        on = np.flatnonzero(wanted[[page]].toarray().ravel())
        with torch.no_grad():
            masked = network.by_bags(scores[members], near[members], torch.tensor([len(members)]))[0][0] - network.bias
        has = truth[members][:, on]
        alone, both = (has[table[:, on].argmax(dim=0), np.arange(on.size)] for table in (scores[members], masked))
        clear = on.size == 3 and (has.sum(axis=0) == 1).all() and (has.sum(axis=1) <= 1).all() and len(members) == 4
        seen.append((members, on, masked, alone, both, bool(clear and both.all() and not alone.all())))
    members, on, masked = next((one[:3] for one in seen if one[-1]), seen[0][:3])
    parts = {"scores": np.concatenate([one[3] for one in seen]), "masked": np.concatenate([one[4] for one in seen])}
    return {
        "data": "debtags, every fourth package, random pages of four",
        "settings": {**settings, "epochs": EPOCHS, "numbers of a package": WIDTH},
        "labels": list(MASKED),
        "packages": [ids[row] for row in members],
        "has": truth[members].tolist(),
        "scores": rounded(scores[members]),
        "mask": rounded(len(members) * near[members].softmax(dim=0)),
        "masked": rounded(masked),
        "page": [label in on for label in range(len(MASKED))],
        "best_row_has_the_label": {name: round(100 * float(right.mean()), 1) for name, right in parts.items()},
    }


def rounded(values: torch.Tensor) -> list[list[float]]:
    """Return a table of numbers with two digits."""
    return [[round(float(value), 2) for value in row] for row in values]
