"""The experts of a hybrid: each lists labels for a row, and says something of every label that any of them lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail.data import TopK
from longtail.hybrid.candidate_kernels import join_lists, look_up, products
from longtail.hybrid.combine import FEATURES
from longtail.hybrid.encoder_with_labels import EncoderWithLabels
from longtail.hybrid.neighbours import Neighbours
from longtail.hybrid.shown_rows import ShownRows
from longtail.name_matches import NameMatches
from longtail.prime import LabelSearch
from longtail.text import BeginningFeatures, TfidfFeatures
from longtail.tree import LabelTreeClassifier

LISTED = 60  # labels that an expert lists for a row
TREE_LISTED = 100
LEAST_SHARE = 1e-4  # added to a share before its logarithm is taken
LEAST_LOG_PROBABILITY = -10.0  # of a label that no tree lists, of a row for which it lists none
NAME_SEPARATOR = "; "  # between the names of a label in its text
FEWEST_LETTERS = 3  # of a label that may be a word
AT = {(feature.expert, feature.name): number for number, feature in enumerate(FEATURES)}


class HybridRows(NamedTuple):
    """Texts as the experts read them; what no expert reads is empty."""

    words: sp.csr_array  # (n, n_terms)
    vectors: np.ndarray  # (n, width), at unit length
    names: sp.csr_array  # (n, n_labels): log-odds of the labels whose names stand in the text


class CandidateFeatures(NamedTuple):
    """What the experts say of the labels that any of them lists."""

    candidates: np.ndarray  # int32 (n, m), rising, -1 after the last
    features: np.ndarray  # float32 (n, m, n_features)


@dataclass(frozen=True)
class Experts:
    """Trained experts; None for one that is left out.

    Attributes
    ----------
    encoder : EncoderWithLabels or None
        The encoder with the prototypes of labels: a `Prime`, or a `FrozenEncoder`.
    use_prototypes : bool
        Whether prototypes are an expert, or the encoder only serves the others.
    classifier : ndarray or None
        A vector per trained label (n_trained, width), learned on the encoder's vectors.
    words, tree : TfidfFeatures or BeginningFeatures, and LabelTreeClassifier; or None
        A label tree, and the words it reads.
    neighbours : Neighbours or None
        The training texts.
    names : NameMatches or None
        Names of labels in texts.
    n_labels : int
        Labels of the hybrid.
    counts : ndarray of int64 (n_labels,)
        Training rows of every label.
    n_jobs : int
        Threads.
    shown : ShownRows or None
        Ids and first words of the training texts, for explanations.
    """

    encoder: EncoderWithLabels | None
    use_prototypes: bool
    classifier: np.ndarray | None
    words: TfidfFeatures | BeginningFeatures | None
    tree: LabelTreeClassifier | None
    neighbours: Neighbours | None
    names: NameMatches | None
    n_labels: int
    counts: np.ndarray
    n_jobs: int = 1
    shown: ShownRows | None = None

    def read(self, texts: list[str]) -> HybridRows:
        """Return texts as the experts read them."""
        n = len(texts)
        empty = sp.csr_array((n, 0), dtype=np.float32)
        words = empty if self.words is None else self.words.transform(texts)
        vectors = np.zeros((n, 0), dtype=np.float32) if self.encoder is None else self.encoder.encode(texts)
        return HybridRows(words, vectors, self.list_names(texts))

    def list_names(self, texts: list[str]) -> sp.csr_array:
        """Return the log-odds of the labels whose names stand in texts (n, n_labels)."""
        if self.names is None or not texts:
            return sp.csr_array((len(texts), self.n_labels), dtype=np.float32)
        return self.names.predict_topk(texts, LISTED).to_csr(self.n_labels)

    def evidence(self, rows: HybridRows, allowed: np.ndarray | None = None, k: int = 0) -> CandidateFeatures:
        """Return the labels that any expert lists, and what all say of them; at least k where there are so many.

        A label's features depend neither on k nor on the labels allowed (bool per label).
        """
        n = rows.vectors.shape[0]
        may = np.ones(self.n_labels, dtype=bool) if allowed is None else allowed
        tree, neighbours, names = self._tree_lists(rows), self._neighbour_lists(rows), name_lists(rows.names)
        lists = [tree.ids, neighbours[0], names.ids, *self._vector_lists(rows.vectors, allowed, max(k, LISTED))]
        best = lists[-1] if allowed is None else self._classifier_list(rows.vectors, None, 1)
        together = np.concatenate([np.empty((n, 0), dtype=np.int32), *lists], axis=1)
        if allowed is not None and not self.use_prototypes:
            together = np.concatenate([together, self._first_allowed(n, may, k)], axis=1)
        candidates = np.empty(together.shape, dtype=np.int32)
        longest = join_lists(together, may, candidates) if n else 0
        candidates = np.ascontiguousarray(candidates[:, : max(longest, 1)])
        return CandidateFeatures(candidates, self._features(rows, candidates, tree, neighbours, names, best[:, :1]))

    def _first_allowed(self, n: int, may: np.ndarray, k: int) -> np.ndarray:
        """Return the first k labels that may come, for every row: where no expert lists enough."""
        return np.tile(np.flatnonzero(may)[:k].astype(np.int32), (n, 1))

    def _tree_lists(self, rows: HybridRows) -> TopK:
        if self.tree is None:
            return _no_lists(rows.vectors.shape[0])
        return self.tree.predict_topk(rows.words, k=TREE_LISTED)

    def tree_lowest(self, rows: HybridRows) -> float:
        """Return the score of a label that the tree does not list, of one row; 0 without a tree."""
        return 0.0 if self.tree is None else float(lowest_scores(self._tree_lists(rows))[0])

    def _neighbour_lists(self, rows: HybridRows) -> tuple[np.ndarray, np.ndarray]:
        if self.neighbours is None:
            none = _no_lists(rows.vectors.shape[0])
            return none.ids, none.scores
        return self.neighbours.label_shares(rows.vectors, self.n_jobs)

    def _vector_lists(self, queries: np.ndarray, allowed: np.ndarray | None, k: int) -> list[np.ndarray]:
        """Return the labels whose vectors are nearest to those of rows."""
        out = []
        if self.encoder is not None and self.use_prototypes:
            out.append(self.encoder.search_.topk(queries, k, allowed)[0])
        return [*out, self._classifier_list(queries, allowed, k)]

    def _classifier_list(self, queries: np.ndarray, allowed: np.ndarray | None, k: int) -> np.ndarray:
        """Return the labels whose classifier vectors are nearest to those of rows, best first."""
        if self.classifier is None:
            return _no_lists(queries.shape[0]).ids
        own = None if allowed is None else allowed[: self.classifier.shape[0]]
        return self._classifier_search(self.classifier).topk(queries, k, own)[0]

    def _classifier_search(self, vectors: np.ndarray) -> LabelSearch:
        """Return the search over classifier vectors, made when it is first needed."""
        device = "cpu" if self.encoder is None else self.encoder.search_device()
        kept: tuple[str, LabelSearch] | None = self.__dict__.get("_search")
        if kept is None or kept[0] != device:
            kept = self.__dict__["_search"] = device, LabelSearch({"vectors": vectors}, "exact", device)
        return kept[1]

    def _features(
        self,
        rows: HybridRows,
        candidates: np.ndarray,
        tree: TopK,
        neighbours: tuple[np.ndarray, np.ndarray],
        names: TopK,
        best: np.ndarray,
    ) -> np.ndarray:
        """Return the features of candidates; `best` is the label of every row with the best classifier vector."""
        n, m = candidates.shape
        features = np.zeros((n, m, len(FEATURES)), dtype=np.float32)
        listed, out = np.empty((n, m), dtype=bool), np.empty((n, m), dtype=np.float32)
        if self.use_prototypes and self.encoder is not None:
            features[:, :, AT["prototypes", "product"]] = self.prototype_products(rows.vectors, candidates)
        if self.classifier is not None:
            known = self.classifier.shape[0]
            own = _gathered_products(rows.vectors, candidates, self.classifier, known)
            features[:, :, AT["classifier", "product"]] = own
            most = _gathered_products(rows.vectors, best, self.classifier, known)
            features[:, :, AT["classifier", "behind the best"]] = own - most
        if self.tree is not None:
            look_up(candidates, tree.ids, tree.scores, lowest_scores(tree), out, listed)
            features[:, :, AT["tree", "log probability"]] = out
            features[:, :, AT["tree", "probability"]] = np.exp(np.minimum(out, 0))
            features[:, :, AT["tree", "cube root of log probability"]] = np.cbrt(np.minimum(out, 0))
        if self.neighbours is not None:
            look_up(candidates, *neighbours, np.zeros(n, dtype=np.float32), out, listed)
            features[:, :, AT["neighbours", "log share"]] = np.log(out + np.float32(LEAST_SHARE))
            features[:, :, AT["neighbours", "share"]] = out
        if self.names is not None:
            missing = np.full(n, self.names.no_match_, dtype=np.float32)
            look_up(candidates, names.ids, names.scores, missing, out, listed)
            features[:, :, AT["names", "log odds"]] = out
            features[:, :, AT["names", "matches"]] = listed
        features[:, :, AT["label", "log rows"]] = np.log1p(self.counts[candidates])
        features[candidates < 0] = 0
        return features

    def prototype_products(self, vectors: np.ndarray, candidates: np.ndarray) -> np.ndarray:
        """Return the products of rows with the prototypes of candidates."""
        used = np.unique(candidates[candidates >= 0])
        known = np.zeros((used.size, vectors.shape[1])) if self.encoder is None else self.encoder.label_vectors(used)
        return self.products_with(vectors, candidates, used, known)

    def products_with(
        self, vectors: np.ndarray, candidates: np.ndarray, used: np.ndarray, label_vectors: np.ndarray
    ) -> np.ndarray:
        """Return the products of rows with vectors of their candidates, given for the labels in `used` (rising)."""
        local = np.where(candidates < 0, -1, np.searchsorted(used, candidates)).astype(np.int32)
        return _gathered_products(vectors, local, label_vectors, used.size)

    def with_labels(self, texts: list[str]) -> Experts:
        """Return the experts with more labels, known by their texts alone; encoder and names are changed in place."""
        if self.encoder is not None:
            self.encoder.add_labels(texts)
        if self.names is not None:
            self.names.add_labels(names_of(texts))
        counts = np.concatenate([self.counts, np.zeros(len(texts), dtype=np.int64)])
        return replace(self, n_labels=counts.size, counts=counts)

    def with_threads(self, n_jobs: int) -> Experts:
        """Return the same experts with so many threads."""
        return self if n_jobs == self.n_jobs else replace(self, n_jobs=n_jobs)


def names_of(texts: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the names in the text of every label, which the names expert looks for.

    A text may hold several names, separated by "; ", and may go on after a name: "Field: Name. What it is about."

    >>> names_of(["whales; cetaceans", "Culture: Farsi. Persian too."])
    [('whales', 'cetaceans'), ('Culture: Farsi', 'Farsi')]
    """
    out = []
    for text in texts:
        names = [name.partition(". ")[0].strip(" .") for name in text.split(NAME_SEPARATOR)]
        names += [name.rpartition(": ")[2] for name in names]
        out.append(tuple(dict.fromkeys(name for name in names if name.strip())) or (text,))
    return out


def texts_with_labels(texts: Sequence[str], labels: Sequence[str] | None) -> list[str]:
    """Return the texts of labels, after what the labels are called in the data where that is a word and another name.

    >>> texts_with_labels(["whales", "Networking: Scanning.", "Persian"], ["w:1", "network::scanner", "http://a/farsi"])
    ['whales', 'scanner; Networking: Scanning.', 'Persian']
    """
    if labels is None:
        return list(texts)
    out = []
    for text, names, label in zip(texts, names_of(texts), labels, strict=True):
        own = "" if "/" in label else label.rpartition(":")[2]
        is_word = sum(map(str.isalpha, own)) >= FEWEST_LETTERS
        is_new = own.casefold() not in (name.casefold() for name in names)
        out.append(f"{own}{NAME_SEPARATOR}{text}" if is_word and is_new else text)
    return out


def name_lists(names: sp.csr_array) -> TopK:
    """Return the labels of sparse rows as lists of one length.

    >>> name_lists(sp.csr_array(np.array([[0, 0.5, 0], [0, 0, 0]]))).ids.tolist()
    [[1], [-1]]
    """
    lengths = np.diff(names.indptr)
    longest = max(1, int(lengths.max(initial=0)))
    ids = np.full((names.shape[0], longest), -1, dtype=np.int32)
    scores = np.full((names.shape[0], longest), -np.inf, dtype=np.float32)
    at = np.arange(longest) < lengths[:, None]
    ids[at], scores[at] = names.indices, names.data
    return TopK(ids, scores)


def lowest_scores(top: TopK) -> np.ndarray:
    """Return the lowest score that a tree lists for each row: what stands for labels that it does not list."""
    lowest = np.where(top.ids >= 0, top.scores, np.inf).min(axis=1, initial=np.inf)
    return np.where(np.isfinite(lowest), lowest, LEAST_LOG_PROBABILITY).astype(np.float32)


def _no_lists(n: int) -> TopK:
    return TopK(np.empty((n, 0), dtype=np.int32), np.empty((n, 0), dtype=np.float32))


def _gathered_products(queries: np.ndarray, candidates: np.ndarray, vectors: np.ndarray, known: int) -> np.ndarray:
    """Return the products of rows with the vectors of their candidates; 0 for labels that have none."""
    at = np.where(candidates < known, candidates, -1).astype(np.int32)
    out = np.empty(candidates.shape, dtype=np.float32)
    products(np.ascontiguousarray(queries, np.float32), at, np.ascontiguousarray(vectors, np.float32), out)
    return out
