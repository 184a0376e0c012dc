"""The files of the page: served under a strict policy, without inline code, in two languages with the same keys."""

import ast
import json
import re
import string

import pytest

pytest.importorskip("starlette")

from starlette.testclient import TestClient

import longtail as lt
from longtail.serve import ServeSettings, create_app
from longtail.serve.page import FOLDER, MEDIA_TYPES

FILES = sorted(path for path in FOLDER.rglob("*") if path.is_file())
SCRIPTS = {path.relative_to(FOLDER).as_posix(): path.read_text("utf-8") for path in FILES if path.suffix == ".js"}
WORDS = {name: json.loads((FOLDER / f"words.{name}.json").read_text("utf-8")) for name in ("en", "de")}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "things"
    lt.Tagger(random_state=0, calibrate=0).fit(["red apple", "fast car"] * 5, [["fruit"], ["car"]] * 5).save(folder)
    settings = ServeSettings({"things": folder}, log_requests=False)
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        yield client


def test_both_languages_say_the_same_things():
    assert WORDS["en"].keys() == WORDS["de"].keys()
    fields = {
        name: {
            key: sorted(field for _, field, _, _ in string.Formatter().parse(text) if field) for key, text in of.items()
        }
        for name, of in WORDS.items()
    }
    assert all(set(fields["en"][key]) == set(fields["de"][key]) for key in WORDS["en"])
    assert all(text.strip() for of in WORDS.values() for text in of.values())


def test_every_word_that_a_script_asks_for_is_there_and_every_one_is_used():
    asked = {key for text in SCRIPTS.values() for key in re.findall(r'\bt\(\s*"([^"]+)"', text)}
    asked |= {
        key
        for text in SCRIPTS.values()
        for key in re.findall(r'"((?:[a-z]+[.-])+[a-z-]+)"', text)
        if key in WORDS["en"]
    }
    stems = {re.sub(r"\.(one|other)$", "", key) for key in WORDS["en"]}
    assert asked <= stems
    begun = [found for text in SCRIPTS.values() for found in re.findall(r"`([a-z-]+(?:\.[a-z-]+)*\.)\$\{", text)]
    endings = [found for text in SCRIPTS.values() for found in re.findall(r"\}(\.[a-z]+)`", text)]
    unused = [key for key in stems - asked if not key.startswith(tuple(begun)) and not key.endswith(tuple(endings))]
    assert unused == []


def test_what_the_page_translates_is_what_the_server_says(client):
    """The page knows refusals by their sentences; each pattern fits one that stands in the code of the server."""
    found = re.findall(r'^  \[/(.*)/, "(refused\.[a-z-]+)"\],$', SCRIPTS["refusals.js"], re.MULTILINE)
    patterns = {key: re.compile(pattern.replace("(?<", "(?P<")) for pattern, key in found}
    assert len(patterns) > 15
    code = [ast.parse(file.read_text("utf-8")) for file in FOLDER.parent.glob("*.py")]
    said = [said_by(node) for module in code for node in ast.walk(module)]
    suggest = "/v1/longtail/models/things/suggest"
    for body in ({"text": "a" * 200_001}, {"texts": ["a"] * 1001}):
        said.append(client.post(suggest, json=body).json()["detail"])
    for key, pattern in patterns.items():
        matches = [match for match in map(pattern.search, filter(None, said)) if match]
        assert matches, key
        words = WORDS["de"].get(key) or WORDS["de"][f"{key}.one"]
        assert {field for _, field, _, _ in string.Formatter().parse(words) if field} <= set(matches[0].groupdict())
    kinds = json.loads(re.search(r"KINDS = (\[.*\]);", SCRIPTS["refusals.js"])[1])
    assert all(f"refused.{kind}" in WORDS["de"] for kind in kinds)


def said_by(node):
    """Return a string of the code, with 7 for whatever is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if not isinstance(node, ast.JoinedStr):
        return None
    filled = {ord("r"): "'7'"}
    return "".join(
        part.value if isinstance(part, ast.Constant) else filled.get(part.conversion, "7") for part in node.values
    )


def test_no_script_makes_markup_or_code_of_text():
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\(\"style|srcdoc"
    )
    assert [name for name, text in SCRIPTS.items() if re.search(forbidden, text)] == []
    page = (FOLDER / "index.html").read_text("utf-8")
    assert (
        re.findall(r"<script(?![^>]* src=)", page) == []
        and " style=" not in page
        and " on" not in re.sub(r">[^<]*<", "", page)
    )


def test_every_module_that_is_imported_is_there():
    for name, text in SCRIPTS.items():
        for target in re.findall(r'(?:\bfrom |import\()"(\.[^"]+)"', text):
            assert (FOLDER / name).parent.joinpath(target).resolve().is_file(), (name, target)


def test_the_page_comes_with_a_strict_policy(client):
    got = client.get("/")
    assert got.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(part.strip().partition(" ")[::2] for part in got.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["form-action"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert "unsafe" not in got.headers["content-security-policy"]
    assert got.headers.get_list("x-content-type-options") == ["nosniff"]


def test_files_are_sent_once(client):
    got = client.get("/static/app.js")
    assert got.headers["content-type"] == "text/javascript; charset=utf-8" and got.text == SCRIPTS["app.js"]
    again = client.get("/static/app.js", headers={"If-None-Match": got.headers["etag"]})
    assert again.status_code == 304 and again.content == b""
    plain = client.get("/static/app.js", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers and plain.text == SCRIPTS["app.js"]


@pytest.mark.parametrize(
    "path", ["../page.py", "%2e%2e/page.py", "views/..%2f..%2fpage.py", "words.xx.json", "", "views"]
)
def test_nothing_else_is_sent(client, path):
    got = client.get(f"/static/{path}")
    assert got.status_code == 404 and got.headers["content-type"] == "application/problem+json"


def test_all_files_are_packaged():
    assert {path.suffix for path in FILES} <= MEDIA_TYPES.keys()
    assert {path.parent.relative_to(FOLDER).as_posix() for path in FILES} == {
        ".",
        "views",
    }  # as pyproject.toml names them
