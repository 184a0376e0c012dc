"""Fit a hybrid step by step: the encoder, what reads its vectors, the tree, the names, and the weights of all.

Weights are learned on rows that no expert was trained on. Then the experts that learn in seconds (tree, neighbours,
names) are trained again with those rows too; the encoder is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail.data import TopK, split_random
from longtail.encoder import is_universal
from longtail.hybrid.combine import (
    EXPERTS,
    PULLS,
    TAIL_COSTS,
    TAILS,
    Combination,
    HeldOutCandidates,
    learn_trees,
    learn_weights,
    log_loss,
    odds_of_unused,
)
from longtail.hybrid.encoder_with_labels import EncoderWithLabels
from longtail.hybrid.experts import AT, CandidateFeatures, Experts, HybridRows, names_of, texts_with_labels
from longtail.hybrid.frozen_encoder import FrozenEncoder
from longtail.hybrid.neighbours import Neighbours
from longtail.hybrid.settings import (
    classifier_epochs,
    encoder_device,
    frozen_params,
    needs_encoder,
    prime_params,
    tree_words,
)
from longtail.kernels import blocks
from longtail.model import EpochReport, Split, Stages, of_stage
from longtail.name_matches import NameMatches
from longtail.prime import Prime
from longtail.text import BeginningFeatures, TfidfFeatures
from longtail.tree import LabelTreeClassifier
from longtail.validate import Json, resolve_jobs, resolve_seed

HELD_OUT, HELD_OUT_AT_MOST, FEWEST_ROWS = 0.1, 2000, 50  # rows held out to learn weights, where none are given
HELD_OUT_K = 50  # labels predicted for every held-out row, as of other models
READ_AT_ONCE = 512  # texts, between two reports
READING = "Reading texts with the encoder"
RANKS_BY = {  # the feature by which each expert alone ranks labels
    "prototypes": ("prototypes", "product"),
    "classifier": ("classifier", "product"),
    "tree": ("tree", "log probability"),
    "neighbours": ("neighbours", "share"),
    "names": ("names", "log odds"),
}


class Weighing(NamedTuple):
    """Weights learned on rows held out, and what they were learned from."""

    combination: Combination
    top: TopK | None  # of these rows, by weights learned on other ones
    facts: Json  # precision of every expert, and of all together, on them
    examples: HeldOutCandidates | None
    as_new: HeldOutCandidates | None  # the same labels, if they were known by their texts alone
    pull: float


class HybridFit(NamedTuple):
    """Result of a training."""

    experts: Experts
    weighing: Weighing


@dataclass(frozen=True)
class Trainer:
    """What is trained on, and how; each step returns a trained expert."""

    params: dict[str, Any]
    experts: tuple[str, ...]
    texts: list[str]
    Y: sp.csr_array
    label_texts: list[str]
    progress: Stages | None

    @property
    def seed(self) -> int:
        return resolve_seed(self.params["random_state"])

    @property
    def device(self) -> str:
        """Where the encoder runs while it is trained: "cpu" or "cuda"."""
        if is_universal(self.params["encoder"]):
            return "cpu"
        return encoder_device(self.params["device"])

    def fit_encoder(self, rows: np.ndarray, on_epoch: EpochReport | None) -> EncoderWithLabels | None:
        """Train the encoder, if it can be trained, and make the prototypes of labels."""
        if not needs_encoder(self.experts):
            return None
        texts, Y = [self.texts[i] for i in rows], self.Y[rows]
        if is_universal(self.params["encoder"]):
            frozen = FrozenEncoder(**frozen_params(self.params))
            return frozen.fit(texts, Y, self.label_texts, progress=of_stage(self.progress, READING))
        prime = Prime(**prime_params(self.params, rows.size, self.device))
        stage = of_stage(self.progress, "Training the encoder" if prime.epochs else READING)
        return prime.fit(texts, Y, self.label_texts, progress=stage, on_epoch=on_epoch)

    def encode(self, encoder: EncoderWithLabels | None, trained: np.ndarray) -> np.ndarray:
        """Return the vectors of all texts; `trained` are the rows that the encoder was given."""
        if encoder is None:
            return np.zeros((len(self.texts), 0), dtype=np.float32)
        out = np.empty((len(self.texts), encoder.n_features_in_), dtype=np.float32)
        waiting = np.ones(len(self.texts), dtype=bool)
        read = encoder.take_vectors()
        if read is not None:  # an encoder that stayed as it was has read most of them already
            out[trained[read[0]]], waiting[trained[read[0]]] = read[1], False
        rows, report = np.flatnonzero(waiting), of_stage(self.progress, READING)
        for at in blocks(rows.size, READ_AT_ONCE):
            if report is not None:
                report(at.start, rows.size)
            out[rows[at]] = encoder.encode_as_trained([self.texts[i] for i in rows[at]])
        return out

    def fit_classifier(
        self, encoder: EncoderWithLabels | None, vectors: np.ndarray, rows: np.ndarray
    ) -> np.ndarray | None:
        """Train a vector per label on the encoder's vectors."""
        if encoder is None or "classifier" not in self.experts:
            return None
        self.begin("Training classifier vectors")
        epochs = classifier_epochs(rows.size, self.device)
        found = encoder.train_label_vectors(vectors[rows], self.Y[rows], epochs=epochs)
        found[np.bincount(self.Y[rows].indices, minlength=self.Y.shape[1]) == 0] = 0  # nothing was learned of these
        return found

    def fit_words(self) -> TfidfFeatures | BeginningFeatures | None:
        """Learn the words of all texts, as the tree reads them."""
        if "tree" not in self.experts:
            return None
        self.begin("Reading words")
        return tree_words(self.params).fit(self.texts)

    def fit_tree(self, words: sp.csr_array | None, rows: np.ndarray, stage: str) -> LabelTreeClassifier | None:
        """Train the label tree on words."""
        if words is None:
            return None
        tree = LabelTreeClassifier(overlap=self.params["overlap"], random_state=self.seed, n_jobs=self.params["n_jobs"])
        return tree.fit(words[rows], self.Y[rows], progress=of_stage(self.progress, stage))

    def fit_neighbours(self, vectors: np.ndarray, rows: np.ndarray) -> Neighbours | None:
        """Remember texts by their vectors."""
        if "neighbours" not in self.experts:
            return None
        self.begin("Remembering texts")
        return Neighbours.of(vectors[rows], sp.csr_array(self.Y[rows]), self.seed)

    def fit_names(self, rows: np.ndarray) -> NameMatches | None:
        """Learn what it means that the name of a label stands in a text."""
        if "names" not in self.experts:
            return None
        self.begin("Matching names of labels")
        # without a language English plurals alone are cut: the model is the same, and served, without a further package
        language = {"rules": "light"} if self.params["language"] is None else {"language": self.params["language"]}
        matches = NameMatches(random_state=self.seed, n_jobs=self.params["n_jobs"], **language)
        return matches.fit([self.texts[i] for i in rows], self.Y[rows], names_of(self.label_texts))

    def begin(self, stage: str) -> None:
        """Report that a stage begins."""
        if self.progress is not None:
            self.progress(stage, 0, 1)


def fit_hybrid(
    params: dict[str, Any],
    experts: tuple[str, ...],
    texts: list[str],
    Y: sp.csr_array,
    label_texts: list[str],
    labels: Sequence[str] | None,
    split: Split | None,
    progress: Stages | None = None,
    on_epoch: EpochReport | None = None,
) -> HybridFit:
    """Train all experts and their weights; the rows of `split[1]` are held out to learn weights by.

    `labels` are what labels are called in the data; where that is a word, it is read and looked for too.
    """
    trainer = Trainer(params, experts, texts, Y, texts_with_labels(label_texts, labels), progress)
    everything = np.arange(len(texts))
    train, held = (everything, everything[:0]) if (inner := split or own_split(Y, trainer.seed)) is None else inner
    encoder = trainer.fit_encoder(train, on_epoch)
    if encoder is not None:
        unseen = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1]) == 0)
        encoder.use_texts_of(unseen)
    vectors = trainer.encode(encoder, train)
    words = trainer.fit_words()
    X = None if words is None else words.transform(texts)
    first = Experts(
        encoder=encoder,
        use_prototypes="prototypes" in experts,
        classifier=trainer.fit_classifier(encoder, vectors, train),
        words=words,
        tree=trainer.fit_tree(X, train, "Training the tree (to learn weights)" if held.size else "Training the tree"),
        neighbours=trainer.fit_neighbours(vectors, train),
        names=trainer.fit_names(train),
        n_labels=Y.shape[1],
        counts=np.bincount(Y[train].indices, minlength=Y.shape[1]).astype(np.int64),
        n_jobs=resolve_jobs(params["n_jobs"]),
    )
    if not held.size:
        default = replace(Combination.default(experts), tail=float(params["tail"] or 0.0))
        return HybridFit(first, Weighing(default, None, {}, None, None, PULLS[0]))
    weighing = weigh(first, experts, held_rows(first, texts, X, vectors, held), Y[held], trainer)
    whole = replace(
        first,
        tree=trainer.fit_tree(X, everything, "Training the tree"),
        neighbours=trainer.fit_neighbours(vectors, everything),
        names=trainer.fit_names(everything),
        counts=np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.int64),
    )
    return HybridFit(whole, weighing)


def own_split(Y: sp.csr_array, seed: int) -> Split | None:
    """Return rows to train on and rows to learn weights by; None where there are too few."""
    held = min(round(HELD_OUT * Y.shape[0]), HELD_OUT_AT_MOST)
    if Y.shape[0] < FEWEST_ROWS:
        return None
    train, test = split_random(Y, test_size=held, random_state=seed)
    return (train, test) if Y[train].nnz and Y[test].nnz else None


def held_rows(
    experts: Experts, texts: list[str], X: sp.csr_array | None, vectors: np.ndarray, held: np.ndarray
) -> HybridRows:
    """Return the held-out rows as the experts read them; words and vectors are there already."""
    names = sp.csr_array((held.size, experts.n_labels), dtype=np.float32)
    if experts.names is not None:
        names = experts.list_names([texts[i] for i in held])
    words = sp.csr_array((held.size, 0), dtype=np.float32) if X is None else sp.csr_array(X[held])
    return HybridRows(words, np.ascontiguousarray(vectors[held]), names)


def weigh(experts: Experts, used: tuple[str, ...], rows: HybridRows, Y: sp.csr_array, trainer: Trainer) -> Weighing:
    """Learn weights on held-out rows."""
    from threadpoolctl import threadpool_limits  # slow to import, and only training needs it

    trainer.begin("Learning weights")
    evidence = experts.evidence(rows)
    hits = _hits(evidence.candidates, Y)
    likely = Combination.default(used).scores(evidence.features, evidence.candidates, experts.counts)
    examples = HeldOutCandidates.some(evidence.features, evidence.candidates, hits, likely, trainer.seed)
    as_new = replace(examples, features=features_as_new(experts, rows, evidence, trainer.label_texts))
    given = trainer.params["tail"]
    tail = None if given is None else float(given)
    with threadpool_limits(1):  # the matrices are small: threads would wait for each other, and change the last bits
        return learn_from(examples, as_new, experts.counts, used, tail, trainer.seed)


def learn_from(
    examples: HeldOutCandidates,
    as_new: HeldOutCandidates,
    counts: np.ndarray,
    used: tuple[str, ...],
    tail: float | None,
    seed: int,
    boosted: bool = True,
) -> Weighing:
    """Learn weights from the candidates of held-out rows; `counts` are the rows of labels that experts learned from.

    `tail` is how much rare labels are favoured, None to learn that too; `boosted` whether boosted trees are tried.
    """
    candidates = examples.candidates
    pull, trees_pay, scores = cross_fit(examples, as_new, counts, used, seed, boosted)
    learned = replace(
        learn_weights(examples, as_new, counts, used, pull),
        trees=learn_trees(examples, counts, used, pull) if trees_pay else None,
        tail=1.0,
        unused=odds_of_unused(counts),
        n_trained=counts.size,
    )
    never_used = replace(learned, tail=0.0).bonus(candidates, counts)
    rare = learned.bonus(candidates, counts) - never_used
    if tail is None:
        alone = [examples.features[:, :, AT[RANKS_BY[name]]] for name in used]
        tail = best_tail(examples, scores + never_used, rare, alone)
    combination, scores = replace(learned, tail=tail), scores + never_used + np.float32(tail) * rare
    top = ranked(candidates, scores, HELD_OUT_K)
    return Weighing(combination, top, expert_facts(examples, scores, used), examples, as_new, pull)


def cross_fit(
    examples: HeldOutCandidates,
    as_new: HeldOutCandidates | None,
    counts: np.ndarray,
    used: tuple[str, ...],
    seed: int,
    boosted: bool = True,
) -> tuple[float, bool, np.ndarray]:
    """Return how the combination should be learned, and log-odds by ones learned on other rows.

    That is how strongly weights should be drawn to the default, and whether boosted trees pay.
    """
    order = np.random.default_rng(seed).permutation(examples.candidates.shape[0])
    halves = [order[0::2], order[1::2]]
    tried: list[tuple[float, float, list[Combination]]] = []
    for pull in PULLS:
        learned, loss = [], 0.0
        for learned_on, scored in (halves, halves[::-1]):  # weights learned on one half score the other
            new = None if as_new is None else as_new.take(learned_on)
            learned.append(learn_weights(examples.take(learned_on), new, counts, used, pull))
            loss += log_loss(learned[-1], examples.take(scored), counts) * scored.size
        tried.append((loss, pull, learned))
    loss, pull, best = min(tried, key=lambda one: one[0])
    trees = [learn_trees(examples.take(half), counts, used, pull) if boosted else None for half in halves]
    with_trees = [replace(weights, trees=own) for weights, own in zip(best, trees, strict=True)]
    others = halves[::-1]
    pay = None not in trees and loss > sum(
        log_loss(combination, examples.take(scored), counts) * scored.size
        for combination, scored in zip(with_trees, others, strict=True)
    )
    scores = np.empty(examples.candidates.shape, dtype=np.float32)
    for combination, scored in zip(with_trees if pay else best, others, strict=True):
        of = examples.take(scored)
        scores[scored] = combination.scores(of.features, of.candidates, counts)
    return pull, pay, scores


def best_tail(
    examples: HeldOutCandidates, scores: np.ndarray, bonus: np.ndarray, alone: Sequence[np.ndarray] = ()
) -> float:
    """Return how much rare labels may be favoured, by held-out rows.

    It is the most that costs next to nothing in P@1, P@3 and P@5 together and leaves no expert ahead in P@1 or P@5;
    the scores of the experts are in `alone`. Where one of them still finds more of what rare labels are worth
    (ln(1 / propensity) is in `bonus`), it is the least with which all together find more, or the one with which they
    find most, as long as they stay ahead. Where an expert is ahead whatever is added, P@1 decides.
    """
    worth = np.exp(bonus)

    def judge(ranking: np.ndarray) -> tuple[np.ndarray, float]:
        best = np.argsort(-np.where(examples.candidates >= 0, ranking, -np.inf), axis=1, kind="stable")[:, :5]
        hits = np.take_along_axis(examples.hits, best, axis=1)
        precision = np.array([hits[:, :k].mean() for k in (1, 3, 5)])
        return precision, float((hits * np.take_along_axis(worth, best, axis=1)).sum())

    together = {tail: judge(scores + tail * bonus) for tail in TAILS}
    quality = {tail: float(precision.sum()) for tail, (precision, _) in together.items()}
    experts = [judge(of) for of in alone]
    ahead = [t for t, (precision, _) in together.items() if all((precision >= p)[[0, 2]].all() for p, _ in experts)]
    cheap = [tail for tail in TAILS if quality[tail] >= max(quality.values()) - TAIL_COSTS]
    free = next((tail for tail in cheap if tail in ahead), None)
    if free is None:
        return max(cheap, key=lambda tail: (together[tail][0][0], tail))
    most = max((rare for _, rare in experts), default=0.0)
    higher = sorted(tail for tail in ahead if tail >= free)
    enough = (tail for tail in higher if together[tail][1] >= most)
    return next(enough, max(higher, key=lambda tail: together[tail][1]))


def features_as_new(
    experts: Experts, rows: HybridRows, evidence: CandidateFeatures, label_texts: list[str]
) -> np.ndarray:
    """Return the features that labels would have if they were known by their texts alone."""
    encoder = experts.encoder
    if encoder is None or not experts.use_prototypes:
        return evidence.features
    used = np.unique(evidence.candidates[evidence.candidates >= 0])
    vectors = encoder.encode([label_texts[i] for i in used]) * np.float32(encoder.text_scale_)
    features = evidence.features.copy()
    features[:, :, AT["prototypes", "product"]] = experts.products_with(
        rows.vectors, evidence.candidates, used, vectors
    )
    return features


def ranked(candidates: np.ndarray, scores: np.ndarray, k: int) -> TopK:
    """Return the k best candidates of every row; of equal ones the lower label first."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    ids, best = np.take_along_axis(candidates, order, axis=1), np.take_along_axis(scores, order, axis=1)
    best = np.where(ids >= 0, best, -np.inf)
    if ids.shape[1] < k:
        pad = ((0, 0), (0, k - ids.shape[1]))
        ids, best = np.pad(ids, pad, constant_values=-1), np.pad(best, pad, constant_values=-np.inf)
    return TopK(ids, best)


def expert_facts(examples: HeldOutCandidates, together: np.ndarray, used: tuple[str, ...]) -> Json:
    """Return precision at 1 and 5 on the held-out rows, of every expert alone and of all together."""
    rankings = {name: examples.features[:, :, AT[RANKS_BY[name]]] for name in EXPERTS if name in used}
    rankings["together"] = together
    out: Json = {}
    for name, scores in rankings.items():
        scores = np.where(examples.candidates >= 0, scores, -np.inf)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :5]
        hits = np.take_along_axis(examples.hits, order, axis=1)
        out[name] = {"P@1": float(hits[:, :1].mean()), "P@5": float(hits.sum() / (5 * hits.shape[0]))}
    return out


def _hits(candidates: np.ndarray, Y: sp.csr_array) -> np.ndarray:
    """Return which candidates are true labels of their rows."""
    out = np.zeros(candidates.shape, dtype=bool)
    for row in range(candidates.shape[0]):
        out[row] = np.isin(candidates[row], Y.indices[Y.indptr[row] : Y.indptr[row + 1]])
    return out
