"""What a user of longtail might write, with every type declared: mypy --strict has nothing to say about it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

import longtail as lt


def learn_to_tag(texts: list[str], labels: list[list[str]], folder: Path) -> lt.Tagger:
    tagger = lt.Tagger(random_state=0).fit(texts, labels)
    tagger.save(folder)
    loaded = lt.load(folder)
    assert isinstance(loaded, lt.Tagger)
    return loaded


def best_tags(tagger: lt.Tagger, texts: list[str]) -> dict[str, float | None]:
    return {tags[0].label: tags[0].probability for tags in tagger.tag(texts, k=1) if tags}


def precision_of_a_tree(X: sp.csr_array, Y: sp.csr_array) -> float:
    model = lt.LabelTreeClassifier(max_leaf=10, random_state=0).fit(X, Y)
    topk: lt.TopK = model.predict_topk(X, k=5)
    ids: np.ndarray = topk.ids
    n_trees: int = len(model.trees_)
    return float(lt.metrics.precision_at_k(Y, topk, k=1)) if ids.size and n_trees else 0.0


def rows_with_text(file: Path) -> list[str]:
    data: lt.Dataset = lt.data.read(file)
    return [text for text in data.texts or () if text]


def refused(texts: list[str]) -> str:
    try:
        lt.Tagger(method="no such method").fit(texts, [["a"] for _ in texts])
    except lt.errors.LongtailError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    words = ["red apple", "green apple", "fast car", "old car"] * 20
    tags = [["fruit", "red"], ["fruit"], ["vehicle"], ["vehicle"]] * 20
    print(best_tags(learn_to_tag(words, tags, Path("model")), ["a new car"]))
