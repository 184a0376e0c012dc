"""Monitoring: chance is respected, real changes are seen, and what is new has a name."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail.data import Dataset
from longtail.errors import DataError, ModelError
from longtail.monitoring import FrequentNames, Profile, Reference, RowMeasures, compare_profiles
from longtail.monitoring.chance import DEALS, STATISTICS, weigh_chance
from longtail.pipeline import Monitor

NOUNS = ("apple", "pear", "car", "bus", "cat", "dog", "rose", "fern")
LABELS = ("fruit", "fruit", "vehicle", "vehicle", "animal", "animal", "plant", "plant")


def rows(n, seed=0, strange=""):
    """Return texts of nouns with filler words, some of them rare, and their labels."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(n):
        at = rng.integers(len(NOUNS), size=rng.integers(1, 3))
        rare = [f"w{int(i)}" for i in rng.integers(20_000, size=2)]
        common = [f"c{int(i)}" for i in rng.integers(30, size=rng.integers(3, 12))]
        texts.append(" ".join([*(NOUNS[i] + strange for i in at), *rare, *common]))
        labels.append(sorted({LABELS[i] for i in at}))
    return texts, labels


@pytest.fixture(scope="module")
def tagger():
    return lt.Tagger("ova", random_state=0, calibrate=0.2).fit(*rows(1500))


def verdicts(facts):
    return {one["what"]: one["verdict"] for one in facts["comparisons"]}


# ---- chance


def plain_distance(name, batch, reference):
    """Return a distance by its definition, from rows and not from counts."""
    a, b = (np.repeat(np.arange(heap.size), heap) for heap in (batch, reference))
    bins = range(batch.size)
    if name == "difference of means":
        return abs(a.mean() - b.mean())
    if name == "Kolmogorov-Smirnov":
        return max(abs((a <= i).mean() - (b <= i).mean()) for i in bins)
    return 0.5 * sum(abs((a == i).mean() - (b == i).mean()) for i in bins)


@pytest.mark.parametrize("name", sorted(STATISTICS))
def test_distances_are_those_of_the_definitions(name):
    rng = np.random.default_rng(0)
    for _ in range(20):
        batch, reference = rng.integers(0, 9, size=(2, 6))
        batch[0] += 1
        reference[-1] += 1
        assert STATISTICS[name](batch, reference) == pytest.approx(plain_distance(name, batch, reference))


@pytest.mark.parametrize("name", sorted(STATISTICS))
def test_p_values_of_rows_of_one_kind_are_spread_evenly(name):
    rng = np.random.default_rng(1)
    shares = np.array([0.4, 0.3, 0.2, 0.05, 0.05])
    p = [weigh_chance(name, rng.multinomial(60, shares), rng.multinomial(300, shares)).p_value for _ in range(300)]
    assert np.mean(np.array(p) <= 0.1) <= 0.16  # a share of 0.1 and four standard errors
    assert 0.35 < np.mean(np.array(p) <= 0.5) < 0.65


def test_the_limit_is_passed_once_in_a_thousand_deals():
    chance = weigh_chance("total variation", np.array([30, 70]), np.array([300, 700]))
    assert chance.distance == 0.0 and chance.p_value == 1.0
    assert 0.1 < chance.limit < 0.2 and chance.expected < chance.limit
    assert weigh_chance("total variation", np.array([60, 40]), np.array([300, 700])).p_value == 1 / (1 + DEALS)


def test_heaps_of_billions_are_no_problem():
    chance = weigh_chance("total variation", np.array([6, 4]) * 10**9, np.array([5, 5]) * 10**9)
    assert chance.distance == pytest.approx(0.1) and chance.p_value <= 0.001
    assert weigh_chance("total variation", np.array([9, 0]), np.array([1, 2]) * 2**39).distance == pytest.approx(2 / 3)


# ---- the Tagger


def test_new_rows_of_the_same_kind_are_steady(tagger):
    for seed in range(1, 6):
        for n in (1, 5, 50, 400):
            facts = tagger.monitor(*rows(n, seed=seed))
            assert facts["verdict"] == "steady", (seed, n, verdicts(facts))
    assert facts["rows"] == facts["labelled_rows"] == 400 and facts["reference_rows"] == 300
    assert json.loads(json.dumps(facts))["version"] == 1


def test_words_that_no_other_text_has_count_as_unknown_in_the_reference(tagger):
    facts = tagger.monitor(*rows(400, seed=9))
    words = next(one for one in facts["comparisons"] if one["what"] == "unknown_words")
    assert words["reference"] > 0.1  # though the features have learned the words of all rows
    assert words["batch"] == pytest.approx(words["reference"], abs=0.02)


def test_unknown_words_are_noticed_and_named(tagger):
    texts, _ = rows(60, seed=2, strange="x")
    facts = tagger.monitor(texts)
    found = verdicts(facts)
    assert facts["verdict"] == found["unknown_words"] == found["probability"] == "changed"
    assert {one["word"] for one in facts["unknown_words"][:8]} == {noun + "x" for noun in NOUNS}
    assert facts["strange_rows"] and facts["strange_rows"][0]["text"] in texts
    assert any("no labels" in sentence for sentence in facts["not_compared"])
    assert "precision_at_1" not in found and facts["calibration"] is None


def test_rows_that_it_was_trained_on_are_noticed(tagger):
    texts, labels = rows(1500)
    facts = tagger.monitor(texts[:300], labels[:300])
    words = next(one for one in facts["comparisons"] if one["what"] == "unknown_words")
    assert words["verdict"] == "changed" and "trained on these rows" in words["advice"]


def test_short_texts_are_noticed(tagger):
    texts, labels = rows(200, seed=3)
    assert verdicts(tagger.monitor([text[:12] for text in texts], labels))["length"] == "changed"


def test_a_topic_that_takes_over_is_noticed_by_name(tagger):
    texts, labels = rows(600, seed=4)
    fruit = [text for text, row in zip(texts, labels, strict=True) if row == ["fruit"]]
    facts = tagger.monitor(fruit)
    assert verdicts(facts)["label_mix"] == verdicts(facts)["single_labels"] == "changed"
    assert [one["label"] for one in facts["labels_more"]] == ["fruit"]
    assert {one["label"] for one in facts["labels_less"]} == {"animal", "plant", "vehicle"}
    assert facts["labels_more"][0]["rows"] <= len(fruit)


def test_wrong_labels_are_noticed_by_precision_and_calibration(tagger):
    texts, labels = rows(300, seed=5)
    facts = tagger.monitor(texts, labels[1:] + labels[:1])
    found = verdicts(facts)
    assert found["precision_at_1"] == found["calibration"] == "changed"
    assert found["unknown_words"] == found["probability"] == "steady"
    assert "worse" in facts["advice"] and facts["calibration"]["pairs"] == 4 * 300


def test_better_than_before_is_no_alarm(tagger):
    texts = [f"{noun} c1 c2 w{i}" for i, noun in enumerate(NOUNS * 40)]
    labels = [[label] for label in LABELS * 40]
    assert verdicts(tagger.monitor(texts, labels))["precision_at_1"] == "steady"


def test_labels_that_are_new_are_noticed_by_name(tagger):
    texts, labels = rows(100, seed=6)
    facts = tagger.monitor(texts, [[*row, "new"] for row in labels])
    assert verdicts(facts)["unknown_label"] == "changed"
    assert facts["unknown_labels"] == [{"label": "new", "rows": 100}]


def test_a_reference_of_ones_own_takes_the_place_of_the_training(tagger):
    texts, labels = rows(200, seed=7, strange="x")
    again = rows(150, seed=8, strange="x")
    assert tagger.monitor(texts)["verdict"] == "changed"
    facts = tagger.monitor(texts, labels, reference=again)
    assert facts["verdict"] == "steady" and facts["reference_rows"] == 150


def test_batches_add_up_to_the_whole(tagger):
    data = Dataset.from_lists(*rows(500, seed=1))
    whole, parts = Monitor(tagger), Monitor(tagger)
    whole.add(data)
    for at in (slice(0, 7), slice(7, 300), slice(300, 500)):
        parts.add(data.take(at))
    assert whole.facts() == parts.facts()


def test_a_model_without_a_reference_says_so(tagger):
    old = lt.Tagger("ova", random_state=0, calibrate=0).fit(*rows(100))
    with pytest.raises(ModelError, match=r"holds nothing to compare with.*give rows that it has not seen"):
        old.monitor(*rows(50, seed=1))
    facts = old.monitor(*rows(50, seed=1), reference=rows(80, seed=2))
    assert facts["verdict"] == "steady" and "probability" not in verdicts(facts)


def test_an_older_model_still_compares_its_precision(tagger):
    older = lt.Tagger("ova", random_state=0, calibrate=0.2).fit(*rows(1500))
    older.reference_ = None
    texts, labels = rows(300, seed=5)
    facts = older.monitor(texts, labels)
    assert verdicts(facts) == {"precision_at_1": "steady"}
    assert verdicts(older.monitor(texts, labels[1:] + labels[:1])) == {"precision_at_1": "changed"}
    assert facts["not_compared"] == [
        "Only P@1 could be compared: the model holds nothing to compare with: it was trained by an earlier version, or "
        "without rows held out; train it again, or give rows that it has not seen as a reference."
    ]
    with pytest.raises(ModelError):
        older.monitor(texts)


def test_no_rows_are_refused(tagger):
    with pytest.raises(DataError, match="no rows"):
        Monitor(tagger).facts()


@pytest.mark.parametrize("make", [sp.csr_array, np.asarray])
def test_rows_of_features_are_monitored_too(make):
    rng = np.random.default_rng(0)

    def draw(n):
        Y = np.eye(4)[rng.integers(4, size=n)]
        return make((np.hstack([Y, Y]) + 0.1 * rng.random((n, 8))) * (rng.random((n, 8)) < 0.9)), sp.csr_array(Y)

    tagger = lt.Tagger("ova", random_state=0).fit(*draw(500))
    X, Y = draw(200)
    facts = tagger.monitor(X, Y)
    assert facts["verdict"] == "steady" and facts["labelled_rows"] == 200
    assert any("rows of features" in sentence for sentence in facts["not_compared"])
    assert verdicts(tagger.monitor(X * (np.arange(8) < 1)))["length"] == "changed"


# ---- what is kept


def test_the_reference_is_saved_and_small(tagger, tmp_path):
    folder = tagger.save(tmp_path / "m")
    assert next(folder.glob("reference.*")).stat().st_size < 10_000
    batch = rows(100, seed=1)
    assert lt.load(folder).monitor(*batch) == tagger.monitor(*batch)


def test_a_reference_that_lists_labels_the_model_lacks_is_refused(tagger, tmp_path):
    other = lt.Tagger("ova", random_state=0).fit(*rows(300))
    other.reference_ = Reference.of(profile_of(np.full((50, 1), 7), n_labels=8))
    with pytest.raises(ModelError, match="reference lists labels"):
        lt.load(other.save(tmp_path / "m"))


def profile_of(assigned, n_labels):
    profile = Profile(n_labels)
    profile.add(RowMeasures(length=np.full(assigned.shape[0], 9), assigned=assigned))
    return profile


def test_a_reference_of_many_labels_stays_small_and_knows_what_it_left_out():
    assigned = np.arange(1000)[:, None] % 500
    assigned[:100] = 3
    reference = Reference.of(profile_of(assigned, 500))
    assert reference.given.labels.size == reference.drawn.labels.size == 200
    assert reference.given_most_other == 2 and reference.drawn.rows.sum() + reference.drawn_other == 1000
    again = profile_of(assigned, 500)
    comparisons, changes = compare_profiles(reference, again)
    assert {one["verdict"] for one in comparisons} == {"steady"} and not changes.labels.size


def test_labels_that_go_leave_the_reference(tagger):
    smaller = lt.Tagger("ova", random_state=0, calibrate=0.2).fit(*rows(1500))
    before = smaller.reference_
    smaller.remove_labels(["animal"])
    after = smaller.reference_
    assert after.given.labels.tolist() == [0, 1, 2]
    assert after.given.rows.tolist() == before.given.rows.tolist()[1:]
    assert after.drawn.rows.sum() + after.drawn_other == before.drawn.rows.sum() + before.drawn_other


def test_an_update_adds_its_rows_to_the_reference():
    first = lt.Tagger("ova", random_state=0, calibrate=0.3).fit(*rows(600))
    texts, labels = rows(600, seed=2, strange="x")
    assert first.monitor(texts, labels)["verdict"] == "changed"
    first.partial_fit(texts, labels)
    assert first.reference_.rows == 180 + 180
    facts = first.monitor(*rows(200, seed=3, strange="x"))
    words = next(one for one in facts["comparisons"] if one["what"] == "unknown_words")
    assert words["verdict"] == "steady"


def test_another_decision_changes_what_is_expected():
    tagger = lt.Tagger("ova", random_state=0, calibrate=0.2).fit(*rows(1000))
    before = tagger.reference_.histograms["assigned"] @ np.arange(21) / 200
    tagger.learn_decision(Dataset.from_lists(*rows(300, seed=1)), target="labels-per-row=3")
    facts = tagger.monitor(*rows(300, seed=2))
    labels = next(one for one in facts["comparisons"] if one["what"] == "assigned")
    assert labels["verdict"] == "steady" and labels["reference"] > before + 0.1


def test_frequent_names_stay_few_and_keep_the_frequent():
    names = FrequentNames(most=100)
    for start in range(0, 5000, 50):
        names.add(["often", *(f"n{i}" for i in range(start, start + 50))], [3] + [1] * 50)
    assert len(names) <= 151 and names.top(1) == [("often", 300)] and not names.complete
