"""Programs that can only send a name and a password pass their token as the password."""

import pytest

pytest.importorskip("starlette")

from starlette.testclient import TestClient

import longtail as lt
from longtail.serve import ServeSettings, add_token, create_app

CONFIG = '<View><Text name="t" value="$text"/><Choices name="c" toName="t"><Choice value="fruit"/></Choices></View>'


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    tagger = lt.Tagger(random_state=0).fit(["red apple", "old car"] * 30, [["fruit"], ["vehicle"]] * 30)
    tokens = {role: add_token(folder / "tokens", role, role) for role in ("suggest", "review")}
    models = {"things": tagger.save(folder / "things")}
    settings = ServeSettings(models, tokens=folder / "tokens", reviews=folder / "reviews.db", learn=True)
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        yield client, tokens


@pytest.mark.parametrize("path", ["/v1/projects/things/suggest", "/predict", "/label-studio/predict"])
def test_a_token_is_needed_and_may_be_the_password(served, path):
    client, tokens = served
    bodies = {
        "/predict": {"json": {"inputs": "red apple"}},
        "/label-studio/predict": {"json": {"tasks": [{"data": {"text": "red apple"}}], "label_config": CONFIG}},
    }
    sent = bodies.get(path, {"data": {"text": "red apple"}})
    assert client.post(path, **sent).status_code == 401
    assert client.post(path, **sent, auth=("annif", "lt_wrong")).status_code == 401
    got = client.post(path, **sent, auth=("annif", tokens["suggest"]))
    assert got.status_code == 200 and "fruit" in got.text
    assert client.post(path, **sent, headers={"authorization": f"Bearer {tokens['suggest']}"}).text == got.text


def test_learning_and_annotations_need_the_role_of_a_reviewer(served):
    client, tokens = served
    documents = [{"text": "a green apple", "subjects": [{"uri": "fruit"}]}]
    annotation = {
        "action": "ANNOTATION_CREATED",
        "annotation": {"result": [{"from_name": "c", "value": {"choices": ["fruit"]}}], "completed_by": 1},
        "task": {"id": 1, "data": {"text": "an apple"}},
        "project": {"id": 1, "label_config": CONFIG},
    }
    for path, body, status in (
        ("/v1/projects/things/learn", documents, 204),
        ("/label-studio/webhook", annotation, 201),
    ):
        assert client.post(path, json=body).status_code == 401
        assert client.post(path, json=body, auth=("x", tokens["suggest"])).status_code == 403
        assert client.post(path, json=body, auth=("x", tokens["review"])).status_code == status


def test_asking_for_training_changes_nothing_and_needs_no_reviewer(served):
    client, tokens = served
    got = client.post("/label-studio/webhook", json={"action": "START_TRAINING"}, auth=("x", tokens["suggest"]))
    assert got.status_code == 200 and "the next update" in got.json()["status"]


def test_health_is_open(served):
    assert served[0].get("/label-studio/health").status_code == 200
    assert served[0].get("/v1/projects").status_code == 401
