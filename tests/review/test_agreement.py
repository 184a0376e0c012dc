"""Krippendorff's alpha: published values, and a slow twin that counts all pairs."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.review import NewItem, ReviewStore, agreement_facts, krippendorff_alpha


def alpha_plain(units):
    """Alpha from its definition: disagreement within units against that among all pairable values."""
    units = [list(unit) for unit in units if len(list(unit)) >= 2]
    values = [value for unit in units for value in unit]
    n = len(values)
    observed = sum(sum(a != b for a, b in itertools.permutations(unit, 2)) / (len(unit) - 1) for unit in units)
    expected = sum(a != b for a, b in itertools.permutations(values, 2)) / (n - 1) if n > 1 else 0
    return None if not expected else 1 - observed / expected


def by_unit(*people):
    return [
        [value for value in unit if value != "."] for unit in zip(*(person.split() for person in people), strict=True)
    ]


@pytest.mark.parametrize(
    ("people", "alpha"),
    [  # Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, examples A, B and C
        (("0 1 0 0 0 0 0 0 1 0", "1 1 1 0 0 1 0 0 0 0"), 0.095),
        (("a a b b d c c c e d d a", "b a b b b c c c e d d d"), 0.692),
        (
            (
                "1 2 3 3 2 1 4 1 2 . . .",
                "1 2 3 3 2 2 4 1 2 5 . 3",
                ". 3 3 3 2 3 4 2 2 5 1 .",
                "1 2 3 3 2 4 4 1 2 5 1 .",
            ),
            0.743,
        ),
    ],
)
def test_published_values(people, alpha):
    assert round(krippendorff_alpha(by_unit(*people)), 3) == alpha


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), max_size=5), max_size=12))
def test_alpha_equals_its_slow_twin(units):
    plain = alpha_plain(units)
    assert krippendorff_alpha(units) == (None if plain is None else pytest.approx(plain, abs=1e-12))


def test_the_order_of_units_does_not_matter_at_all():
    rng = np.random.default_rng(0)
    units = [rng.integers(0, 2, size=rng.integers(1, 6)).tolist() for _ in range(500)]
    assert len({krippendorff_alpha([units[i] for i in rng.permutation(500)]) for _ in range(5)}) == 1


def test_agreement_of_reviewers_counts_all_that_was_shown(tmp_path):
    store = ReviewStore(tmp_path / "r.db", create=True, control=0.0, twice=1.0)
    store.add_items(NewItem("t", ["a", "b"], id=str(i)) for i in range(4))
    for row in range(4):
        store.finish(str(row), "ada")
        if row < 2:
            store.decide(str(row), "b", "reject", "bob")
        store.decide(str(row), "c", "add", "bob")
        store.finish(str(row), "bob")
    facts = agreement_facts(store)
    assert (facts["pairs"], facts["rows"], facts["agreed"]) == (12, 4, 6)
    units = [[1, 1]] * 4 + [[1, 0]] * 2 + [[1, 1]] * 2 + [[0, 1]] * 4
    assert facts["alpha"] == pytest.approx(alpha_plain(units))
    assert [one["label"] for one in facts["labels"]] == ["c", "b"]
    assert facts["reviewers"] == [{"reviewer": "ada", "rows": 4}, {"reviewer": "bob", "rows": 4}]


def test_one_reviewer_agrees_with_nobody(tmp_path):
    store = ReviewStore(tmp_path / "r.db", create=True)
    store.add_items([NewItem("t", ["a"], id="1")])
    store.finish("1", "ada")
    facts = agreement_facts(store)
    assert facts["alpha"] is None and facts["pairs"] == 0
