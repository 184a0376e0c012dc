"""The disentanglement score against slow loops, and what it says of known divisions."""

import json
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import longtail as lt
from longtail.data import TopK, entangle_labels
from longtail.errors import DataError, ParameterError
from longtail.metrics import disentanglement, share_apart, variation_of_information
from longtail.tree import matched_leaves

divisions = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


def slow_variation(a, b):
    """H(a | b) + H(b | a), by the definition."""
    n, out = len(a), 0.0
    for x in set(a):
        for y in set(b):
            both = sum(1 for i in range(n) if a[i] == x and b[i] == y) / n
            if both:
                out -= both * (np.log2(both / (a.count(x) / n)) + np.log2(both / (b.count(y) / n)))
    return out


@given(divisions)
def test_variation_of_information_is_its_definition(pairs):
    a, b = [p[0] for p in pairs], [p[1] for p in pairs]
    found = variation_of_information(a, b)
    assert found == pytest.approx(slow_variation(a, b), abs=1e-9)
    assert found == pytest.approx(variation_of_information(b, a))
    assert variation_of_information(a, [7 - x for x in a]) == pytest.approx(0.0, abs=1e-9)


def slow_sides(Y, fused, places, matched, least):
    """Return {label: {component: [place of each row that finds one]}} of labels with meanings, row by row."""
    out = {}
    for label in range(places.shape[0]):
        components = [c for c in range(Y.shape[1]) if fused[c] == label]
        alone = {c: [r for r in range(Y.shape[0]) if [x for x in components if Y[r, x]] == [c]] for c in components}
        alone = {c: rows for c, rows in alone.items() if len(rows) >= least}
        if len(alone) < 2:
            continue
        out[label] = {}
        for component, rows in alone.items():
            out[label][component] = []
            for row in rows:
                here = [
                    (-matched.scores[row, j], int(matched.ids[row, j]))
                    for j in range(matched.k)
                    if matched.ids[row, j] >= 0 and places[label, matched.ids[row, j]]
                ]
                out[label][component] += [min(here)[1]] if here else []
    return out


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    n_rows, n_components, n_clusters = draw(st.integers(1, 60)), draw(st.integers(2, 8)), draw(st.integers(1, 5))
    Y = (rng.random((n_rows, n_components)) < 0.3).astype(np.float32)
    fused = entangle_labels(Y, 2, random_state=0)[1]
    places = (rng.random((fused.max() + 1, n_clusters)) < 0.6).astype(np.float32)
    scores = rng.integers(-3, 1, size=(n_rows, n_clusters)).astype(np.float32)
    top = TopK.from_scores(scores, k=draw(st.integers(1, n_clusters)))
    return Y, fused, places, top, draw(st.integers(1, 4))


@given(problems())
def test_facts_are_those_of_a_slow_loop(problem):
    Y, fused, places, matched, least = problem
    sides = slow_sides(Y, fused, places, matched, least)
    facts = disentanglement(Y, fused, places, matched, least=least)
    judged = [
        [(component, place) for component, found in parts.items() for place in found]
        for label, parts in sides.items()
        if places[label].sum() > 1 and sum(map(bool, parts.values())) > 1
    ]
    assert facts["labels_with_meanings"] == len(sides) and facts["labels"] == len(judged)
    assert facts["rows"] == sum(map(len, judged))
    if judged:
        mean = np.mean([slow_variation([c for c, _ in pairs], [s for _, s in pairs]) for pairs in judged])
        assert facts["vi"] == pytest.approx(mean, abs=1e-6)
    else:
        assert facts["vi"] is None and facts["gain"] is None
    apart = share_apart(Y, fused, places, matched, least=least)
    assert apart["labels"] == len(sides)
    if sides:
        lands = [
            [min(set(went), key=lambda s: (-went.count(s), s)) if went else None for went in parts.values()]
            for parts in sides.values()
        ]
        assert apart["apart"] == pytest.approx(np.mean([len(set(found) - {None}) > 1 for found in lands]))
        every = [a != b and None not in (a, b) for found in lands for a, b in combinations(found, 2)]
        assert apart["pairs_apart"] == pytest.approx(np.mean(every))
    else:
        assert apart["apart"] is None and apart["apart_random"] is None


def two_meanings(n=40):
    return np.repeat(np.eye(2), n, axis=0), [0, 0]


def test_a_perfect_division_and_one_that_says_nothing():
    Y, fused = two_meanings()
    perfect = TopK(np.repeat([[0], [1]], 40, axis=0), np.zeros((80, 1)))
    facts = disentanglement(Y, fused, [[1, 1]], perfect)
    assert facts["vi"] == 0 and facts["gain"] == 1 and facts["better"] == 1 and 1.8 < facts["vi_random"] <= 2
    assert share_apart(Y, fused, [[1, 1]], perfect)["apart"] == 1
    one_place = TopK(np.zeros((80, 1), np.int32), np.zeros((80, 1)))
    facts = disentanglement(Y, fused, [[1, 1]], one_place)
    assert facts["vi"] == facts["vi_random"] == 1 and facts["gain"] == 0 and facts["better"] == 0
    assert share_apart(Y, fused, [[1, 1]], one_place)["apart"] == 0
    unrelated = TopK(np.tile([[0], [1]], (40, 1)), np.zeros((80, 1)))
    assert abs(disentanglement(Y, fused, [[1, 1]], unrelated)["gain"]) < 0.05


def test_the_place_with_the_higher_score_counts_whatever_the_order():
    Y, fused = two_meanings()
    ids, scores = np.tile([[0, 1]], (80, 1)), np.tile([[-0.5, -0.1]], (80, 1))
    scores[40:] = [-0.1, -0.5]
    assert disentanglement(Y, fused, [[1, 1]], TopK(ids, scores))["vi"] == 0


def test_labels_with_one_place_are_not_apart_and_have_no_variation():
    Y, fused = two_meanings()
    matched = TopK(np.repeat([[0], [1]], 40, axis=0), np.zeros((80, 1)))
    facts = disentanglement(Y, fused, [[1, 0]], matched)
    assert facts["labels"] == 0 and facts["vi"] is None
    both = TopK(np.tile([[0, 1]], (80, 1)), np.zeros((80, 2)))
    assert share_apart(Y, fused, [[1, 0]], both)["apart"] == 0


def test_facts_are_json_and_the_seed_decides_the_chance():
    Y, fused = two_meanings(20)
    matched = TopK(np.repeat([[0], [1]], [17, 23], axis=0), np.zeros((40, 1)))
    first, again, other = (disentanglement(Y, fused, [[1, 1]], matched, random_state=s) for s in (1, 1, 2))
    assert json.loads(json.dumps(first)) == first == again and other["vi_random"] != first["vi_random"]
    assert json.loads(json.dumps(share_apart(Y, fused, [[1, 1]], matched)))["labels"] == 1


def themes(n_rows=2000, n_themes=16, labels_per_theme=8, seed=0):
    """Return rows whose labels belong to themes: a row has words of one theme and of two labels in it."""
    rng = np.random.default_rng(seed)
    n_labels = n_themes * labels_per_theme
    X, Y = np.zeros((n_rows, 8 * n_themes + 2 * n_labels)), np.zeros((n_rows, n_labels))
    for row in range(n_rows):
        theme = rng.integers(n_themes)
        X[row, 8 * theme + rng.choice(8, 4, replace=False)] = 1
        for label in theme * labels_per_theme + rng.choice(labels_per_theme, 2, replace=False):
            Y[row, label] = 1
            X[row, 8 * n_themes + 2 * label + rng.integers(2)] = 1
    return X, Y


def test_a_tree_with_overlap_takes_known_meanings_apart():
    X, Y = themes()
    fused, new = entangle_labels(Y, 2)
    shares = {}
    for overlap in (1, 2):
        model = lt.LabelTreeClassifier(max_leaf=12, overlap=overlap, beam=1, random_state=0).fit(X, fused)
        matched, places = matched_leaves(model, X), model.trees_[0].slots()
        assert matched.ids.shape == (2000, 1) and matched.ids.max() < model.trees_[0].n_leaves
        shares[overlap] = share_apart(Y, new, places, matched)
        facts = disentanglement(Y, new, places, matched)
    assert shares[1]["apart"] == 0 and facts["labels"] > 20
    assert facts["gain"] > 0.3 and facts["better"] > 0.7
    assert shares[2]["apart"] > shares[2]["apart_random"] + 0.3


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"fused": [0]}, "fused must have one number per component (2); got 1."),
        ({"places": [[1, 1]], "fused": [0, 1]}, "places must have one row per joined label (2); got 1."),
        ({"matched": TopK(np.zeros((3, 1), np.int32), np.zeros((3, 1)))}, "matched must have one row per row of Y"),
        ({"places": [[1]]}, "matched names cluster 1; places has 1 clusters."),
    ],
)
def test_what_does_not_fit_is_refused(change, sentence):
    Y, fused = two_meanings()
    matched = TopK(np.repeat([[0], [1]], 40, axis=0), np.zeros((80, 1)))
    given_ = {"fused": fused, "places": [[1, 1]], "matched": matched, **change}
    for function in (disentanglement, share_apart):
        with pytest.raises(DataError) as told:
            function(Y, given_["fused"], given_["places"], given_["matched"])
        assert sentence in str(told.value)


def test_other_bad_input_is_refused():
    with pytest.raises(DataError, match="both divisions"):
        variation_of_information([0, 1], [0])
    with pytest.raises(DataError, match="at least one"):
        variation_of_information([], [])
    with pytest.raises(ParameterError, match="least must be"):
        disentanglement(np.eye(2), [0, 0], [[1]], TopK(np.zeros((2, 1), np.int32), np.zeros((2, 1))), least=0)
