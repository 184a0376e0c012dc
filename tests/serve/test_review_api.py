"""Reviews over HTTP: rows, decisions, facts and a new model, as people and the page use them."""

import json
import time

import pytest

pytest.importorskip("starlette")

from starlette.testclient import TestClient

import longtail as lt
from longtail.review import ReviewStore, next_items, release
from longtail.serve import ServeSettings, create_app

TEXTS = ["red apple", "green apple", "fast car", "old car"]
LABELS = [["fruit", "red"], ["fruit"], ["vehicle"], ["vehicle"]]
ROOT = "/v1/longtail/review"


@pytest.fixture
def folder(tmp_path):
    return lt.Tagger(random_state=0).fit(TEXTS * 20, LABELS * 20).save(tmp_path / "things")


@pytest.fixture
def client(folder, tmp_path):
    ReviewStore(tmp_path / "reviews.db", create=True, control=0.6, twice=0.0).close()
    settings = ServeSettings({"things": folder}, reviews=tmp_path / "reviews.db", watch_seconds=0.05)
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        yield client


def add(client, n=12, first=0):
    rows = [{"id": f"row/{i}", "text": f"{TEXTS[i % 4]} {i}", "labels": []} for i in range(first, first + n)]
    body = "\n".join(map(json.dumps, rows))
    got = client.post(f"{ROOT}/items", content=body, headers={"content-type": "application/x-ndjson"})
    assert got.status_code == 201, got.text
    return got.json()


def test_a_row_is_reviewed_from_queue_to_export(client):
    assert add(client) == {"added": 12, "known": 0} and add(client) == {"added": 0, "known": 12}
    got = client.get(f"{ROOT}/queue", params={"order": "newest", "limit": 2, "model": "things"}).json()
    assert len(got["items"]) == 2 and got["left"] == 12
    item = got["items"][0]
    assert item["suggestions"][0]["assigned"] and item["why"]["order"] == "newest" and item["decided"] == []
    body = {"item": item["id"], "label": item["suggestions"][0]["label"], "verdict": "reject", "note": "no"}
    made = client.post(f"{ROOT}/decisions", json=body)
    assert made.status_code == 201
    facts = made.json()
    assert (facts["decision"], facts["reviewer"], facts["verdict"]) == (1, "local", "reject") and facts["digest"]
    assert client.get(f"{ROOT}/items/{item['id']}").json()["decided"] == [facts]
    assert client.post(f"{ROOT}/decisions/1/undo").json()["undoes"] == 1
    client.post(f"{ROOT}/decisions", json={"item": item["id"], "label": "shiny", "verdict": "add"})
    assert client.post(f"{ROOT}/items/{item['id']}/done").status_code == 201
    lines = client.get(f"{ROOT}/export").text.splitlines()
    assert [json.loads(line)["review"]["added"] for line in lines] == [["shiny"]]
    assert client.get(f"{ROOT}/queue", params={"order": "newest"}).json()["left"] == 11
    progress = client.get(f"{ROOT}/progress").json()
    assert progress["counts"]["finished"] == 1 and progress["reviewers"][0]["added"] == 1
    assert client.get(f"{ROOT}/agreement").json()["alpha"] is None


def test_a_queue_says_what_others_hold(client, tmp_path):
    add(client, 40)
    with ReviewStore(tmp_path / "reviews.db") as store:
        taken, _ = next_items(store, "ada", "newest", 4)
    got = client.get(f"{ROOT}/queue", params={"order": "newest", "limit": 20}).json()
    assert not {row.item.id for row in taken} & {item["id"] for item in got["items"]}
    assert (got["left"], got["with_others"]) == (40, 4)
    client.post(f"{ROOT}/items/{got['items'][0]['id']}/done")
    with ReviewStore(tmp_path / "reviews.db") as store:
        release(store, "ada")
    got = client.get(f"{ROOT}/queue", params={"order": "newest", "limit": 1}).json()
    assert (got["left"], got["with_others"]) == (39, 0)


def test_guidelines_are_read_and_written(client):
    assert client.get(f"{ROOT}/guidelines/a/b").json()["text"] == ""
    assert client.put(f"{ROOT}/guidelines/a/b", json={"text": "Only so."}).json()["reviewer"] == "local"
    assert client.get(f"{ROOT}/guidelines/a/b").json()["text"] == "Only so."
    assert [one["label"] for one in client.get(f"{ROOT}/guidelines").json()["guidelines"]] == ["a/b"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "sentence"),
    [
        ("GET", "/queue?order=best", None, 422, "order must be one of"),
        ("GET", "/queue?limit=0", None, 422, "limit must be a whole number"),
        ("GET", "/queue?model=other", None, 404, "there is no model 'other'"),
        ("GET", "/items/none", None, 404, "there is no row 'none'"),
        ("POST", "/decisions", {"item": "none", "label": "a", "verdict": "accept"}, 404, "there is no row"),
        ("POST", "/decisions", {"item": "row/1", "label": "a"}, 422, "verdict is missing"),
        ("POST", "/decisions", {"item": "row/1", "label": "a", "verdict": "perhaps"}, 422, "verdict must be one of"),
        ("POST", "/decisions", {"item": "row/1", "label": "", "verdict": "add"}, 422, "label must be"),
        ("POST", "/decisions/99/undo", None, 404, "there is no decision 99"),
        ("GET", "/export?part=some", None, 422, "part must be one of"),
        ("PUT", "/guidelines/a", {"txt": "b"}, 422, "text is missing"),
        ("POST", "/put-back", None, 422, "has no earlier model"),
    ],
)
def test_refusals_are_one_sentence(client, method, path, body, status, sentence):
    add(client, 2)
    got = client.request(method, ROOT + path, json=body)
    assert got.status_code == status, got.text
    assert sentence in got.json()["detail"]


def test_bad_rows_are_refused_by_their_line(client):
    got = client.post(f"{ROOT}/items", content=b'{"text": "a"}\nnonsense')
    assert got.status_code == 422 and "line 2" in got.json()["detail"]
    assert client.get(f"{ROOT}/progress").json()["counts"]["rows"] == 0


def test_a_server_without_reviews_has_no_such_addresses(folder):
    with TestClient(create_app(ServeSettings({"things": folder})), base_url="http://127.0.0.1") as client:
        assert client.get(f"{ROOT}/queue").status_code == 404


def test_rows_imported_before_any_model_saw_them_get_suggestions(folder, tmp_path):
    from longtail.review import NewItem

    with ReviewStore(tmp_path / "r.db", create=True, control=0.0) as store:
        store.add_items([NewItem("red apple", id="1")])
    settings = ServeSettings({"things": folder}, reviews=tmp_path / "r.db")
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        (item,) = client.get(f"{ROOT}/queue?order=uncertain").json()["items"]
        assert {tag["label"] for tag in item["suggestions"] if tag["assigned"]} == {"fruit", "red"}


def test_an_update_is_made_beside_and_swapped_in(client, folder, tmp_path):
    add(client, 100)
    first = client.get("/v1/longtail/models/things").json()["digest"]
    store = ReviewStore(tmp_path / "reviews.db")
    with store.reading() as db:
        ids = [row[0] for row in db.execute("SELECT id FROM items").fetchall()]
    for id in ids:
        store.decide(id, "thing", "add", "ada")
        store.finish(id, "ada")
    assert client.get(f"{ROOT}/update").json()["state"] == "idle"
    assert client.post(f"{ROOT}/update", json={"model": "things"}).status_code == 202
    assert client.post(f"{ROOT}/update").status_code in (202, 409)
    for _ in range(600):
        facts = client.get(f"{ROOT}/update").json()
        if facts["state"] != "running":
            break
        time.sleep(0.1)
    assert facts["state"] == "done" and facts["swapped"], facts
    for _ in range(100):
        if (second := client.get("/v1/longtail/models/things").json()["digest"]) != first:
            break
        time.sleep(0.05)
    assert second == facts["new_digest"]
    assert client.post(f"{ROOT}/put-back").json() == {"before": second, "after": first}
