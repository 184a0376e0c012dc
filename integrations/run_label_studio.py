"""Label Studio and longtail together: a project is connected, predictions arrive, annotations become reviewed rows.

    python integrations/run_label_studio.py --label-studio ENVIRONMENT/bin/label-studio

ENVIRONMENT holds `label-studio`; everything else is done by its own HTTP API. The server of longtail has tokens: Label
Studio sends one as a password, and its webhook one in a header. Data: a sample of the bundled debtags.
Results: benchmarks/results/serve_label_studio.json.
"""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from benchmarks.harness.program import Facts, free_port, make_parser, start_facts, write_results
from benchmarks.harness.transcript import Background, Transcript

from longtail.data import Dataset, load_bundled
from longtail.review import ReviewStore, export_records

ROWS = 4000
TASKS = 20
OFFERED = 50  # rows that a tag has at least, to be offered as a choice
USER = "librarian@example.org"


def main() -> None:
    """Run everything and write what happened."""
    parser = make_parser(__doc__, "serve_label_studio.json")
    parser.add_argument("--label-studio", type=Path, required=True, metavar="PROGRAM", help="in ENVIRONMENT/bin")
    args = parser.parse_args()
    about = {"data": {"name": "debtags", "rows": ROWS, "tasks": TASKS}}
    facts = start_facts(args, about, "starlette", "uvicorn")
    with tempfile.TemporaryDirectory() as name:
        folder, port, studio_port = Path(name), free_port(), free_port()
        told = Transcript(folder, studio_settings(folder))
        facts["versions"] |= versions(args.label_studio)
        train, tasks = write_data(folder)
        program = [sys.executable, "-m", "longtail"]
        told.run(*program, "train", "train.jsonl", "-o", "debtags", "--seed", "0")
        tokens = {}
        for role in ("suggest", "review"):
            output = told.run(*program, "tokens", "add", role, "--role", role, "tokens")
            tokens[role] = re.findall(r"lt_[\w-]+", output)[0]
        serving = [*program, "serve", "debtags", "--port", str(port), "--tokens", "tokens", "--reviews", "reviews.db"]
        key, password = secrets.token_hex(20), secrets.token_hex(8)
        start: list[str | Path] = [args.label_studio, "start", "--no-browser", "--enable-legacy-api-token"]
        start += [f"--port={studio_port}", f"--data-dir={folder / 'studio'}", f"--user-token={key}"]
        start += [f"--username={USER}", f"--password={password}"]
        studio = Studio(f"http://127.0.0.1:{studio_port}", key, told)
        with (
            Background(told, serving, f"http://127.0.0.1:{port}/health"),
            Background(told, start, f"{studio.base}/health", seconds=1200),
        ):
            backend = f"http://127.0.0.1:{port}/label-studio"
            facts["choices"] = use_project(studio, "choices", choices(train), backend, tokens, tasks)
            facts["taxonomy"] = use_project(studio, "taxonomy", taxonomy(train), backend, tokens, tasks)
        facts["kept"] = kept_rows(folder)
        facts["requests"] = requests_answered(folder / "python.log")
        secret = [key, password, *tokens.values()]
        facts["files_with_a_secret"] = leaks(folder, secret)
        facts["transcript"] = json.loads(hidden(json.dumps(told.steps), secret))
    write_results(facts, args.output)
    print(json.dumps({key: value for key, value in facts.items() if key not in ("transcript", "machine")}, indent=1))


def studio_settings(folder: Path) -> dict[str, str]:
    """Return the variables that let Label Studio ask a server on this machine, and nobody else."""
    return {
        "ML_BLOCK_LOCAL_IP": "false",
        "USE_DEFAULT_BANNED_SUBNETS": "false",
        "SSRF_PROTECTION_ENABLED": "false",
        "COLLECT_ANALYTICS": "false",
        "LATEST_VERSION_CHECK": "false",
        "SENTRY_DSN": "",
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder / "studio"),
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "OMP_NUM_THREADS": "1",
    }


def versions(label_studio: Path) -> dict[str, str]:
    """Return the versions of Label Studio and of what it runs on."""
    code = "import json; from importlib.metadata import version as v; print(json.dumps({n: v(n) for n in NAMES}))"
    names = ("label-studio", "label-studio-sdk", "Django")
    done = subprocess.run(
        [label_studio.parent / "python", "-c", code.replace("NAMES", repr(names))], capture_output=True, check=True
    )
    return json.loads(done.stdout)


def write_data(folder: Path) -> tuple[Dataset, Dataset]:
    """Write a sample of the training rows; return it and the rows that become tasks."""
    whole, test = load_bundled("debtags"), load_bundled("debtags", "test")
    draw = np.random.default_rng(0)
    train = whole.take(np.sort(draw.permutation(whole.n_rows)[:ROWS]))
    with (folder / "train.jsonl").open("w", encoding="utf-8") as lines:
        for row, text in enumerate(train.texts or ()):
            lines.write(json.dumps({"text": text, "labels": train.labels_of(row)}) + "\n")
    return train, test.take(np.sort(draw.permutation(test.n_rows)[:TASKS]))


def offered(train: Dataset) -> list[str]:
    """Return the tags that are offered as choices."""
    counts = np.bincount(train.Y.indices, minlength=train.Y.shape[1])
    return [tag for tag, count in zip(train.names(), counts, strict=True) if count >= OFFERED]


def choices(train: Dataset) -> str:
    """Return a configuration with a flat list of choices."""
    inside = "".join(f"<Choice value={quoteattr(tag)}/>" for tag in offered(train))
    return (
        f'<View><Text name="t" value="$text"/><Choices name="c" toName="t" choice="multiple">{inside}</Choices></View>'
    )


def taxonomy(train: Dataset) -> str:
    """Return a configuration with choices in a tree: facets, and their tags below them."""
    facets: dict[str, list[str]] = {}
    for tag in offered(train):
        facets.setdefault(tag.partition("::")[0], []).append(tag)
    inside = "".join(
        f"<Choice value={quoteattr(facet)}>{''.join(f'<Choice value={quoteattr(tag)}/>' for tag in tags)}</Choice>"
        for facet, tags in facets.items()
    )
    return f'<View><Text name="t" value="$text"/><Taxonomy name="c" toName="t">{inside}</Taxonomy></View>'


class Studio:
    """Label Studio's own HTTP API."""

    def __init__(self, base: str, key: str, told: Transcript) -> None:
        self.base, self.key, self.told = base, key, told

    def ask(self, method: str, path: str, body: Any = None, *, keep: bool = True) -> Any:
        """Return what an address answers, and keep it in the transcript."""
        headers = {"Authorization": f"Token {self.key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                raw, status = answer.read(), answer.status
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.code} {error.read()[:500]!r}") from error
        found = json.loads(raw) if raw else None
        if keep:
            self.told.note(f"Label Studio: {method} {path}", {"status": status, "answer": shortened(found)})
            print(f"  Label Studio: {method} {path}: {status}", flush=True)
        return found


def shortened(value: Any) -> Any:
    """Return an answer with long texts and lists cut, for the transcript."""
    if isinstance(value, str):
        return value if len(value) <= 200 else f"{value[:200]} … ({len(value)} characters)"
    if isinstance(value, list):
        return [shortened(one) for one in value[:3]] + ([f"… ({len(value)} in all)"] if len(value) > 3 else [])
    if isinstance(value, dict):
        return {key: shortened(one) for key, one in value.items()}
    return value


def use_project(studio: Studio, title: str, config: str, backend: str, tokens: dict[str, str], tasks: Dataset) -> Facts:
    """Make a project, connect it, import tasks, let predictions come, and annotate; return what arrived."""
    project = studio.ask("POST", "/api/projects/", {"title": title, "label_config": config})["id"]
    connected = studio.ask(
        "POST",
        "/api/ml/",
        {
            "project": project,
            "url": backend,
            "title": "longtail",
            "auth_method": "BASIC_AUTH",
            "basic_auth_user": "label-studio",
            "basic_auth_pass": tokens["suggest"],
        },
    )
    for hook in studio.ask("GET", f"/api/webhooks/?project={project}"):
        header = {"headers": {"Authorization": f"Bearer {tokens['review']}"}}
        studio.ask("PATCH", f"/api/webhooks/{hook['id']}/", header)
    texts = [{"data": {"text": text}} for text in tasks.texts or ()]
    imported = studio.ask("POST", f"/api/projects/{project}/import", texts)
    begun = time.perf_counter()
    whole = {"selectedItems": {"all": True, "excluded": []}}
    studio.ask("POST", f"/api/dm/actions?id=retrieve_tasks_predictions&project={project}", whole)
    seconds = time.perf_counter() - begun
    predictions = studio.ask("GET", f"/api/predictions/?project={project}")
    kind = "choices" if title == "choices" else "taxonomy"
    right = agreement(predictions, kind, tasks, project, studio)
    annotate(studio, project, kind, predictions)
    studio.ask("POST", f"/api/ml/{connected['id']}/train", {})
    return {
        "state": connected["state"],
        "tasks": imported["task_count"],
        "predictions": len(predictions),
        "seconds": round(seconds, 2),
        **right,
        "state_after_training": studio.ask("GET", f"/api/ml/{connected['id']}")["state"],
    }


def agreement(predictions: list[Any], kind: str, tasks: Dataset, project: int, studio: Studio) -> Facts:
    """Return how many predicted labels there are, and how many of them people gave the same text."""
    truth = {text: set(tasks.labels_of(row)) for row, text in enumerate(tasks.texts or ())}
    total = good = 0
    for prediction in predictions:
        text = studio.ask("GET", f"/api/tasks/{prediction['task']}/", keep=False)["data"]["text"]
        for one in prediction["result"]:
            labels = [path[-1] if kind == "taxonomy" else path for path in one["value"][kind]]
            total += len(labels)
            good += len(truth[text] & set(labels))
    return {"labels": total, "labels_right": good}


def annotate(studio: Studio, project: int, kind: str, predictions: list[Any]) -> None:
    """Annotate the first two tasks as predicted, change the first annotation, and skip a third."""
    with_labels = [prediction for prediction in predictions if prediction["result"]]
    first, second, third = with_labels[:3]
    made = studio.ask("POST", f"/api/tasks/{first['task']}/annotations/", {"result": plain(first["result"])})
    studio.ask("POST", f"/api/tasks/{second['task']}/annotations/", {"result": plain(second["result"])})
    one = plain(first["result"])
    one[0]["value"][kind] = one[0]["value"][kind][:1]
    studio.ask("PATCH", f"/api/annotations/{made['id']}/", {"result": one})
    skipped = {"result": plain(third["result"]), "was_cancelled": True}
    studio.ask("POST", f"/api/tasks/{third['task']}/annotations/", skipped)


def plain(result: list[Any]) -> list[Any]:
    """Return the result of a prediction as an annotation has it."""
    return json.loads(json.dumps([{**one, "id": f"r{at}"} for at, one in enumerate(result)]))


def kept_rows(folder: Path) -> Facts:
    """Return what longtail kept of the annotations."""
    with ReviewStore(folder / "reviews.db") as store:
        rows = list(export_records(store, "all"))
    return {
        "rows": len(rows),
        "labels_of_rows": [row["labels"] for row in rows],
        "reviewers": sorted({name for row in rows for name in row["review"]["reviewers"]}),
    }


def requests_answered(log: Path) -> dict[str, int]:
    """Return how many requests of Label Studio longtail answered, by route and status, from its access log."""
    found: dict[str, int] = {}
    for line in log.read_text("utf-8").splitlines():
        if line.startswith("{") and (facts := json.loads(line))["path"].startswith("/label-studio"):
            name = f"{facts['method']} {facts['path']}: {facts['status']}"
            found[name] = found.get(name, 0) + 1
    return found


def leaks(folder: Path, secret: list[str]) -> int:
    """Return how many files of longtail hold a token of Label Studio or of ours."""
    files = [folder / "python.log", *folder.glob("reviews.db*"), *(folder / "debtags").iterdir(), folder / "tokens"]
    return sum(any(word.encode() in file.read_bytes() for word in secret) for file in files if file.is_file())


def hidden(text: str, secret: list[str]) -> str:
    """Return a text without secrets."""
    for word in secret:
        text = text.replace(word, "SECRET")
    return text


if __name__ == "__main__":
    main()
