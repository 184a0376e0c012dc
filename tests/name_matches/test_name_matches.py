"""Label names in texts: found where they stand, learned from other rows, saved, edited, and equal to slow twins."""

from __future__ import annotations

import copy
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.name_matches.plain_name_kernels import count_candidates_plain, find_names_plain
from tests.storage.hostile import hostile_parts

from longtail.errors import DataError, LongtailError, MissingExtraError, ParameterError
from longtail.name_matches import NameMatches
from longtail.name_matches.candidates import NameSearch
from longtail.name_matches.find_kernel import ENTRY, FAR, GRADE, LABEL, NEAR, PHRASE, ROW
from longtail.name_matches.name_forms import name_forms
from longtail.name_matches.name_index import as_names, make_entries, search_index
from longtail.text import StemmedWords

WORDS = ["red", "blue", "apple", "apples", "car", "fast", "the", "of", "x"]
NAMES = [
    ["apples"],
    ["cars", "motor vehicles"],
    ["night trains"],
    ["fast night trains"],
    ["vitamin C"],
    ["Abdomen, Acute"],
    ["migration (demography)"],
    ["Öl"],
    [],
    ["ghosts"],
]
TEXTS = [
    "Red apples and an apple tree",
    "A fast car for apples",
    "Motor vehicles of the city",
    "The night train to Rome",
    "Fast night trains are late",
    "Acute abdomen in children",
    "Migration of birds, and demography of towns",
    "Oil, Öl und vitamin C",
    "",
    "nothing here",
]
TRUE = [[0], [1, 0], [1], [2], [3, 2], [5], [6], [7, 4], [], []]


def matrix(lists, n_labels):
    indptr = np.cumsum([0] + [len(x) for x in lists])
    indices = np.array([label for x in lists for label in sorted(x)], dtype=np.int32)
    return sp.csr_array((np.ones(indices.size, np.float32), indices, indptr), shape=(len(lists), n_labels))


def fitted(**params):
    return NameMatches(**{"language": "english", "n_jobs": 1, **params}).fit(
        TEXTS * 6, matrix(TRUE * 6, len(NAMES)), NAMES
    )


def search_for(names, rules="light", window=4, max_words=4):
    words = StemmedWords("english", rules)
    terms, entries = make_entries(as_names(names), words, max_words)
    index = search_index(terms, entries, words.n_stems, words.short_stems())
    return NameSearch(words, index, entries, len(names), window), terms, entries


SOME_NAMES = st.lists(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join), max_size=3), min_size=1, max_size=6
)
SOME_TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join), max_size=4)


@given(SOME_NAMES, SOME_TEXTS, st.integers(0, 12))
@settings(deadline=None, max_examples=150)
def test_kernels_are_their_slow_twins(names, texts, window):
    search, terms, entries = search_for(names, window=window)
    content = search.content(texts)
    found = search.find(content)
    listed = terms.tuples()
    plain = find_names_plain(
        content.stems.tolist(),
        content.ends.tolist(),
        window,
        listed,
        search.index.anchor_at.tolist(),
        search.index.phrase_only.tolist(),
    )
    rows = np.repeat(np.arange(len(texts)), np.diff(found.ends, prepend=0)).tolist()
    assert sorted((row, *line) for row, line in zip(rows, found.lines.tolist(), strict=True)) == sorted(plain)
    in_order = [(row, *line) for row, line in zip(rows, found.lines.tolist(), strict=True)]
    entry_words = np.split(entries.words, entries.starts[1:-1]) if entries.size else []
    as_lists = list(
        zip(
            entries.term.tolist(),
            entries.label.tolist(),
            entries.kind.tolist(),
            [w.tolist() for w in entry_words],
            strict=True,
        )
    )
    starts = [0, *content.ends.tolist()]
    expected = count_candidates_plain(in_order, content.words.tolist(), starts, listed, as_lists)
    counted = search.candidates(content)
    assert counted.n_words.tolist() == np.diff(content.ends, prepend=0).tolist()
    assert len(counted.columns) == len(expected)
    for line in counted.columns:
        twin = expected[line[ROW], line[LABEL]].copy()
        best, other = as_lists[line[ENTRY]], as_lists[twin[ENTRY]]
        assert (best[2], len(best[3])) == (other[2], len(other[3]))  # equally sure forms: either may stand for them
        twin[ENTRY] = line[ENTRY]
        assert line.tolist() == twin.tolist()


@given(
    st.lists(
        st.sampled_from(["apples", "Cars", "motor  vehicle", "zebra", "—", "İx", "ΣΑΣ", "𝕏y", "Acute abdomen", "\n"]),
        max_size=12,
    )
)
@settings(deadline=None, max_examples=60)
def test_names_are_found_exactly_where_they_stand(pieces):
    model, text = MODEL, " zebra ".join(pieces)
    forms = {0: "apples", 1: "Cars", 5: "Acute abdomen"}
    for label, form in forms.items():
        stood = [text[a:b] for a, b, _ in model.matches(text, label)]
        wanted = [piece for piece in pieces if piece == form or (label == 1 and piece == "motor  vehicle")]
        assert stood == wanted
    named = set(model.predict_topk([text], k=10).ids[0].tolist()) - {-1}
    assert named >= {label for label, form in forms.items() if form in pieces}
    assert not named & {2, 3, 4, 6, 8}


MODEL = fitted()


def test_the_name_that_matched_is_told():
    assert MODEL.matches("A MOTOR VEHICLE, a car", 1) == [(2, 15, "motor vehicles"), (19, 22, "cars")]
    assert MODEL.matches("migration", 6) == [(0, 9, "migration (demography)")]
    assert MODEL.matches("İstanbul: fast night trains", 3) == [(10, 27, "fast night trains")]
    assert MODEL.matches("", 1) == [] and MODEL.matches("a car", 8) == []


def test_one_letter_words_count_and_must_stand_together():
    named = [set(ids) - {-1} for ids in MODEL.predict_topk(["vitamin C", "C and a vitamin", "vitamins"], k=3).ids]
    assert named == [{4}, set(), set()]


def test_forms_of_names():
    texts = [form.text for form in name_forms("Neoplasms, Lung (disease)", alternative=True)]
    assert texts == ["Neoplasms, Lung (disease)", "Neoplasms, Lung", "Lung (disease) Neoplasms", "Lung Neoplasms"]
    assert [form.text for form in name_forms("(brackets)", alternative=False)] == ["(brackets)"]


def test_a_name_inside_a_longer_name_is_less_likely():
    names = [["trains"], ["night trains"], ["boats"], ["night boats"], ["planes"], ["night planes"]]
    texts = [f"{form} {thing}" for thing in ("trains", "boats", "planes") for form in ("old", "night")] * 20
    model = NameMatches(n_jobs=1).fit(texts, matrix([[0], [1], [2], [3], [4], [5]] * 20, 6), names)
    top = model.predict_topk(["night trains", "new trains"], k=2)
    assert top.ids.tolist() == [[1, 0], [0, -1]]
    assert top.scores[1, 0] > top.scores[0, 1] + 1


def test_scores_are_calibrated_log_odds_and_the_same_everywhere():
    names = [["wolf"], ["fox"], ["bear"]]
    texts = ["wolf", "fox", "bear"] * 400
    Y = matrix([[i % 3] if i % 3 < 2 and i % 4 else [] for i in range(1200)], 3)  # 75% for wolf and fox, never bear
    model = NameMatches(n_jobs=1).fit(texts, Y, names)
    top = model.predict_topk(["a wolf", "bears", "nothing"], k=3)
    chance = 1 / (1 + np.exp(-top.scores[0, 0]))
    assert abs(chance - 0.75) < 0.08
    assert top.ids[1].tolist() == [2, -1, -1] and top.ids[2].tolist() == [-1, -1, -1]
    assert 0.4 < 1 / (1 + np.exp(-top.scores[1, 0])) < 0.95  # a label without rows is judged as those alike
    scores = model.scores_of(["a wolf", "bears", "nothing"], np.array([[0, 1], [2, -1], [0, 2]]))
    assert scores[0, 0] == top.scores[0, 0] and scores[1, 0] == top.scores[1, 0]
    assert scores[0, 1] == scores[2, 0] == np.float32(model.no_match_) and scores[1, 1] == -np.inf
    assert model.no_match_ < -5


def test_labels_given_at_random_get_no_weight_from_their_own_rows():
    random = np.random.default_rng(0)
    names = [[f"name{label}"] for label in range(300)]
    named = random.integers(0, 300, 1500)
    lists = [[label] if random.random() < 0.5 else [] for label in named]
    model = NameMatches(n_jobs=1).fit([f"name{label}" for label in named], matrix(lists, 300), names)
    top = model.predict_topk([f"name{label}" for label in range(300)], 1)
    chance = 1 / (1 + np.exp(-top.scores[:, 0]))  # 2 of 5 or 4 of 5 rows by chance: all labels are likely as 1/2
    assert abs(chance.mean() - 0.5) < 0.05 and chance.std() < 0.05


def test_the_same_model_for_any_number_of_threads_and_from_block_to_block(monkeypatch):
    from longtail.name_matches import fit as fitting

    texts, Y = TEXTS * 300, matrix(TRUE * 300, len(NAMES))
    monkeypatch.setattr("longtail.text.lexicon.BLOCK", 2000)
    monkeypatch.setattr(fitting, "MOST_EXAMPLES", 900)
    one, two = (NameMatches(n_jobs=n).fit(texts, Y, NAMES) for n in (1, 2))
    first, second = one.to_part(), two.to_part()
    assert first.params == second.params
    assert all(np.array_equal(first.arrays[name], second.arrays[name]) for name in first.arrays)
    whole = one.predict_topk(texts[:500], 4)
    alone = [one.predict_topk([text], 4) for text in texts[:20]]
    assert whole.ids[:20].tolist() == [top.ids[0].tolist() for top in alone]
    np.testing.assert_allclose(whole.scores[:20], [top.scores[0] for top in alone], rtol=1e-6)


def test_saved_and_loaded():
    loaded = NameMatches.from_part(MODEL.to_part())
    new = [*TEXTS, "apple trees by night train", "motor of a vehicle"]
    assert loaded.predict_topk(new, 5).ids.tolist() == MODEL.predict_topk(new, 5).ids.tolist()
    assert loaded.predict_topk(new, 5).scores.tobytes() == MODEL.predict_topk(new, 5).scores.tobytes()
    assert loaded.get_params() == {**MODEL.get_params(), "n_jobs": None}
    assert loaded.matches("a car", 1) == MODEL.matches("a car", 1) and loaded.no_match_ == MODEL.no_match_
    again = loaded.to_part()
    assert all(np.array_equal(array, again.arrays[name]) for name, array in MODEL.to_part().arrays.items())


def test_any_change_of_a_saved_part_is_refused_or_harmless():
    part = MODEL.to_part()
    for change, changed, must_refuse in hostile_parts(part, NameMatches.schema):
        try:
            loaded = NameMatches.from_part(changed)
        except LongtailError as error:
            assert "\n" not in str(error)
            continue
        assert not must_refuse, change
        try:
            top = loaded.predict_topk([*TEXTS, "motor of a vehicle"], 3)
            assert np.isfinite(top.scores[top.ids >= 0]).all(), change
            loaded.scores_of(TEXTS[:1], np.array([[0]]))
            loaded.matches("fast car, motor vehicles", 0)
            loaded.add_labels([["hedgehogs"]]).remove_labels([0])
        except LongtailError:
            pass


def test_labels_are_added_by_name_and_removed():
    model = fitted().add_labels([["hedgehogs", "urchins"], "night"])
    assert model.n_labels_ == len(NAMES) + 2
    top = model.predict_topk(["Two urchins", "late at night", "a hedgehog"], 2)
    assert top.ids[:, 0].tolist() == [len(NAMES), len(NAMES) + 1, len(NAMES)]
    assert top.scores[0, 0] > -6
    old = MODEL.predict_topk(TEXTS[:3], 3)
    assert model.predict_topk(TEXTS[:3], 3).ids.tolist() == old.ids.tolist()
    loaded = NameMatches.from_part(model.to_part()).remove_labels([0, 8])
    assert loaded.n_labels_ == len(NAMES) and loaded.matches("urchins", 8) == [(0, 7, "urchins")]
    assert loaded.predict_topk(["apples", "car", "urchin"], 1).ids[:, 0].tolist() == [-1, 0, 8]
    with pytest.raises(ParameterError, match="at least one label"):
        loaded.remove_labels(list(range(len(NAMES))))


def test_a_copy_is_changed_on_its_own_and_parameters_wait_for_the_next_fit():
    old = fitted()
    top = old.predict_topk(["apples and hedgehogs"], 2)
    new = copy.copy(old).add_labels([["hedgehogs"]])
    assert new.n_labels_ == old.n_labels_ + 1
    assert old.predict_topk(["apples and hedgehogs"], 2).ids.tolist() == top.ids.tolist() == [[0, -1]]
    saved = old.set_params(language=None, max_words=1).to_part()
    assert NameMatches.from_part(saved).get_params()["language"] == "english"


def test_labels_that_share_a_name_are_both_found():
    model = NameMatches(n_jobs=1).fit(["sanctions", "x"] * 5, matrix([[0], []] * 5, 2), ["sanctions", "sanction (law)"])
    top = model.predict_topk(["new sanctions"], 2)
    assert top.ids[0].tolist() == [0, 1]


def test_a_name_that_very_many_labels_share_is_not_looked_for():
    for shared in (100, 101):
        names = [["common", f"own{label}"] for label in range(shared)]
        model = NameMatches(n_jobs=1).fit(["common own3"] * 4, matrix([[3]] * 4, shared), names)
        assert (model.predict_topk(["common"], shared).ids[0] >= 0).sum() == (shared if shared == 100 else 0)
        assert model.predict_topk(["own7"], 1).ids.tolist() == [[7]]


def test_texts_and_names_of_any_kind():
    names = [[""], ["the of"], ["..."], ["a" * 5000], ["İ"], ["one two three four five six seven eight nine ten"], []]
    texts = ["", "the of", "a" * 5000, "İ i̇", "one two three four five six seven eight nine ten", "\x00\ufffd 𝕏"]
    model = NameMatches(n_jobs=1).fit(texts, matrix([[0], [1], [3], [4], [5], []], 7), names)
    top = model.predict_topk([*texts, "\ud800 broken"], 7)
    assert top.ids[2, 0] == 3 and top.ids[3, 0] == 4 and set(top.ids[[0, 1, 4, 5, 6]].ravel().tolist()) == {-1}
    assert model.predict_topk([], 3).ids.shape == (0, 3)
    assert model.scores_of([], np.empty((0, 2), np.int32)).shape == (0, 2)
    huge = "car apple " * 100_000 + "vitamin C"
    top = MODEL.predict_topk([huge], 10)
    assert set(top.ids[0].tolist()) == {0, 1, 4, -1} and np.isfinite(top.scores[0, :3]).all()


def test_names_that_never_match_give_no_labels():
    model = NameMatches(n_jobs=1).fit(["a", "b"], matrix([[0], [1]], 2), [["unheard"], ["unseen"]])
    assert model.predict_topk(["a b"], 2).ids.tolist() == [[-1, -1]]
    assert np.isfinite(model.predict_topk(["unheard"], 1).scores[0, 0])


def test_without_the_package_of_stems_simple_rules_do(monkeypatch):
    saved = fitted().to_part() if "snowballstemmer" in sys.modules else None
    monkeypatch.setattr("longtail.text.stemmed_words.importlib.util.find_spec", lambda name: None)
    model = fitted()
    assert model.to_part().params["rules"] == "light"
    assert model.predict_topk(["an apple", "two libraries"], 1).ids[:, 0].tolist() == [0, -1]
    assert NameMatches.from_part(model.to_part()).predict_topk(["an apple"], 1).ids.tolist() == [[0]]
    assert fitted(language="german").to_part().params["rules"] == "none"
    if saved is not None:
        monkeypatch.setitem(sys.modules, "snowballstemmer", None)
        from longtail.text.stemmer import stemmer_of

        stemmer_of.cache_clear()
        with pytest.raises(MissingExtraError, match="longtail\\[stem\\]"):
            NameMatches.from_part(saved).predict_topk(["an apple"], 1)
        stemmer_of.cache_clear()


def test_other_languages_and_none():
    pytest.importorskip("snowballstemmer")
    Y = matrix([[0], [1]] * 5, 2)
    german = NameMatches(language="german", n_jobs=1).fit(["Die Häuser", "Zwei Katzen"] * 5, Y, [["Haus"], ["Katze"]])
    assert german.predict_topk(["im Hause", "der Katzen"], 1).ids[:, 0].tolist() == [0, 1]
    plain = NameMatches(language=None, n_jobs=1).fit(["Die Häuser", "Zwei Katzen"] * 5, Y, [["Haus"], ["Katze"]])
    assert plain.predict_topk(["das HAUS", "der Katzen"], 1).ids[:, 0].tolist() == [0, -1]


@pytest.mark.parametrize(
    ("params", "names", "told"),
    [
        ({"language": "klingon"}, NAMES, "language must be one of"),
        ({"max_words": 0}, NAMES, "max_words must be an integer"),
        ({"n_jobs": 0}, NAMES, "n_jobs must be"),
        ({}, NAMES[:3], "names must be of as many labels as Y has columns, 10; got 3"),
        ({}, [*NAMES[:9], [3]], "names must hold the names of each label as strings; got \\[3\\] for label 9"),
        ({}, "names", "names must be a list with the names of each label"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(params, names, told):
    with pytest.raises(LongtailError, match=told):
        NameMatches(**params).fit(TEXTS, matrix(TRUE, len(NAMES)), names)


def test_bad_questions_are_refused():
    with pytest.raises(Exception, match="not fitted"):
        NameMatches().predict_topk(["a"], 1)
    for ids in (np.array([0]), np.array([[0.5]]), np.array([[0], [1]]), np.array([[99]]), np.array([[-2]])):
        with pytest.raises(DataError, match="ids must be"):
            MODEL.scores_of(["a"], ids)
    with pytest.raises(ParameterError, match="label must be"):
        MODEL.matches("a", 99)
    with pytest.raises(ParameterError, match="k must be"):
        MODEL.predict_topk(["a"], 0)
    with pytest.raises(DataError, match="as many rows"):
        NameMatches().fit(TEXTS[:3], matrix(TRUE, len(NAMES)), NAMES)


def test_grades_and_windows():
    search, _, _ = search_for([["night train"], ["car"]], window=2)
    content = search.content(["train by night", "train one two three night", "night train", "night night train"])
    found = search.candidates(content).columns
    assert found[:, [ROW, GRADE]].tolist() == [[0, NEAR], [2, PHRASE], [3, PHRASE]]
    search, _, _ = search_for([["night train"]], window=20)
    texts = [f"night {'word ' * between}train" for between in (8, 9, 19, 20)]
    found = search.candidates(search.content(texts)).columns
    assert found[:, [ROW, GRADE]].tolist() == [[0, NEAR], [1, FAR], [2, FAR]]


def test_words_that_stand_apart_are_told_one_by_one():
    assert MODEL.matches("Trains and boats in the night", 2) == [(0, 6, "night trains"), (24, 29, "night trains")]


def test_words_are_cut_by_the_rules_that_are_asked_for():
    texts, Y = ["running shoes", "old cats"] * 10, matrix([[0], [1]] * 10, 2)
    light = NameMatches(rules="light", n_jobs=1).fit(texts, Y, ["runs", "cat"])
    assert light.predict_topk(["a cat running"], 2).ids.tolist() == [[1, -1]]
    assert NameMatches.from_part(light.to_part()).get_params()["rules"] == "light"
    for params, allowed in (({"rules": "x"}, "'snowball' or 'light'"), ({"rules": "light", "language": None}, "None")):
        with pytest.raises(ParameterError, match=f"rules must be {allowed}"):
            NameMatches(**params).fit(texts, Y, ["runs", "cat"])
    pytest.importorskip("snowballstemmer")
    snowball = NameMatches(rules="snowball", n_jobs=1).fit(texts, Y, ["runs", "cat"])
    assert sorted(snowball.predict_topk(["a cat running"], 2).ids[0].tolist()) == [0, 1]
