"""Explanations, thresholds, targets, streams and batches over HTTP."""

import gzip
import json
import time
from itertools import pairwise

import pytest

import longtail as lt
from longtail.serve import openapi_document
from longtail.serve.operations import Operation

ONE = "/v1/longtail/models/things"


def test_explanations_point_into_the_text(client_of, things):
    text = "An old RED apple"
    got = client_of(things).post(f"{ONE}/explain", json={"text": text, "k": 2}).json()
    assert got["text"] == text and len(got["predicted"]) == 2
    spans = got["predicted"][0]["spans"]
    assert spans and all(text[span["start"] : span["end"]].lower() == span["word"] for span in spans)
    own = lt.load(things).explain(text, k=2)
    assert [label["score"] for label in got["predicted"]] == [label["score"] for label in own["predicted"]]
    got = client_of(things).post(f"{ONE}/explain", json={"text": text, "labels": ["vehicle"]}).json()
    assert [label["label"] for label in got["predicted"]] == ["vehicle"]
    assert client_of(things).post(f"{ONE}/explain", json={"text": text, "labels": ["vehicles"]}).status_code == 422


def test_thresholds_are_counted_on_held_out_rows(client_of, tmp_path):
    data = lt.data.load_bundled("debtags").take(slice(None, None, 20))
    tagger = lt.Tagger(random_state=0).fit_dataset(data)
    client = client_of(tagger.save(tmp_path / "things"))
    got = client.get(f"{ONE}/thresholds").json()
    points = got["points"]
    assert got["default"] == tagger.model_.calibration_.threshold and got["rows"] == tagger.held_out_["rows"]
    assert all(a["recall"] >= b["recall"] for a, b in pairwise(points))
    assert points[0]["labels_per_row"] > points[100]["labels_per_row"]
    targets = client.get(ONE).json()["targets"]
    assert "precision=0.8" in [target["name"] for target in targets]
    asked = {"text": "a text editor written in python", "k": 50}
    careful = client.post(f"{ONE}/suggest", json={**asked, "target": "precision=0.8"}).json()["results"][0]["tags"]
    broad = client.post(f"{ONE}/suggest", json={**asked, "target": "recall=0.8"}).json()["results"][0]["tags"]
    assert len(careful) < len(broad)
    at = next(point for point in points if point["precision"] is not None and point["precision"] >= 0.8)
    assert all(tag["probability"] >= at["threshold"] for tag in careful)
    got = client.post(f"{ONE}/suggest", json={**asked, "target": "macro-f1@5"})
    assert got.status_code == 422 and "decision" in got.json()["detail"]


def test_what_no_label_can_reach_is_refused(client_of, things):
    client = client_of(things)
    assert lt.load(things).model_.calibrated_
    for threshold in (7, -0.1):
        got = client.post(f"{ONE}/suggest", json={"text": "red apple", "threshold": threshold})
        assert got.status_code == 422 and "threshold must be a probability between 0 and 1" in got.json()["detail"]
    got = client.post(f"{ONE}/suggest-stream?threshold=7", content=b"")
    assert got.status_code == 422
    assert client.post(f"{ONE}/suggest", json={"text": "red apple", "threshold": 1}).status_code == 200
    got = client.post(f"{ONE}/suggest", json={"text": "red apple", "language": "xx"})
    assert got.status_code == 422 and "language cannot be chosen: the model 'things' has no" in got.json()["detail"]


def test_thresholds_of_a_model_that_is_not_calibrated(client_of, tmp_path):
    folder = lt.Tagger(calibrate=0).fit(["red apple", "old car"] * 5, [["a"], ["b"]] * 5).save(tmp_path / "things")
    got = client_of(folder).get(f"{ONE}/thresholds").json()
    assert got["points"] is None and "without rows held out" in got["reason"]
    assert client_of(folder).post(f"{ONE}/suggest", json={"text": "apple", "target": "f1"}).status_code == 422
    tags = client_of(folder).post(f"{ONE}/suggest", json={"text": "apple"}).json()["results"][0]["tags"]
    assert tags[0]["probability"] is None


def test_streams_answer_line_by_line_in_order(client_of, things):
    lines = [json.dumps({"id": at, "text": text}) for at, text in enumerate(["red apple", "old car"] * 100)]
    lines[3:3] = ["{", '{"id": "x", "txt": "a"}', "", '{"id": "y", "text": "\\ud800"}', '{"id": [1], "text": "a"}']
    body = "\n".join(lines).encode()
    pieces = (body[at : at + 37] for at in range(0, len(body), 37))
    got = client_of(things).post(f"{ONE}/suggest-stream?k=1", content=pieces)
    answers = [json.loads(line) for line in got.text.splitlines()]
    assert got.headers["content-type"] == "application/x-ndjson" and len(answers) == 204
    assert [answer["id"] for answer in answers if "tags" in answer] == list(range(200))
    assert answers[0]["tags"][0]["label"] == "fruit" and len(answers[0]["tags"]) == 1
    assert [answer["id"] for answer in answers if "error" in answer] == [None, "x", "y", None]
    assert "is no field of the line" in answers[4]["error"] or "text is missing" in answers[4]["error"]


def test_a_line_without_end_is_refused(client_of, things):
    got = client_of(things, text_characters=100).post(f"{ONE}/suggest-stream", content=(b"a" * 1000 for _ in range(9)))
    assert "more than" in json.loads(got.text.splitlines()[-1])["error"]


def finished(client, batch):
    for _ in range(200):
        got = client.get(f"/v1/longtail/batches/{batch}").json()
        if got["state"] != "running":
            return got
        time.sleep(0.02)
    raise AssertionError(got)


def test_batches(client_of, things, tmp_path):
    client = client_of(things)
    rows = "id,text\n=1+1,red apple\nb,old car\nc,qqq\n"
    got = client.post("/v1/longtail/batches?k=1", content=rows, headers={"Content-Type": "text/csv"})
    assert got.status_code == 202 and got.json()["state"] == "running"
    id = got.json()["id"]
    assert finished(client, id) | {"created_at": ""} == {
        "id": id, "model": "things", "state": "done", "created_at": "", "rows": 3, "done": 3, "error": None
    }  # fmt: skip
    table = client.get(f"/v1/longtail/batches/{id}/result")
    assert "attachment" in table.headers["content-disposition"]
    head, first, *_, last = table.text.lstrip("\ufeff").splitlines()
    assert head == "id,place,label,score,probability,name,assigned", "as `longtail predict` writes it, and one more"
    assert first.startswith("'=1+1,1,fruit,") and first.endswith(",fruit,1"), "no cell is taken for a formula"
    assert last == "c,,,,,,", "a row without labels has a line"
    lines = client.get(f"/v1/longtail/batches/{id}/result?format=jsonl").text.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["=1+1", "b", "c"] and json.loads(lines[2])["tags"] == []
    assert [batch["id"] for batch in client.get("/v1/longtail/batches").json()["batches"]] == [id]
    assert client.delete(f"/v1/longtail/batches/{id}").status_code == 204
    assert client.get(f"/v1/longtail/batches/{id}").status_code == 404
    for path in ("../../etc/passwd", "..%2f..%2fstate", "a" * 32):
        assert client.get(f"/v1/longtail/batches/{path}/result").status_code == 404


def test_batches_that_cannot_be_read_fail_in_one_sentence(client_of, things):
    client = client_of(things, upload_bytes=1000)
    ndjson = {"Content-Type": "application/x-ndjson"}
    got = client.post("/v1/longtail/batches", content=b'{"text": "a"}\n{"txt": 1}\n', headers=ndjson)
    failed = finished(client, got.json()["id"])
    assert failed["state"] == "failed" and failed["error"].startswith("the upload") and "/" not in failed["error"]
    assert client.get(f"/v1/longtail/batches/{got.json()['id']}/result").status_code == 409
    got = client.post("/v1/longtail/batches?text_column=nothing", content=b'{"text": "a"}\n', headers=ndjson)
    assert finished(client, got.json()["id"])["state"] == "failed"
    assert client.post("/v1/longtail/batches?text_column=", content=b"a", headers=ndjson).status_code == 422
    assert client.post("/v1/longtail/batches", content=b"a" * 2000, headers=ndjson).status_code == 413
    assert client.post("/v1/longtail/batches", content=b"a", headers={"Content-Type": "text/html"}).status_code == 415
    assert client.post("/v1/longtail/batches?model=x", content=b"a", headers=ndjson).status_code == 404


def test_an_upload_that_is_packed_or_broken_is_told(client_of, things):
    client = client_of(things)
    csv, ndjson = {"Content-Type": "text/csv"}, {"Content-Type": "application/x-ndjson"}
    for packed, what in ((gzip.compress(b"text\na\n"), "a packed file (gzip)"), (b"PK\x03\x04..", "a zip archive or")):
        got = client.post("/v1/longtail/batches", content=packed, headers=csv)
        assert got.status_code == 415 and got.json()["detail"].startswith(f"the upload is {what}")
    assert client.get("/v1/longtail/batches").json() == {"batches": []}
    got = client.post("/v1/longtail/batches", content=b'{"text": "a"}\n{"text": "b"\n', headers=ndjson)
    assert finished(client, got.json()["id"])["error"].startswith("the upload line 2 is not JSON")


def test_a_batch_joins_the_columns_that_are_named(client_of, things):
    client = client_of(things)
    table = b"id;title;about\n1;red;apple\n2;old;car\n"
    query = "text_column=title&text_column=about&k=3"
    got = client.post(f"/v1/longtail/batches?{query}", content=table, headers={"Content-Type": "text/csv"})
    id = finished(client, got.json()["id"])["id"]
    lines = client.get(f"/v1/longtail/batches/{id}/result?format=jsonl").text.splitlines()
    joined = client.post("/v1/longtail/models/things/suggest", json={"texts": ["red apple", "old car"], "k": 3}).json()[
        "results"
    ]
    assert [json.loads(line)["tags"] for line in lines] == [row["tags"] for row in joined]


@pytest.fixture
def learned_from_excel(tmp_path, run):
    """The folder of a model that remembers the columns of its training file."""
    table = "Nr;Titel;Inhalt;labels\n" + "".join(f"{i};red;apple;fruit\n{i}b;old;car;vehicle\n" for i in range(30))
    file, folder = tmp_path / "export.csv", tmp_path / "excel"
    file.write_text(table)
    how = ["--id-column", "Nr", "--text-column", "Titel", "--text-column", "Inhalt", "-o", str(folder)]
    run("train", file, *how)
    return folder


def ids_and_labels(client, rows, query="", media="text/csv"):
    got = client.post(f"/v1/longtail/batches?k=1{query}", content=rows, headers={"Content-Type": media})
    done = finished(client, got.json()["id"])
    if done["state"] == "failed":
        return done["error"]
    lines = client.get(f"/v1/longtail/batches/{done['id']}/result?format=jsonl").text.splitlines()
    return [(row["id"], row["tags"][0]["label"]) for row in map(json.loads, lines)]


def test_a_batch_is_read_as_the_model_remembers(client_of, learned_from_excel):
    client = client_of(learned_from_excel)
    like_training = "Nr;Titel;Inhalt;labels\n7;old;car;\n9;red;apple;\n"
    assert ids_and_labels(client, like_training) == [("7", "vehicle"), ("9", "fruit")]
    assert ids_and_labels(client, f"sep=;\n{like_training}") == [("7", "vehicle"), ("9", "fruit")]
    assert ids_and_labels(client, "Titel,Inhalt\nold,car\n") == [("0", "vehicle")], "it has no ids"
    assert ids_and_labels(client, "id,text\nx,red apple\n") == [("x", "fruit")], "it has the usual columns alone"
    assert ids_and_labels(client, "Nr,words\n5,red apple\n", "&text_column=words") == [("5", "fruit")]
    lines = '{"Nr": 3, "Titel": "old", "Inhalt": "car"}\n{"Nr": 4, "Titel": "red"}\n'
    assert ids_and_labels(client, lines, media="application/x-ndjson") == [("3", "vehicle"), ("4", "fruit")]
    assert "no column 'Titel'; it has: words" in ids_and_labels(client, "words\nred apple\n")
    facts = client.get("/v1/longtail/models").json()["models"][0]
    assert facts["columns"] == {"text": ["Titel", "Inhalt"], "id": "Nr"}


def test_a_batch_takes_its_ids_from_the_column_that_is_named(client_of, things):
    client = client_of(things)
    rows = "id,key,text\n1,a,red apple\n2,b,old car\n"
    assert ids_and_labels(client, rows, "&id_column=key") == [("a", "fruit"), ("b", "vehicle")]
    assert "no column 'nr'; it has: id, key, text" in ids_and_labels(client, rows, "&id_column=nr")
    got = client.post("/v1/longtail/batches?id_column=", content=rows, headers={"Content-Type": "text/csv"})
    assert got.status_code == 422 and "id_column must be the name of a column" in got.json()["detail"]
    assert client.get("/v1/longtail/models").json()["models"][0]["columns"] == {"text": ["text"], "id": "id"}


def test_batches_are_bounded_and_belong_to_their_caller(client_of, things, tmp_path):
    from longtail.serve import add_token

    file = tmp_path / "tokens"
    ada, bob = ({"Authorization": f"Bearer {add_token(file, name, 'suggest')}"} for name in ("ada", "bob"))
    client = client_of(things, tokens=file, jobs=2)
    csv = {"Content-Type": "text/csv", **ada}
    ids = []
    for _ in range(4):
        ids.append(client.post("/v1/longtail/batches", content="text\nred apple\n", headers=csv).json()["id"])
        for _ in range(200):
            if client.get(f"/v1/longtail/batches/{ids[-1]}", headers=ada).json()["state"] == "done":
                break
            time.sleep(0.02)
    listed = [batch["id"] for batch in client.get("/v1/longtail/batches", headers=ada).json()["batches"]]
    assert listed == ids[:-3:-1], "the oldest have gone"
    assert client.get(f"/v1/longtail/batches/{ids[-1]}", headers=bob).status_code == 404
    assert client.get("/v1/longtail/batches", headers=bob).json() == {"batches": []}


def test_the_openapi_document_has_every_route_and_no_other(client_of, things):
    client = client_of(things)
    document = client.get("/v1/longtail/openapi.json").json()
    described = {(path, method) for path, entry in document["paths"].items() for method in entry}
    under = [route for route in client.app.routes if getattr(route, "path", "").startswith("/v1/longtail")]
    assert all(isinstance(route, Operation) for route in under)
    every = [route for route in client.app.routes if isinstance(route, Operation)]
    assert described == {(route.path.replace(":path}", "}"), route.method.lower()) for route in every}
    assert document == json.loads(json.dumps(openapi_document(client.app.routes)))
    names = [entry["operationId"] for paths in document["paths"].values() for entry in paths.values()]
    assert len(set(names)) == len(names)


def required(schema, facts, where=""):
    """Compare facts with a schema, as far as fields and types go."""
    if "anyOf" in schema:
        if facts is None:
            return
        schema = schema["anyOf"][0]
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
    if "type" in schema:
        assert isinstance(facts, kinds[schema["type"]]), (where, facts)
    for name in schema.get("required", ()):
        assert name in facts, f"{where}.{name}"
    for name, inner in schema.get("properties", {}).items():
        if isinstance(facts, dict) and name in facts:
            required(inner, facts[name], f"{where}.{name}")
    if schema.get("type") == "array":
        for one in facts:
            required(schema["items"], one, f"{where}[]")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("", None),
        ("/{model}", None),
        ("/{model}/suggest", {"text": "cat"}),
        ("/{model}/explain", {"text": "cat"}),
        ("/{model}/thresholds", None),
        ("/{model}/labels", None),
        ("/{model}/tree", None),
        ("/{model}/reload", {}),
    ],
)
def test_answers_are_as_the_document_says(client_of, animals, path, body):
    client = client_of(animals)
    method = "get" if body is None else "post"
    entry = client.get("/v1/longtail/openapi.json").json()["paths"][f"/v1/longtail/models{path}"][method]
    url = f"/v1/longtail/models{path}".replace("{model}", "animals")
    got = client.get(url) if body is None else client.post(url, json=body)
    required(entry["responses"]["200"]["content"]["application/json"]["schema"], got.json())
