"""TEI's `/predict`: one text gives a list, a batch a list of lists."""

import pytest

pytest.importorskip("starlette")

from starlette.testclient import TestClient

import longtail as lt
from longtail.serve import ServeSettings, create_app

TEXTS = ["red apple", "green apple", "fast car", "old car"]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    labels = [["fruit", "red"], ["fruit"], ["vehicle"], ["vehicle"]]
    folder = lt.Tagger(random_state=0).fit(TEXTS * 20, labels * 20).save(tmp_path_factory.mktemp("models") / "things")
    settings = ServeSettings({"things": folder}, text_characters=100, rows=5)
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        yield client


def test_one_text_and_batches(client):
    one = client.post("/predict", json={"inputs": "a red apple"}).json()
    assert [hit["label"] for hit in one] == ["fruit", "red", "vehicle"] and 1 >= one[0]["score"] > one[1]["score"]
    assert client.post("/predict", json={"inputs": ["a red apple"]}).json() == one
    batch = client.post("/predict?model=things", json={"inputs": [["a red apple"], ["zzz"]], "top_k": 1}).json()
    assert batch == [one[:1], []]


def test_raw_scores_are_those_of_the_model(client):
    raw = client.post("/predict", json={"inputs": "old car", "raw_scores": True}).json()
    tags = client.post("/v1/longtail/models/things/suggest", json={"text": "old car"}).json()["results"][0]["tags"]
    assert [hit["score"] for hit in raw] == [tag["score"] for tag in tags]


def test_long_texts_are_cut_if_asked(client):
    long = "old car " * 20 + "apple"
    assert client.post("/predict", json={"inputs": long}).status_code == 413
    first = client.post("/predict", json={"inputs": long, "truncate": True}).json()
    last = client.post(
        "/predict", json={"inputs": "apple " * 30 + long, "truncate": True, "truncation_direction": "left"}
    )
    assert first[0]["label"] == "vehicle" and last.status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        ({}, 422, "inputs must be a text"),
        ({"inputs": 3}, 422, "inputs must be a text"),
        ({"inputs": []}, 422, "inputs must be a text"),
        ({"inputs": ["a", "b"]}, 422, "inputs is a pair of texts"),
        ({"inputs": ["a", "b", "c"]}, 422, "inputs must be a list of lists"),
        ({"inputs": [["a"], ["b", "c"]]}, 422, "inputs[1] must be a list of one text"),
        ({"inputs": [["a"]] * 6}, 413, "inputs must have at most 5 entries"),
        ({"inputs": "a", "raw_scores": 1}, 422, "raw_scores must be true or false"),
        ({"inputs": "a", "truncation_direction": "up"}, 422, "truncation_direction must be"),
        ({"inputs": "a", "parameters": {}}, 422, "'parameters' is no field of the body."),
    ],
)
def test_refusals(client, body, status, detail):
    got = client.post("/predict", json=body)
    assert got.status_code == status and got.json()["detail"].startswith(detail)
    assert client.post("/predict?model=no", json=body).status_code == 404
