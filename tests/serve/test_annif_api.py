"""Annif's REST API: shapes, limits and words are Annif's, so that its own http backend works against us."""

import pytest

pytest.importorskip("starlette")

from starlette.testclient import TestClient

import longtail as lt
from longtail.errors import ParameterError
from longtail.review import export_records
from longtail.serve import ServeSettings, create_app
from longtail.vocabulary import Concept

TEXTS = ["red apple", "green apple", "fast car", "old car"]
URIS = [
    ["http://ex.org/fruit", "http://ex.org/red"],
    ["http://ex.org/fruit"],
    ["http://ex.org/car"],
    ["http://ex.org/car"],
]
VOCABULARY = lt.Vocabulary(
    [
        Concept("http://ex.org/fruit", {"en": "fruit", "de": "Obst"}, notation="F1"),
        Concept("http://ex.org/red", {"en": "red", "de": "rot"}),
        Concept("http://ex.org/car", {"en": "cars", "de": "Autos"}, notation="C2"),
        Concept("http://ex.org/new", {"en": "news"}),
    ],
    language="en",
    name="things.ttl",
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = tmp_path_factory.mktemp("models")
    tagger = lt.Tagger(random_state=0).fit(TEXTS * 20, URIS * 20, vocabulary=VOCABULARY)
    plain = lt.Tagger(random_state=0, calibrate=0).fit(TEXTS * 5, [["fruit"], ["fruit"], ["car"], ["car"]] * 5)
    return {"things": tagger.save(made / "things"), "plain": plain.save(made / "plain")}


@pytest.fixture(scope="module")
def client(folders):
    with TestClient(create_app(ServeSettings(folders)), base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
def learning(folders, tmp_path):
    settings = ServeSettings(folders, reviews=tmp_path / "reviews.db", learn=True)
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        yield client


def test_projects_and_vocabularies(client):
    things, plain = client.get("/v1/projects").json()["projects"]
    assert things == client.get("/v1/projects/things").json()
    assert things["project_id"] == "things" and things["is_trained"] is True
    assert things["backend"] == {"backend_id": "longtail_tree"}
    assert things["vocab"] == {"vocab_id": "things-ttl", "languages": ["de", "en"], "size": 4, "loaded": True}
    assert things["vocab_language"] == things["language"] == "en" and things["modification_time"].startswith("20")
    assert plain["vocab"] == {"vocab_id": "plain", "languages": ["und"], "size": 2, "loaded": True}
    assert client.get("/v1/vocabs").json() == {"vocabs": [things["vocab"], plain["vocab"]]}
    assert set(client.get("/v1/").json()) == {"title", "version"}


def test_suggest_takes_a_form(client):
    got = client.post("/v1/projects/things/suggest", data={"text": "a red apple", "limit": "2", "metadata_title": "x"})
    assert got.status_code == 200
    first, second = got.json()["results"]
    assert (first["uri"], first["label"], first["notation"]) == ("http://ex.org/fruit", "fruit", "F1")
    assert (second["label"], second["notation"]) == ("red", None) and 1 >= first["score"] > second["score"] > 0
    german = client.post("/v1/projects/things/suggest", data={"text": "Äpfel: red apple", "language": "de"}).json()
    assert [hit["label"] for hit in german["results"]] == ["Obst", "rot", "Autos"]


def test_scores_lie_between_0_and_1_and_fall_without_calibration_too(client):
    got = client.post("/v1/projects/plain/suggest", data={"text": "red apple"}).json()["results"]
    assert [hit["uri"] for hit in got] == ["fruit", "car"] and 1 >= got[0]["score"] > got[1]["score"] > 0


def test_limit_and_threshold(client):
    def scores(**fields):
        found = client.post("/v1/projects/things/suggest", data={"text": "red apple", **fields}).json()["results"]
        return [hit["score"] for hit in found]

    every = scores()
    assert scores(limit="0") == [] and scores(limit="1") == every[:1] and scores(limit="99999") == every
    assert scores(threshold=str(every[1])) == every[:2] and scores(threshold="1.0") == [s for s in every if s >= 1]


def test_a_text_without_known_words_gets_nothing(client):
    assert client.post("/v1/projects/things/suggest", data={"text": "zzz qqq"}).json() == {"results": []}
    assert client.post("/v1/projects/things/suggest", data={"text": ""}).json() == {"results": []}


def test_suggest_batch(client):
    documents = [{"text": "old car", "document_id": "d7"}, {"text": "zzz", "metadata": {"title": "x"}}]
    got = client.post("/v1/projects/things/suggest-batch?limit=1&language=de", json={"documents": documents}).json()
    assert [row["document_id"] for row in got] == ["d7", None] and got[1]["results"] == []
    assert [hit["label"] for hit in got[0]["results"]] == ["Autos"]
    assert client.post("/v1/projects/things/suggest-batch", json={"documents": []}).json() == []
    many = client.post("/v1/projects/things/suggest-batch", json={"documents": [{"text": "old car"}] * 32})
    assert len(many.json()) == 32


@pytest.mark.parametrize(
    ("path", "sent", "status", "title", "detail"),
    [
        ("no/suggest", {"data": {"text": "a"}}, 404, "Project not found", "Project 'no' not found"),
        ("things/suggest", {"data": {"limit": "3"}}, 400, "Bad Request", "text is missing; it must be a text."),
        (
            "things/suggest",
            {"data": {"text": "a", "limit": "-1"}},
            400,
            "Bad Request",
            "limit must be a whole number >= 0",
        ),
        (
            "things/suggest",
            {"data": {"text": "a", "threshold": "nan"}},
            400,
            "Bad Request",
            "threshold must be a number",
        ),
        (
            "things/suggest",
            {"data": {"text": "a", "language": "xx"}},
            400,
            "Bad Request",
            'language "xx" not supported by',
        ),
        ("things/suggest", {"json": {"text": "a"}}, 415, "Unsupported Media Type", "the body must be a form"),
        ("things/suggest-batch", {"json": {"documents": [{"text": "a"}] * 33}}, 400, "Bad Request", "too many items"),
        (
            "things/suggest-batch",
            {"json": {"documents": [{"t": "a"}]}},
            400,
            "Bad Request",
            "documents[0] must be an object",
        ),
        (
            "things/suggest-batch",
            {"json": [1]},
            400,
            "Bad Request",
            "the body must be an object with a list of documents",
        ),
        (
            "things/learn",
            {"json": []},
            403,
            "Learning not allowed",
            "Project 'things' is not configured to allow learning",
        ),
    ],
)
def test_refusals_are_annifs(client, path, sent, status, title, detail):
    got = client.post(f"/v1/projects/{path}", **sent)
    assert got.status_code == status and got.headers["content-type"] == "application/problem+json"
    assert got.json()["title"] == title and got.json()["status"] == status and got.json()["detail"].startswith(detail)


@pytest.mark.parametrize("body", [b"text=%ff%fe", "text=äpfel".encode(), b"&".join([b"a=1"] * 300)])
def test_odd_forms_are_refused(client, body):
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/v1/projects/things/suggest", content=body, headers=headers).status_code == 400


def test_learning_keeps_reviewed_rows(learning):
    documents = [
        {
            "text": "a fast red car",
            "subjects": [{"uri": "http://ex.org/car"}, {"uri": "<http://ex.org/red>", "label": "red"}],
        },
        {"text": "the evening news", "subjects": [{"uri": "http://ex.org/new"}]},
        {"text": "unknown subject", "subjects": [{"uri": "http://ex.org/nothing"}]},
        {"text": "no subjects"},
    ]
    got = learning.post("/v1/projects/things/learn", json=documents)
    assert got.status_code == 204 and got.content == b""
    assert learning.post("/v1/projects/things/learn", json=documents[:1]).status_code == 204  # twice is once
    kept = {row["text"]: row["labels"] for row in export_records(learning.app.state.server.reviews, "all")}
    assert kept == {
        "a fast red car": ["http://ex.org/car", "http://ex.org/red"],
        "the evening news": ["http://ex.org/new"],
    }
    changed = [{"text": "a fast red car", "subjects": [{"uri": "http://ex.org/car"}]}]
    assert learning.post("/v1/projects/things/learn", json=changed).status_code == 204
    kept = {row["text"]: row["labels"] for row in export_records(learning.app.state.server.reviews, "all")}
    assert kept["a fast red car"] == ["http://ex.org/car"]
    assert learning.post("/v1/projects/things/learn", json={"text": "a"}).status_code == 400


def test_learning_needs_reviews(folders):
    with pytest.raises(ParameterError, match="learn needs a file of reviews"):
        ServeSettings(folders, learn=True)


def test_language_detection(client, monkeypatch):
    pytest.importorskip("simplemma")
    body = {"text": "The cats are sitting on the roof of the house", "languages": ["en", "de", "fi"]}
    results = client.post("/v1/detect-language", json=body).json()["results"]
    assert results[0]["language"] == "en" and results[0]["score"] > 0.5
    assert {hit["language"] for hit in results} == {"en", "de", "fi", None}
    got = client.post("/v1/detect-language", json={**body, "languages": ["xx"]})
    assert got.status_code == 400 and got.json()["detail"] == "unsupported candidate languages."


def test_language_detection_without_the_package(client, monkeypatch):
    import sys

    from longtail.serve import language_detection

    language_detection._strategy.cache_clear()
    monkeypatch.setitem(sys.modules, "simplemma.strategies", None)
    got = client.post("/v1/detect-language", json={"text": "a", "languages": ["en"]})
    assert got.status_code == 501 and "pip install 'longtail[language]'" in got.json()["detail"]
    for body in ({"text": "a"}, {"text": "a", "languages": []}, {"text": "a", "languages": ["../en"]}):
        assert client.post("/v1/detect-language", json=body).status_code == 400
