"""Bodies that are no JSON, or JSON that programs read differently, are refused in one sentence."""

import json

import pytest

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "the body cannot be read: it is not JSON."),
        (b"{", "the body cannot be read: it is not JSON."),
        (b'{"text": "\xff"}', "the body cannot be read: it is not UTF-8."),
        (b'{"text": "a", "threshold": NaN}', "the body cannot be read: NaN is no number of JSON."),
        (b'{"text": "a", "text": "b"}', "the body cannot be read: the key 'text' stands twice in one object."),
        (b'{"text": ' + b"[" * 100 + b"]" * 100 + b"}", "the body cannot be read: its lists and objects are nested"),
        (b"[" * 100_000, "the body cannot be read: "),
        (b'{"text": "a", "k": ' + b"9" * 5000 + b"}", "the body cannot be read: a number in it has too many digits."),
        (b'{"text": "\\ud800"}', "text holds half of a surrogate pair, which is no Unicode text."),
        (b'{"text": "a", "allow": ["\\ud800"]}', "allow[0] holds half of a surrogate pair"),
    ],
)
def test_bodies_that_cannot_be_read(client_of, things, body, sentence):
    got = client_of(things).post("/v1/longtail/models/things/suggest", content=body, headers=JSON)
    assert got.status_code == 400 and got.json()["detail"].startswith(sentence)


def test_a_body_must_say_that_it_is_json(client_of, things):
    body = json.dumps({"text": "a"})
    got = client_of(things).post(
        "/v1/longtail/models/things/suggest", content=body, headers={"Content-Type": "text/plain"}
    )
    assert got.status_code == 415


@pytest.mark.parametrize(
    "body",
    [
        {"text": "a", "k": 1.5},
        {"text": "a", "k": True},
        {"text": "a", "k": 10**30},
        {"text": "a", "threshold": "0.5"},
        {"text": "a", "target": "precision"},
        {"text": "a", "language": 3},
        {"text": None},
        {"texts": "a"},
        {"texts": ["a", None]},
        {"text": "a", "texts": ["b"]},
        {"text": "a", "deny": {"fruit": 1}},
    ],
)
def test_values_of_other_types_are_refused(client_of, things, body):
    got = client_of(things).post("/v1/longtail/models/things/suggest", json=body)
    assert got.status_code == 422 and got.json()["detail"].endswith(".")


@pytest.mark.parametrize("query", ["limit=0", "limit=a", "limit=1&limit=2", "offset=-1", "nothing=1", "q=%ff"])
def test_parameters_of_an_address(client_of, things, query):
    got = client_of(things).get(f"/v1/longtail/models/things/labels?{query}")
    assert got.status_code in (400, 422) and got.json()["detail"].endswith((".", "?"))
