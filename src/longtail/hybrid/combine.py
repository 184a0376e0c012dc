"""Combine the scores of the experts by weights and boosted trees, learned on rows that no expert was trained on.

    log-odds = bias[band] + sum over features of weight[band, feature] * feature
    score = log-odds + tail * ln(1 / propensity)

The log-odds that a label belongs to the row are a logistic regression, with weights of their own for labels of each
band of training rows (none, 1 to 3, 4 to 30, more). Bands share what they have in common: their weights are drawn
towards those of all labels, and these towards `DEFAULT`, which stand where there is nothing to learn from. Where they
pay on rows held out, boosted trees stand beside it. They ask for the features and for these log-odds:

    log-odds of a label with rows = 0.25 * (those of the regression) + 0.75 * (those of the trees)

The labels of rows are less complete for rare labels, and a ranking by likelihood alone rarely shows them: `tail` says
how much they are favoured (1 / propensity as of Jain et al., 2016).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial
from typing import NamedTuple, Self

import numpy as np

from longtail.data import inverse_propensities
from longtail.hybrid.boosted_trees import BoostedTrees

EXPERTS = ("prototypes", "classifier", "tree", "neighbours", "names")
BAND_ENDS = (1, 4, 31)  # training rows from which on a label is of the next band
BANDS = ("no rows", "1 to 3 rows", "4 to 30 rows", "more rows")
NEW = 0  # the band of labels without rows


class Feature(NamedTuple):
    """One number that an expert says of a label of a row; "label" is no expert but the label itself."""

    expert: str
    name: str


FEATURES = (
    Feature("prototypes", "product"),
    Feature("classifier", "product"),
    Feature("tree", "log probability"),
    Feature("tree", "probability"),
    Feature("neighbours", "log share"),
    Feature("neighbours", "share"),
    Feature("names", "log odds"),
    Feature("names", "matches"),
    Feature("label", "log rows"),
    Feature("tree", "cube root of log probability"),  # tells 0.9 from 0.99, which the logarithm hardly does
    Feature("classifier", "behind the best"),  # product, less that of the row's best label
)
FEATURES_BEFORE = len(FEATURES) - 2  # of models that were saved before the last two were known
OF_NEW_LABELS = ("prototypes", "names")  # experts that know labels without rows
DEFAULT = (5.0, 6.0, 0.45, 0.3, 0.15, 1.0, 0.3, 0.3, 0.2, 0.0, 0.0)  # weights, about the mean of those learned
DEFAULT_BIAS = -5.5
PROTOTYPES_OF_NEW, NAMES_BESIDE_PROTOTYPES, BIAS_OF_NEW = 12.0, 0.5, -12.0  # the same of labels without rows
PULLS = (0.1, 3.0, 100.0)  # how strongly weights may be drawn to the default, at features of variance 1
TOWARDS_ALL = 1.0  # how strongly those of a band are drawn to those of all, at least
TREES_SHARE = 0.75  # of the log-odds; the others are those of the logistic regression
FOLDS = 2  # of held-out rows: the log-odds that trees learn from are by weights learned on other rows
FEWEST_FOR_TREES = 500  # true labels of half of the rows, below which no trees are tried
FEWEST_HITS = 20  # true labels, below which there is nothing to learn from
TAILS = (1.0, 0.75, 0.5, 0.25, 0.0)  # of which the largest is taken that ranks held-out rows about as well as the best
TAIL_COSTS = 0.003  # so much less of P@1 + P@3 + P@5 together is about as well
LIKELY, UNLIKELY = 40, 10  # candidates of a row that are all learned from; of the others one in so many
NEWTON_STEPS = 25
LARGEST = 1e6


def band_of(counts: np.ndarray) -> np.ndarray:
    """Return the band of labels with so many training rows.

    >>> band_of(np.array([0, 1, 3, 4, 30, 31])).tolist()
    [0, 1, 1, 2, 2, 3]
    """
    return np.digitize(counts, BAND_ENDS)


def rarity(counts: np.ndarray, n_pairs: int) -> np.ndarray:
    """Return ln(1 / propensity) of labels with so many training rows of `n_pairs` pairs of row and label.

    >>> [round(float(value), 1) for value in rarity(np.array([0, 10, 1000]), 1010)]
    [2.2, 1.3, 0.2]
    """
    return np.log(inverse_propensities(counts, n_pairs, A=0.55, B=1.5)).astype(np.float32)


def odds_of_unused(counts: np.ndarray) -> float:
    """Return how much less likely a label without rows is than one with 1 to 3 rows, as a logarithm, at most 0.

    After Good and Turing, labels without any row will have together about as many rows as labels with one row have.

    >>> odds_of_unused(np.array([0, 0, 0, 0, 1, 1, 3, 9])).__round__(2)
    -1.2
    """
    rare = counts[(counts > 0) & (counts < BAND_ENDS[1])]
    n_unused = int((counts == 0).sum())
    if not rare.size or not n_unused:
        return 0.0
    expected = max(int((counts == 1).sum()), 1) / n_unused
    return min(0.0, float(np.log(expected / rare.mean())))


@dataclass(frozen=True)
class Combination:
    """Weights of the features for every band of labels, and boosted trees beside them.

    Attributes
    ----------
    weights : ndarray of float32 (n_bands, n_features)
    bias : ndarray of float32 (n_bands,)
    tail : float, default=0.0
        How much rare labels are favoured.
    unused : float, default=0.0
        What is added for labels that were there at training and had no row, below 0: that says something of them.
    n_trained : int, default=0
        How many labels there were at training; those that came later have higher numbers.
    trees : BoostedTrees, default=None
        Boosted trees for labels with rows. Their feature 0 are the log-odds by the weights, the others come after it.
    """

    weights: np.ndarray
    bias: np.ndarray
    tail: float = 0.0
    unused: float = 0.0
    n_trained: int = 0
    trees: BoostedTrees | None = None

    @classmethod
    def default(cls, experts: tuple[str, ...]) -> Self:
        """Return the weights that stand where there is nothing to learn from."""
        weights = np.tile(np.array(DEFAULT, dtype=np.float32), (len(BANDS), 1))
        weights[:, ~used_features(experts)] = 0
        bias = np.full(len(BANDS), DEFAULT_BIAS, dtype=np.float32)
        weights[NEW] = 0
        weights[NEW, [feature.name == "log odds" for feature in FEATURES]] = 1.0 * ("names" in experts)
        bias[NEW] = 0.0
        if "prototypes" in experts:  # a similarity is no log-odds
            weights[NEW] *= NAMES_BESIDE_PROTOTYPES
            weights[NEW, 0] = PROTOTYPES_OF_NEW
            bias[NEW] = BIAS_OF_NEW
        return cls(weights, bias)

    @classmethod
    def restore(
        cls,
        weights: np.ndarray,
        bias: np.ndarray,
        tail: float = 0.0,
        unused: float = 0.0,
        n_trained: int = 0,
        trees: BoostedTrees | None = None,
    ) -> Self:
        """Return a combination that was saved; features that were not known then have no weight.

        >>> weights, bias = np.ones((4, FEATURES_BEFORE), np.float32), np.zeros(4, np.float32)
        >>> Combination.restore(weights, bias).weights[0, -3:].tolist()
        [1.0, 0.0, 0.0]
        """
        more = len(FEATURES) - weights.shape[1]
        return cls(np.pad(weights, ((0, 0), (0, more))), bias, tail, unused, n_trained, trees)

    def scores(self, features: np.ndarray, candidates: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return the scores of candidates (n, m), -inf where there is none (-1).

        `features` is (n, m, n_features), `counts` the training rows of every label.
        """
        scores = self.log_odds(features, candidates, counts) + self.bonus(candidates, counts)
        return np.where(candidates >= 0, scores, -np.inf).astype(np.float32)

    def bonus(self, candidates: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return what candidates have beside their log-odds: more for rare labels, less for those never used."""
        rows = counts[candidates]
        out = np.float32(self.tail) * rarity(rows, int(counts.sum())) if self.tail else np.zeros(rows.shape, np.float32)
        return out + np.float32(self.unused) * ((rows == 0) & (candidates < self.n_trained))

    def log_odds(self, features: np.ndarray, candidates: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return the log-odds of candidates (n, m); of no meaning where there is none."""
        band = band_of(counts[candidates])
        log_odds = np.einsum("nmf,nmf->nm", features, self.weights[band]) + self.bias[band]
        if self.trees is not None:
            asked = (candidates >= 0) & (band != NEW)
            of_trees = self.trees.log_odds(seen_by_trees(log_odds[asked], features[asked]))
            log_odds[asked] = (1 - TREES_SHARE) * log_odds[asked] + TREES_SHARE * of_trees
        return log_odds

    def of_experts(self, features: np.ndarray, others: np.ndarray, count: int) -> dict[str, float]:
        """Return what every expert adds to the log-odds of one label with so many training rows.

        That is the difference between its features and others, which leave it out: the mean over all orders in which
        experts can be added (Shapley's value). All together are the difference between the log-odds of both.
        """
        n = len(EXPERTS)
        of = np.array([[feature.expert == expert for feature in FEATURES] for expert in EXPERTS])
        sets = (np.arange(2**n)[:, None] >> np.arange(n)) & 1 == 1
        rows = np.where((sets @ of)[:, None, :], features, others)
        value = self.log_odds(rows, np.zeros((2**n, 1), dtype=np.int32), np.array([count]))[:, 0].astype(np.float64)
        out = {}
        for number, expert in enumerate(EXPERTS):
            without = np.flatnonzero(~sets[:, number])
            share = np.array([factorial(size) * factorial(n - size - 1) for size in sets[without].sum(axis=1)])
            gained = value[without | 1 << number] - value[without]
            out[expert] = float(share @ gained) / factorial(n)
        return out


def used_features(experts: tuple[str, ...]) -> np.ndarray:
    """Return which features some experts have, bool; what is known of the label itself is always used."""
    return np.array([feature.expert in (*experts, "label") for feature in FEATURES])


@dataclass(frozen=True)
class HeldOutCandidates:
    """Candidates of held-out rows: what the experts say, and which are right.

    Attributes
    ----------
    features : ndarray of float32 (n, m, n_features)
    candidates : ndarray of int32 (n, m)
        Labels, -1 where there is none.
    hits : ndarray of bool (n, m)
        Which are right.
    worth : ndarray of float32 (n, m)
        How many candidates each stands for; 0 for those that are left out.
    """

    features: np.ndarray
    candidates: np.ndarray
    hits: np.ndarray
    worth: np.ndarray

    @classmethod
    def some(
        cls, features: np.ndarray, candidates: np.ndarray, hits: np.ndarray, likely: np.ndarray, seed: int
    ) -> Self:
        """Return examples in which all true and likely candidates are used, and every tenth of the others."""
        worth = (candidates >= 0).astype(np.float32)
        others = worth * ~hits
        others[np.arange(len(hits))[:, None], np.argsort(-likely, axis=1, kind="stable")[:, :LIKELY]] = 0
        chosen = np.random.default_rng(seed).random(hits.shape) < 1 / UNLIKELY
        worth[others > 0] = np.where(chosen, np.float32(UNLIKELY), np.float32(0))[others > 0]
        return cls(features, candidates, hits, worth)

    def take(self, rows: np.ndarray) -> HeldOutCandidates:
        """Return the examples of some rows."""
        return HeldOutCandidates(self.features[rows], self.candidates[rows], self.hits[rows], self.worth[rows])


def learn_weights(
    examples: HeldOutCandidates,
    as_new: HeldOutCandidates | None,
    counts: np.ndarray,
    experts: tuple[str, ...],
    pull: float = PULLS[0],
) -> Combination:
    """Return the weights that make the true labels of rows most likely.

    `as_new` are the same examples with the features that labels would have if they had no rows; without them the
    weights of new labels are left at their default.

    `pull` is how strongly they are drawn towards the default. No expert speaks against a label: weights are not
    negative.
    """
    default = Combination.default(experts)
    kept = (examples.worth > 0) & (counts[examples.candidates] > 0)
    hits = examples.hits[kept]
    if hits.sum() < FEWEST_HITS or hits.all():
        return default
    band = band_of(counts[examples.candidates[kept]])
    weights, bias = default.weights.astype(np.float64), default.bias.astype(np.float64)
    own = [b for b in range(NEW + 1, len(BANDS)) if (band == b).any()]
    features = examples.features[kept][:, used_features(experts)]
    problem = Regression(features, hits, examples.worth[kept], band, own)
    found = problem.solve(used_features(experts), weights[-1], bias[-1], pull)
    for b in range(NEW + 1, len(BANDS)):
        weights[b], bias[b] = found.get(b, found[-1])
    learned = Combination(weights.astype(np.float32), bias.astype(np.float32))
    return learned if as_new is None else learn_new_labels(learned, as_new, counts, experts)


def learn_trees(
    examples: HeldOutCandidates, counts: np.ndarray, experts: tuple[str, ...], pull: float = PULLS[0]
) -> BoostedTrees | None:
    """Return boosted trees that tell the true labels of rows, of labels with rows; None with too few of them.

    The log-odds by weights that they learn from are by weights learned on other rows.
    """
    kept = (examples.worth > 0) & (counts[examples.candidates] > 0)
    hits = examples.hits[kept]
    if hits.sum() < FEWEST_FOR_TREES or hits.all():
        return None
    log_odds, fold = np.empty(kept.shape, dtype=np.float32), np.arange(len(kept)) % FOLDS
    for own in range(FOLDS):
        of = examples.take(fold == own)
        weights = learn_weights(examples.take(fold != own), None, counts, experts, pull)
        log_odds[fold == own] = weights.log_odds(of.features, of.candidates, counts)
    used = np.append(0, 1 + np.flatnonzero(used_features(experts)))
    rising = np.append(True, [feature.expert != "label" for feature in FEATURES])[used]
    seen = seen_by_trees(log_odds[kept], examples.features[kept])[:, used]
    return BoostedTrees.fit(seen, hits, examples.worth[kept], rising).on_features(used)


def seen_by_trees(log_odds: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Return what boosted trees ask for (n, 1 + n_features): log-odds by the weights (n,), then the features."""
    return np.concatenate([log_odds[:, None], features], axis=1, dtype=np.float32)


def log_loss(combination: Combination, examples: HeldOutCandidates, counts: np.ndarray) -> float:
    """Return the mean log loss of the candidates of rows, per row."""
    scores = combination.log_odds(examples.features, examples.candidates, counts).astype(np.float64)
    used = examples.worth > 0
    scores, hits = scores[used], examples.hits[used]
    return float(examples.worth[used] @ (np.logaddexp(0, scores) - hits * scores) / max(examples.hits.shape[0], 1))


def learn_new_labels(
    combination: Combination, examples: HeldOutCandidates, counts: np.ndarray, experts: tuple[str, ...]
) -> Combination:
    """Return the weights with those of labels without rows, learned from rare labels as if they had none.

    The features of the examples are those that the labels would have without their rows.
    """
    used = used_features(tuple(e for e in experts if e in OF_NEW_LABELS))
    used[[feature.expert == "label" for feature in FEATURES]] = False  # of all new labels it is the same
    for most in (BAND_ENDS[1] - 1, BAND_ENDS[2] - 1):
        kept = (examples.worth > 0) & (counts[examples.candidates] <= most)
        kept &= counts[examples.candidates] > 0
        if examples.hits[kept].sum() >= FEWEST_HITS:
            break
    else:
        return combination
    weights, bias = combination.weights.astype(np.float64), combination.bias.astype(np.float64)
    one_band = np.zeros(int(kept.sum()), dtype=np.int64)
    features, worth = examples.features[kept][:, used], examples.worth[kept]
    problem = Regression(features, examples.hits[kept], worth, one_band, [])
    weights[NEW], bias[NEW] = problem.solve(used, weights[NEW], bias[NEW], PULLS[0])[-1]
    return Combination(weights.astype(np.float32), bias.astype(np.float32))


class Regression:
    """A logistic regression with weights of their own for some bands of examples, drawn towards those of all.

    Parameters
    ----------
    features : ndarray (n, n_features)
        What is known of every example.
    hits : ndarray of bool (n,)
        Which are right.
    worth : ndarray (n,)
        How many examples each stands for.
    band : ndarray of int (n,)
        Their bands.
    own : list of int
        Bands that get weights of their own.
    """

    mean: np.ndarray
    spread: np.ndarray
    own: list[int]
    worth: np.ndarray
    y: np.ndarray

    def __init__(
        self, features: np.ndarray, hits: np.ndarray, worth: np.ndarray, band: np.ndarray, own: list[int]
    ) -> None:
        X = features.astype(np.float64)
        self.mean, self.spread = X.mean(axis=0), X.std(axis=0) + 1e-6
        self.X = np.concatenate([(X - self.mean) / self.spread, np.ones((X.shape[0], 1))], axis=1)
        self.y, self.worth, self.own = hits.astype(np.float64), worth.astype(np.float64), own
        self.rows: list[np.ndarray] = [np.flatnonzero(band == b) for b in own]
        self.rest: np.ndarray = np.flatnonzero(~np.isin(band, own))

    def solve(
        self, used: np.ndarray, weights: np.ndarray, bias: float, pull: float
    ) -> dict[int, tuple[np.ndarray, float]]:
        """Return weights and bias of the bands with their own, and under -1 those of all others.

        `used` are the features given, among all; `weights` and `bias` what the solution is drawn towards.
        """
        n = self.X.shape[1]
        start = np.append(weights[used] * self.spread, bias + float(weights[used] @ self.mean))
        free = np.append(np.array([feature.expert == "label" for feature in FEATURES])[used], True)
        least = np.tile(np.where(free, -np.inf, 0.0), 1 + len(self.own))
        w = np.maximum(np.tile(start, 1 + len(self.own)), least)
        total, gradient, curvature = self._loss(w, start, pull)
        for _ in range(NEWTON_STEPS):
            step = _best_step(gradient, curvature, least - w)
            slope, size = float(gradient @ step), 1.0
            while size > 1e-4:
                tried = self._loss(w + size * step, start, pull)
                if tried[0] <= total + 1e-4 * size * slope:
                    break
                size /= 2
            gained, w = total - tried[0], np.maximum(w + size * step, least)
            total, gradient, curvature = tried
            if gained < 1e-6 * abs(total):
                break
        return {b: self._of(line, used) for b, line in zip([-1, *self.own], w.reshape(-1, n), strict=True)}

    def _loss(self, w: np.ndarray, start: np.ndarray, pull: float) -> tuple[float, np.ndarray, np.ndarray]:
        """Return loss, gradient and matrix of second derivatives at the weights of all lines, one after the other."""
        n = start.size
        of = w.reshape(-1, n)
        gradient, curvature = np.zeros_like(of), np.zeros((w.size, w.size))
        away, together = of[0] - start, max(TOWARDS_ALL, pull)
        total = 0.5 * pull * away @ away
        gradient[0] += pull * away
        curvature[:n, :n] += pull * np.eye(n)
        for line, at in enumerate([self.rest, *self.rows]):
            own = slice(line * n, (line + 1) * n)
            if line:
                apart = of[line] - of[0]
                total += 0.5 * together * apart @ apart
                gradient[line] += together * apart
                gradient[0] -= together * apart
                for rows, columns, sign in (
                    (own, own, 1),
                    (slice(n), slice(n), 1),
                    (own, slice(n), -1),
                    (slice(n), own, -1),
                ):
                    curvature[rows, columns] += sign * together * np.eye(n)
            X, y, worth = self.X[at], self.y[at], self.worth[at]
            s = X @ of[line]
            p = np.exp(-np.logaddexp(0.0, -s))
            total += worth @ (np.logaddexp(0, s) - y * s)
            gradient[line] += X.T @ (worth * (p - y))
            curvature[own, own] += (X * (worth * p * (1 - p))[:, None]).T @ X
        return float(total), gradient.ravel(), curvature

    def _of(self, w: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, float]:
        """Return weights of all features as they are, and the bias, from weights of scaled ones."""
        weights = np.zeros(used.size)
        weights[used] = w[:-1] / self.spread
        return np.clip(weights, -LARGEST, LARGEST), float(w[-1] - (w[:-1] / self.spread) @ self.mean)


def _best_step(gradient: np.ndarray, curvature: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Return the step that makes `gradient @ step + step @ curvature @ step / 2` smallest, not below `least`."""
    from scipy.optimize import minimize  # slow to import, and only training needs it

    solved = minimize(
        lambda d: (float(gradient @ d + 0.5 * d @ curvature @ d), gradient + curvature @ d),
        np.zeros(gradient.size),
        jac=True,
        method="L-BFGS-B",
        bounds=[(low if np.isfinite(low) else None, None) for low in least],
        options={"maxiter": 500, "ftol": 1e-12, "gtol": 1e-8},
    )
    return solved.x
