"""Suggestions over HTTP are those of the Tagger, and what cannot be answered is refused in one sentence."""

import pytest

pytest.importorskip("starlette")

from starlette.testclient import TestClient

import longtail as lt
from longtail.serve import ServeSettings, create_app

TEXTS = ["red apple", "green apple", "fast car", "old car"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    labels = [["fruit", "red"], ["fruit"], ["vehicle"], ["vehicle"]]
    return lt.Tagger(random_state=0).fit(TEXTS * 20, labels * 20).save(tmp_path_factory.mktemp("models") / "things")


@pytest.fixture(scope="module")
def client(folder):
    with TestClient(create_app(ServeSettings({"things": folder})), base_url="http://127.0.0.1") as client:
        yield client


def test_labels_are_those_of_the_tagger(client, folder):
    got = client.post("/v1/longtail/models/things/suggest", json={"texts": TEXTS, "k": 2}).json()
    tags = lt.load(folder).tag(TEXTS, k=2)
    assert [[tag["label"] for tag in row["tags"]] for row in got["results"]] == [[t.label for t in row] for row in tags]
    first = got["results"][0]["tags"][0]
    assert first["score"] == tags[0][0].score and first["probability"] == tags[0][0].probability and first["assigned"]


def test_a_text_without_known_words_gets_no_labels(client):
    got = client.post("/v1/longtail/models/things/suggest", json={"text": "qqq zzz"}).json()
    assert got["results"] == [{"tags": [], "known_words": False}]


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({}, 422, "give one of text and texts."),
        ({"text": 3}, 422, "text must be a text; got a number."),
        ({"text": "a", "kk": 3}, 422, "'kk' is no field of the body. Did you mean 'k'?"),
        ({"text": "a", "k": 0}, 422, "k must be a whole number from 1 to 1000; got 0."),
        ({"text": "a", "allow": ["fruitt"]}, 422, "allow must be a label of the model 'things'; got 'fruitt'."),
        ([1], 422, "the body must be a JSON object; got a list."),
    ],
)
def test_wrong_bodies_are_refused_in_one_sentence(client, body, status, sentence):
    got = client.post("/v1/longtail/models/things/suggest", json=body)
    assert got.status_code == status and got.headers["content-type"] == "application/problem+json"
    assert got.json()["detail"].startswith(sentence)


def test_an_unknown_model_and_an_unknown_address(client):
    got = client.post("/v1/longtail/models/other/suggest", json={"text": "a"})
    assert got.status_code == 404 and got.json()["detail"] == "there is no model 'other'; there are things."
    assert client.get("/v1/nothing").json()["detail"] == "there is nothing at '/v1/nothing'."
    assert client.get("/v1/longtail/models/things/suggest").status_code == 405


def test_models_are_listed(client):
    got = client.get("/v1/longtail/models").json()
    assert got["default"] == "things" and got["models"][0]["n_labels"] == 3 and got["models"][0]["calibrated"]
