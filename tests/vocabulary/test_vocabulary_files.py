"""Files of vocabularies: every format, how it is recognised, and what is refused in one sentence."""

import sys

import pytest

from longtail.data import Limits
from longtail.errors import DataError, MissingExtraError
from longtail.vocabulary import Concept, Vocabulary, is_vocabulary_file
from longtail.vocabulary.read_file import guess_format

TURTLE = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix xl: <http://www.w3.org/2008/05/skos-xl#> .
@prefix ex: <http://ex.org/> .
ex:scheme a skos:ConceptScheme ; skos:prefLabel "all"@en .
ex:1 a skos:Concept ; skos:prefLabel "animals"@en, "Tiere"@de ; skos:narrower ex:2 .
ex:2 a skos:Concept ; skos:prefLabel "cats"@en ; skos:altLabel "felines"@en ; skos:notation "1.1" ;
  skos:inScheme ex:scheme .
ex:3 a skos:Concept ; xl:prefLabel [ xl:literalForm "dogs"@en ] ; skos:broader ex:1 .
ex:4 skos:prefLabel "hounds"@en ; <http://www.w3.org/2002/07/owl#deprecated> true ;
  <http://purl.org/dc/terms/isReplacedBy> ex:3 .
"""
RDFXML = """<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [<!ENTITY ex "http://ex.org/">]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="http://www.w3.org/2004/02/skos/core#">
<skos:Concept rdf:about="&ex;2"><skos:prefLabel xml:lang="en">cats</skos:prefLabel>
<skos:broader rdf:resource="&ex;1"/></skos:Concept>
<skos:Concept rdf:about="&ex;1"><skos:prefLabel xml:lang="en">animals</skos:prefLabel></skos:Concept>
</rdf:RDF>
"""
SKOS = "http://www.w3.org/2004/02/skos/core#"
NTRIPLES = f"""# animals
<http://ex.org/2> <{SKOS}prefLabel> "c\\u0061ts"@en .
<http://ex.org/2> <{SKOS}broader> <http://ex.org/1> . # above
<http://ex.org/1> <{SKOS}prefLabel> "animals"@en .
<http://ex.org/1> <http://ex.org/other> "say \\"hi\\" . <x>"^^<http://ex.org/t> .
_:b1 <http://ex.org/other> _:b2 .
"""


def saved(tmp_path, name, text):
    (tmp_path / name).write_text(text, "utf-8")
    return tmp_path / name


def test_skos_as_turtle(tmp_path):
    pytest.importorskip("rdflib")
    found = {c.id.rpartition("/")[2]: c for c in Vocabulary.read(saved(tmp_path, "a.ttl", TURTLE))}
    assert sorted(found) == ["1", "2", "3", "4"]  # the scheme is no concept
    assert found["1"].names == {"en": "animals", "de": "Tiere"}
    assert found["2"].alternatives == {"en": ("felines",)} and found["2"].notation == "1.1"
    assert found["2"].broader == found["3"].broader == ("http://ex.org/1",)
    assert found["3"].names == {"en": "dogs"}
    assert found["4"].deprecated and found["4"].replaced_by == "http://ex.org/3"


def test_skos_as_rdf_xml(tmp_path):
    pytest.importorskip("rdflib")
    vocabulary = Vocabulary.read(saved(tmp_path, "a.rdf", RDFXML))
    assert vocabulary.name("http://ex.org/2") == "cats" and vocabulary.broader("http://ex.org/2") == (
        "http://ex.org/1",
    )


def test_skos_as_n_triples_needs_no_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdflib", None)
    vocabulary = Vocabulary.read(saved(tmp_path, "a.nt", NTRIPLES))
    assert vocabulary.name("http://ex.org/2") == "cats" and len(vocabulary) == 2
    with pytest.raises(MissingExtraError, match=r"reading Turtle needs the package 'rdflib'.*longtail\[skos\]"):
        Vocabulary.read(saved(tmp_path, "a.ttl", TURTLE))


def test_n_triples_agree_with_rdflib(tmp_path):
    pytest.importorskip("rdflib")
    file = saved(tmp_path, "a.nt", NTRIPLES)
    assert Vocabulary.read(file, "ntriples") == Vocabulary.read(file, "turtle")


def test_annif_tsv(tmp_path):
    vocabulary = Vocabulary.read(
        saved(tmp_path, "a.tsv", '<http://ex.org/1>\tcats "and" dogs\t59\n\n<http://ex.org/2>\tlaw\n')
    )
    assert vocabulary["http://ex.org/1"] == Concept("http://ex.org/1", {"": 'cats "and" dogs'}, notation="59")


def test_annif_csv(tmp_path):
    text = 'uri,notation,label_fi,label_en\nhttp://ex.org/1,59,kissat,"cats, all"\nhttp://ex.org/2,,koirat,\n'
    vocabulary = Vocabulary.read(saved(tmp_path, "a.csv", text), language="en")
    assert vocabulary["http://ex.org/1"].names == {"fi": "kissat", "en": "cats, all"}
    assert vocabulary.name("http://ex.org/2") == "koirat"


def test_csv_with_semicolons_and_more_columns(tmp_path):
    text = "id;label;alt_label_de;broader;deprecated;replaced_by;remark\na;cats;Katzen|Mieze;b|c;yes;b;x\n"
    text += "b;d;;;;;\nc;e;;;;;\n"
    assert Vocabulary.read(saved(tmp_path, "a.csv", text))["a"] == Concept(
        "a", {"": "cats"}, {"de": ("Katzen", "Mieze")}, "", ("b", "c"), True, "b"
    )


@pytest.mark.parametrize(
    ("text", "format"),
    [
        (TURTLE, "turtle"),
        (RDFXML, "rdfxml"),
        (NTRIPLES.partition("\n")[2], "ntriples"),
        ("<http://ex.org/1>\tcats\n", "tsv"),
        ("uri,label_fi\n", "csv"),
        ('"uri";"label_fi"\n', "csv"),
        ('{"id": "a"}\n', "jsonl"),
    ],
)
def test_the_format_is_guessed_from_the_content(tmp_path, text, format):
    file = saved(tmp_path, "vocabulary", text)
    assert guess_format(file, Limits()) == format
    assert is_vocabulary_file(file) == (format != "jsonl")


def test_a_list_of_names_is_no_vocabulary(tmp_path):
    assert not is_vocabulary_file(saved(tmp_path, "labels.txt", "cats\nuri\nlaw, order\n"))


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.tsv", "<u1>\tcats\n<u1>\tdogs\n", r"a.tsv line 2: the concept 'u1' stands in line 1 already"),
        ("a.tsv", "<u1>\tcats\nu2\n", r"a.tsv line 2 must be '<uri>', a name and perhaps a notation.*it has 1 cells"),
        ("a.tsv", "\tcats\n", r"a.tsv line 1: the id of the concept is empty"),
        (
            "a.csv",
            "text,labels\na,b\n",
            r"a.csv is no vocabulary: it needs a column 'uri' or 'id'.*it has: text, labels",
        ),
        ("a.csv", "uri,label\nu1,cats\nu2\n", r"a.csv line 3 has 1 cells; the header has 2"),
        (
            "a.csv",
            "uri,label,deprecated\nu1,cats,perhaps\n",
            r"line 2: 'deprecated' must be true or false; got 'perhaps'",
        ),
        ("a.jsonl", '{"id": "u1"}\n{"id": "u1"}\n', r"a.jsonl line 2: the concept 'u1' stands in line 1 already"),
        ("a.jsonl", '{"name": "cats"}\n', r"a.jsonl line 1 has no id of a concept under 'id' or 'uri'; it has: name"),
        ("a.jsonl", '{"id": "u1", "label": 3}\n', r"a.jsonl line 1: 'label' must hold strings; got 3"),
        ("a.nt", "<a> <b> .\n", r"a.nt line 1 is no N-Triples statement; it begins with '<a> <b> .'"),
        ("a.nt", f'<a> <{SKOS}prefLabel> "\\q" .\n', r"a.nt line 1 has the unknown escape"),
        ("a.nt", f"<a> <{SKOS}broader> <b> .\n", r"a.nt has no concepts"),
        ("a", "cats\n", r"a is no vocabulary that is known; name its format with format="),
    ],
)
def test_bad_files_are_refused_in_one_sentence(tmp_path, name, text, sentence):
    with pytest.raises(DataError, match=sentence):
        Vocabulary.read(saved(tmp_path, name, text))


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.ttl", "@prefix skos: <http://x/> .\nskos:a skos:b .\n", r"a.ttl line \d is not Turtle: "),
        ("a.rdf", "<a><b></a>", r"a.rdf.*is not RDF/XML: .*"),
        ("a.rdf", "no xml", r"a.rdf line 1 is not XML"),
        (
            "a.rdf",
            '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><r>&b;</r>',
            r"a.rdf line 1 declares the XML entity 'b'; only short names without other entities",
        ),
        ("a.rdf", '<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/hostname">]><r>&a;</r>', r"declares the XML entity 'a'"),
        ("a.rdf", '<!DOCTYPE r [<!ENTITY % a "b">]><r/>', r"declares the XML entity 'a'"),
    ],
)
def test_bad_skos_is_refused_in_one_sentence(tmp_path, name, text, sentence):
    pytest.importorskip("rdflib")
    with pytest.raises(DataError, match=sentence):
        Vocabulary.read(saved(tmp_path, name, text))


def test_errors_in_turtle_are_told_in_plain_words(tmp_path):
    pytest.importorskip("rdflib")
    prefix = b"@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
    files = {
        "bad.ttl": (
            prefix + b"this is no Turtle\n",
            "bad.ttl line 2 is not Turtle: it cannot be read from 'this is no",
        ),
        "cut.ttl": (prefix + b'<http://a/1> skos:prefLabel "x', "cut.ttl is not Turtle: Quote expected in string.$"),
        "xml.ttl": (b'<?xml version="1.0"?>\n<rdf:RDF/>', "looks like RDF/XML, not Turtle; use format='rdfxml'"),
        "old.ttl": (prefix + b'<http://a/1> skos:prefLabel "\xe4" .', "line 2 is not UTF-8, as Turtle must be"),
    }
    for name, (content, told) in files.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=told):
            Vocabulary.read(tmp_path / name)
