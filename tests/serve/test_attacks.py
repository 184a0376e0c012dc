"""What an attacker would try, one test for each weakness that a security review found and that was mended."""

import contextlib
import json
import os
import socket
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import uvicorn

import longtail as lt
from longtail.data import plain_cell
from longtail.errors import ModelError, near
from longtail.review import ReviewStore, updating
from longtail.serve import ServeSettings, add_token, create_app
from longtail.serve.connections import LARGEST_HEAD, PlainConnection, connection_class
from longtail.serve.label_config import without_tags
from longtail.serve.run_folder import RunFolder

V1 = "/v1/longtail"
SUGGEST = f"{V1}/models/things/suggest"
CSV = {"Content-Type": "text/csv"}
PROXY = {"X-Forwarded-For": "203.0.113.9"}


@pytest.fixture
def tokens(tmp_path):
    file = tmp_path / "tokens"
    names = {"suggest": "suggest", "other": "suggest", "review": "review", "admin": "admin"}
    return file, {name: {"Authorization": f"Bearer {add_token(file, name, role)}"} for name, role in names.items()}


@contextlib.contextmanager
def listening(things, kind):
    """Run a server on a thread; yields what sends bytes to it and returns what comes back."""
    app = create_app(ServeSettings({"things": things}, log_requests=False))
    config = uvicorn.Config(app, http=kind, ws="none", log_config=None, access_log=False)
    server, own = uvicorn.Server(config), socket.create_server(("127.0.0.1", 0))
    server.capture_signals = contextlib.nullcontext
    thread = threading.Thread(target=server.run, kwargs={"sockets": [own]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)

    def talk(*pieces):
        got = b""
        with socket.create_connection(own.getsockname(), timeout=8) as caller:
            try:
                for piece in pieces:
                    caller.sendall(piece)
                while more := caller.recv(65536):
                    got += more
            except TimeoutError:
                got += b"still open"
            except OSError:
                got += b"cut"
        return got

    yield talk
    server.should_exit = True
    thread.join(20)


HEAD = f"POST {SUGGEST} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"


@pytest.mark.parametrize("kind", ["httptools", "h11"])
def test_requests_that_can_be_read_in_two_ways_end_the_connection(things, kind):
    hidden = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with listening(things, connection_class(10) if kind == "httptools" else PlainConnection) as talk:
        got = talk(HEAD.encode() + b"Content-Length: 5\r\n\r\n0\r\n\r\n" + hidden)
    assert got.startswith(b"HTTP/1.1 400") and b"UP" not in got and b"still open" not in got


def test_lines_after_a_body_are_neither_kept_nor_endless(things):
    pytest.importorskip("httptools")
    line = b"X-Flood: " + b"a" * 1000 + b"\r\n"
    with listening(things, connection_class(10)) as talk:
        got = talk(HEAD.encode() + b"\r\n2\r\n{}\r\n0\r\n", line * (LARGEST_HEAD // 1000 + 20))
    assert b"still open" not in got


def test_numbers_and_names_are_not_for_those_who_come_through_a_proxy_without_a_token(client_of, things, tokens):
    file, by = tokens
    client = client_of(things, tokens=file)
    for path in ("/metrics", f"{V1}/metrics"):
        assert client.get(path).status_code == 200, "Prometheus on this machine"
        assert client.get(path, headers=PROXY).status_code == 401
        assert client.get(path, headers={**PROXY, **by["suggest"]}).status_code == 403
        assert client.get(path, headers={**PROXY, **by["admin"]}).status_code == 200
    assert client.get("/ready").json() == {"status": "READY"}
    assert client.get("/ready", headers=by["suggest"]).json()["models"] == ["things"]


@pytest.mark.parametrize("name", ["Forwarded", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via"])
def test_any_sign_of_a_proxy_needs_tokens(client_of, things, name):
    assert client_of(things).get(f"{V1}/models", headers={name: "x"}).status_code == 403


def test_nobody_is_sent_to_another_host_or_scheme(client_of, things):
    for path in ("/v1/projects/", f"{V1}/models/", "/static"):
        got = client_of(things).get(path, follow_redirects=False)
        assert got.status_code == 404 and "location" not in got.headers


def test_pages_of_other_sites_cannot_even_ask(client_of, things):
    client = client_of(things)
    cross = {"Sec-Fetch-Site": "cross-site"}
    assert client.get(f"{V1}/models", headers={**cross, "Sec-Fetch-Mode": "no-cors"}).status_code == 403
    assert client.get("/", headers={**cross, "Sec-Fetch-Mode": "navigate"}).status_code == 200, "a link to the page"


def test_a_cookie_ends_when_its_owner_signs_out(client_of, things, tokens):
    file, by = tokens
    client = client_of(things, tokens=file)
    token = by["admin"]["Authorization"].split()[1]
    first = client.post(f"{V1}/session", json={"token": token})
    client.cookies.clear()
    second = client.post(f"{V1}/session", json={"token": token})
    stolen, kept = ({"Cookie": got.headers["set-cookie"].partition(";")[0]} for got in (first, second))
    client.cookies.clear()
    assert client.get(f"{V1}/models", headers=stolen).status_code == 200
    csrf = {"X-CSRF-Token": first.json()["csrf"]}
    assert client.delete(f"{V1}/session", headers={**stolen, **csrf}).status_code == 204
    assert client.get(f"{V1}/models", headers=stolen).status_code == 401
    assert client.get(f"{V1}/models", headers=kept).status_code == 200, "another browser of the same person"


def test_who_removes_the_file_of_tokens_lets_nobody_in(client_of, things, tokens):
    file, by = tokens
    client = client_of(things, tokens=file, watch_seconds=0.05)
    assert client.get(f"{V1}/models", headers=by["admin"]).status_code == 200
    file.unlink()
    until = time.monotonic() + 10
    while client.get(f"{V1}/models", headers=by["admin"]).status_code != 401 and time.monotonic() < until:
        time.sleep(0.02)
    assert client.get(f"{V1}/models", headers=by["admin"]).status_code == 401


@pytest.mark.skipif(os.name != "posix", reason="locks as Unix has them")
def test_tokens_that_are_added_at_once_are_all_there(tmp_path):
    file = tmp_path / "tokens"
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda n: add_token(file, f"t{n}", "suggest"), range(8)))
    assert len(set(made)) == 8 and len(file.read_text().splitlines()) == 9


def test_the_secret_of_a_server_is_never_half_there(tmp_path):
    folders = [RunFolder(tmp_path) for _ in range(20)]
    with ThreadPoolExecutor(20) as threads:
        found = set(threads.map(lambda folder: folder.secret(), folders))
    assert len(found) == 1 and len(found.pop()) == 32


# --- batches --------------------------------------------------------------------------------------------------------


def finished(client, batch, headers=None):
    for _ in range(500):
        got = client.get(f"{V1}/batches/{batch}", headers=headers).json()
        if got["state"] != "running":
            return got
        time.sleep(0.02)
    raise AssertionError(got)


def test_batches_of_an_open_server_are_listed_to_nobody(client_of, things):
    client = client_of(things, open=True)
    id = client.post(f"{V1}/batches", content="text\nred apple\n", headers=CSV).json()["id"]
    assert finished(client, id)["state"] == "done", "who knows the id may ask"
    assert client.get(f"{V1}/batches").json() == {"batches": []}


def test_one_caller_does_not_push_out_the_batches_of_another(client_of, things, tokens):
    file, by = tokens
    client = client_of(things, tokens=file, jobs=3)

    def begin(who):
        got = client.post(f"{V1}/batches", content="text\nred apple\n", headers={**CSV, **by[who]})
        return finished(client, got.json()["id"], by[who])["id"]

    kept = begin("other")
    for _ in range(5):
        begin("suggest")
    assert client.get(f"{V1}/batches/{kept}", headers=by["other"]).status_code == 200


def test_running_batches_are_shared_among_callers(client_of, things, tokens):
    file, by = tokens
    client = client_of(things, tokens=file, jobs=2)
    server = client.app.state.server
    folder = server.folder.path / "batches"
    running = {"model": "things", "owner": "suggest", "state": "running", "created_at": "2026", "process": os.getpid()}
    (folder / ("a" * 32)).mkdir()
    (folder / ("a" * 32) / "state.json").write_text(json.dumps({"id": "a" * 32, **running}))
    codes = {}
    for who in ("suggest", "other"):
        got = client.post(f"{V1}/batches", content="text\na\n", headers={**CSV, **by[who]})
        codes[who] = got.status_code
    assert codes == {"suggest": 503, "other": 202}


def test_an_upload_that_is_being_sent_is_a_batch_already(things, tmp_path):
    import asyncio

    from longtail.serve.batch_jobs import BatchJobs
    from longtail.serve.server import Server
    from longtail.serve.suggesting import How

    server = Server(ServeSettings({"things": things}, run_folder=tmp_path, jobs=1))
    jobs = BatchJobs(server)

    async def begin():
        async def body():
            yield b"text\n"
            assert [job.state for job in jobs.listed("ada")] == ["running"]
            raise ConnectionError

        with pytest.raises(ConnectionError):
            await jobs.begin("things", How(), "csv", body(), "ada", ["text"])
        assert jobs.listed("ada") == [] and not any(jobs.folder.iterdir())

    asyncio.run(begin())
    jobs.close()
    server.close()


def test_results_do_not_fill_the_disk(client_of, things):
    client = client_of(things, result_bytes=2000)
    rows = "text\n" + "red apple\n" * 2000
    id = client.post(f"{V1}/batches?k=3", content=rows, headers=CSV).json()["id"]
    got = finished(client, id)
    assert got["state"] == "failed" and got["error"].startswith("the result has more than 2000 bytes")
    folder = client.app.state.server.folder.path / "batches" / id
    assert [file.name for file in folder.iterdir()] == ["state.json"]


def test_results_are_gone_after_their_time(client_of, things):
    client = client_of(things)
    id = client.post(f"{V1}/batches", content="text\nred apple\n", headers=CSV).json()["id"]
    finished(client, id)
    folder = client.app.state.server.folder.path / "batches" / id
    os.utime(folder / "state.json", (1, 1))
    assert client.get(f"{V1}/batches/{id}/result").status_code == 404 and not folder.exists()


# --- what is sent and said ------------------------------------------------------------------------------------------


def test_a_character_with_a_huge_number_is_no_failure():
    assert (
        without_tags("<p>red &#" + "9" * 5000 + "; &#x" + "f" * 5000 + "; &#65; apple</p>")
        == "red \ufffd \ufffd A apple"
    )


def test_hints_take_no_time_for_long_lists():
    labels = [f"{'label of many letters ' * 6}{n}" for n in range(20_000)]
    began = time.perf_counter()
    assert near(labels[5][::-1], labels) == "" and near("labels", labels) == ""
    assert time.perf_counter() - began < 0.2
    assert near("tnf", ["man", "tfn"]) == " Did you mean 'tfn'?"


def test_a_language_that_is_not_there_is_refused_before_names_are_made(client_of, animals, monkeypatch):
    client = client_of(animals)
    monkeypatch.setattr("longtail.vocabulary.Vocabulary.from_part", lambda *args: 1 / 0)
    got = client.post(f"{V1}/models/animals/suggest", json={"text": "a cat", "language": "xx"})
    assert got.status_code == 422 and "a language of the vocabulary (" in got.json()["detail"]


def test_configurations_that_are_kept_have_a_limit(client_of, things, monkeypatch):
    monkeypatch.setattr("longtail.serve.label_studio_api.NAMES_KEPT", 10)
    from longtail.serve.label_studio_api import _Questions

    seen = []
    find = _Questions.find

    async def noted(self, served, config):
        found = await find(self, served, config)
        seen.append(sum(len(known.control.paths) for known in self._known.values()))
        return found

    monkeypatch.setattr(_Questions, "find", noted)
    client = client_of(things)
    for n in range(4):
        choices = "".join(f'<Choice value="c{n}-{at}"/>' for at in range(6))
        config = f'<View><Text name="t" value="$t"/><Choices name="c" toName="t">{choices}</Choices></View>'
        body = {"tasks": [{"data": {"t": "apple"}}], "label_config": config}
        assert client.post("/label-studio/predict", json=body).status_code == 200
    assert max(seen) <= 10


@pytest.mark.parametrize("cell", ["\n=1+1", "\r=1", "=1", "＝1"])
def test_formulas_are_no_formulas_in_tables(cell):
    assert plain_cell(cell) == f"'{cell}"


def test_answers_do_not_say_where_files_lie(client_of, things, tmp_path):
    client = client_of(things, reviews=tmp_path / "reviews.db")
    lines = {"Content-Type": "application/x-ndjson"}
    items = f"{V1}/review/items"
    assert client.post(items, content=b'{"id": "7", "text": "a"}', headers=lines).status_code == 201
    got = client.post(items, content=b'{"id": "7", "text": "b"}', headers=lines)
    assert got.status_code == 422 and got.json()["detail"] == "the row '7' is in reviews.db already, with another text."


@pytest.mark.parametrize("number", [str(2**63), "9" * 400, "9" * 5000, "-1", "x"])
def test_numbers_that_no_file_holds_are_not_there(client_of, things, tmp_path, number):
    client = client_of(things, reviews=tmp_path / "reviews.db")
    assert client.post(f"{V1}/review/decisions/{number}/undo").status_code == 404


def test_what_people_write_in_reviews_is_for_its_owner_only(tmp_path):
    ReviewStore(tmp_path / "reviews.db", create=True).close()
    assert stat.S_IMODE((tmp_path / "reviews.db").stat().st_mode) == 0o600


def test_a_model_is_not_put_back_while_another_change_is_on_its_way(tmp_path, monkeypatch):
    monkeypatch.setattr("longtail.serve.review_api.is_updating", lambda store: False)  # the other one begins just then
    folder = lt.Tagger(random_state=0).fit(["red apple", "fast car"] * 20, [["a"], ["b"]] * 20).save(tmp_path / "m")
    settings = ServeSettings({"m": folder}, reviews=tmp_path / "reviews.db", log_requests=False)
    from starlette.testclient import TestClient

    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        with updating(ReviewStore(tmp_path / "reviews.db")):
            got = client.post(f"{V1}/review/put-back")
        assert got.status_code == 422 and "running already" in got.json()["detail"]
        assert "no earlier model" in client.post(f"{V1}/review/put-back").json()["detail"]


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs /dev/zero")  # noqa: PTH110
def test_private_copies_are_made_of_regular_files_only(tmp_path):
    folder = lt.Tagger(random_state=0).fit(["red apple", "fast car"] * 20, [["a"], ["b"]] * 20).save(tmp_path / "m")
    part = next(folder.glob("model.*"))
    part.unlink()
    part.symlink_to("/dev/zero")
    with pytest.raises(ModelError):
        create_app(ServeSettings({"m": folder}, copy_models=True, log_requests=False))


def test_rows_are_added_by_one_caller_at_a_time(client_of, things, tmp_path, monkeypatch):
    client = client_of(things, reviews=tmp_path / "reviews.db")
    began, go_on = threading.Event(), threading.Event()
    monkeypatch.setattr("longtail.serve.review_api.items_of_jsonl", lambda raw: began.set() or (go_on.wait(20) and []))
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(client.post, f"{V1}/review/items", content=b'{"text": "a"}')
        assert began.wait(20)
        assert client.post(f"{V1}/review/items", content=b'{"text": "b"}').status_code == 503
        go_on.set()
        assert first.result().status_code == 201
