"""A label tree on words beside PRIME's encoder: `score = p_best * s_tree + share * s_prime`.

p_best is the probability of the tree's best label of the row: a tree that has seen too few rows to be sure of anything
leaves the ranking to the encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from longtail.data import TopK
from longtail.errors import ParameterError
from longtail.kernels import blocks, run_tasks
from longtail.prime.schema import LARGEST
from longtail.prime.sum_scores import blend_lists
from longtail.storage import Part
from longtail.text import TfidfFeatures, hstack_rows, side_by_side
from longtail.tree import LabelTreeClassifier
from longtail.validate import as_sparse, check_real, check_width, resolve_jobs, resolve_seed

if TYPE_CHECKING:
    from longtail.prime.estimator import Prime

# chosen on 4,000 rows of eurlex57k held out of the training of everything (`trials` in benchmarks/results/prime.json)
SHARE = 6.0  # weight of PRIME's score; the tree's score is a log-probability
WEIGHT = 0.0  # weight of dense vectors in the tree's input; 0: words only, as accurate and cheaper
TREE: dict[str, Any] = {"overlap": 2, "threshold": 0.0}  # where it reads vectors, whose weights are small: all are kept
CANDIDATES = 100  # of the tree, and as many of PRIME's own
SAMPLE, SAMPLED_LABELS = 2000, 20  # rows, and labels of each, that `line` is fitted to
BLOCK = 256
WORDS, LABELS = "tree.words.", "tree.labels."


@dataclass
class TreeStage:
    """A label tree that ranks with PRIME, the words it reads, and how both scores are added.

    Attributes
    ----------
    words : TfidfFeatures
        Words of texts.
    tree : LabelTreeClassifier
        The tree.
    weight : float
        Weight of the encoder's vectors beside the words in what the tree reads; 0 for words alone.
    share : float
        Weight of PRIME's score in `p_best * s_tree + share * s_prime`.
    line : (float, float)
        Intercept and slope that estimate the tree's score from PRIME's for labels the tree was not trained on:
        `s_tree = intercept + slope * s_prime`.
    """

    words: TfidfFeatures
    tree: LabelTreeClassifier
    weight: float
    share: float
    line: tuple[float, float] = (0.0, 0.0)

    def rows(self, texts: list[str], vectors: np.ndarray) -> sp.csr_array:
        """Return the words of texts and, to the right of them, their vectors."""
        return as_sparse(side_by_side(self.words.transform(texts), vectors))

    def check_rows(self, X: Any, width: int) -> sp.csr_array:
        X = as_sparse(X)
        check_width(X, self.words.n_features_ + width)
        return X

    def vectors(self, X: sp.csr_array) -> np.ndarray:
        """Return the vectors, from rows that hold them."""
        return np.ascontiguousarray(X[:, self.words.n_features_ :].toarray(), dtype=np.float32)

    def read(self, X: sp.csr_array) -> sp.csr_array:
        """Return what the tree reads of rows: their words, and their vectors where these have a weight."""
        words = as_sparse(X[:, : self.words.n_features_])
        return hstack_rows(words, self.vectors(X), self.weight) if self.weight else words

    def topk(self, model: Prime, X: sp.csr_array, k: int, allowed: np.ndarray | None) -> TopK:
        """Return the best labels of rows by both scores, from the best of each."""
        if X.shape[0] == 0:
            return TopK(np.empty((0, k), dtype=np.int32), np.empty((0, k), dtype=np.float32))
        top, queries = self.tree.predict_topk(self.read(X), k=CANDIDATES), self.vectors(X)
        more, _ = model.search_.topk(queries, max(k, CANDIDATES), allowed)
        known = np.zeros(model.n_labels_, dtype=bool)  # labels without a row, and those that came later, are not
        known[: self.tree.n_labels_] = self.tree.label_counts_ > 0
        jobs = resolve_jobs(model.n_jobs)
        return blended(top, queries, model.stored_, more, k, known, allowed, self.share, self.line, jobs)

    @staticmethod
    def describe_saved(saved: dict[str, Any]) -> str:
        """Return in a few words what the tree of a saved model reads, and how much the encoder's scores count."""
        reads = f"words and {saved['weight']:g} × vectors" if saved["weight"] else "words"
        return f"on {reads}; {saved['share']:g} × the encoder's score is added"

    def to_saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the parameters and arrays that make it again."""
        words, tree = self.words.to_part(), self.tree.to_part()
        params = {"weight": self.weight, "share": self.share, "line": list(self.line)}
        params |= {"words": words.params, "labels": tree.params}
        arrays = {f"{WORDS}{name}": array for name, array in words.arrays.items()}
        return params, arrays | {f"{LABELS}{name}": array for name, array in tree.arrays.items()}

    @classmethod
    def from_saved(cls, params: dict[str, Any], part: Part) -> TreeStage:
        """Make it from what was saved of it; the part has been checked."""
        words = TfidfFeatures.from_part(part.inner(WORDS, TfidfFeatures.kind, params["words"]))
        tree = LabelTreeClassifier.from_part(part.inner(LABELS, LabelTreeClassifier.kind, params["labels"]))
        first, second = params["line"]
        return cls(words, tree, float(params["weight"]), float(params["share"]), (float(first), float(second)))


class StageFeatures:
    """Features that turn texts into the rows which the tree of a `Prime` reads."""

    model: Prime
    stage: TreeStage

    def __init__(self, model: Prime, stage: TreeStage) -> None:
        self.model, self.stage = model, stage
        self.n_features_: int = stage.tree.n_features_in_

    def transform(self, texts: Sequence[str]) -> sp.csr_array:
        return self.stage.read(as_sparse(self.model.rows(texts)))

    def get_feature_names_out(self) -> np.ndarray:
        return column_names(self.stage.words, self.n_features_)

    def locate(self, text: str) -> list[tuple[int, int, int]]:
        return self.stage.words.locate(text)


def column_names(words: TfidfFeatures, n_features: int) -> np.ndarray:
    """Return the terms, then a name for every column of the encoder's vectors."""
    terms = words.get_feature_names_out()
    return np.array([*terms, *(f"meaning {number}" for number in range(n_features - len(terms)))], dtype=object)


def trust_in(top: TopK) -> np.ndarray:
    """Return the probability of the first label of every row (p_best), 0 where there is none.

    >>> trust_in(TopK([[4, 2], [-1, -1]], [[0.0, -3.0], [-np.inf, -np.inf]])).tolist()
    [1.0, 0.0]
    """
    return np.where(top.ids[:, 0] >= 0, np.exp(np.minimum(top.scores[:, 0], 0.0)), 0.0).astype(np.float32)


def blended(
    top: TopK,
    queries: np.ndarray,
    stored: dict[str, np.ndarray],
    more: np.ndarray,
    k: int,
    known: np.ndarray,
    allowed: np.ndarray | None = None,
    share: float = SHARE,
    line: tuple[float, float] = (0.0, 0.0),
    n_jobs: int = 1,
) -> TopK:
    """Return the k best labels by `p_best * s_tree + share * s_prime`, with s_prime the products of vectors.

    `top` holds the tree's labels and scores, `more` further labels (-1 for none), `known` which labels the tree knows,
    `allowed` which may come out. A label's score depends on neither k nor `allowed`.
    """
    from longtail.prime.search import dequantize

    lowest = np.where(top.ids >= 0, top.scores, 0).min(axis=1).astype(np.float32)
    listed = top.ids if allowed is None else np.where((top.ids >= 0) & allowed[top.ids], top.ids, -1)
    used = np.unique(np.concatenate([listed.ravel(), more.ravel()]))  # only labels that occur are made float32
    used = used[used >= 0]
    vectors = dequantize({name: array[used] for name, array in stored.items()})
    first, second = _renumbered(listed, used), _renumbered(more, used)
    ids = np.empty((queries.shape[0], k), dtype=np.int32)
    scores = np.empty((queries.shape[0], k), dtype=np.float32)
    among, trust = known[used], trust_in(top)

    def blend(at: slice) -> None:
        blend_lists(
            queries[at],
            vectors,
            first[at],
            top.scores[at],
            second[at],
            among,
            lowest[at],
            trust[at],
            share,
            *line,
            ids[at],
            scores[at],
        )

    run_tasks(blend, blocks(queries.shape[0], BLOCK), n_jobs)
    filled = ids >= 0
    ids[filled] = used[ids[filled]]
    return TopK(ids, scores)


def check_tree_settings(settings: dict[str, Any]) -> None:
    """Refuse settings that a label tree does not have."""
    known = sorted(set(LabelTreeClassifier().get_params()) - {"random_state", "n_jobs"})
    for name in settings:
        if name not in known:
            raise ParameterError(f"settings of the tree must be among {known}; got {name!r}.")


def fit_tree_stage(
    model: Prime,
    texts: list[str],
    Y: sp.csr_array,
    share: Any,
    weight: Any,
    settings: dict[str, Any],
    words: TfidfFeatures | None = None,
) -> TreeStage:
    """Train a tree on the words (learned before, or now) of texts, for a model whose encoder is trained already."""
    share, weight = (check_real(n, v, low=0, high=LARGEST) for n, v in (("share", share), ("weight", weight)))
    check_tree_settings(settings)
    words = learn_words(texts) if words is None else words
    tree = LabelTreeClassifier(
        **{**(TREE if weight else {}), **settings}, random_state=resolve_seed(model.random_state), n_jobs=model.n_jobs
    )
    stage = TreeStage(words, tree, weight, share)
    X = stage.rows(texts, model.encode(texts))
    tree.fit(stage.read(X), Y)
    stage.line = line_of(model, stage, X)
    return stage


def learn_words(texts: list[str]) -> TfidfFeatures:
    """Return the words of texts, counted."""
    return TfidfFeatures().fit(texts)


def line_of(model: Prime, stage: TreeStage, X: sp.csr_array) -> tuple[float, float]:
    """Return intercept and slope of the tree's scores by PRIME's, among the labels that PRIME ranks first.

    They estimate the tree's score of labels that the tree was not trained on.
    """
    rows = np.unique(np.linspace(0, X.shape[0] - 1, min(SAMPLE, X.shape[0])).astype(np.int64))
    X = X[rows]
    top = stage.tree.predict_topk(stage.read(X), k=CANDIDATES)
    ids, products = model.search_.topk(stage.vectors(X), min(SAMPLED_LABELS, stage.tree.n_labels_))
    xs, ys = [], []
    for row in range(X.shape[0]):
        scores = {int(label): score for label, score in zip(top.ids[row], top.scores[row], strict=True) if label >= 0}
        lowest = min(scores.values(), default=np.float32(0))
        for label, product in zip(ids[row], products[row], strict=True):
            if 0 <= label < stage.tree.n_labels_ and stage.tree.label_counts_[label]:
                xs.append(float(product))
                ys.append(float(scores.get(int(label), lowest)))
    if len(set(xs)) < 2:
        return (float(np.mean(ys)) if ys else 0.0, 0.0)
    slope, intercept = np.polyfit(np.array(xs), np.array(ys), 1)
    return float(intercept), float(slope)


def _renumbered(ids: np.ndarray, used: np.ndarray) -> np.ndarray:
    return np.where(ids < 0, -1, np.searchsorted(used, ids)).astype(np.int32)
