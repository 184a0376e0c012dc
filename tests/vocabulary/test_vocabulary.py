"""A Vocabulary: names by language, lookups, hierarchy, files and folders."""

import json
import lzma

import pytest

import longtail as lt
from longtail.errors import DataError, ParameterError
from longtail.vocabulary import Concept, Vocabulary

ANIMALS = [
    Concept("http://ex.org/1", {"en": "animals", "de": "Tiere"}, notation="1"),
    Concept(
        "http://ex.org/2",
        {"en": "cats", "de": "Katzen"},
        {"en": ("felines", "house cats")},
        notation="1.1",
        broader=("http://ex.org/1",),
    ),
    Concept("http://ex.org/3", {"en": "dogs"}, notation="1.2", broader=("http://ex.org/1",)),
    Concept("http://ex.org/4", {"en": "hounds"}, deprecated=True, replaced_by="http://ex.org/3"),
    Concept("http://ex.org/5", {"en": "Mercury", "de": "Quecksilber"}, notation="Hg"),
    Concept("http://ex.org/6", {"en": "Mercury", "de": "Merkur"}),
    Concept("http://ex.org/7"),
]


@pytest.fixture
def animals():
    return Vocabulary(ANIMALS, language="en")


def test_names_come_in_the_chosen_language_or_the_nearest_one(animals):
    assert animals.name("http://ex.org/2") == "cats"
    animals.language = "de"
    assert animals.name("http://ex.org/2") == "Katzen"
    assert animals.name("http://ex.org/3") == "dogs"  # has no German name
    assert animals.name("http://ex.org/7") == "http://ex.org/7"  # has none at all
    assert animals.names_of("http://ex.org/2") == ("Katzen",)
    with pytest.raises(ParameterError, match=r"language must be a language of the vocabulary \(en, de\); got 'fr'"):
        animals.language = "fr"


def test_a_kindred_language_is_nearer_than_english():
    vocabulary = Vocabulary([Concept("1", {"en": "a", "de-AT": "b", "fi": "c"}), Concept("2", {"de": "d"})])
    vocabulary.language = "de"
    assert vocabulary.name("1") == "b"


def test_concepts_with_one_name_are_told_apart(animals):
    assert animals.name("http://ex.org/5") == "Mercury (Hg)"
    assert animals.name("http://ex.org/6") == "Mercury (6)"
    animals.language = "de"
    assert animals.name("http://ex.org/6") == "Merkur"


def test_find_takes_ids_notations_and_names(animals):
    for word in ("http://ex.org/2", "<http://ex.org/2>", "1.1", "cats", "CATS ", "Katzen", "felines", "House Cats"):
        assert animals.find(word) == "http://ex.org/2", word
    assert animals.find("mercury (hg)") == "http://ex.org/5"
    with pytest.raises(ParameterError, match=r"got 'cat'. Did you mean 'cats'"):
        animals.find("cat")
    with pytest.raises(
        ParameterError, match=r"it is the name of 2: .*<http://ex.org/5>.*<http://ex.org/6>.*got 'Mercury'"
    ):
        animals.find("Mercury")
    assert animals.find("Mercury", among=["http://ex.org/6"]) == "http://ex.org/6"


def test_broader_and_narrower(animals):
    assert animals.broader("http://ex.org/2") == ("http://ex.org/1",)
    assert animals.narrower("http://ex.org/1") == ("http://ex.org/2", "http://ex.org/3")
    assert animals.replacement("http://ex.org/4") == "http://ex.org/3" and animals.is_deprecated("http://ex.org/4")


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.xz", "csv"])
def test_files_hold_everything(tmp_path, animals, suffix):
    again = Vocabulary.read(animals.write(tmp_path / f"a.{suffix}"))
    assert list(again) == ANIMALS and again == animals


def test_turtle_holds_everything(tmp_path, animals):
    pytest.importorskip("rdflib")
    assert list(Vocabulary.read(animals.write(tmp_path / "a.ttl"))) == ANIMALS


def test_tsv_holds_ids_names_and_notations(tmp_path, animals):
    again = Vocabulary.read(animals.write(tmp_path / "a.tsv"))
    assert again["http://ex.org/2"] == Concept("http://ex.org/2", {"": "cats"}, notation="1.1")


def test_parts_hold_everything(animals):
    part = animals.to_part()
    again = Vocabulary.from_part(type(part)(part.kind, part.params, part.arrays))
    assert list(again) == ANIMALS and again.language == "en"


def test_links_that_lead_nowhere_and_cycles_are_counted():
    concepts = [
        Concept("a", broader=("b",), replaced_by="gone"),
        Concept("b", broader=("c", "d")),
        Concept("c", broader=("a",)),
        Concept("d", broader=("nowhere", "d")),
    ]
    vocabulary = Vocabulary(concepts)
    assert [vocabulary.broader(id) for id in "abcd"] == [(), ("d",), (), ()]
    lost, round_, replaced = vocabulary.notes
    assert lost == "1 broader concept is not in the vocabulary and left out: nowhere."
    assert round_ == "broader concepts go round in a cycle, and its 3 links were left out: a."
    assert replaced == "1 replacement is not in the vocabulary and left out: gone."


def test_doubled_and_empty_ids_are_refused():
    with pytest.raises(DataError, match="has the concept 'a' twice"):
        Vocabulary([Concept("a"), Concept("a")])
    with pytest.raises(DataError, match="the id of a concept is empty"):
        Vocabulary([Concept("")])
    with pytest.raises(DataError, match="has no concepts"):
        Vocabulary([])


def test_limits_hold(tmp_path, animals):
    file = animals.write(tmp_path / "a.jsonl")
    with pytest.raises(DataError, match="more concepts than 3, the limit for labels"):
        Vocabulary.read(file, limits=lt.data.Limits(labels=3))
    with pytest.raises(DataError, match="more characters in the name of a label than 10"):
        Vocabulary.read(file, limits=lt.data.Limits(label_characters=10))


def test_compressed_files_are_read(tmp_path):
    (tmp_path / "a.tsv.xz").write_bytes(lzma.compress(b"<u1>\tcats\n"))
    assert Vocabulary.read(tmp_path / "a.tsv.xz").name("u1") == "cats"


def test_jsonl_may_have_plain_names(tmp_path):
    record = {"id": "u1", "label": "cats", "alt_label": ["felines"], "broader": "u0"}
    (tmp_path / "a.jsonl").write_text(json.dumps(record) + '\n{"id": "u0", "text": "animals"}\n')
    assert Vocabulary.read(tmp_path / "a.jsonl")["u1"] == Concept(
        "u1", {"": "cats"}, {"": ("felines",)}, broader=("u0",)
    )
