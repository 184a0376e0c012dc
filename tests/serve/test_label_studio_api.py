"""Label Studio: predictions fit its configuration, annotations become reviewed rows, nothing is fetched."""

import json
import logging
import socket

import pytest

pytest.importorskip("starlette")

from starlette.testclient import TestClient

import longtail as lt
from longtail.errors import DataError
from longtail.review import export_records
from longtail.serve import ServeSettings, create_app
from longtail.serve.label_config import parse_xml, read_control, without_tags
from longtail.vocabulary import Concept

TEXTS = ["red apple", "green apple", "fast car", "old car"]
VOCABULARY = lt.Vocabulary(
    [
        Concept("u:things", {"en": "things"}),
        Concept("u:fruit", {"en": "fruit"}, broader=("u:things",)),
        Concept("u:red", {"en": "red"}),
        Concept("u:car", {"en": "cars"}, broader=("u:things",)),
        Concept("u:new", {"en": "news"}),
    ],
    language="en",
)
CHOICES = """<View><Text name="text" value="$body"/><Choices name="tags" toName="text" choice="{choice}">
<Choice value="fruit"/><Choice value="Rot" alias="red"/><Choice value="cars"/>
<Choice value="nothing we know"/></Choices></View>"""
MULTIPLE = CHOICES.format(choice="multiple")
TAXONOMY = """<View><Text name="text" value="$body"/><Taxonomy name="tags" toName="text">
<Choice value="food"><Choice value="fruit"/></Choice><Choice value="colour">
<Choice value="red"/></Choice></Taxonomy></View>"""
REMOTE = """<View><Text name="text" value="$body"/>
<Taxonomy name="tags" toName="text" apiUrl="http://example.org/tree"/></View>"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    labels = [["u:fruit", "u:red"], ["u:fruit"], ["u:car"], ["u:car"]]
    tagger = lt.Tagger(random_state=0).fit(TEXTS * 20, labels * 20, vocabulary=VOCABULARY)
    return tagger.save(tmp_path_factory.mktemp("models") / "things")


@pytest.fixture
def client(folder, tmp_path, monkeypatch):
    settings = ServeSettings({"things": folder}, reviews=tmp_path / "reviews.db", rows=10, text_characters=1000)
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        monkeypatch.setattr(socket, "create_connection", lambda *_: pytest.fail("something was fetched"))
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_: pytest.fail("something was looked up"))
        yield client


def predict(client, config, *texts, root="/label-studio"):
    """Return the predictions for texts."""
    tasks = [{"id": at, "data": {"body": text}} for at, text in enumerate(texts)]
    body = {"tasks": tasks, "project": "1.17", "label_config": config, "params": {"context": None}}
    got = client.post(f"{root}/predict", json=body)
    assert got.status_code == 200, got.json()
    return got.json()["results"]


def test_connecting(client):
    for root in ("/label-studio", "/label-studio/things"):
        assert client.get(f"{root}/health").json()["status"] == "UP"
        body = {"project": "1.17", "schema": "<View/>", "hostname": "http://10.0.0.1", "access_token": "SECRET"}
        version = client.post(f"{root}/setup", json=body).json()["model_version"]
        assert client.get(f"{root}/versions").json()["versions"] == [version]
    assert client.get("/label-studio/other/health").status_code == 404


def test_the_token_is_neither_kept_nor_logged(client, tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    body = {"project": "1.17", "schema": "<View/>", "access_token": "SECRET-TOKEN", "extra_params": {"a": 1}}
    assert client.post("/label-studio/setup", json=body).status_code == 200
    client.post("/label-studio/setup", content=json.dumps(body)[:-1], headers={"content-type": "application/json"})
    said = caplog.text + "".join(capfd.readouterr())
    assert "SECRET-TOKEN" not in said
    assert not any(b"SECRET-TOKEN" in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_choices(client):
    many = predict(client, CHOICES.format(choice="multiple"), "a red apple", "an old car", "zzz qqq")
    assert [p["result"] for p in many] == [
        [{"from_name": "tags", "to_name": "text", "type": "choices", "value": {"choices": ["fruit", "red"]}}],
        [{"from_name": "tags", "to_name": "text", "type": "choices", "value": {"choices": ["cars"]}}],
        [],
    ]
    assert 0 < many[0]["score"] <= 1 and many[2]["score"] == 0 and len(many[0]["model_version"]) == 16
    one = predict(client, CHOICES.format(choice="single"), "a red apple", root="/label-studio/things")
    assert one[0]["result"][0]["value"] == {"choices": ["fruit"]}


def test_taxonomies(client):
    found = predict(client, TAXONOMY, "a red apple", "an old car")
    assert found[0]["result"][0]["type"] == "taxonomy"
    assert found[0]["result"][0]["value"] == {"taxonomy": [["food", "fruit"], ["colour", "red"]]}
    assert found[1]["result"] == []  # the configuration has no cars
    remote = predict(client, REMOTE, "an old car")
    assert remote[0]["result"][0]["value"] == {"taxonomy": [["things", "cars"]]}


def test_tasks_without_text_and_with_html(client):
    html = CHOICES.format(choice="single").replace("<Text", "<HyperText")
    assert predict(client, html, "<b>old</b> car")[0]["result"][0]["value"] == {"choices": ["cars"]}
    tasks = [
        {"id": 1, "data": {}},
        {"id": 2},
        3,
        {"id": 4, "data": {"body": 5}},
        {"id": 5, "data": {"body": "old car " * 999}},
    ]
    body = {"tasks": tasks, "label_config": CHOICES.format(choice="multiple")}
    results = client.post("/label-studio/predict", json=body).json()["results"]
    assert [bool(p["result"]) for p in results] == [False, False, False, False, True]


def test_an_address_in_place_of_a_text_is_not_fetched(client):
    config = CHOICES.format(choice="multiple").replace('value="$body"', 'value="$body" valueType="url"')
    body = {"tasks": [{"id": 1, "data": {"body": "http://169.254.169.254/"}}], "label_config": config}
    got = client.post("/label-studio/predict", json=body)
    assert got.status_code == 422 and "no Choices and no Taxonomy about a Text" in got.json()["detail"]


def annotation(action, result, *, text="a fast red car", config=MULTIPLE, **more):
    """Return what Label Studio sends to a webhook."""
    return {
        "action": action,
        "annotation": {"id": 5, "completed_by": 7, "result": result, **more},
        "task": {"id": 3, "data": {"body": text}},
        "project": {"id": 2, "label_config": config},
    }


def chosen(*values):
    """Return choices as an annotation holds them."""
    return [{"from_name": "tags", "to_name": "text", "type": "choices", "value": {"choices": list(values)}}]


def kept(client):
    """Return the reviewed rows by their texts."""
    return {row["text"]: row["labels"] for row in export_records(client.app.state.server.reviews, "all")}


def test_annotations_become_reviewed_rows(client):
    got = client.post("/label-studio/webhook", json=annotation("ANNOTATION_CREATED", chosen("cars", "red", "fruit")))
    assert got.status_code == 201 and kept(client) == {"a fast red car": ["u:car", "u:fruit", "u:red"]}
    client.post("/label-studio/webhook", json=annotation("ANNOTATION_UPDATED", chosen("cars", "red")))
    assert kept(client) == {"a fast red car": ["u:car", "u:red"]}
    (row,) = export_records(client.app.state.server.reviews, "all")
    assert "local/7" in json.dumps(row["review"])
    taxonomy = [{"from_name": "tags", "type": "taxonomy", "value": {"taxonomy": [["news"], ["food", "fruit"]]}}]
    client.post("/label-studio/webhook", json=annotation("ANNOTATION_CREATED", taxonomy, text="news", config=TAXONOMY))
    assert kept(client)["news"] == ["u:fruit", "u:new"]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (annotation("ANNOTATION_CREATED", chosen("cars"), was_cancelled=True), "the task was skipped"),
        (annotation("ANNOTATION_CREATED", chosen("unheard of")), "none of the choices"),
        (annotation("ANNOTATION_CREATED", chosen("cars"), text=" "), "the task has no text"),
        ({"action": "START_TRAINING", "project": {"id": 1}}, "the next update"),
        ({"action": "TASKS_CREATED", "task": {"url": "http://127.0.0.1:1/"}}, "nothing to do for 'TASKS_CREATED'."),
        ({}, "nothing to do for None."),
    ],
)
def test_what_is_not_kept_is_told(client, body, told):
    got = client.post("/label-studio/webhook", json=body)
    assert got.status_code == 200 and told in got.json()["status"] and kept(client) == {}


def test_without_a_review_file_annotations_are_not_kept(folder):
    with TestClient(create_app(ServeSettings({"things": folder})), base_url="http://127.0.0.1") as client:
        for action in ("ANNOTATION_CREATED", "START_TRAINING"):
            got = client.post("/label-studio/webhook", json=annotation(action, chosen("cars")))
            assert got.status_code == 200 and "no file of reviews" in got.json()["status"]


@pytest.mark.parametrize(
    ("config", "status", "detail"),
    [
        (None, 422, "label_config must be a text; got null."),
        ("<View>", 422, "the labeling configuration is no XML:"),
        ("<View/>", 422, "the labeling configuration has no Choices and no Taxonomy about a Text"),
        (
            "<!DOCTYPE v [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><v>&a;</v>",
            422,
            "the labeling configuration must have no",
        ),
        (
            "<a>" * 500 + "</a>" * 500,
            422,
            "the labeling configuration must have at most 200000 elements, at most 100 deep.",
        ),
    ],
)
def test_odd_configurations_are_refused(client, config, status, detail):
    got = client.post("/label-studio/predict", json={"tasks": [], "label_config": config})
    assert got.status_code == status and got.json()["detail"].startswith(detail)


def test_too_many_tasks_and_odd_bodies(client):
    config = CHOICES.format(choice="multiple")
    assert client.post("/label-studio/predict", json={"tasks": [{}] * 11, "label_config": config}).status_code == 413
    assert client.post("/label-studio/predict", json={"tasks": 3, "label_config": config}).status_code == 422
    assert client.post("/label-studio/predict", json=[]).status_code == 422
    assert client.post("/label-studio/webhook", json=annotation("ANNOTATION_CREATED", 3, config="<")).status_code == 422


def test_entities_never_multiply():
    bomb = "<!DOCTYPE l [<!ENTITY a 'aaaaaaaaaa'>" + "".join(
        f"<!ENTITY {chr(98 + n)} '{f'&{chr(97 + n)};' * 10}'>" for n in range(9)
    )
    with pytest.raises(DataError, match="no DOCTYPE"):
        parse_xml(bomb + "]><l>&j;</l>")
    with pytest.raises(DataError, match="at most 4000000 characters"):
        parse_xml("<a>" + " " * 4_000_000 + "</a>")


def test_the_first_question_about_a_text_is_taken():
    config = """<View><Image name="img" value="$image"/><Choices name="a" toName="img"><Choice value="x"/></Choices>
    <text name="t" value="$body"/><CHOICES NAME="b" TONAME="t" CHOICE="multiple"><choice value="y"/></CHOICES></View>"""
    control = read_control(config)
    assert (control.name, control.text_key, control.single, dict(control.paths)) == ("b", "body", False, {"y": ("y",)})


def test_hostile_markup_takes_no_time():
    assert without_tags("<p>red &lt;b</p><style>x</style> apple<br/>&amp;") == "red <b apple &"
    for piece in ("<", "<!--", "<script ", "<script>", "</", "&#", "<a b='"):
        assert len(without_tags(piece * 50_000)) <= 400_000  # a quadratic reader would be at it for hours
