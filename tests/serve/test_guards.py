"""What every request passes: names of the server, origins, sizes, rates, headers and the access log."""

import asyncio
import json

import pytest

from longtail.errors import ParameterError
from longtail.serve import ServeSettings, create_app

SUGGEST = "/v1/longtail/models/things/suggest"


def test_only_names_of_this_machine_are_answered(client_of, things):
    client = client_of(things)
    for host in ("127.0.0.1:8383", "localhost", "[::1]:8383"):
        assert client.get("/health", headers={"Host": host}).status_code == 200
    got = client.get("/health", headers={"Host": "rebound.example"})
    assert got.status_code == 421 and "not known as 'rebound.example'" in got.json()["detail"]
    named = client_of(things, hosts=("tags.example.org",))
    assert named.get("/health", headers={"Host": "tags.example.org"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_pages_of_other_sites_change_nothing(client_of, things, headers):
    client = client_of(things)
    assert client.post(SUGGEST, json={"text": "a"}, headers=headers).status_code == 403
    assert client.post(SUGGEST, json={"text": "a"}, headers={"Origin": "http://127.0.0.1"}).status_code == 200


def test_a_proxy_in_front_needs_tokens(client_of, things):
    got = client_of(things).get("/v1/longtail/models", headers={"X-Forwarded-For": "1.2.3.4"})
    assert got.status_code == 403 and "tokens" in got.json()["detail"]


def test_other_machines_need_tokens_or_a_word(things, client_of):
    with pytest.raises(ParameterError, match=r"can be reached from other machines"):
        ServeSettings({"things": things}, host="0.0.0.0")
    client = client_of(things, host="0.0.0.0", open=True)
    assert client.post(SUGGEST, json={"text": "apple"}).status_code == 200
    assert client.post("/v1/longtail/models/things/reload").status_code == 403


def test_sizes_have_limits(client_of, things):
    client = client_of(things, body_bytes=1000, rows=3, text_characters=50)
    too_large = json.dumps({"text": "a" * 2000}).encode()
    for body in (too_large, (too_large[at : at + 100] for at in range(0, 2000, 100))):
        got = client.post(SUGGEST, content=body, headers={"Content-Type": "application/json"})
        assert got.status_code == 413 and got.json()["detail"] == "the body is larger than 1000 bytes."
    assert client.post(SUGGEST, json={"texts": ["a"] * 4}).status_code == 413
    got = client.post(SUGGEST, json={"text": "a" * 51})
    assert got.status_code == 413 and got.json()["detail"] == "text must have at most 50 characters; got 51."
    got = client_of(things, most_tags=5).post(SUGGEST, json={"texts": ["a"] * 2, "k": 900})
    assert got.status_code == 413 and "too many for one answer" in got.json()["detail"]
    assert client.get("/v1/longtail/models?" + "a" * 9000).status_code == 414
    assert client.get("/v1/longtail/models", headers={"X-Long": "a" * 40_000}).status_code == 431
    packed = client.post(
        SUGGEST, content=b"x", headers={"Content-Encoding": "gzip", "Content-Type": "application/json"}
    )
    assert packed.status_code == 415


def call(app, messages, headers=(), path=SUGGEST, method="POST"):
    """Return what an app sends for a request whose body comes as these messages; None waits for ever."""
    sent = []

    async def receive():
        message = messages.pop(0) if messages else None
        if message is None:
            await asyncio.sleep(60)
        return message

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json"), *headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "scheme": "http",
        "root_path": "",
        "http_version": "1.1",
    }
    asyncio.run(asyncio.wait_for(app(scope, receive, send), 10))
    return sent


def test_a_body_that_does_not_come_is_not_waited_for(things):
    app = create_app(ServeSettings({"things": things}, body_seconds=0.1, log_requests=False))
    sent = call(app, [{"type": "http.request", "body": b'{"te', "more_body": True}, None])
    assert sent[0]["status"] == 408 and b"0.1 seconds" in sent[1]["body"]


def test_a_caller_who_has_gone_is_no_error(things, caplog):
    app = create_app(ServeSettings({"things": things}, log_requests=False))
    assert call(app, [{"type": "http.disconnect"}]) == [] and not caplog.records


def test_headers_that_stand_twice_are_refused(things):
    app = create_app(ServeSettings({"things": things}, log_requests=False))
    sent = call(app, [], headers=[(b"host", b"evil.example")])
    assert sent[0]["status"] == 400 and b"stands twice" in sent[1]["body"]


def test_too_many_requests_of_one_caller(client_of, things):
    client = client_of(things, rate=1)
    codes = [client.get("/v1/longtail/models").status_code for _ in range(5)]
    assert codes[:2] == [200, 200] and codes[-1] == 429
    assert int(client.get("/v1/longtail/models").headers["Retry-After"]) >= 1


def test_every_answer_has_strict_headers(client_of, things):
    for path in ("/v1/longtail/models", "/nowhere", "/"):
        headers = client_of(things).get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert (
            headers.get("x-frame-options") == "DENY" or "frame-ancestors 'none'" in headers["content-security-policy"]
        )
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]


def test_the_log_has_no_texts_and_no_tokens(client_of, things, tmp_path):
    client = client_of(things, log=tmp_path / "log")
    secret = {"Authorization": "Bearer lt_secret"}
    client.post(SUGGEST, json={"texts": ["private apple", "b"]}, headers=secret)
    client.get("/v1/longtail/models/things/labels?q=private", headers=secret)
    raw = (tmp_path / "log").read_text()
    assert "private" not in raw and "lt_secret" not in raw
    first = json.loads(raw.splitlines()[0])
    assert first["rows"] == 2 and first["status"] == 200 and first["route"] == "/v1/longtail/models/{model}/suggest"
    client_of(things, log=tmp_path / "texts", log_texts=True).post(SUGGEST, json={"text": "public apple"})
    assert json.loads((tmp_path / "texts").read_text())["texts"] == ["public apple"]


def test_a_failure_tells_nothing_about_the_server(client_of, things, monkeypatch, caplog):
    client = client_of(things)
    monkeypatch.setattr("longtail.serve.suggesting.ServedModel.suggest", lambda *args: 1 / 0)
    got = client.post(SUGGEST, json={"text": "a"})
    assert got.status_code == 500 and "division" not in got.text and got.headers["x-request-id"] in got.json()["detail"]
