"""Pages stay inert in a real browser, whatever labels, texts, ids and file names say."""

import json
import shutil
import subprocess
from collections import Counter
from html.parser import HTMLParser

import pytest

from longtail.report import explanation_html

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OWN = "document.documentElement.setAttribute('owned','1')"
EVIL = [
    f"<script>{OWN}</script>",
    f'"><img src=x onerror="{OWN}">',
    f"'><svg onload={OWN}>",
    f"</style></title></textarea><script>{OWN}</script><!--",
    f"javascript:{OWN}",
    f"{{{{7*7}}}} ${{{OWN}}} ]]> --> \x1b[2J\x00 \u202e\u2066 &#60;script&#62;",
]


class Elements(HTMLParser):
    """Counts the elements and the attributes of a document."""

    def __init__(self, document):
        super().__init__()
        self.tags, self.attributes, self.scripts = Counter(), Counter(), ""
        self.feed(document)

    def handle_starttag(self, tag, attributes):
        self.tags[tag] += 1
        self.attributes.update(name for name, _ in attributes)
        self.runs = tag == "script" and ("type", "application/json") not in attributes

    def handle_data(self, data):
        if self.cdata_elem == "script" and self.runs:
            self.scripts += data


def dom(file):
    """Return the document as the browser has built it, scripts included."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000", "--dump-dom"]
    profile = f"--user-data-dir={file.parent / 'profile'}"
    done = subprocess.run([BROWSER, *options, profile, file.as_uri()], capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(BROWSER is None, reason="needs a browser")
def test_pages_run_nothing_that_a_stranger_wrote(tmp_path, run):
    rows = [
        {"id": EVIL[i % 6], "text": f"word{i % 6} {EVIL[i % 6]} more{i % 6}", "labels": [f"{EVIL[i % 6]}{i % 6}"]}
        for i in range(60)
    ]
    data = tmp_path / f"{EVIL[2].replace('/', '')}.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for method in ("tree", "ova"):
        run("train", data, "-o", tmp_path / method, "--method", method, "--calibrate", 0)
    run("evaluate", tmp_path / "tree", data, "--report", tmp_path / "tree.html", "--resamples", 0)
    run("audit", tmp_path / "ova", data, "--report", tmp_path / "ova.html")
    facts = json.loads(run("explain", tmp_path / "tree", "--text", rows[0]["text"], "--json"))
    (tmp_path / "explained.html").write_text(f"<!doctype html><title>x</title>{explanation_html(facts)}", "utf-8")
    for page in ("tree.html", "ova.html", "explained.html"):
        text = (tmp_path / page).read_text("utf-8")
        assert "word" in text or "script" in text  # what strangers wrote is in it
        assert not [c for c in "\x00\x1b\u202e\u2066" if c in text], page
        found = Elements(dom(tmp_path / page))
        assert found.tags["html"] == 1 and not {"img", "iframe", "object"} & set(found.tags), page
        assert "owned" not in found.scripts and found.tags["script"] <= 2, page  # the page's own, and facts as JSON
        assert "owned" not in found.attributes and not [name for name in found.attributes if name[:2] == "on"], page
