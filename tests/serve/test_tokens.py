"""Tokens and sessions: who may do what, and what a page of someone else cannot do."""

import json
import stat
import time

import pytest

from longtail.errors import ParameterError
from longtail.serve import add_token, remove_token

SUGGEST, RELOAD = "/v1/longtail/models/things/suggest", "/v1/longtail/models/things/reload"


@pytest.fixture
def tokens(tmp_path):
    file = tmp_path / "tokens"
    return file, {role: add_token(file, f"{role}-er", role) for role in ("suggest", "review", "admin")}


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_roles(client_of, things, tokens):
    file, made = tokens
    client = client_of(things, tokens=file)
    assert client.post(SUGGEST, json={"text": "apple"}).status_code == 401
    assert client.post(SUGGEST, json={"text": "apple"}).headers["www-authenticate"] == "Bearer"
    for wrong in (bearer("lt_no"), {"Authorization": f"Basic {made['admin']}"}, bearer("")):
        assert client.post(SUGGEST, json={"text": "apple"}, headers=wrong).status_code == 401
    said = [
        client.post(SUGGEST, json={"text": "a"}, headers=h).json()["detail"] for h in ({}, bearer(""), bearer("lt_no"))
    ]
    assert said[0] == said[1] != said[2] == "this token is not known here." and said[0].startswith("this needs a token")
    assert client.get("/v1/longtail/session", headers=bearer("lt_no")).json()["detail"] == said[2]
    assert client.post(SUGGEST, json={"text": "apple"}, headers=bearer(made["suggest"])).status_code == 200
    assert client.post(RELOAD, headers=bearer(made["review"])).status_code == 403
    assert client.post(RELOAD, headers=bearer(made["admin"])).status_code == 200
    assert client.get("/health").status_code == 200


def test_the_file_holds_no_token_and_is_private(tokens):
    file, made = tokens
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not any(token in file.read_text() for token in made.values())
    with pytest.raises(ParameterError, match="has a token of 'admin-er' already"):
        add_token(file, "admin-er", "admin")


def test_a_token_that_cannot_be_made_is_refused_in_one_sentence(run, tmp_path):
    told = run("tokens", "add", "a b", tmp_path / "tokens", code=2)
    assert "error: the name of a token must be 1 to 64 letters" in told and "bundled" not in told
    file = tmp_path / "nowhere" / "tokens"
    told = run("tokens", "add", "ada", file, code=2)
    assert f"error: {file} cannot be written: the folder {file.parent} does not exist." in told


def test_a_removed_token_is_refused_soon(client_of, things, tokens):
    file, made = tokens
    client = client_of(things, tokens=file)
    cookie = client.post("/v1/longtail/session", json={"token": made["admin"]})
    assert cookie.status_code == 200
    remove_token(file, "admin-er")
    for _ in range(50):
        if client.get("/v1/longtail/models", headers=bearer(made["admin"])).status_code == 401:
            break
        time.sleep(0.1)
    assert client.get("/v1/longtail/models", headers=bearer(made["admin"])).status_code == 401
    assert client.get("/v1/longtail/models").status_code == 401, "its session falls with it"


def test_sessions(client_of, things, tokens):
    file, made = tokens
    client = client_of(things, tokens=file)
    assert client.post("/v1/longtail/session", json={"token": "lt_wrong"}).status_code == 401
    signed_in = client.post("/v1/longtail/session", json={"token": made["review"]})
    assert "HttpOnly" in signed_in.headers["set-cookie"] and "SameSite=Strict" in signed_in.headers["set-cookie"]
    who = signed_in.json()
    assert who["name"] == "review-er" and who["role"] == "review"
    assert client.get("/v1/longtail/session").json() == who
    assert client.post(SUGGEST, json={"text": "a"}).status_code == 403, "a cookie alone changes nothing"
    assert client.post(SUGGEST, json={"text": "a"}, headers={"X-CSRF-Token": "0" * 64}).status_code == 403
    assert client.post(SUGGEST, json={"text": "a"}, headers={"X-CSRF-Token": who["csrf"]}).status_code == 200
    assert client.delete("/v1/longtail/session", headers={"X-CSRF-Token": who["csrf"]}).status_code == 204
    assert client.get("/v1/longtail/session").status_code == 401


@pytest.mark.parametrize(
    "change", [lambda c: c[:-1], lambda c: "x" + c, lambda c: "..." + c, lambda c: "", lambda c: "é"]
)
def test_a_forged_cookie_lets_nobody_in(client_of, things, tokens, change):
    file, made = tokens
    client = client_of(things, tokens=file)
    signed = client.post("/v1/longtail/session", json={"token": made["review"]}).headers["set-cookie"]
    value = signed.partition("=")[2].partition(";")[0]
    client.cookies.clear()
    header = f"longtail={change(value)}".encode("latin-1")
    assert client.get("/v1/longtail/session", headers={"Cookie": header}).status_code == 401


def test_cookies_behind_https_are_bound_to_the_host(client_of, things, tokens):
    file, made = tokens
    client = client_of(things, tokens=file, https=True)
    got = client.post("/v1/longtail/session", json={"token": made["review"]})
    assert got.headers["set-cookie"].startswith("__Host-longtail=") and "Secure" in got.headers["set-cookie"]
    assert "strict-transport-security" in got.headers


def test_without_tokens_the_caller_is_this_machine(client_of, things):
    assert client_of(things).get("/v1/longtail/session").json() == {"name": "local", "role": "admin", "csrf": None}


def test_commands(run, tmp_path):
    file = tmp_path / "tokens"
    token = run("tokens", "add", "ada", file, "--role", "review").strip()
    assert token.startswith("lt_") and len(token) > 40
    assert json.loads(run("tokens", "list", file, "--json")) == [{"name": "ada", "role": "review"}]
    assert "has a token of 'ada' already" in run("tokens", "add", "ada", file, code=2)
    assert "must be 1 to 64 letters" in run("tokens", "add", "a/b", file, code=2)
    run("tokens", "remove", "ada", file)
    assert run("tokens", "list", file) == ""
    assert "is not a file of tokens" in run("tokens", "list", __file__, code=2)
